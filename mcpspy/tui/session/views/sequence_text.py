"""The parts of a sequence diagram as text: arrows, pauses, and the brackets that connect requests and responses.

Each function with a `columns` argument returns a text of exactly that width.
"""

from rich.cells import cell_len, set_cell_size

from mcpspy.text import duration_text
from mcpspy.tui.model.lanes import DEEPEST

_BAR = 5  # maximum columns of a bar
_LEAST = 1_000_000  # minimum nanoseconds of a pause that is shown as text


def arrow(label: str, columns: int, *, to_right: bool, dashed: bool) -> tuple[str, str, str]:
    """Return an arrow with a label at its start, as three texts: before the label, the label, after it.

    A label that does not fit is shortened.
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
    """Return the brackets of one side that continue, begin or end in a row, the innermost next to the lane.

    `before` and `after` have a bit for each bracket that is open before and after the row. `mirrored` draws the left
    side.
    """
    changed = before ^ after
    reach = changed.bit_length() - 1  # the outermost bracket that begins or ends
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
    """Return the length of a pause, aligned to the right; blanks if it was short."""
    return f"{duration_text(nanoseconds) if nanoseconds >= _LEAST else '':>{columns}}"[:columns]


def pause_bar(nanoseconds: int) -> str:
    """Return the length of a pause as a bar: one dash from 10 ms on, and one more for each power of ten."""
    length = len(str(nanoseconds // 10_000_000)) if nanoseconds >= 10_000_000 else 0
    return f"{'━' * min(length, _BAR):<{_BAR}}"
