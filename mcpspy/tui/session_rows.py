"""The rows of the sessions list: runs, which can be unfolded, and captures."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual.binding import BindingType

from mcpspy.browse.library import Library, ListedCapture, chosen
from mcpspy.capture.listing import first_files
from mcpspy.conversation.counts import COUNTED
from mcpspy.report.words import MARKS
from mcpspy.rules import SEVERITIES
from mcpspy.text import age_text, plural, printable, size_text
from mcpspy.tui.model.run_rows import ListedRow, ListedRun, RunRows, RunSummary
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Rows, fit

_AGE, _KIND, _PROBLEMS, _FRAMES, _FOUND = 11, 9, 8, 9, 4  # columns of each part of a row
_MANY, _ROOMY = 98, 148  # columns of a screen that is wide enough for activity; for sizes and commands
_LONGEST = 200  # characters of the name of a client
_HEIGHTS = " ▁▂▃▄▅▆▇█"


class ListLayout(NamedTuple):
    """The columns of the parts of a row that depend on the width; 0 if the part is omitted."""

    name: int
    activity: int
    size: int
    client: int

    @classmethod
    def of(cls, width: int) -> "ListLayout":
        """Return the layout for a width."""
        return cls(20, 12, 9, 20) if width >= _ROOMY else cls(16, 12, 0, 0) if width >= _MANY else cls(15, 0, 0, 0)


class SessionRows(Rows):
    """One row for each run of several captures, and one for each capture that is not hidden in a folded run.

    Every row can be marked.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sessions--live", "sessions--dim", "sessions--errors", "sessions--warnings", "sessions--mark", "sessions--run",
        "sessions--activity",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("session list")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._made = (-1, "")  # the state that the rows were made from: number of library changes, and words
        self._selected = ("", False)
        self._runs = RunRows()
        self._summaries: dict[ListedRun, RunSummary] = {}  # as of the last look
        self.words = ""
        """The words that a shown capture must contain."""
        self.marked: set[str] = set()
        """The paths of marked captures."""

    @property
    def entries(self) -> list[ListedCapture]:
        """The captures that match, including those of folded runs."""
        return self._runs.captures

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._runs.rows)

    def row(self) -> ListedRow | None:
        """Return the selected row."""
        return self._runs.rows[self.cursor] if self.cursor < self.count() else None

    def entry(self) -> ListedCapture | None:
        """Return the selected capture; None if a run is selected."""
        row = self.row()
        return row.capture if row else None

    def marked_ones(self) -> list[ListedCapture]:
        """Return the marked captures that still exist, in the order of the list."""
        return [entry for entry in self._library.entries if entry.path in self.marked]

    def picked(self) -> list[ListedCapture]:
        """Return the marked captures; if none is marked, those of the selected run."""
        row = self.row()
        picked = self.marked_ones() or (row.captures if row and row.capture is None else [])
        return first_files(picked)

    def grown(self) -> None:
        """Show the current captures; the selected row stays selected, and keeps its place on the screen."""
        self._summaries.clear()
        if self._made != (self._library.changes, self.words):
            self._made = (self._library.changes, self.words)
            self._rearrange(lambda: self._runs.choose(chosen(self._library.entries, self.words)))
        else:
            self.rows_changed()

    def _rearrange(self, change: Callable[[], None]) -> None:
        """Change the set of rows, and keep the selection."""
        change()
        at = self._runs.place(self._selected)
        if at is not None and at != self.cursor:
            self.shift(at - self.cursor)
        self.rows_changed()
        self._keep_in_view()
        self._select()

    def watch_cursor(self, before: int, now: int) -> None:
        """Remember the selected row."""
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
        """Return the state that the look of a row depends on."""
        row = self._runs.rows[place]
        entry, run = row.capture, row.run
        if entry is None:
            return (row.selected, row.sign, self._summary(run), run.process, _age(run.first), self._mark(row))
        counts, found = entry.counts, tuple(entry.found.values())
        known = (row.selected, row.sign, entry.size, counts.frames, entry.problems, found, entry.killed, counts.client)
        return (*known, _age(entry), self._mark(row))

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a row: mark, fold sign, then the columns of the heading."""
        row, layout = self._runs.rows[place], ListLayout.of(width)
        cells = self._run_cells(row, layout) if row.capture is None else self._cells(row, row.capture, layout)
        room = width - sum(cell_len(text) for text, _ in cells[:-1])
        text, style = cells[-1]
        return [*cells[:-1], (fit(text, room), style)]

    def _cells(self, row: ListedRow, entry: ListedCapture, layout: ListLayout) -> list[Cell]:
        header, counts = entry.header, entry.counts
        word, style = printable(header.transport, 5), "sessions--dim"
        if header.imported:
            word = "imported"
        elif entry.killed:
            word, style = "killed", "sessions--errors"
        frames = f"{counts.frames:,}" if entry.size <= COUNTED else "uncounted"
        client, command = fit(counts.client, layout.client or _LONGEST), " ".join(header.argv) or header.url or ""
        last = [(_column(client, layout.client), ""), (command, "sessions--dim")] if layout.client else [(client, "")]
        return [
            *self._start(row, entry.live, _age(entry)),
            (_column(header.name, layout.name), ""),
            (_column(word, _KIND), style),
            *_numbers(entry.problems, frames, tuple(entry.found[severity] for severity in SEVERITIES)),
            (_column(activity_bar(entry.activity.over(layout.activity)), layout.activity), "sessions--activity"),
            (_column(size_text(entry.size), layout.size, right=True), "sessions--dim"),
            *last,
        ]

    def _run_cells(self, row: ListedRow, layout: ListLayout) -> list[Cell]:
        run, summary = row.run, self._summary(row.run)
        name, servers = summary.client or f"process {run.process}", plural(len(summary.servers), "server")
        killed = f"{summary.killed:,} killed"
        word = (killed, "sessions--errors") if summary.killed and not layout.activity else (servers, "")
        told = [killed] if summary.killed else []
        told += [plural(summary.turns, "turn")] if summary.turns else []
        about = f"{' · '.join(told)}: " if told else ""
        return [
            *self._start(row, summary.live, _age(run.first)),
            (_column(name, layout.name), "sessions--run"),
            (_column(word[0], _KIND), word[1]),
            *_numbers(summary.problems, f"{summary.frames:,}", summary.found),
            (_column("", layout.activity), ""),
            (_column(size_text(summary.size), layout.size, right=True), "sessions--dim"),
            (f"{about}{', '.join(summary.servers)}", "sessions--dim"),
        ]

    def _start(self, row: ListedRow, live: bool, age: str) -> list[Cell]:
        return [
            (self._mark(row), "sessions--mark"),
            (row.sign, "" if row.capture is None else "sessions--dim"),
            (_column("● live" if live else age, _AGE, right=True), "sessions--live" if live else "sessions--dim"),
        ]

    def _mark(self, row: ListedRow) -> str:
        """Return `*` if all captures of a row are marked, `+` if some are, else a space."""
        marked = sum(capture.path in self.marked for capture in row.captures)
        return "*" if marked == len(row.captures) else "+" if marked else " "

    def action_mark(self) -> None:
        """Mark or unmark the selected capture, or all captures of the selected run, and select the next row."""
        row = self.row()
        if row:
            paths = {capture.path for capture in row.captures}
            self.marked = self.marked - paths if paths <= self.marked else self.marked | paths
            self.refresh()
            self.action_move(1)

    def action_choose(self) -> None:
        """Fold or unfold the selected run, or open the selected capture."""
        row = self.row()
        if row and row.capture is None:
            self.action_unfold(not self._runs.is_unfolded(row.run))
        else:
            super().action_choose()

    def action_unfold(self, unfold: bool) -> None:
        """Unfold or fold the selected run."""
        row = self.row()
        if row and len(row.run.captures) > 1:
            self._rearrange(lambda: self._runs.unfold(row.run, unfold=unfold))

    def action_unfold_all(self, unfold: bool) -> None:
        """Unfold or fold all runs."""
        self._rearrange(lambda: self._runs.unfold_all(unfold=unfold))


def heading(width: int) -> str:
    """Return the names of the columns, for a list of the given width."""
    layout = ListLayout.of(width)
    names = [
        "  ",
        _column("started", _AGE, right=True),
        _column("server", layout.name),
        _column("kind", _KIND),
        _column("problems", _PROBLEMS, right=True),
        _column("frames", _FRAMES, right=True),
        _column("findings", 2 * _FOUND + 1, right=True),
        _column("activity", layout.activity),
        _column("size", layout.size, right=True),
        _column("client", layout.client) + "command" if layout.client else "client",
    ]
    return fit("".join(names), width)


def activity_bar(numbers: Sequence[int]) -> str:
    """Return numbers of messages as a bar: higher for more messages, blank for none."""
    most = max(numbers, default=0)
    return "".join(_HEIGHTS[-(-number * (len(_HEIGHTS) - 1) // most)] for number in numbers) if most else ""


def _column(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text in a column and the blank after it; empty if the column is omitted."""
    if not columns:
        return ""
    shown = fit(text, columns)
    blank = " " * (columns - cell_len(shown))
    return f"{blank}{shown} " if right else f"{shown}{blank} "


def _numbers(problems: int, frames: str, found: tuple[int, ...]) -> list[Cell]:
    """Return the cells with the numbers of problems, frames and findings."""
    severities = dict(zip(SEVERITIES, found, strict=True))
    return [
        (_column(f"{problems:,}" if problems else "", _PROBLEMS, right=True), "sessions--errors"),
        (_column(frames, _FRAMES, right=True), ""),
        (_found(severities["error"], "error"), "sessions--errors"),
        (_found(severities["warning"], "warning"), "sessions--warnings"),
    ]


def _age(entry: ListedCapture) -> str:
    return "● live" if entry.live else age_text(time.time() - entry.started)


def _found(number: int, severity: str) -> str:
    return _column(f"{MARKS[severity]}{number:,}" if number else "", _FOUND, right=True)
