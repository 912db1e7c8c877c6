"""A message as lines of marked text: JSON with one member per line, or the frame's text as received.

The rules. The original JSON text is split into tokens, not decoded and encoded again: 1.10 stays 1.10, a duplicate key
stays duplicate, and text that is not JSON is shown unchanged. Captured text is untrusted, so every returned piece has
been passed through `printable`. The starts of lines are computed lazily, and the text of a line when it is drawn,
because most lines of a large message are never looked at.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from mcpspy.text import printable

Piece = tuple[str, str]
"""A text and its kind: key, string, number, literal, punctuation, plain, label, warning, …"""

_CLIP = 4000  # maximum characters of one string or line; more is of no use on a screen
# An unterminated string extends to the end of the text, because the text of a large frame is truncated.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s{}\[\],:"]+|\s+', re.DOTALL)
_NUMBER = re.compile(r"-?\d")


class Span(NamedTuple):
    """One line of JSON: its beginning and end in the text."""

    start: int
    end: int
    depth: int
    """The number of objects and arrays around it; below 0 after more closing than opening brackets."""
    opens: bool
    """Whether its last token opens an object or array whose members follow."""
    closes: bool
    """Whether its first token closes an object or array."""


def spans(text: str) -> Iterator[Span]:
    """Yield the lines of JSON text, one member or element per line; an empty object or array stays on its line."""
    level = depth = start = end = 0
    opened = closes = False
    for match in _TOKEN.finditer(text):
        mark = text[match.start()]
        if mark.isspace():
            continue
        closing = mark in "]}"
        level -= closing
        if closing != opened:
            yield Span(start, end, depth, opened, closes)
            start, depth, closes = match.start(), level, closing
        elif start == end:
            start = match.start()
        end = match.end()
        opened = mark in "[{"
        level += opened
        if mark == ",":
            yield Span(start, end, depth, False, closes)
            start, depth, closes = end, level, False
    yield Span(start, end, depth, opened, closes)


def json_pieces(text: str) -> list[Piece]:
    """Return the marked text of one line of JSON."""
    words = [match[0] for match in _TOKEN.finditer(text) if not match[0].isspace()]
    return [_piece(word, following) for word, following in zip_longest(words, words[1:])]


def text_pieces(line: str) -> list[Piece]:
    """Return the marked text of one line of any text."""
    return [(_clip(line), "plain")]


def _piece(word: str, following: str | None) -> Piece:
    if word == ":":
        return ": ", "punctuation"
    if len(word) == 1 and word in "[]{},":
        return word, "punctuation"
    if word.startswith('"'):
        return _clip(word), "key" if following == ":" else "string"
    return _clip(word), "number" if _NUMBER.match(word) else "literal"


def _clip(text: str) -> str:
    lost = len(text) - _CLIP
    return printable(text, _CLIP) if lost <= 0 else f"{printable(text[:_CLIP], _CLIP)} (+{lost:,} characters)"
