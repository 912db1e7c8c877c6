"""Comparisons side by side: the rows of two values, the screen of two messages, and the screen of two sessions.

The lines of a comparison stand in two columns, or one below the other if there is no room. A value that is too long for
its column continues in further rows. Equal parts are folded, and keys move between the differences. Of two sessions,
the screen has the changes, and the values of the selected change.
"""

import os
from collections.abc import Hashable, Iterable
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import get_current_worker

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.records import Header
from mcpspy.errors import McpspyError
from mcpspy.moments import moment, moment_text
from mcpspy.replay.differences import ABSENT, Difference, excerpt
from mcpspy.replay.script import script_of
from mcpspy.report.differences import sides
from mcpspy.report.words import CHANGES, FOLDS, SLOWER
from mcpspy.text import plural, printable, size_text
from mcpspy.tui.message.facts import Around, entries
from mcpspy.tui.model.comparison import (
    DIFFERENT,
    MOST,
    ChangeEntry,
    ComparedLine,
    ComparisonOutline,
    Pairing,
    change_entries,
    comparable,
    compared,
    listed,
)
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.widgets.keys import Keys, bindings
from mcpspy.tui.widgets.rows import Cell, RowsOrNotice, fit

COLUMNS = 100
"""The minimum screen width for two columns."""
CLASSES = frozenset(
    f"compare--{name}" for name in ("dim", "label", "left", "right", "left-part", "right-part", "volatile")
)
"""The component classes of the cells."""

_SIGNS = {"changed": "≠", "missing": "<", "extra": ">", "volatile": "≈", "passed": "·"}
_UNIFIED = ((0, "-", "left"), (1, "+", "right"))
_DIFFERENT = 2000  # maximum characters of a value that differs
_EQUAL_VALUE = 200  # maximum characters of an equal value
_LONGEST_LABEL = 60  # maximum characters of a label
_DEEPEST_INDENT = 20  # maximum levels of indentation
_NARROWEST = 20  # minimum columns of a side


class ComparedRow(NamedTuple):
    """A screen row."""

    line: int
    """The index of its line."""
    cells: list[Cell]


def compared_rows(lines: Iterable[ComparedLine], width: int) -> list[ComparedRow]:
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
    label = printable(pairing.label, _LONGEST_LABEL)
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
    return list(sides(Difference(pairing.path, pairing.recorded, pairing.observed), _DIFFERENT))


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next((n for n, (first, second) in enumerate(zip(one, other, strict=False)) if first != second),
                min(len(one), len(other)))  # fmt: skip


def _text(pairing: Pairing, value: Any) -> str:
    return printable(value, _DIFFERENT) if pairing.is_line else excerpt(value, _DIFFERENT)


def _brief(pairing: Pairing, value: Any) -> str:
    """Return a short form of a value that is equal on both sides."""
    if isinstance(value, dict) and value:
        return f"{{…}} {plural(len(value), 'member')}"
    if isinstance(value, list) and value:
        return f"[…] {plural(len(value), 'element')}"
    return printable(value, _EQUAL_VALUE) if pairing.is_line else excerpt(value, _EQUAL_VALUE)


def _indent(line: ComparedLine) -> str:
    return "  " * min(line.depth, _DEEPEST_INDENT)


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


