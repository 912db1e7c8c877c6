"""The syntax of the filter language: parses a text to a filter, or raises an error with the column and a hint.

either = all ("or" all)*
all    = one (["and"] one)*
one    = ("-" | "not") one | "(" either ")" | term
term   = [key ":"] value ("," value)*         a term without a key has one value, its text
value  = quoted | word                        a word ends at a space, a bracket, a quote, and after a key at a comma
"""

import re
from datetime import UTC, datetime

from mcpspy.errors import FilterError
from mcpspy.filters.terms import KEYS, Meaning
from mcpspy.filters.tree import And, Filter, Node, Not, Or, Term, Value
from mcpspy.text import suggestion

_NOT = re.compile(r"-(?=[^\s0-9)])|not(?=[\s()\"]|$)", re.IGNORECASE)  # a number with a minus is an error code
_AND, _OR = (re.compile(rf"{word}(?=[\s()\"]|$)", re.IGNORECASE) for word in ("and", "or"))
_KEY = re.compile(r"[A-Za-z]+(?=:)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_WORD, _WORD_OF_KEY = re.compile(r'[^\s()"]+'), re.compile(r'[^\s()",]+')
_OPEN, _CLOSE, _SPACES = re.compile(r"\("), re.compile(r"\)"), re.compile(r"\s*")
_UNQUOTED = re.compile(r'\\(["\\])')
_DEPTH = 50  # nested brackets and negations


def parse(text: str, started: str) -> Filter:
    """Return the filter of `text`, for captures that began at `started` (ISO 8601, as in a header).

    Raises FilterError, which has the column.
    """
    moment = datetime.fromisoformat(started)
    parser = _Parser(text, moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return Filter(parser.whole())


class _Parser:
    """Parses from left to right; each method parses what it is named after."""

    def __init__(self, text: str, started: datetime) -> None:
        self._text = text
        self._started = started
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        """Parse the whole text; an empty text matches every row."""
        self._skip_spaces()
        if self._at == len(self._text):
            return And(())
        tree = self._either()
        if self._at < len(self._text):
            raise self._wrong("there is no bracket to close", self._at)
        return tree

    def _either(self) -> Node:
        parts = [self._all()]
        while self._take(_OR):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Node:
        parts = [self._one()]
        while self._take(_AND) or not self._at_end():
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise self._wrong("brackets or negations are nested too deeply", self._at)
        found: Node
        start = self._at
        if self._take(_NOT):
            found = Not(self._one())
        elif self._take(_OPEN):
            found = self._either()
            if not self._take(_CLOSE):
                raise self._wrong("a bracket is not closed", start)
        else:
            found = self._term()
        self._depth -= 1
        return found

    def _term(self) -> Node:
        if self._at_end() or _AND.match(self._text, self._at):
            raise self._wrong("something to look for is missing", self._at)
        start = self._at
        key = self._take(_KEY)
        if key and key not in KEYS:
            keys = f"there are {', '.join(KEYS)}; a text with a colon takes quotes"
            raise self._wrong(f"unknown key {key!r}", start, suggestion(key, KEYS, keys))
        self._at += len(":" if key else "")
        found = [self._value(key)]
        while key and self._text.startswith(",", self._at):
            self._at += 1
            found.append(self._value(key))
        values, meanings = zip(*found, strict=True)
        tests = [test for test, _ in meanings]
        test = tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)
        traces = tuple(trace for _, traces in meanings for trace in traces)
        return Term(key or "text", values, test, traces, start + 1)

    def _value(self, key: str) -> tuple[Value, Meaning]:
        start = self._at
        match = _QUOTED.match(self._text, start) or (_WORD_OF_KEY if key else _WORD).match(self._text, start)
        if not match:
            unclosed = self._text.startswith('"', start)
            raise self._wrong("a quote is not closed" if unclosed else f"{key} needs a value", start)
        self._at = match.end()
        quoted = match.re is _QUOTED
        text = _UNQUOTED.sub(r"\1", match[1]) if quoted else match[0]
        value = Value(text, quoted or key in ("", "text"))
        try:
            return value, KEYS[key or "text"](value, self._started)
        except ValueError as wrong:
            raise FilterError(f"{text!r} at column {start + 1} is not a valid {key}; {wrong}", start + 1) from None

    def _take(self, expected: re.Pattern[str]) -> str:
        """Return the next token after any spaces if it is the expected one, else an empty string."""
        self._skip_spaces()
        match = expected.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""

    def _at_end(self) -> bool:
        """Return whether a sequence joined by `and` ends here."""
        self._skip_spaces()
        rest = self._text[self._at : self._at + 1]
        return rest in ("", ")") or _OR.match(self._text, self._at) is not None

    def _skip_spaces(self) -> None:
        self._at = _SPACES.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _wrong(self, what: str, place: int, hint: str = "") -> FilterError:
        return FilterError(f"{what} at column {place + 1}" + (f"; {hint}" if hint else ""), place + 1)
