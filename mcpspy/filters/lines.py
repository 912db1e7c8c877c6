"""Consecutive lines of a capture, searched as one for the traces of texts.

The theory. Searching the bytes of many lines at once costs far less than searching each line. So the search jumps from
one occurrence of a trace to the next. Only the lines of these occurrences stay undecided, with those that may hide a
trace (`Filter.decide` has the same rule for a single line). No other line can contain the text, which also helps where
a text must be absent. An undecided line is decided by the text of its frame.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import repeat

import orjson

from mcpspy.filters.tree import ESCAPE, WHOLE, Trace

_HIDDEN = re.compile(re.escape(ESCAPE))  # twice as fast as `find` for two bytes whose second one is a letter
_CASELESS = re.compile(rb"[^a-z]{4,}")  # parts of a trace for which the lines need not be in lower case
_CLOSED = b"}\n"


class LineBlock:
    """Lines of a capture, starting with number `first`."""

    def __init__(
        self, first: int, content: bytes, starts: Sequence[int], apart: Collection[int] = (), *, exact: bool = False
    ) -> None:
        """`starts` are the offsets of the lines and of the end of the last one, relative to any origin.

        The rows on the lines `apart` have more than their line. With `exact`, the other rows have no text except their
        frame.
        """
        self.stop = first + len(starts) - 1
        """The number of the line after the last."""
        self._first, self._content, self._exact = first, content, exact
        self._starts = [start - starts[0] for start in starts]
        heads = map(WHOLE.match, repeat(content), self._starts[:-1])
        self._frames = [head.end() - 1 if head else 0 for head in heads]  # where frames begin, on lines that have one
        for n in apart:
            self._frames[n - first] = 0
        self._hiding = bytearray(len(self._frames))  # by line, from the first on
        hidden = _HIDDEN.search(content)
        while hidden:
            line = bisect_right(self._starts, hidden.start()) - 1
            self._hiding[line] = 1
            hidden = _HIDDEN.search(content, self._starts[line + 1])

    def rule_out(self, traces: Iterable[Trace], rows: Iterable[int]) -> list[bool | None]:
        """Return for each of the rows False if none of the traces can be on its line, else None."""
        open_ = self._hiding.copy()
        for trace in traces:
            self._mark_all(trace, open_)
        found = [None if it or not frame else False for it, frame in zip(open_, self._frames, strict=True)]
        first, stop = self._first, self.stop
        return [found[n - first] if first <= n < stop else None for n in rows]

    def texts(self, rows: Iterable[int]) -> list[str | None]:
        """Return the frames on those lines, if rows have nothing else; None for line 0 or if that is uncertain."""
        found: list[str | None] = []
        content, frames, starts = self._content, self._frames if self._exact else (), self._starts
        for n in rows:
            at = n - self._first
            text = None
            if n and 0 <= at < len(frames) and frames[at]:
                end = starts[at + 1] - len(_CLOSED)
                try:
                    text = orjson.loads(content[frames[at] : end]) if content.startswith(_CLOSED, end) else None
                except ValueError:  # the frame has more members, or the line is damaged
                    pass
            found.append(text)
        return found

    def _mark_all(self, trace: Trace, marks: bytearray) -> None:
        """Mark the lines that contain all parts of a trace."""
        if not trace:
            marks[:] = b"\1" * len(marks)
            return
        starts = self._starts
        anchor = max((part for run in trace for part in _CASELESS.findall(run)), key=len, default=b"")
        sought, *others = [anchor, *trace] if anchor else sorted(trace, key=len, reverse=True)
        searched = self._content if anchor else self._lowered
        at = searched.find(sought)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            start, end = starts[line], starts[line + 1]
            if not others or _has_all(self._content[start:end].lower(), others):
                marks[line] = 1
            at = searched.find(sought, end)

    @cached_property
    def _lowered(self) -> bytes:
        return self._content.lower()


def _has_all(line: bytes, runs: Iterable[bytes]) -> bool:
    return all(run in line for run in runs)
