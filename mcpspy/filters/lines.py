"""Consecutive lines of a capture, searched as one for the traces of texts.

The theory. Searching the bytes of many lines at once costs far less than searching each line. So the search jumps from
one occurrence of a trace to the next. Only the lines of these occurrences stay undecided, with those that may hide a
trace (`Filter.decide` has the same rule for a single line). No other line can contain the text, which also helps where
a text must be absent. An undecided line is decided by the text of its frame.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import orjson

from mcpspy.filters.tree import ESCAPE, Trace

_CASELESS = re.compile(rb"[^a-z]{4,}")  # parts of a trace for which the lines need not be in lower case
_OPENED, _CLOSED = b'"raw":"', b"}\n"


class LineBlock:
    """Lines of a capture, starting with number `first`."""

    def __init__(
        self, first: int, content: bytes, starts: Sequence[int], texts: Sequence[int], *, exact: bool = False
    ) -> None:
        """`starts` are the offsets of the lines and of the end of the last one, relative to any origin.

        `texts` are the offsets in each line of the quote before the text of a frame; 0 if the line does not have the
        whole frame of its row. With `exact`, rows have no text except their frame.
        """
        self.stop = first + len(texts)
        """The number of the line after the last."""
        origin = starts[0]
        self._first, self._content, self._texts, self._exact = first, content, texts, exact
        self._starts = [start - origin for start in starts]

    def rule_out(self, traces: Iterable[Trace], rows: Sequence[int]) -> list[bool | None]:
        """Return for each of the rows False if none of the traces can be on its line, else None."""
        found = self._uncertain.copy()
        for trace in traces:
            if not trace:
                return [None] * len(rows)
            for line in self._having(trace):
                found[line] = None
        first, stop = self._first, self.stop
        if rows == list(range(first, first + len(rows))):  # consecutive lines, as usual
            return found[: len(rows)] + [None] * (len(rows) - len(found))
        return [found[n - first] if first <= n < stop else None for n in rows]

    def texts(self, rows: Iterable[int]) -> list[str | None]:
        """Return the frames on those lines, if rows have nothing else; None if that is uncertain."""
        found: list[str | None] = []
        content, texts, starts, first = self._content, self._texts if self._exact else (), self._starts, self._first
        view = memoryview(content)
        for n in rows:
            line = n - first
            text = None
            if 0 <= line < len(texts) and texts[line]:
                begin, end = starts[line] + texts[line], starts[line + 1] - len(_CLOSED)
                # the file may have changed since the offset was noted
                if content.startswith(_CLOSED, end) and content.startswith(_OPENED, begin + 1 - len(_OPENED)):
                    try:
                        text = orjson.loads(view[begin:end])
                    except ValueError:  # the frame has more members, or the line is damaged
                        pass
            found.append(text)
        return found

    @cached_property
    def _uncertain(self) -> list[bool | None]:
        """For each line None if it may hide any text, else False."""
        found: list[bool | None] = [False if offset else None for offset in self._texts]
        for line in self._with(ESCAPE, self._content):
            found[line] = None
        return found

    def _having(self, trace: Trace) -> Iterator[int]:
        """Yield the lines that contain all parts of a trace; the first line of the block is 0."""
        anchor = max((part for run in trace for part in _CASELESS.findall(run)), key=len, default=b"")
        sought, *others = [anchor, *trace] if anchor else sorted(trace, key=len, reverse=True)
        for line in self._with(sought, self._content if anchor else self._lowered):
            if not others or _has_all(self._content[self._starts[line] : self._starts[line + 1]].lower(), others):
                yield line

    def _with(self, sought: bytes, content: bytes) -> Iterator[int]:
        """Yield the lines that contain some bytes."""
        starts = self._starts
        at = content.find(sought)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            yield line
            at = content.find(sought, starts[line + 1])

    @cached_property
    def _lowered(self) -> bytes:
        return self._content.lower()


def _has_all(line: bytes, runs: Iterable[bytes]) -> bool:
    return all(run in line for run in runs)
