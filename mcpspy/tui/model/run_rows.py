"""The rows of the sessions list: a run of several captures is one row, which unfolds into a row for each of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from mcpspy.browse.library import ListedCapture
from mcpspy.capture.listing import client_process, runs
from mcpspy.conversation.counts import run_label, turns
from mcpspy.report.words import FOLDS
from mcpspy.rules import SEVERITIES
from mcpspy.tui.model.sorting import SORTS, SortColumn

Selected = tuple[str, bool]
"""The selection, independent of changes of the rows: the path of the capture, or of the run's first capture; and
whether it is a run."""


class RunSummary(NamedTuple):
    """The current totals of all captures of a run."""

    live: bool
    client: str
    servers: tuple[str, ...]
    """The names of the servers, each once."""
    frames: int
    problems: int
    found: tuple[int, ...]
    """The number of findings, in the order of SEVERITIES."""
    killed: int
    turns: int
    size: int


@dataclass(eq=False)
class ListedRun:
    """The shown captures of one client process."""

    captures: list[ListedCapture]
    """In the order of the list."""

    @cached_property
    def first(self) -> ListedCapture:
        """The capture that began first."""
        return min(self.captures, key=lambda it: it.started)

    @property
    def process(self) -> int | None:
        """The id of the client's process."""
        return client_process(self.first.header)

    def value(self, name: str) -> Any:
        """Return the value by which the run is sorted: the sum of its captures, or the first name."""
        values = [_VALUES[name](it) for it in self.captures]
        return min(values) if name == "name" else sum(values)

    def summary(self) -> RunSummary:
        """Return the current totals of its captures."""
        captures = self.captures
        return RunSummary(
            any(it.live for it in captures),
            run_label((it.counts.client, it.header) for it in captures),
            tuple(dict.fromkeys(it.header.name for it in captures)),
            sum(it.counts.frames for it in captures),
            sum(it.problems for it in captures),
            tuple(sum(it.found[severity] for it in captures) for severity in SEVERITIES),
            sum(it.killed for it in captures),
            len(turns((round(it.started * 1e9), it.counts.spells) for it in captures)),
            sum(it.size for it in captures),
        )


_VALUES: dict[str, Callable[[ListedCapture], Any]] = {
    "newest": lambda _: 0,
    "problems": lambda it: it.problems,
    "frames": lambda it: it.counts.frames,
    "name": lambda it: it.header.name.lower(),
}
"""The value of a capture for each column of its `SORTS`."""


class ListedRow(NamedTuple):
    """One row: a run or a capture."""

    run: ListedRun
    capture: ListedCapture | None
    """None if the row is the run."""
    sign: str
    """The fold sign of a run; for a capture, a part of the bracket around the captures of its run."""

    @property
    def selected(self) -> Selected:
        """The selection that identifies this row."""
        return (self.capture or self.run.first).path, self.capture is None

    @property
    def captures(self) -> list[ListedCapture]:
        """The captures that it represents."""
        return [self.capture] if self.capture else self.run.captures


class RunRows:
    """The rows that the last call of `choose` made, and the unfolded runs."""

    def __init__(self) -> None:
        self.rows: list[ListedRow] = []
        self.captures: list[ListedCapture] = []
        """The captures that the rows represent; the captures of a run are adjacent."""
        self._runs: list[ListedRun] = []
        self._unfolded: set[str] = set()  # the path of the first capture of each run

    def choose(self, captures: Iterable[ListedCapture], column: SortColumn = SORTS["sessions"][0]) -> bool:
        """Show these captures, sorted by a column. Returns whether that changes the rows.

        The captures are in the order of the first column. The captures of a run are sorted like the runs.
        """
        before = [row.selected for row in self.rows]
        self._runs = [
            ListedRun(sorted(run, key=_VALUES[column.name], reverse=column.falling)) for run in runs(captures)
        ]
        self._runs.sort(key=lambda run: run.value(column.name), reverse=column.falling)
        self.captures = [capture for run in self._runs for capture in run.captures]
        self._make()
        return before != [row.selected for row in self.rows]

    def unfold(self, run: ListedRun, *, unfold: bool) -> None:
        """Unfold a run into a row for each capture, or fold it."""
        (self._unfolded.add if unfold else self._unfolded.discard)(run.first.path)
        self._make()

    def unfold_all(self, *, unfold: bool) -> None:
        """Unfold or fold all runs."""
        self._unfolded = {run.first.path for run in self._runs} if unfold else set()
        self._make()

    def is_unfolded(self, run: ListedRun) -> bool:
        """Return whether a run is unfolded."""
        return run.first.path in self._unfolded

    def place(self, selected: Selected) -> int | None:
        """Return the place of a selected row, or of the row of its run; None if there is none."""
        near = None
        for place, row in enumerate(self.rows):
            if row.selected == selected:
                return place
            if near is None and any(capture.path == selected[0] for capture in row.captures):
                near = place
        return near

    def _make(self) -> None:
        self.rows = []
        for run in self._runs:
            if len(run.captures) == 1:
                self.rows.append(ListedRow(run, run.captures[0], " "))
                continue
            unfolded = self.is_unfolded(run)
            self.rows.append(ListedRow(run, None, FOLDS[not unfolded]))
            if unfolded:
                signs = "│" * (len(run.captures) - 1) + "└"
                self.rows += [ListedRow(run, it, sign) for it, sign in zip(run.captures, signs, strict=True)]
