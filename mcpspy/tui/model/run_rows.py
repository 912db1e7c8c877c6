"""The rows of the sessions list: a run of several captures is one row, which unfolds into a row for each of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mcpspy.browse.library import ListedCapture
from mcpspy.capture.runs import client_process, runs
from mcpspy.conversation.turns import turns
from mcpspy.rules import SEVERITIES

Selected = tuple[str, bool]
"""What is selected, however the rows change: the path of a capture, the first one of a run; and whether it is a run."""


class RunSummary(NamedTuple):
    """What is known of all captures of a run by now."""

    live: bool
    client: str
    servers: tuple[str, ...]
    """Their names, once each."""
    frames: int
    errors: int
    found: tuple[int, ...]
    """How often something was found, in the order of the severities."""
    killed: int
    turns: int
    size: int


@dataclass(eq=False)
class ListedRun:
    """The captures of one client process that are shown."""

    captures: list[ListedCapture]
    """In the order of the list."""

    @cached_property
    def first(self) -> ListedCapture:
        """The one that began first."""
        return min(self.captures, key=lambda it: it.started)

    @property
    def process(self) -> int | None:
        """The number of the client's process."""
        return client_process(self.first.header)

    def summary(self) -> RunSummary:
        """What is known of all of them by now."""
        captures = self.captures
        return RunSummary(
            any(it.live for it in captures),
            next((it.counts.client for it in captures if it.counts.client), ""),
            tuple(dict.fromkeys(it.header.name for it in captures)),
            sum(it.counts.frames for it in captures),
            sum(it.counts.errors for it in captures),
            tuple(sum(it.found[severity] for it in captures) for severity in SEVERITIES),
            sum(it.killed for it in captures),
            len(turns((round(it.started * 1e9), it.counts.spells) for it in captures)),
            sum(it.size for it in captures),
        )


class ListedRow(NamedTuple):
    """One row: of a run, or of a capture."""

    run: ListedRun
    capture: ListedCapture | None
    """None: the row is that of the run."""
    sign: str
    """Whether the run is folded; of a capture, the part of the bracket around those of its run."""

    @property
    def selected(self) -> Selected:
        """How it is known again."""
        return (self.capture or self.run.first).path, self.capture is None

    @property
    def captures(self) -> list[ListedCapture]:
        """The captures that it represents."""
        return [self.capture] if self.capture else self.run.captures


class RunRows:
    """The rows, as `choose` made them last, and which runs are unfolded."""

    def __init__(self) -> None:
        self.rows: list[ListedRow] = []
        self.captures: list[ListedCapture] = []
        """The captures that the rows represent, those of a run together."""
        self._runs: list[ListedRun] = []
        self._unfolded: set[str] = set()  # the path of the first capture of each

    def choose(self, captures: Iterable[ListedCapture]) -> None:
        """Show these captures."""
        self._runs = [ListedRun(run) for run in runs(captures)]
        self.captures = [capture for run in self._runs for capture in run.captures]
        self._make()

    def unfold(self, run: ListedRun, *, unfold: bool) -> None:
        """Show a row for each capture of a run, or no longer."""
        (self._unfolded.add if unfold else self._unfolded.discard)(run.first.path)
        self._make()

    def unfold_all(self, *, unfold: bool) -> None:
        """The same for all runs."""
        self._unfolded = {run.first.path for run in self._runs} if unfold else set()
        self._make()

    def is_unfolded(self, run: ListedRun) -> bool:
        """Whether there is a row for each capture of a run."""
        return run.first.path in self._unfolded

    def place(self, selected: Selected) -> int | None:
        """Where the row is that was selected, or the one of its run; None if there is none."""
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
            self.rows.append(ListedRow(run, None, "▾" if unfolded else "▸"))
            if unfolded:
                signs = "│" * (len(run.captures) - 1) + "└"
                self.rows += [ListedRow(run, it, sign) for it, sign in zip(run.captures, signs, strict=True)]
