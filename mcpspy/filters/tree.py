"""A filter: a tree of terms joined by and, or and not, applied to rows or to partial knowledge of them.

The theory. A row has everything that a term needs, but decoding rows is expensive. So the tree is evaluated with
answers of three values: yes, no, and not known yet. A caller that knows a few columns of a row, or only its line in the
capture, often gets a verdict from that. A line can only answer no: the text of a term leaves a trace in the bytes,
unless an escape hides it. Nothing here knows what the keys mean.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.capture.scan import TEXT_FRAME
from mcpspy.timeline import Row

Test = Callable[[Row], bool]
Trace = tuple[bytes, ...]
"""Bytes in lower case that are all in the line of a matching row; a value may have several alternatives."""
Answer = Callable[["Term"], bool | None]


class Value(NamedTuple):
    """A value of a term as it was written; in quotes it is literal."""

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        return '"' + self.text.replace("\\", "\\\\").replace('"', '\\"') + '"' if self.quoted else self.text


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: whether a row has one of these values. Terms that are written the same are equal."""

    key: str
    values: tuple[Value, ...]
    test: Test = field(compare=False, repr=False)
    traces: tuple[Trace, ...] = field(compare=False, repr=False)
    column: int = field(default=1, compare=False, repr=False)
    """The column of its start in the filter, from 1."""

    def ask(self, answer: Answer) -> bool | None:
        """Return the answer for this term."""
        return answer(self)

    def terms(self) -> Iterator["Term"]:
        """Yield only this term."""
        yield self

    def words(self) -> Iterator[str]:
        """Yield the texts that it searches for."""
        if self.key == "text":
            yield from (value.text for value in self.values)

    def possible(self, line: bytes) -> bool:
        """Return whether a line in lower case contains a trace of the term."""
        for trace in self.traces:  # plain loops, because this runs for each line of a file
            for run in trace:
                if run not in line:
                    break
            else:
                return True
        return False

    def __str__(self) -> str:
        values = ",".join(map(str, self.values))
        return values if self.key == "text" and len(self.values) == 1 else f"{self.key}:{values}"


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a node."""

    part: "Node"

    def ask(self, answer: Answer) -> bool | None:
        """Return True, False, or None if the answers do not decide it."""
        found = self.part.ask(answer)
        return None if found is None else not found

    def terms(self) -> Iterator[Term]:
        """Return all terms below."""
        return self.part.terms()

    def words(self) -> Iterator[str]:
        """Return nothing, because an absent text cannot be highlighted."""
        return iter(())

    def __str__(self) -> str:
        return f"not {_bracketed(self.part, And, Or)}"


@dataclass(frozen=True, slots=True)
class _Several:
    parts: tuple["Node", ...]

    def terms(self) -> Iterator[Term]:
        """Yield all terms below."""
        for part in self.parts:
            yield from part.terms()

    def words(self) -> Iterator[str]:
        """Yield the texts of all parts."""
        for part in self.parts:
            yield from part.words()


@dataclass(frozen=True, slots=True)
class And(_Several):
    """All of the parts match; True if there are none."""

    def ask(self, answer: Answer) -> bool | None:
        """Return True, False, or None if the answers do not decide it."""
        verdict: bool | None = True
        for part in self.parts:
            found = part.ask(answer)
            if found is False:
                return False
            if found is None:
                verdict = None
        return verdict

    def __str__(self) -> str:
        return " ".join(_bracketed(part, And, Or) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(_Several):
    """Any of the parts matches."""

    def ask(self, answer: Answer) -> bool | None:
        """Return True, False, or None if the answers do not decide it."""
        verdict: bool | None = False
        for part in self.parts:
            found = part.ask(answer)
            if found is True:
                return True
            if found is None:
                verdict = None
        return verdict

    def __str__(self) -> str:
        return " or ".join(_bracketed(part, Or) for part in self.parts)


Node = Term | Not | And | Or


def _bracketed(node: Node, *kinds: type) -> str:
    return f"({node})" if isinstance(node, kinds) else str(node)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows match; `parse` creates it."""

    tree: Node

    def __call__(self, row: Row) -> bool:
        """Return whether a complete row matches."""
        return self.tree.ask(lambda term: term.test(row)) is True

    def decide(self, row: Row, known: Collection[str], line: bytes | None = None) -> bool | None:
        """Return whether a row matches if only the values of some keys are known; None if they do not decide it.

        `line` is the line of its record in the capture, if that record is the whole frame (no frame in pieces).
        """
        searched = line.lower() if line and TEXT_FRAME.match(line) else None

        def answer(term: Term) -> bool | None:
            if term.key in known:
                return term.test(row)
            if searched is None or term.possible(searched) or ESCAPE in searched:
                return None
            return False

        return self.tree.ask(answer)

    def prefilter(self, line: bytes) -> bool:
        """Return whether the rows on a line of a capture may match: fast, and never False for one that matches."""
        return self.decide(_UNKNOWN, (), line) is not False

    @property
    def keys(self) -> frozenset[str]:
        """The keys that it uses."""
        return frozenset(term.key for term in self.tree.terms())

    def words(self) -> tuple[str, ...]:
        """Return the texts that it searches for, to highlight them."""
        return tuple(self.tree.words())

    def __str__(self) -> str:
        return str(self.tree)


ESCAPE = b"\\u"  # it may hide any letter
_UNKNOWN = Row(0, 0, "", "")