class ComparedRows(RowsOrNotice):
    """The rows of a comparison."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = bindings("compared values")

    def __init__(self) -> None:
        super().__init__()
        self.notice = ""
        """The text shown while there is no comparison."""
        self._outline: ComparisonOutline | None = None
        self._lines: list[ComparedLine] = []
        self._rows: list[ComparedRow] = []
        self._made = 0  # number of times that the rows were made
        self._width = 0

    def show(self, root: Pairing | None, notice: str = "") -> None:
        """Show a comparison, or a notice why there is none."""
        self.notice = notice
        self._outline = ComparisonOutline(root) if root else None
        self._again(None)
        self.refresh()

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def nothing(self) -> str:
        """Return why there are no rows."""
        return self.notice

    def face(self, place: int) -> Hashable:
        """Return a key that changes only when all rows are made again."""
        return self._made, place

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (the rows are made for this width)
        """Return the content of a row."""
        return self._rows[place].cells

    def on_resize(self) -> None:
        """Make the rows again if the width has changed."""
        if self._width != self.scrollable_content_region.width:
            self._again(self._line_at_cursor())

    def difference(self, step: int) -> bool:
        """Go to the next difference, or to the previous one (`step` -1). Returns whether there was one."""
        onward = [n for n in self._differences() if (n > self.cursor if step > 0 else n < self.cursor)]
        if onward:
            self.move_to(onward[0] if step > 0 else onward[-1])
        return bool(onward)

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold the line; if there is nothing to fold, go to the value that contains it."""
        at = self._line_at_cursor()
        line = self._lines[at] if at is not None else None
        if line and line.folded is not None and line.folded != folded:
            self._turn(line)
        elif line and folded:
            above = [n for n in range(at or 0) if self._lines[n].depth < line.depth]
            self._go(above[-1] if above else 0)

    def action_turn(self) -> None:
        """Fold or unfold the line."""
        at = self._line_at_cursor()
        if at is not None and self._lines[at].folded is not None:
            self._turn(self._lines[at])

    def action_everything(self) -> None:
        """Unfold or fold all equal parts."""
        at = self._line_at_cursor()
        if self._outline and at is not None:
            pairing = self._lines[at].pairing
            self._outline.show_everything(not self._outline.everything)
            self._make()
            self._go(next((n for n, line in enumerate(self._lines) if line.pairing is pairing), at))

    def _turn(self, line: ComparedLine) -> None:
        if self._outline:
            self._outline.turn(line)
            self._again(self._line_at_cursor())

    def _again(self, line: int | None) -> None:
        """Make the rows again; move the cursor to a line, or to the first difference."""
        self._make()
        if line is not None:
            self._go(line)
        else:
            self.scroll_to(y=0, animate=False)
            self.move_to(next(iter(self._differences()), 0))

    def _make(self) -> None:
        self._width = self.scrollable_content_region.width
        self._lines = self._outline.lines() if self._outline else []
        self._rows = compared_rows(self._lines, self._width) if self._width else []
        if len(self._lines) == MOST:
            self._rows.append(ComparedRow(MOST - 1, [(f"  the first {MOST:,} lines are shown", "compare--dim")]))
        self._made += 1
        self.grown()

    def _go(self, line: int) -> None:
        self.move_to(next((n for n, row in enumerate(self._rows) if row.line == line), 0))

    def _line_at_cursor(self) -> int | None:
        return self._rows[self.cursor].line if self.cursor < len(self._rows) else None

    def _differences(self) -> list[int]:
        """Return the rows in which a difference begins."""
        found, before = [], -1
        for n, row in enumerate(self._rows):
            pairing = self._lines[row.line].pairing
            if row.line != before and pairing.differing and pairing.state in DIFFERENT:
                found.append(n)
            before = row.line
        return found


class ComparedSide(NamedTuple):
    """One of the two messages."""

    title: str
    """Printable text."""
    value: Any


def side_of(model: OpenCapture | Merged, n: int) -> ComparedSide:
    """Return the messages of the frame on line `n` of a session or merge."""
    session, there = model.of(model.index.row_of(n) or 0)
    rows = session.messages(there)
    pieces = entries(rows[:1], session.header, Around(), brief=True)[0].pieces if rows else []
    title = "".join(text for text, _ in pieces).rstrip()
    if rows and len(rows[0].raw) < rows[0].size:
        title += f" · the first {size_text(len(rows[0].raw))} of {size_text(rows[0].size)}"
    name = f"{printable(session.header.name, 40)} " if model is not session else ""
    return ComparedSide(name + title, comparable(rows))


