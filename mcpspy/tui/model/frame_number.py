"""Where the number of a frame leads that somebody types, without a screen.

A row shows the number that its frame has in its own session; so in a merge a number means the session of the row that
is selected.
"""

from bisect import bisect_left
from typing import NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.text import printable
from mcpspy.tui.model.merged import Merged

_DIGITS = 9  # of the number of a frame


class Destination(NamedTuple):
    """A row."""

    n: int
    """Its line number in what is shown."""
    says: str
    """What there is to say of it, or nothing."""


def destination(session: OpenCapture | Merged, selected: int, number: str) -> Destination:
    """The row of the frame with that number, or the one next to it; `selected` is the line of the selected row.

    Raises UsageError for what is no number, and where there is no such row yet.
    """
    digits = number.removeprefix("#")
    if not digits.isdecimal() or len(digits) > _DIGITS:
        raise UsageError("goto needs the number of a frame, such as 17")
    if not session.index.rows:
        raise UsageError("there are no rows yet")
    own, _ = session.of(session.index.row_of(selected) or 0)
    n, rows = int(digits), own.index.rows
    there = own.index.row_of(n) if n <= own.index.lines else None
    line = rows[min(bisect_left(rows, n), len(rows) - 1)] if there is None else n
    shown = session.number(own, line) if isinstance(session, Merged) else line
    if not shown:
        raise UsageError(f"#{line} is not sorted in yet")
    says = f"#{n} is not a row of {printable(own.header.name, 40)}; #{line} is next to it" if there is None else ""
    return Destination(shown, says)
