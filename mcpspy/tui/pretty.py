"""A message as lines of marked text: JSON indented, or the frame's text as it came.

The rules. JSON is indented token by token as it was written, not decoded and encoded again: 1.10 stays 1.10, a doubled
key stays doubled, and what is no JSON is shown as it is. Captured text is hostile: every piece that comes out of here
has been through `printable`. Lines come lazily: nobody looks at the 60,000th at once.
"""

import re
from collections.abc import Iterator

from mcpspy.printable import printable

Piece = tuple[str, str]
"""A text, and what it is: key, string, number, literal, punctuation or plain."""

_CLIP = 4000  # characters of one string or line; what is longer is of no use on a screen
_DEEPEST = 40  # levels that are indented
# A string without an end goes on to the end of the text: that of a large frame is not all there.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s{}\[\],:"]+|\s+', re.DOTALL)
_NUMBER = re.compile(r"-?\d")


def json_lines(text: str) -> Iterator[list[Piece]]:
    """JSON text, one member or element a line."""
    line: list[Piece] = []
    depth = 0
    opened = False  # the token before this one opened an object or array
    words = (match[0] for match in _TOKEN.finditer(text) if not match[0].isspace())
    word = next(words, None)
    while word is not None:
        following = next(words, None)
        if word in "]}":
            depth -= 1
            if not opened:
                yield line
                line = [_indent(depth)]
        elif opened:
            yield line
            line = [_indent(depth)]
        line.append(_piece(word, following))
        opened = word in "[{"
        depth += opened
        if word == ",":
            yield line
            line = [_indent(depth)]
        word = following
    yield line


def text_lines(text: str) -> Iterator[list[Piece]]:
    """Any text, line by line."""
    for line in text.split("\n"):
        yield [(_clip(line), "plain")]


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


def _indent(depth: int) -> Piece:
    return "  " * max(0, min(depth, _DEEPEST)), "plain"
