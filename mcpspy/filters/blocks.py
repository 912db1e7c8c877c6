"""A filter applied to many rows at once, by the values in columns and by the bytes of their lines.

Many rows have few different values. So each value of a column is tested once, and rows with the same results for all
terms share one verdict. For a text, a search of the bytes of all rows excludes most rows. If that leaves the verdict
open, the text of the row is tested. All results come from the terms and from the tree; nothing here knows what they
mean.

Searching the bytes of many lines at once costs far less than searching each line. So the search jumps from one
occurrence of a trace to the next. Only the lines of these occurrences stay undecided, with those that may hide a trace
(`Filter.decide` has the same rule for a single line). No other line can contain the text, which also helps where a text
must be absent. An undecided line is decided by the text of its frame.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from mcpspy.filters.terms import contains
from mcpspy.filters.tree import ESCAPE, Filter, Node, Term, Trace
from mcpspy.timeline import Row

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


_MEMBERS = {"from": ("sender",), "time": ("t",), "status": ("status", "outcome", "expected")}
"""The members of a row that decide a key, if it is not one member of the same name."""
_MOST = 1 << 16  # results of a term that are remembered


class Gathered(NamedTuple):
    """The values that some rows have for a key; a tuple if it depends on several members."""

    codes: Sequence[int | None]
    """A number for the value of each row; None if only the row itself has the value."""
    value: Callable[[int], Any]
    """A function that returns the value of a number."""


class BlockFilter:
    """A filter for many rows at once; `decide` each block of them."""

    def __init__(self, wanted: Filter) -> None:
        self._terms = list(dict.fromkeys(wanted.tree.terms()))
        self._answers = [_Answers(term) for term in self._terms]
        self._verdicts = _Verdicts(wanted.tree, self._terms)
        self._texts = {place: _contain(term) for place, term in enumerate(self._terms) if term.key == "text"}

    @property
    def reads_lines(self) -> bool:
        """Whether lines could decide more than columns."""
        return bool(self._texts)

    def decide(
        self, rows: Sequence[int], column: Callable[[str], Gathered | None], lines: LineBlock | None = None
    ) -> list[bool | None]:
        """Return for each of the rows on those lines whether it matches; None if columns and lines do not decide it.

        `column` returns the values that the rows have for a member of `Row`, if they are known.
        """
        asked = [self._ask(place, rows, column, lines) for place in range(len(self._terms))]
        found = self._join(asked, len(rows))
        if lines and None in found:
            undecided = [at for at, verdict in enumerate(found) if verdict is None]
            again = self._read(
                lines, [rows[at] for at in undecided], [[said[at] for at in undecided] for said in asked]
            )
            for at, verdict in zip(undecided, again, strict=True):
                found[at] = verdict
        return found

    def _read(self, lines: LineBlock, rows: Sequence[int], asked: list[list[bool | None]]) -> list[bool | None]:
        """Return the verdicts for rows, from the results of the terms so far and from the texts of their frames.

        The results that the texts give are added to `asked`.
        """
        texts = lines.texts(rows)
        for place, test in self._texts.items():
            asked[place] = [
                test(text) if text is not None and said is None else said
                for said, text in zip(asked[place], texts, strict=True)
            ]
        return self._join(asked, len(rows))

    def _join(self, asked: Sequence[Sequence[bool | None]], size: int) -> list[bool | None]:
        """Return the verdicts of the filter for rows, from the results of its terms."""
        return list(map(self._verdicts.__getitem__, zip(*asked, strict=True) if asked else [()] * size))

    def _ask(
        self, place: int, rows: Sequence[int], column: Callable[[str], Gathered | None], lines: LineBlock | None
    ) -> Sequence[bool | None]:
        """Return the results of a term for the rows."""
        term = self._terms[place]
        if term.key == "text":
            return lines.rule_out(term.traces, rows) if lines else (None,) * len(rows)
        values = column(_members(term.key)[0])
        return self._answers[place].of(values) if values else (None,) * len(rows)


def _members(key: str) -> tuple[str, ...]:
    return _MEMBERS.get(key, (key,))


def _contain(term: Term) -> Callable[[str], bool]:
    """Return a test whether a frame matches a term for texts."""
    tests = [contains(value.text) for value in term.values]
    return tests[0] if len(tests) == 1 else lambda text: any(test(text) for test in tests)


class _Answers(dict[int | None, bool | None]):
    """By the number of a value: the result of a term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._value: Callable[[int], Any] = int

    def of(self, column: Gathered) -> list[bool | None]:
        """Return the results for the rows of a column."""
        if len(self) > _MOST:
            self.clear()
        self._value = column.value
        return list(map(self.__getitem__, column.codes))

    def __missing__(self, code: int | None) -> bool | None:
        answer: bool | None = None
        if code is not None:
            row = Row(0, 0, "", "")
            members, value = _members(self._term.key), self._value(code)
            for member, part in zip(members, value if len(members) > 1 else (value,), strict=True):
                setattr(row, member, part)
            answer = self._term.test(row)
        self[code] = answer
        return answer


class _Verdicts(dict[tuple[bool | None, ...], bool | None]):
    """By the results of the terms: the verdict of the filter."""

    def __init__(self, tree: Node, terms: Sequence[Term]) -> None:
        self._tree = tree
        self._places = {term: place for place, term in enumerate(terms)}

    def __missing__(self, answers: tuple[bool | None, ...]) -> bool | None:
        self[answers] = verdict = self._tree.ask(lambda term: answers[self._places[term]])
        return verdict
