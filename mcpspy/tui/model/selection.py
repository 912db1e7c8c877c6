"""The shown rows of a session: all rows, or those that match a filter, without a screen.

The matching rows are available while the search still runs, and while the session grows. So a selection is a list that
grows, mostly at its end, and sometimes loses a row. It is always in the order of the session. The row that you look at
is in the selection immediately, if it matches; rows that are found before it are then inserted above it. Rows are
identified by the line numbers of their frames, which never change, while the place of a row may change.
"""

import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial

from mcpspy.browse.search import Searched, SearchStep, search, verdict
from mcpspy.filters import Filter

Wanted = Callable[[int], bool | None]
"""A test of the row at a place; None if the fold must come first."""
_NEAR = 32  # maximum distance of a row from the place that its line number suggests


class Selection:
    """The shown rows. Set a filter with `choose`, then call `grow` while the session grows or there is work to do."""

    def __init__(self, capture: Searched) -> None:
        self.wanted: Filter | None = None
        """The filter; None if all rows are shown."""
        self._index = capture.index
        self._capture = capture
        self._lines: array[int] = array("I")  # the line numbers of matching rows, in the order of the session
        self._steps: Iterator[SearchStep] = iter(())
        self._looked = 0  # number of finished rows of the session
        self._kept = 0  # the line number of a row that is shown before the search reaches it
        self._moved = 0  # number of moved rows that are already moved here

    def choose(self, wanted: Filter | None, kept: int = 0) -> None:
        """Show the rows that match a filter, or all. If the row on line `kept` matches, it is shown immediately."""
        self.wanted, self._lines, self._kept, self._looked = wanted, array("I"), 0, 0
        if wanted is None:
            return
        self._steps, self._moved = search(self._capture, wanted), len(self._capture.moved)
        place = self._index.row_of(kept)
        if place is not None and verdict(self._capture, wanted, wanted.keys, place):
            self._lines.append(kept)
            self._kept = kept

    def __len__(self) -> int:
        """The number of rows shown so far."""
        return len(self._lines if self.wanted else self._index.rows)

    def line(self, at: int) -> int:
        """Return the line number of the row shown at a position."""
        return (self._lines if self.wanted else self._index.rows)[at]

    def place(self, at: int) -> int:
        """Return the place in the session of the row shown at a position."""
        return self._place(self._lines[at]) if self.wanted else at

    def position(self, n: int) -> int | None:
        """Return the position at which the row on line `n` is shown; None if it is not shown."""
        if not self.wanted:
            return self._index.row_of(n)
        near = max(bisect_left(self._lines, n) - _NEAR, 0)  # rows are nearly in the order of their lines
        for first, last in ((near, near + 2 * _NEAR), (0, len(self._lines))):
            try:
                return self._lines.index(n, first, last)
            except ValueError:
                continue
        return None

    @property
    def progress(self) -> float:
        """The searched part of the rows, 0 to 1."""
        return self._looked / max(len(self._index.rows), 1) if self.wanted else 1.0

    def grow(self, seconds: float) -> bool:
        """Search for about `seconds`. Returns whether there is more to search now."""
        if not self.wanted:
            return False
        deadline = time.perf_counter() + seconds
        for step in self._steps:
            self._take(step)
            if step.idle or time.perf_counter() > deadline:
                break
        moved = self._capture.moved[self._moved :]
        self._moved += len(moved)
        for n in [n for n in moved if self._remove(n)]:
            self._insert(n)
        return not step.idle

    def _take(self, step: SearchStep) -> None:
        self._looked = step.place
        for n in step.gone:
            self._remove(n)
        hits = step.hits
        if self._kept in hits:
            hits = [n for n in hits if n != self._kept]
            self._kept = 0
        elif self._kept and self._place(self._kept) < step.place:  # it has changed in the meantime
            self._remove(self._kept)
            self._kept = 0
        self._add(hits)

    def _add(self, lines: list[int]) -> None:
        for n in lines:
            if not self._lines or n > self._lines[-1]:
                self._lines.append(n)
            else:
                self._insert(n)

    def _insert(self, n: int) -> None:
        self._lines.insert(bisect_left(self._lines, self._place(n), key=self._place), n)

    def _remove(self, n: int) -> bool:
        at = self.position(n)
        if at is not None:
            self._lines.pop(at)
        return at is not None

    def _place(self, n: int) -> int:
        return self._index.row_of(n) or 0


def matching(capture: Searched, wanted: Filter) -> Wanted:
    """Return the test for rows that match a filter."""
    return partial(verdict, capture, wanted, wanted.keys)


def failed_or_found(capture: Searched) -> Wanted:
    """Return the test for rows with findings, and for one row of each failed request: its answer, if it has one."""

    def test(place: int) -> bool | None:
        row = capture.known(capture.index.rows[place])
        if row is None:
            return None
        return bool(row.findings) or (row.failed and row.response in (None, row.n))

    return test


class Hunt:
    """A search through the shown rows for the first that is wanted, once round; call `grow` until it ends."""

    def __init__(self, selection: Selection, wanted: Wanted, at: int, step: int) -> None:
        """Begin at the position `at`, forwards (`step` 1) or backwards (-1)."""
        self._selection, self._wanted = selection, wanted
        self._at, self._left = at, len(selection)
        self.step = step
        """1 forwards, -1 backwards."""
        self.found: int | None = None
        """The position of the matching row; None if none is found."""
        self.round = False
        """Whether the search has wrapped around the end."""

    def grow(self, seconds: float) -> bool:
        """Search for about `seconds`. Returns whether the search is unfinished."""
        deadline = time.perf_counter() + seconds
        while self._left > 0 and self._selection:
            if not 0 <= self._at < len(self._selection):
                self._at, self.round = (0 if self.step > 0 else len(self._selection) - 1), True
            found = self._wanted(self._selection.place(self._at))
            if found:
                self.found = self._at
                return False
            if found is None:  # wait for the fold
                return True
            self._at += self.step
            self._left -= 1
            if time.perf_counter() > deadline:  # a large row alone takes longer, so it must not be tested again
                return self._left > 0
        return False
