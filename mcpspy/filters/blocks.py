"""A filter asked of many rows at once, by the values that stand in columns.

The theory. Many rows have few values between them. So each value of a column is asked about once, and rows of which all
terms say the same get one verdict. All answers come from the terms themselves and from the tree; nothing here knows
what they mean.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

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

    def decide(self, size: int, column: Callable[[str], Gathered | None]) -> Iterable[bool | None]:
        """For each of `size` rows whether it is wanted; None where the columns do not tell.

        `column` has the values that the rows have of a member of `Row`, if it knows them.
        """
        found = [column(_MEMBERS.get(term.key, term.key)) for term in self._terms]
        answers = [
            known.of(values) if values else (None,) * size for known, values in zip(self._answers, found, strict=True)
        ]
        rows = zip(*answers, strict=True) if answers else [()] * size
        return map(self._verdicts.__getitem__, rows)


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
