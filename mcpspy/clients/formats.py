"""The file formats of configurations, and JSON as editors accept it.

Such JSON has comments, trailing commas, a byte order mark, any line ends. The parsers of clients accept some of these
and refuse others; `improper` checks a text for one of them. TOML and YAML have modules of their own, which are imported
when they are needed.
"""

import json
import re
from collections.abc import Container
from functools import lru_cache

from mcpspy.clients.tree import DEEPEST, Member, Node, Syntax, where
from mcpspy.errors import ConfigError

MOST_VALUES = 300_000
"""The most values of one text: each takes 10 µs and 400 bytes."""

COMMENT, COMMA, MARK = "a comment", "a trailing comma", "a byte order mark"
"""What standard JSON (RFC 8259) does not have."""

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]++|//[^\r\n]*+|/\*[\s\S]*?\*/)*+")
_STRING = re.compile(r'"(?:[^"\\\r\n]++|\\.)*+"')
_EXTRA = re.compile(rf"{_STRING.pattern}|(?P<comment>//[^\r\n]*|/\*[\s\S]*?\*/)|(?P<mark>\ufeff)|(?P<comma>,)")
_KINDS = {"comment": COMMENT, "mark": MARK, "comma": COMMA}
_WORD = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)")

_decode = json.JSONDecoder(strict=False).raw_decode  # `json.loads` creates a decoder each time


def read_jsonc(text: str) -> Node:
    """Return the tree of `text`. Raises Syntax."""
    reader = _Reader(text)
    node = reader.value(reader.skip(0), 0)
    if (rest := reader.skip(node.end)) < len(text):
        raise Syntax(rest, f"text after the end: {text[rest : rest + 10]!r}")
    return node


def improper(text: str, refused: Container[str]) -> str:
    """Return why a parser that refuses some of `COMMENT`, `COMMA` and `MARK` refuses `text`; empty if it does not.

    The text must be one that `read` accepts.
    """
    for match in _EXTRA.finditer(text):
        if (kind := _extra(match)) in refused:
            return f"{where(text, match.start())}: {kind}"
    try:
        json.loads(_EXTRA.sub(lambda match: re.sub(r"[^\r\n]", " ", match[0]) if _extra(match) else match[0], text))
    except ValueError as error:  # a control character in a string
        return str(error)
    return ""


def _extra(match: re.Match[str]) -> str:
    """Return what a match of `_EXTRA` is; empty for a string, and for a comma between two values.

    The regular expression must not match what follows a comma: it could split a line of slashes in too many ways.
    """
    if match.lastgroup == "comma":
        blank = _BLANK.match(match.string, match.end())
        assert blank
        return COMMA if match.string[blank.end()] in "}]" else ""
    return _KINDS.get(match.lastgroup or "", "")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._values = 0

    def skip(self, at: int) -> int:
        """Return the next position that is neither blank nor in a comment."""
        match = _BLANK.match(self._text, at)
        assert match
        if self._text.startswith("/*", match.end()):
            raise Syntax(match.end(), "an unterminated comment")
        return match.end()

    def value(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise Syntax(at, "nested too deeply")
        self._values += 1
        if self._values > MOST_VALUES:
            raise Syntax(at, f"there are more than {MOST_VALUES:,} values")
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            return self._string(at)
        if match := _WORD.match(self._text, at):
            try:
                return Node(at, match.end(), _decode(match[0])[0])
            except ValueError as error:  # more digits than Python accepts
                raise Syntax(at, "a number with too many digits") from error
        raise Syntax(at, self._expected(at, "a value"))

    def _string(self, at: int) -> Node:
        match = _STRING.match(self._text, at)
        if not match:
            raise Syntax(at, "an unterminated string")
        try:
            return Node(at, match.end(), _decode(match[0])[0])
        except ValueError as error:
            raise Syntax(at, "a string with an escape that JSON does not have") from error

    def _object(self, start: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        repeated: list[str] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                raise Syntax(at, self._expected(at, "a key in double quotes or '}'"))
            key = self._string(at)
            colon = self.skip(key.end)
            if self._text[colon : colon + 1] != ":":
                raise Syntax(colon, self._expected(colon, f"':' after the key {key.value!r}"))
            node = self.value(self.skip(colon + 1), depth + 1)
            if members.pop(key.value, None):  # the last one of two equal keys counts, as in JSON.parse
                repeated.append(key.value)
            members[key.value] = Member(key.start, key.start, key.end, node)
            at = self._next(node.end, "}")
        return Node(start, at + 1, members, repeated=tuple(repeated))

    def _array(self, start: int, depth: int) -> Node:
        elements: list[Node] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "]":
            elements.append(self.value(at, depth + 1))
            at = self._next(elements[-1].end, "]")
        return Node(start, at + 1, elements)

    def _next(self, end: int, closing: str) -> int:
        """Return where the next element begins, or where `closing` is, after an element that ended at `end`."""
        at = self.skip(end)
        if self._text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self._text[at : at + 1] != closing:
            raise Syntax(at, self._expected(at, f"',' or '{closing}'"))
        return at

    def _expected(self, at: int, what: str) -> str:
        found = self._text[at : at + 1]
        return f"expected {what}, got {found!r}" if found else f"expected {what}, got the end of the file"


JSON, TOML, YAML = "json", "toml", "yaml"
"""JSON is parsed with comments and trailing commas; the row of a client states which of these its parser refuses."""


@lru_cache(maxsize=8)  # a plan parses the same text several times, and it may be megabytes
def read(text: str, form: str) -> Node:
    """Return the tree of a configuration, which must not be changed.

    Raises ConfigError with line, column and reason.
    """
    try:
        if form == TOML:
            from mcpspy.clients import toml

            return toml.read(text)
        if form == YAML:
            from mcpspy.clients import yaml  # takes 25 ms

            return yaml.read(text)
        return read_jsonc(text)
    except Syntax as error:
        raise ConfigError(f"{where(text, error.offset)}: {error}") from error


def member(key: str, value: str, form: str) -> str:
    """Return the text of a key, which must be a plain word, and of its value."""
    if form == JSON:
        return f'"{key}": {value}'
    return f"{key} = {value}" if form == TOML else f"{key}: {value}"
