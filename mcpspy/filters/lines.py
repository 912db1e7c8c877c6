"""Lines of a capture that follow one another, searched as one for what texts leave in them.

The theory. To look at the bytes of many lines at once costs far less than to look at each line. So the bytes are
searched from one place where a trace stands to the next, and only the lines of those places are left open, with those
that may hide a trace (`Filter.decide` has the same rule for a line by itself). No other line can have the text, which
is as good to know where a text must be absent. A line that is left open is decided by the text of its frame.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import repeat

import orjson

from mcpspy.filters.tree import ESCAPE, WHOLE, Trace

_HIDDEN = re.compile(re.escape(ESCAPE))  # twice as fast as `find` for two bytes of which the second is a letter
_CASELESS = re.compile(rb"[^a-z]{4,}")  # of a trace: there is no need to put the lines in lower case for it
_CLOSED = b"}\n"


class LineBlock:
    """Lines of a capture, from number `first` on."""

    def __init__(
        self, first: int, content: bytes, starts: Sequence[int], apart: Collection[int] = (), *, exact: bool = False
    ) -> None:
        """`starts` tells where each line begins, and where the last one ends, counted from wherever the first begins.

        The rows on the lines `apart` have more than their line. `exact`: the other rows have no text but their frame.
        """
        self.stop = first + len(starts) - 1
        """The number of the line after the last."""
        self._first, self._content, self._exact = first, content, exact
        self._starts = [start - starts[0] for start in starts]
        heads = map(WHOLE.match, repeat(content), self._starts[:-1])
        self._frames = [head.end() - 1 if head else 0 for head in heads]  # where frames begin, on lines that tell them
        for n in apart:
            self._frames[n - first] = 0
        self._hiding = bytearray(len(self._frames))  # by line, from the first on
        hidden = _HIDDEN.search(content)
        while hidden:
            line = bisect_right(self._starts, hidden.start()) - 1
            self._hiding[line] = 1
            hidden = _HIDDEN.search(content, self._starts[line + 1])

    def rule_out(self, traces: Iterable[Trace], rows: Iterable[int]) -> list[bool | None]:
        """For each of the rows on those lines False if none of the traces can be there, else None."""
        open_ = self._hiding.copy()
        for trace in traces:
            self._mark_all(trace, open_)
        found = [None if it or not frame else False for it, frame in zip(open_, self._frames, strict=True)]
        first, stop = self._first, self.stop
        return [found[n - first] if first <= n < stop else None for n in rows]

    def texts(self, rows: Iterable[int]) -> list[str | None]:
        """The frames on those lines, where they are all that their rows have; None for 0 or where that is not sure."""
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
        """Mark the lines that have all of a trace."""
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
