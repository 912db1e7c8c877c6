"""The forms in which a message is shown: as people read it, as a tree, as raw text or as bytes."""

import re

from mcpspy.reading.content import READ
from mcpspy.text import size_text
from mcpspy.timeline import Row
from mcpspy.tui.message.content import Content, content_of
from mcpspy.tui.message.document import HexDump, MessageForm, Text, Tree
from mcpspy.tui.message.facts import Around

FORMS = ("content", "tree", "raw", "hex")
"""The names of the forms, in the order of the key."""

_READ_PARAMS = frozenset(("notifications/message", "sampling/createMessage", "elicitation/create"))
_SURELY_FEW = 200_000  # bytes of JSON that have few values
_MOST_VALUES = 100_000  # a message of more values is shown as a tree, because decoding it would take too long
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def default_form(row: Row) -> str:
    """Return the form of a message until the user chooses one."""
    is_read = row.kind == "error" or (row.method in READ if row.kind == "result" else row.method in _READ_PARAMS)
    return "content" if is_read else "tree"


def body_of(row: Row | None, around: Around, form: str, width: int) -> MessageForm:
    """Return a message in a form, or in the next form in which it can be shown."""
    if row is None:
        return HexDump(b"", width)
    if form == "hex":
        return HexDump(row.raw, width)
    is_json = bool(row.raw) and (row.kind not in ("invalid", "stderr") or row.value is not None)
    content = _content(row, around) if form == "content" and is_json else None
    if content is not None:
        return content
    literal = form == "raw"
    text = row.raw.decode(errors="backslashreplace" if literal else "replace") if row.raw else row.text or ""
    if row.tail:
        missing = row.size - len(row.raw) - len(row.tail)
        return Text(f"{text}\n… {size_text(missing)} are not shown …\n{row.tail.decode(errors='replace')}")
    return Tree(text) if is_json and not literal else Text(text)


def _content(row: Row, around: Around) -> Content | None:
    """Return what people read of a message; None if the frame is incomplete, not JSON, or has too many values."""
    if row.tail:
        return None
    raw = row.raw if len(row.raw) == row.size else b"".join(around.pieces(row.n))
    if len(raw) != row.size or (len(raw) > _SURELY_FEW and _STRING.sub(b"", raw).count(b",") > _MOST_VALUES):
        return None
    return content_of(raw.decode(errors="replace"))
