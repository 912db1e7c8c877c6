"""The rows of the list of sessions: runs, which unfold, and captures."""

import time
from collections.abc import Callable, Hashable
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.binding import BindingType

from mcpspy.browse.library import COUNTED, Library, ListedCapture, chosen
from mcpspy.rules import SEVERITIES
from mcpspy.text import age_text, plural, printable, size_text
from mcpspy.tui.model.run_rows import ListedRow, ListedRun, RunRows, RunSummary
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.rows import Cell, Rows
from mcpspy.tui.widgets.view import MARKS, fit

_NAME, _SHORT = 20, 15  # columns of a name, and of one where there is little room
_WORD = 10  # columns of what kind of row it is
_MANY = 100  # columns from which there are sizes and commands


class SessionRows(Rows):
    """One row for each run of several captures, and for each capture of one that is unfolded; any may be marked."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sessions--live", "sessions--dim", "sessions--errors", "sessions--warnings", "sessions--mark", "sessions--run",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("session list")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._made = (-1, "")  # out of what: how often the library had changed, and the words
        self._selected = ("", False)
        self._runs = RunRows()
        self._summaries: dict[ListedRun, RunSummary] = {}  # as of the last look
        self.words = ""
        """What those have in them that are shown."""
        self.marked: set[str] = set()
        """The paths of marked captures."""

    @property
    def entries(self) -> list[ListedCapture]:
        """The captures that are shown, also those of runs that are folded."""
        return self._runs.captures

    def count(self) -> int:
        """How many rows there are."""
        return len(self._runs.rows)

    def row(self) -> ListedRow | None:
        """The selected row."""
        return self._runs.rows[self.cursor] if self.cursor < self.count() else None

    def entry(self) -> ListedCapture | None:
        """The selected capture; None where a run is selected."""
        row = self.row()
        return row.capture if row else None

    def marked_ones(self) -> list[ListedCapture]:
        """The marked captures that there are, in their order."""
        return [entry for entry in self._library.entries if entry.path in self.marked]

    def picked(self) -> list[ListedCapture]:
        """The marked captures; where none is, those of the selected run."""
        row = self.row()
        picked = self.marked_ones() or (row.captures if row and row.capture is None else [])
        known = {entry.header.id for entry in picked}  # a file that goes on from another one is read with that
        return [entry for entry in picked if entry.header.continues not in known]

    def grown(self) -> None:
        """Show what there is by now; what is selected stays so, and stays where it is on the screen."""
        self._summaries.clear()
        if self._made != (self._library.changes, self.words):
            self._made = (self._library.changes, self.words)
            self._rearrange(lambda: self._runs.choose(chosen(self._library.entries, self.words)))
        else:
            self.rows_changed()

    def _rearrange(self, change: Callable[[], None]) -> None:
        """Change which rows there are."""
        change()
        at = self._runs.place(self._selected)
        if at is not None and at != self.cursor:
            self.shift(at - self.cursor)
        self.rows_changed()
        self._keep_in_view()
        self._select()

    def watch_cursor(self, before: int, now: int) -> None:
        """Remember what is selected."""
        self._select()
        super().watch_cursor(before, now)

    def _select(self) -> None:
        row = self.row()
        self._selected = row.selected if row else ("", False)

    def _summary(self, run: ListedRun) -> RunSummary:
        if run not in self._summaries:
            self._summaries[run] = run.summary()
        return self._summaries[run]

    def face(self, place: int) -> Hashable:
        """A row looks as what is known of its captures."""
        row = self._runs.rows[place]
        entry, run = row.capture, row.run
        if entry is None:
            return (row.selected, row.sign, self._summary(run), run.process, _age(run.first), self._mark(row))
        counts, found = entry.counts, tuple(entry.found.values())
        known = (row.selected, row.sign, entry.size, counts.frames, counts.errors, found, entry.killed, counts.client)
        return (*known, _age(entry), self._mark(row))

    def cells(self, place: int, width: int) -> list[Cell]:
        """Mark, fold or bracket, age, name, kind, what is in it and wrong with it; with room for it, size and more."""
        row = self._runs.rows[place]
        cells = self._run_cells(row, width) if row.capture is None else self._cells(row, row.capture, width)
        room = width - sum(cell_len(text) for text, _ in cells[:-1])
        text, style = cells[-1]
        return [*cells[:-1], (fit(text, room), style)]

    def _cells(self, row: ListedRow, entry: ListedCapture, width: int) -> list[Cell]:
        header, counts = entry.header, entry.counts
        word, style = printable(header.transport, 5), "sessions--dim"
        if header.imported:
            word = "imported"
        elif entry.killed:
            word, style = "killed", "sessions--errors"
        counted = plural(counts.frames, "frame") if entry.size <= COUNTED else "not counted"
        return [
            *self._start(row, entry.live, _age(entry)),
            *_what(header.name, "", (word, style), width),
            *_said(counted, counts.errors, tuple(entry.found[severity] for severity in SEVERITIES)),
            *_size(entry.size, width),
            (" ".join(header.argv) or header.url or "", "sessions--dim"),
        ]

    def _run_cells(self, row: ListedRow, width: int) -> list[Cell]:
        run, summary = row.run, self._summary(row.run)
        name, servers = summary.client or f"process {run.process}", plural(len(summary.servers), "server")
        killed = f"{summary.killed:,} killed"
        word = (killed, "sessions--errors") if summary.killed and width < _MANY else (servers, "")
        told = [killed] if summary.killed else []
        told += [plural(summary.turns, "turn")] if summary.turns else []
        about = f"{' · '.join(told)}: " if told else ""
        return [
            *self._start(row, summary.live, _age(run.first)),
            *_what(name, "sessions--run", word, width),
            *_said(plural(summary.frames, "frame"), summary.errors, summary.found),
            *_size(summary.size, width),
            (f"{about}{', '.join(summary.servers)}", "sessions--dim"),
        ]

    def _start(self, row: ListedRow, live: bool, age: str) -> list[Cell]:
        return [
            (self._mark(row), "sessions--mark"),
            (row.sign, "" if row.capture is None else "sessions--dim"),
            (f"{'● live' if live else age:>11} ", "sessions--live" if live else "sessions--dim"),
        ]

    def _mark(self, row: ListedRow) -> str:
        """Whether all captures of a row are marked, or some of them."""
        marked = sum(capture.path in self.marked for capture in row.captures)
        return "*" if marked == len(row.captures) else "+" if marked else " "

    def action_mark(self) -> None:
        """Mark the selected capture, or all of the selected run, or no longer, and go on to the next row."""
        row = self.row()
        if row:
            paths = {capture.path for capture in row.captures}
            self.marked = self.marked - paths if paths <= self.marked else self.marked | paths
            self.refresh()
            self.action_move(1)

    def action_choose(self) -> None:
        """Unfold the selected run, or fold it; open the selected capture."""
        row = self.row()
        if row and row.capture is None:
            self.action_unfold(not self._runs.is_unfolded(row.run))
        else:
            super().action_choose()

    def action_unfold(self, unfold: bool) -> None:
        """Show each capture of the selected run, or only the run."""
        row = self.row()
        if row and len(row.run.captures) > 1:
            self._rearrange(lambda: self._runs.unfold(row.run, unfold=unfold))

    def action_unfold_all(self, unfold: bool) -> None:
        """Show each capture of every run, or only the runs."""
        self._rearrange(lambda: self._runs.unfold_all(unfold=unfold))


def _what(name: str, style: str, word: Cell, width: int) -> list[Cell]:
    """A name, and a word on what it is of."""
    room = _NAME if width >= _MANY else _SHORT
    return [(set_cell_size(fit(name, room), room + 1), style), (f"{word[0]:<{_WORD}} ", word[1])]


def _said(frames: str, errors: int, found: tuple[int, ...]) -> list[Cell]:
    """What is in it, and what is wrong with that."""
    severities = dict(zip(SEVERITIES, found, strict=True))
    return [
        (f"{frames:>13} ", ""),
        (f"{plural(errors, 'error') if errors else '':>10} ", "sessions--errors"),
        (_found(severities["error"], "error"), "sessions--errors"),
        (_found(severities["warning"], "warning"), "sessions--warnings"),
    ]


def _size(size: int, width: int) -> list[Cell]:
    return [(f"{size_text(size):>9}  ", "sessions--dim")] if width >= _MANY else []


def _age(entry: ListedCapture) -> str:
    return "● live" if entry.live else age_text(time.time() - entry.started)


def _found(number: int, severity: str) -> str:
    return f"{f'{MARKS[severity]}{number:,}' if number else '':>6} "
