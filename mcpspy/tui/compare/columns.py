"""The lines of a comparison as screen rows: in two columns, or one below the other if there is no room.

The module has no widgets: it gets a width and returns rows of styled text. A value that is too long for its column
continues in further rows.
"""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, NamedTuple

from rich.cells import cell_len

from mcpspy.replay.differences import ABSENT, Difference, excerpt
from mcpspy.report.differences import sides
from mcpspy.report.words import FOLDS
from mcpspy.text import plural, printable
from mcpspy.tui.model.comparison import DIFFERENT, ComparedLine, Pairing
from mcpspy.tui.widgets.rows import Cell

COLUMNS = 100
"""The minimum screen width for two columns."""
CLASSES = frozenset(
    f"compare--{name}" for name in ("dim", "label", "left", "right", "left-part", "right-part", "volatile")
)
"""The component classes of the cells."""

_SIGNS = {"changed": "≠", "missing": "<", "extra": ">", "volatile": "≈", "passed": "·"}
_UNIFIED = ((0, "-", "left"), (1, "+", "right"))
_LONGEST = 2000  # maximum characters of a value that differs
_EQUAL = 200  # maximum characters of an equal value
_NAMES = 60  # maximum characters of a label
_DEEPEST = 20  # maximum levels of indentation
_NARROWEST = 20  # minimum columns of a side


class ComparedRow(NamedTuple):
    """A screen row."""

    line: int
    """The index of its line."""
    cells: list[Cell]


def rows(lines: Iterable[ComparedLine], width: int) -> list[ComparedRow]:
    """Return all screen rows of some lines."""
    made = _beside if width >= COLUMNS else _below
    return [ComparedRow(place, cells) for place, line in enumerate(lines) for cells in made(line, width)]


def _beside(line: ComparedLine, width: int) -> Iterable[list[Cell]]:
    column = (width - 3) // 2
    hang = len(_indent(line)) + 2
    sign = _SIGNS.get(line.pairing.state, "│")
    style = "" if line.pairing.state in DIFFERENT else "compare--dim"
    halves = [wrapped(_pieces(line, side), column, hang) for side in (0, 1)]
    for left, right in zip_longest(*halves, fillvalue=list[Cell]()):
        room = column - sum(cell_len(text) for text, _ in left)
        yield [*left, (f"{' ' * room} {sign} ", style), *right]
        sign, style = "│", "compare--dim"


def _below(line: ComparedLine, width: int) -> Iterable[list[Cell]]:
    pairing, state = line.pairing, line.pairing.state
    hang = len(_indent(line)) + 2
    if state not in DIFFERENT or (line.folded is False and state in ("changed", "volatile")):
        return [[("  ", ""), *row] for row in wrapped(_pieces(line, 0), width - 2, hang)]
    found = []
    start = "≈" if state == "volatile" else ""
    sides_there = [it for it in _UNIFIED if (pairing.observed if it[0] else pairing.recorded) is not ABSENT]
    for side, sign, colour in sides_there:
        face = f"{start}{sign}".ljust(2), f"compare--{colour}"
        found += [[face, *row] for row in wrapped(_pieces(line, side), width - 2, hang)]
    return found


def _pieces(line: ComparedLine, side: int) -> list[Cell]:
    """Return the content of a line for one side."""
    pairing = line.pairing
    value = pairing.observed if side else pairing.recorded
    if value is ABSENT:
        return []
    mark = "  " if line.folded is None else f"{FOLDS[line.folded]} "
    start: list[Cell] = [(f"{_indent(line)}{mark}", "compare--dim")]
    if line.run:
        names = ", ".join(filter(None, (printable(it.label, 30) for it in line.run[:20])))
        what = plural(len(line.run), "equal line") if line.run[0].is_line else f"{len(line.run):,} equal"
        return [*start, (what, "compare--dim"), (f": {printable(names, 100)}" if names else "", "compare--dim")]
    label = printable(pairing.label, _NAMES)
    if line.folded is False:
        return [*start, (label or "(the whole)", _label_style(pairing, side))]
    if label:
        start += [(label, _label_style(pairing, side)), (": ", "compare--dim")]
    return [*start, *_value(pairing, value, side)]


def _label_style(pairing: Pairing, side: int) -> str:
    if pairing.state in ("missing", "extra"):
        return "compare--right" if side else "compare--left"
    return "compare--dim" if pairing.state == "same" else "compare--label"


def _value(pairing: Pairing, value: Any, side: int) -> list[Cell]:
    if pairing.state not in DIFFERENT:
        return [(_brief(pairing, value), "compare--dim")]
    style = "compare--volatile" if pairing.state == "volatile" else "compare--right" if side else "compare--left"
    if pairing.state in ("missing", "extra"):
        return [(_text(pairing, value), style)]
    texts = _both(pairing)
    before = _common(*texts)
    after = _common(*(text[before:][::-1] for text in texts))
    text = texts[side]
    part = style if pairing.state == "volatile" else f"{style}-part"
    end = len(text) - after
    return [it for it in ((text[:before], style), (text[before:end], part), (text[end:], style)) if it[0]]


def _both(pairing: Pairing) -> list[str]:
    """Return two values that both exist; long values are cut to the part around the first difference."""
    if pairing.is_line:
        return [_text(pairing, it) for it in (pairing.recorded, pairing.observed)]
    return list(sides(Difference(pairing.path, pairing.recorded, pairing.observed), _LONGEST))


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next((n for n, (first, second) in enumerate(zip(one, other, strict=False)) if first != second),
                min(len(one), len(other)))  # fmt: skip


def _text(pairing: Pairing, value: Any) -> str:
    return printable(value, _LONGEST) if pairing.is_line else excerpt(value, _LONGEST)


def _brief(pairing: Pairing, value: Any) -> str:
    """Return a short form of a value that is equal on both sides."""
    if isinstance(value, dict) and value:
        return f"{{…}} {plural(len(value), 'member')}"
    if isinstance(value, list) and value:
        return f"[…] {plural(len(value), 'element')}"
    return printable(value, _EQUAL) if pairing.is_line else excerpt(value, _EQUAL)


def _indent(line: ComparedLine) -> str:
    return "  " * min(line.depth, _DEEPEST)


def wrapped(cells: Iterable[Cell], width: int, hang: int) -> list[list[Cell]]:
    """Return cells wrapped into rows of `width` columns; all rows except the first begin with `hang` blanks."""
    width = max(width, _NARROWEST)
    hang = hang if hang <= width // 2 else 0
    found: list[list[Cell]] = [[]]
    room = width
    for whole, style in cells:
        text = whole
        while text:
            head, text = _split(text, room, begun=bool(found[-1]) and room < width - hang)
            found[-1] += [(head, style)] if head else []
            room -= cell_len(head)
            if text:
                found.append([(" " * hang, "")])
                room = width - hang
                if head:
                    text = text.lstrip(" ") or " "
    return found


def _split(text: str, columns: int, *, begun: bool) -> tuple[str, str]:
    """Return the part of a text that fits, up to a blank or comma, and the rest; `begun`: the row has other text."""
    if len(text) <= columns and cell_len(text) <= columns:
        return text, ""
    end = columns
    while cell_len(text[:end]) > columns:
        end -= 1
    blank = max(text.rfind(mark, 0 if begun else end // 2, end) for mark in " ,")
    end = blank + 1 if blank >= 0 else end
    return text[:end], text[end:]
