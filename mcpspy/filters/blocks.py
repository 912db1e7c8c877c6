"""A filter asked of many rows at once, by the values that stand in columns and by the bytes of their lines.

The theory. Many rows have few values between them. So each value of a column is asked about once, and rows of which all
terms say the same get one verdict. A text is ruled out for most rows by the bytes of all of them; where that leaves the
verdict open, the text of the row is looked at. All answers come from the terms themselves and from the tree; nothing
here knows what they mean.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mcpspy.filters.lines import LineBlock
from mcpspy.filters.texts import contains
from mcpspy.filters.tree import Filter, Node, Term
from mcpspy.timeline import Row

_MEMBERS = {"from": "sender", "time": "t"}  # where the member of a row has another name than the key
_MOST = 1 << 16  # answers of a term that are remembered


class Gathered(NamedTuple):
    """The values that some rows have of a key."""

    codes: Sequence[int | None]
    """A number for the value of each row; None where only the row itself can tell."""
    value: Callable[[int], Any]
    """What a number stands for."""


class BlockFilter:
    """What a filter says of many rows at once; `decide` each block of them."""

    def __init__(self, wanted: Filter) -> None:
        self._terms = list(dict.fromkeys(wanted.tree.terms()))
        self._answers = [_Answers(term) for term in self._terms]
        self._verdicts = _Verdicts(wanted.tree, self._terms)
        self._texts = {place: _contain(term) for place, term in enumerate(self._terms) if term.key == "text"}

    @property
    def reads_lines(self) -> bool:
        """Whether lines could tell more than columns."""
        return bool(self._texts)

    def decide(
        self, rows: Sequence[int], column: Callable[[str], Gathered | None], lines: LineBlock | None = None
    ) -> list[bool | None]:
        """For each of the rows on those lines whether it is wanted; None where columns and lines do not tell.

        `column` has the values that the rows have of a member of `Row`, if it knows them.
        """
        asked = [self._ask(place, rows, column, lines) for place in range(len(self._terms))]
        found = self._join(asked, len(rows))
        if not lines or None not in found:
            return found
        texts = lines.texts(n if verdict is None else 0 for n, verdict in zip(rows, found, strict=True))
        for place in self._texts:
            test = self._texts[place]
            asked[place] = [
                test(text) if text is not None and said is None else said
                for said, text in zip(asked[place], texts, strict=True)
            ]
        return self._join(asked, len(rows))

    def _join(self, asked: Sequence[Sequence[bool | None]], size: int) -> list[bool | None]:
        """What the filter says of so many rows of which its terms say that."""
        return list(map(self._verdicts.__getitem__, zip(*asked, strict=True) if asked else [()] * size))

    def _ask(
        self, place: int, rows: Sequence[int], column: Callable[[str], Gathered | None], lines: LineBlock | None
    ) -> Sequence[bool | None]:
        """What a term says of the rows."""
        term = self._terms[place]
        if term.key == "text":
            return lines.rule_out(term.traces, rows) if lines else (None,) * len(rows)
        values = column(_MEMBERS.get(term.key, term.key))
        return self._answers[place].of(values) if values else (None,) * len(rows)


def _contain(term: Term) -> Callable[[str], bool]:
    """Whether a frame fits a term that asks for texts."""
    tests = [contains(value.text) for value in term.values]
    return tests[0] if len(tests) == 1 else lambda text: any(test(text) for test in tests)


class _Answers(dict[int | None, bool | None]):
    """By the number of a value: what a term says of it."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._value: Callable[[int], Any] = int

    def of(self, column: Gathered) -> list[bool | None]:
        """What it says of the rows of a column."""
        if len(self) > _MOST:
            self.clear()
        self._value = column.value
        return list(map(self.__getitem__, column.codes))

    def __missing__(self, code: int | None) -> bool | None:
        answer: bool | None = None
        if code is not None:
            row = Row(0, 0, "", "")
            setattr(row, _MEMBERS.get(self._term.key, self._term.key), self._value(code))
            answer = self._term.test(row)
        self[code] = answer
        return answer


class _Verdicts(dict[tuple[bool | None, ...], bool | None]):
    """By what the terms of a filter say: what the filter says."""

    def __init__(self, tree: Node, terms: Sequence[Term]) -> None:
        self._tree = tree
        self._places = {term: place for place, term in enumerate(terms)}

    def __missing__(self, answers: tuple[bool | None, ...]) -> bool | None:
        self[answers] = verdict = self._tree.ask(lambda term: answers[self._places[term]])
        return verdict
