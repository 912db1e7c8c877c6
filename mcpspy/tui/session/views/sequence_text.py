"""The parts of a sequence diagram as text: arrows, the brackets that tie answers to requests, pauses.

Every function takes what is to be drawn and the columns that there are for it, and returns exactly that many.
"""

from rich.cells import cell_len, set_cell_size

from mcpspy.text import duration_text
from mcpspy.tui.model.lanes import DEEPEST

_BAR = 5  # columns of a bar at its longest
_LEAST = 1_000_000  # nanoseconds of a pause that is worth a word


def arrow(label: str, columns: int, *, to_right: bool, dashed: bool) -> tuple[str, str, str]:
    """An arrow that carries a label at its beginning: what stands before the label, the label, and what follows.

    What does not fit is cut off the label.
    """
    dash = "╌" if dashed else "─"
    room = max(columns - 6, 0)
    if cell_len(label) > room:
        label = set_cell_size(label, max(room - 1, 0)) + "…"[:room]
    rest = dash * (columns - cell_len(label) - 5)
    if columns < 6:
        rest = (dash * columns + "▶")[1:] if to_right else ("◀" + dash * columns)[:columns]
        return rest, "", ""
    return (f"{dash * 2} ", label, f" {rest}▶") if to_right else (f"◀{rest} ", label, f" {dash * 2}")


def brackets(before: int, after: int, columns: int, *, mirrored: bool) -> str:
    """The brackets of one side in a row: those that go on, begin or end in it, the innermost next to the lane.

    `before` and `after` have a bit for each that is open then; `mirrored` draws them for the left side.
    """
    changed = before ^ after
    reach = changed.bit_length() - 1  # the outermost that begins or ends
    drawn = "─" if changed else " "
    for place in range(DEEPEST):
        bit = 1 << place
        if changed & bit and place == reach:
            drawn += ("╭" if mirrored else "╮") if after & bit else ("╰" if mirrored else "╯")
        elif before & after & bit:
            drawn += "┼" if place < reach else "│"
        else:
            drawn += "─" if place < reach else " "
    drawn = drawn[:columns]
    return drawn[::-1] if mirrored else drawn


def pause_text(nanoseconds: int, columns: int) -> str:
    """How long a pause was, on the right; nothing if it was short."""
    return f"{duration_text(nanoseconds) if nanoseconds >= _LEAST else '':>{columns}}"[:columns]


def pause_bar(nanoseconds: int) -> str:
    """How long a pause was at a glance: one dash from 10 ms on, and one more for each power of ten."""
    length = len(str(nanoseconds // 10_000_000)) if nanoseconds >= 10_000_000 else 0
    return f"{'━' * min(length, _BAR):<{_BAR}}"
