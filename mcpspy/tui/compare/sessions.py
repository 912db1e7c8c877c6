"""The screen that compares two sessions: the changes, and the values of the selected change."""

import os
from collections.abc import Hashable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import get_current_worker

from mcpspy.capture.records import Header
from mcpspy.errors import McpspyError
from mcpspy.replay.differences import ABSENT
from mcpspy.replay.script import script_of
from mcpspy.report.words import CHANGES, SLOWER
from mcpspy.text import plural, printable
from mcpspy.tui.compare.columns import COLUMNS
from mcpspy.tui.compare.messages import ComparedSide, MessagesCompared
from mcpspy.tui.compare.rows import ComparedRows
from mcpspy.tui.model.comparison import listed
from mcpspy.tui.model.session_comparison import ChangeEntry, entries
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.keys import Keys
from mcpspy.tui.widgets.rows import Cell
from mcpspy.tui.widgets.view import RowsOrNotice, fit

_NAME = 24  # columns of the name of a session; its start time follows
_STYLES = {
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

    COMPONENT_CLASSES: ClassVar[set[str]] = {*_STYLES.values()}

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
        style = _STYLES[entry.sign]
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
                started = header.started[:19].replace("T", " ")
                yield Static(f"{side} {printable(header.name, _NAME)} · {printable(started, 20)}", markup=False)
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
            totals, found = entries(old, new)
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
