"""A message as lines of marked text: JSON with one member per line, or the frame's text as received.

The rules. JSON is cut token by token as it was written, not decoded and encoded again: 1.10 stays 1.10, a doubled key
stays doubled, and text that is not JSON is shown unchanged. Captured text is hostile: every piece that comes out of
here has been through `printable`. The beginnings of lines are computed lazily, and the text of a line when it is drawn:
nobody looks at the 60,000th at once.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from mcpspy.text import printable

Piece = tuple[str, str]
"""A text, and what it is: key, string, number, literal, punctuation, plain, label, warning, …"""

_CLIP = 4000  # characters of one string or line; what is longer is of no use on a screen
# A string without an end goes on to the end of the text: that of a large frame is not all there.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s{}\[\],:"]+|\s+', re.DOTALL)
_NUMBER = re.compile(r"-?\d")


class Span(NamedTuple):
    """One line of JSON: its beginning and end in the text."""

    start: int
    end: int
    depth: int
    """How many objects and arrays contain it; below 0 after more ends than beginnings."""
    opens: bool
    """Its last token opens an object or array, whose members follow."""
    closes: bool
    """Its first token ends an object or array."""


def spans(text: str) -> Iterator[Span]:
    """The lines of JSON text, one member or element a line; an empty object or array stays on its line."""
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
    """The marked text of one line of JSON."""
    words = [match[0] for match in _TOKEN.finditer(text) if not match[0].isspace()]
    return [_piece(word, following) for word, following in zip_longest(words, words[1:])]


def text_pieces(line: str) -> list[Piece]:
    """The marked text of one line of any text."""
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
