"""Finding the row for a typed frame number, without a screen.

A row shows the number of its frame in the frame's own session. So in a merge, a typed number refers to the session of
the selected row.
"""

from bisect import bisect_left
from typing import NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.text import printable
from mcpspy.tui.model.merged import Merged

_DIGITS = 9  # maximum digits of a frame number


class Destination(NamedTuple):
    """The row to go to."""

    n: int
    """Its line number in the session or merge that is shown."""
    says: str
    """A message for the user; empty if there is none."""


def destination(session: OpenCapture | Merged, selected: int, number: str) -> Destination:
    """Return the row of the frame with that number, or the next row; `selected` is the line of the selected row.

    Raises UsageError if `number` is not a number, or if there is no such row yet.
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
        raise UsageError(f"#{line} is not in the timeline yet")
    says = f"#{n} is not a row of {printable(own.header.name, 40)}; #{line} is next to it" if there is None else ""
    return Destination(shown, says)
