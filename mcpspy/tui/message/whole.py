"""The text of a message for an editor or a pager: JSON with one member per line, without control characters.

The rules are those of the pane: JSON keeps its original tokens, and other text is shown line by line.
"""

from mcpspy.errors import UsageError
from mcpspy.text import printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.gates.message_text import pretty


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
