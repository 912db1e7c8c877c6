"""A recorded message with a few of its values replaced, and every other byte as recorded.

A mock answers with the ids of its current client, and a client returns the cursors of its current server. Everything
else must be as recorded, down to the spaces, the order of members and the digits of a number. So the text is edited,
not decoded and encoded again. If members have the same name, the last one counts, as in JSON parsers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspy.conversation.model import Message
from mcpspy.json_values import Path
from mcpspy.wire.jsonrpc import Id

_SPACE = re.compile("[ \t\r\n\ufeff]*")  # also a byte order mark, which lenient peers skip
_scan = json.JSONDecoder(strict=False).raw_decode


def rewritten(message: Message, changes: Mapping[Path, Any]) -> bytes:
    """Return the bytes of a message, changed by `edited`."""
    return edited(message.frame.raw, message.part, changes)


def edited(raw: bytes, part: int, changes: Mapping[Path, Any]) -> bytes:
    """Return element `part` of a frame, on one line, with `changes[path]` in place of the JSON value at each path.

    Paths that do not exist are ignored. An `Id` stands for the id with its own digits. An element of a batch is
    returned alone. A frame that is not JSON is returned unchanged.
    """
    batch = raw.lstrip()[:1] == b"["
    if not batch and not changes:
        return _one_line(raw)
    text = raw.decode("utf-8", "surrogateescape")
    try:
        whole = _span(text, 0, (part,) if batch else ()) or (0, len(text))
        spans = [(span, value) for path, value in changes.items() if (span := _span(text, whole[0], path))]
    except (ValueError, IndexError, RecursionError):
        return _one_line(raw)
    start, end = whole if batch else (0, len(text))
    parts = []
    for (first, last), value in sorted(spans, key=lambda found: found[0], reverse=True):
        parts += [text[last:end], json_text(value)]
        end = first
    parts.append(text[start:end])
    return _one_line("".join(reversed(parts)).encode("utf-8", "surrogateescape"))


def _one_line(raw: bytes) -> bytes:
    """Return a message as a line of stdio: in JSON, newlines only separate tokens, so a space is equivalent."""
    return raw.replace(b"\n", b" ")


def json_text(value: Any) -> str:
    """Return a value as JSON; an `Id` with its own digits."""
    if isinstance(value, Id):
        return json.dumps(value.token) if value.kind == "string" else value.token
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _span(text: str, at: int, path: Path) -> tuple[int, int] | None:
    """Return the start and end of the value at `path`, in the value that begins at `at`."""
    at = _skip(text, at)
    if not path:
        return at, _scan(text, at)[1]
    found = None
    for step, start in _members(text, at):
        if step == path[0]:
            found = _span(text, start, path[1:])
    return found


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Yield the name or index of each member of the object or array at `at`, and where its value begins."""
    named = text[at] == "{"
    if not named and text[at] != "[":
        return
    at = _skip(text, at + 1)
    place = 0
    while text[at] not in "]}":
        step: str | int = place
        if named:
            step, at = _scan(text, at)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        yield step, at
        at = _skip(text, _scan(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        place += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
