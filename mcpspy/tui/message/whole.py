"""A message as the text that an editor or a pager gets: JSON a member a line, and nothing that acts on a terminal.

The rules are those of the pane: what is JSON is shown as it was written, and what is not, line by line.
"""

from mcpspy.errors import UsageError
from mcpspy.text import printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.gates.message_text import pretty


def whole(row: Row) -> str:
    """The text of a frame, or of as much as is kept in memory. Raises UsageError where there is none."""
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
