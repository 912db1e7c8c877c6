"""Messages as text for an editor or a pager, with one member per line, and back on one line.

Each token keeps its original text: 1.10 stays 1.10, and a duplicate key stays duplicate. Invisible characters become
JSON escapes, so that no frame can hide its content (F-08). Text that is not JSON is shown line by line, as in the pane.
"""

import json
import os
import re
from typing import Any

from mcpspy.capture.format import OWN_ID
from mcpspy.errors import UsageError
from mcpspy.text import escaped, printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.message.document import spans
from mcpspy.wire.jsonrpc import Id

_ID = re.compile(r'"id"\s*:')
_CALL = '{"content":[{"type":"text","text":""}]}'


def pretty(text: str, number: str | None = None) -> str:
    """Return JSON text with one member per line; `number` is a text that replaces its id."""
    lines = []
    for span in spans(text):
        line = text[span.start : span.end].strip()
        if number is not None and span.depth == 1 and _ID.match(line):
            line = f'"id":{json.dumps(number)}{"," * line.endswith(",")}'
        lines.append("  " * max(span.depth, 0) + line)
    return escaped("\n".join(lines))


def one_line(text: str) -> str:
    """Return JSON text on one line; JSON strings contain no newlines, so each newline is between tokens."""
    return "".join(line.strip(" \t\r") for line in text.split("\n"))


def json_mistake(text: str) -> str | None:
    """Return why a text is not JSON, with line and column; None if it is JSON."""
    found = _decoded(text)
    return str(found) if isinstance(found, ValueError) else None


def answer_mistake(text: str) -> str | None:
    """Return why a text is not a response; None if it is one."""
    found = _decoded(text)
    if isinstance(found, ValueError):
        return str(found)
    if not isinstance(found, dict) or ("result" in found) == ("error" in found):
        return "a response is an object with either result or error"
    return None


def request_mistake(text: str, number: str) -> str | None:
    """Return why a text is not a request with that id; None if it is one."""
    found = _decoded(text)
    if isinstance(found, ValueError):
        return str(found)
    if not isinstance(found, dict) or not isinstance(found.get("method"), str):
        return "a request is an object with a method"
    return None if found.get("id") == number else f'the id must stay "{number}": the client does not know it'


def _decoded(text: str) -> Any:
    """Return the value of JSON text, or a ValueError (not raised) with the reason."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=len)  # a number may have too many digits for `int`
    except json.JSONDecodeError as error:
        return ValueError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except RecursionError:
        return ValueError("not JSON that can be read: nested too deeply")
    except ValueError as error:
        return ValueError(f"not JSON: {error}")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def own_id() -> str:
    """Return an id for a request of our own, which no client uses."""
    return f"{OWN_ID}{os.urandom(4).hex()}"


def answer_text(request: Row) -> str:
    """Return the initial text of the response to a request, for editing."""
    result = _CALL if request.method == "tools/call" else "{}"
    number = _id_text(request.id) if request.id else "null"
    return pretty(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}')


def _id_text(number: Id) -> str:
    return json.dumps(number.token) if number.kind == "string" else number.token


def whole(row: Row) -> str:
    """Return the text of a frame, or the part that is kept in memory. Raises UsageError if there is none."""
    if not row.raw and not row.text:
        raise UsageError(f"#{row.n} has no text to open")
    text = row.raw.decode(errors="replace") if row.raw else row.text or ""
    missing = row.size - len(row.raw) - len(row.tail) if row.raw else 0
    if missing > 0 or row.tail:
        note = f"… {size_text(missing)} are not shown: s saves the whole frame …"
        return "\n".join([_lines(text), note, _lines(row.tail.decode(errors="replace"))])
    if row.raw and row.value is not None and row.refused is None:
        return pretty(text)
    return _lines(text)


def _lines(text: str) -> str:
    return "\n".join(printable(line, len(line) * 10 + 1) for line in text.rstrip("\n").split("\n"))
