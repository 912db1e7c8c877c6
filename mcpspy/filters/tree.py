"""A filter: a tree of terms joined by and, or and not, asked of rows or of as little as is known of them.

The theory. A row has all that a term can ask for, but decoding rows is what costs. So a tree is asked with answers of
three values: yes, no, and not known yet. Who knows a few columns of a row, or only the line of the capture that it
stands on, often gets a verdict from that. A line can only say no: what a term looks for leaves a trace in the bytes,
unless they hide it. Nothing here knows what the keys mean.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.timeline import Row

Test = Callable[[Row], bool]
Trace = tuple[bytes, ...]
"""Bytes in lower case that all stand in the line of a row that a value fits; a value may leave one of several."""
Answer = Callable[["Term"], bool | None]


class Value(NamedTuple):
    """What a term asks for, as it was written; in quotes it is meant literally."""

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        return '"' + self.text.replace("\\", "\\\\").replace('"', '\\"') + '"' if self.quoted else self.text


@dataclass(frozen=True, slots=True)
class Term:
    """One question: whether a row has one of these values. Terms that are written the same are equal."""

    key: str
    values: tuple[Value, ...]
    test: Test = field(compare=False, repr=False)
    traces: tuple[Trace, ...] = field(compare=False, repr=False)
    column: int = field(default=1, compare=False, repr=False)
    """Where it begins in the filter, from 1."""

    def ask(self, answer: Answer) -> bool | None:
        """What is answered of it."""
        return answer(self)

    def terms(self) -> Iterator["Term"]:
        """It alone."""
        yield self

    def words(self) -> Iterator[str]:
        """What it looks for in texts."""
        if self.key == "text":
            yield from (value.text for value in self.values)

    def possible(self, line: bytes) -> bool:
        """Whether a line in lower case has what the term cannot do without."""
        for trace in self.traces:  # plain loops: this is asked of each line of a file
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
    """The opposite."""

    part: "Node"

    def ask(self, answer: Answer) -> bool | None:
        """Yes, no, or None where the answers do not tell."""
        found = self.part.ask(answer)
        return None if found is None else not found

    def terms(self) -> Iterator[Term]:
        """All terms below."""
        return self.part.terms()

    def words(self) -> Iterator[str]:
        """None: what is not there cannot be pointed at."""
        return iter(())

    def __str__(self) -> str:
        return f"not {_bracketed(self.part, And, Or)}"


@dataclass(frozen=True, slots=True)
class _Several:
    parts: tuple["Node", ...]

    def terms(self) -> Iterator[Term]:
        """All terms below."""
        for part in self.parts:
            yield from part.terms()

    def words(self) -> Iterator[str]:
        """Those of all parts."""
        for part in self.parts:
            yield from part.words()


@dataclass(frozen=True, slots=True)
class And(_Several):
    """All of them; of none, yes."""

    def ask(self, answer: Answer) -> bool | None:
        """Yes, no, or None where the answers do not tell."""
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
    """Any of them."""

    def ask(self, answer: Answer) -> bool | None:
        """Yes, no, or None where the answers do not tell."""
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
    """Which rows are wanted; `parse` makes it."""

    tree: Node

    def __call__(self, row: Row) -> bool:
        """Whether a row is wanted of which all is known."""
        return self.tree.ask(lambda term: term.test(row)) is True

    def decide(self, row: Row, known: Collection[str], line: bytes | None = None) -> bool | None:
        """Whether a row is wanted of which only the values of some keys are known; None: that does not tell.

        `line` is that of its record in the capture, where the record is the whole of it (no frame in pieces).
        """
        searched = line.lower() if line and WHOLE.match(line) else None

        def answer(term: Term) -> bool | None:
            if term.key in known:
                return term.test(row)
            if searched is None or term.possible(searched) or ESCAPE in searched:
                return None
            return False

        return self.tree.ask(answer)

    def prefilter(self, line: bytes) -> bool:
        """Whether the row or rows on a line of a capture may be wanted: quick, and never false for one that is."""
        return self.decide(_UNKNOWN, (), line) is not False

    @property
    def keys(self) -> frozenset[str]:
        """The keys that it asks for."""
        return frozenset(term.key for term in self.tree.terms())

    def words(self) -> tuple[str, ...]:
        """The texts that it looks for, to be shown where they stand."""
        return tuple(self.tree.words())

    def __str__(self) -> str:
        return str(self.tree)


WHOLE = re.compile(rb'\{"kind":"frame","ch":(?!0\d)\d+,"t":(?!0\d)\d+,"raw":"(?!")')
"""How our writer begins a frame that is text and not empty: only there the bytes of the row are sure to stand."""
ESCAPE = b"\\u"  # any letter may hide behind it
_UNKNOWN = Row(0, 0, "", "")