class MessagesCompared(Screen[int | None]):
    """The comparison; the result is the message to show in the timeline, 0 or 1, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("comparison")

    def __init__(self, left: ComparedSide, right: ComparedSide) -> None:
        super().__init__()
        self._sides = left, right

    def compose(self) -> ComposeResult:
        """Yield the title with the number of differences, the two messages, the values, and the keys."""
        yield Static("compare", id="title", markup=False)
        with Container(id="sides"):
            for side in self._sides:
                yield Static(side.title, markup=False)
        yield ComparedRows()
        yield Keys()

    def on_mount(self) -> None:
        """Start the comparison, which takes a while for large messages."""
        rows = self.query_one(ComparedRows)
        rows.show(None, "comparing")
        rows.focus()
        self._compare()

    def on_resize(self, event: Resize) -> None:
        """Arrange the titles like the columns."""
        self.set_class(event.size.width >= COLUMNS, "columns")

    @work(thread=True)
    def _compare(self) -> None:
        found = compared(*(side.value for side in self._sides))
        self.app.call_from_thread(self._show, found)

    def _show(self, found: Pairing) -> None:
        if self.is_attached:
            self.query_one("#title", Static).update(f"compare · {summary(found)}")
            self.query_one(ComparedRows).show(found)

    def action_difference(self, step: int) -> None:
        """Go to the next or the previous difference."""
        if not self.query_one(ComparedRows).difference(step):
            self.app.bell()

    def action_frame(self, side: int) -> None:
        """Show one of the two messages in the timeline."""
        self.dismiss(side)


def summary(found: Pairing) -> str:
    """Return the number of differences as text."""
    if not found.differing:
        return "no differences"
    volatile = f", {found.volatile:,} probably different in each run (≈)" if found.volatile else ""
    return f"{plural(found.differing, 'difference')}{volatile}"


_SESSION_NAME = 24  # columns of the name of a session; its start time follows
_CHANGE_STYLES = {
    CHANGES["removed"]: "compare--left",
    CHANGES["added"]: "compare--right",
    CHANGES["changed"]: "compare--label",
    SLOWER: "compare--dim",
}


class FrameWanted(Message):
    """A request to the application to open a capture at the frame on line `n`."""

    def __init__(self, path: str, n: int) -> None:
        super().__init__()
        self.path, self.n = path, n


class ChangeRows(RowsOrNotice):
    """One row for each change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*_CHANGE_STYLES.values()}

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[ChangeEntry] = []
        """The changes."""
        self.notice = "reading"
        """The text shown while there are no changes."""

    def count(self) -> int:
        """Return the number of changes."""
        return len(self.entries)

    def nothing(self) -> str:
        """Return why there are no rows."""
        return self.notice

    def face(self, place: int) -> Hashable:
        """Return a constant key, because a row never changes."""
        return place

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return a change, with its line number in each capture."""
        entry = self.entries[place]
        where = [f"#{n}" if n else "" for n in entry.lines]
        style = _CHANGE_STYLES[entry.sign]
        return [
            (f" {entry.sign} ", style),
            (f"{where[0]:>7} {where[1]:>7}  ", "compare--dim"),
            (fit(entry.text, width - 20), style if entry.sign != "~" else ""),
        ]


class SessionsCompared(Screen[None]):
    """The changes, and below them the values of the selected one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("comparison")

    def __init__(self, *captures: tuple[str, Header]) -> None:
        """Compare two captures, given by path and header: the later one with the earlier one."""
        super().__init__()
        self._captures = sorted(captures, key=lambda it: it[1].started)

    def compose(self) -> ComposeResult:
        """Yield the title, the names of both captures, the changes, the values, and the keys."""
        yield Static("compare", id="title", markup=False)
        with Container(id="sides"):
            for side, (_, header) in zip("AB", self._captures, strict=True):
                started = moment_text(moment(header.started))[: len("2026-11-20 20:15:00")]
                yield Static(f"{side} {printable(header.name, _SESSION_NAME)} · {started}", markup=False)
        yield ChangeRows()
        yield ComparedRows()
        yield Keys()

    def on_mount(self) -> None:
        """Read both captures."""
        rows = self._changes
        rows.focus()
        self.watch(rows, "cursor", self._show_change, init=False)
        self._read()

    def on_resize(self, event: Resize) -> None:
        """Arrange the titles like the columns."""
        self.set_class(event.size.width >= COLUMNS, "columns")

    @property
    def _changes(self) -> ChangeRows:
        return self.query_one(ChangeRows)

    @work(thread=True)
    def _read(self) -> None:
        worker = get_current_worker()
        done = [0, 0]  # bytes read, and the percentage shown last

        def advance(read: int) -> None:
            if worker.is_cancelled:
                raise _Left
            done[0] += read
            if done[0] * 100 // whole > done[1]:
                done[1] = done[0] * 100 // whole
                self.app.call_from_thread(self._tell, f"reading {min(done[1], 100)}%")

        try:
            whole = max(sum(_size(path) for path, _ in self._captures), 1)
            old, new = (script_of(path, advance) for path, _ in self._captures)
            totals, found = change_entries(old, new)
        except _Left:
            return
        except (McpspyError, OSError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            text = "a message of these sessions is nested too deeply to compare" if deep else printable(str(error), 300)
            self.app.call_from_thread(self._tell, text)
            return
        self.app.call_from_thread(self._show, totals, found)

    def _tell(self, text: str) -> None:
        if self.is_attached:
            self._changes.notice = text
            self._changes.grown()

    def _show(self, totals: str, found: list[ChangeEntry]) -> None:
        if self.is_attached:
            rows = self._changes
            rows.entries, rows.notice = found, "nothing differs"
            rows.grown()
            self.query_one("#title", Static).update(f"compare · {plural(len(found), 'difference')} · {totals}")
            self._show_change()

    def _show_change(self) -> None:
        rows = self._changes
        entry = rows.entries[rows.cursor] if rows.entries else None
        differences = entry.differences if entry else ()
        self.query_one(ComparedRows).show(listed(differences) if differences else None)

    def on_rows_chosen(self) -> None:
        """Compare the two whole messages of the selected change."""
        entry = self._changes.entries[self._changes.cursor]
        if entry.values == (ABSENT, ABSENT):
            self.app.bell()
            return
        titles = [
            f"{side} #{n} {entry.text}" if n else f"{side} has none" for side, n in zip("AB", entry.lines, strict=True)
        ]
        left, right = (ComparedSide(title, value) for title, value in zip(titles, entry.values, strict=True))
        self.app.push_screen(MessagesCompared(left, right), lambda side: self._open(entry, side))

    def action_difference(self, step: int) -> None:
        """Go to the next or the previous difference; after the last one of a change, go to the next change."""
        if not self.query_one(ComparedRows).difference(step):
            before = self._changes.cursor
            self._changes.action_move(step)
            if self._changes.cursor == before:
                self.app.bell()

    def action_frame(self, side: int) -> None:
        """Show the frame of the selected change in one of the captures."""
        rows = self._changes
        if rows.entries:
            self._open(rows.entries[rows.cursor], side)

    def _open(self, entry: ChangeEntry, side: int | None) -> None:
        n = entry.lines[side] if side is not None else None
        if n:
            self.post_message(FrameWanted(self._captures[side or 0][0], n))
        elif side is not None:
            self.notify(f"it is not in {'AB'[side]}", severity="warning", markup=False)


def _size(path: str) -> int:
    """Return the size of a file in bytes; 0 if it is deleted, which the reader reports."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


class _Left(Exception):
    """Raised to stop reading after the screen was closed."""
