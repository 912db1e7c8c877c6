"""The places of keys in the text of a gate file, for messages with line and column.

The theory. `tomllib` returns values without places, so the text is parsed a second time, only as far as necessary:
headers, keys, and the ends of values. This happens after `tomllib` has accepted the text, so nothing is validated here.
For unusual forms (`gate = [{...}]`, escapes in keys) the place of the surrounding text is used. Places are offsets from
0.
"""

import re
from collections.abc import Iterator

_PART = r"""[ \t]*(?:"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*'|[^\s."'=\]\[#]+)[ \t]*"""
_KEY = re.compile(rf"{_PART}(?:\.{_PART})*")
_PARTS = re.compile(_PART)
_BLANK = re.compile(r"(?:\s++|#[^\n]*+)*+")
_SPACES = re.compile(r"[ \t]*")
_REST = re.compile(r"[^\n]*")
_STRING = re.compile(
    r"""
    \"{3} (?: [^"\\]++ | \\. | "{1,2}(?!") )*+ \"{3,5}+   # up to two quotes more belong to the text
    | '{3} .*? '{3} '{0,2}
    | " (?: [^"\\]++ | \\. )*+ "
    | ' [^']* '
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPES = {"u": 6, "U": 10, "x": 4}
"""The number of characters of an escape, by the letter after its backslash; all others have two."""
_CONTINUED = re.compile(r"\\[ \t]*\n\s*")


class Places:
    """The places of gates and their keys. Gates are counted from 0."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._gates: list[int] = []
        self._found: dict[tuple[int | None, str], tuple[int, int]] = {}
        for names, key, value in _statements(text):
            if names == ("gate",) and text.startswith("[[", key):
                self._gates.append(key)
            elif names[0] == "gate" and len(names) > 1 and self._gates:
                self._found.setdefault((len(self._gates) - 1, names[1]), (key, value))
            self._found.setdefault((None, names[0]), (key, value))

    def key(self, gate: int | None, name: str = "") -> int:
        """Return where a key begins; for a key that is missing, or no name, where its gate begins."""
        return self._place(gate, name)[0]

    def value(self, gate: int | None, name: str) -> int:
        """Return where the value of a key begins."""
        return self._place(gate, name)[1]

    def inside(self, gate: int | None, name: str, count: int) -> int:
        """Return the place of the character at index `count` of the text that is the value of a key."""
        at = self.value(gate, name)
        match = _STRING.match(self._text, at)
        if not match:
            return at
        quote = self._text[at]
        literal, multiline = quote == "'", self._text.startswith(quote * 3, at) and len(match[0]) >= 6
        at += 3 if multiline else 1
        if multiline and self._text.startswith("\n", at):
            at += 1
        for _ in range(count):
            at = at if literal else self._continued(at)
            escaped = not literal and self._text.startswith("\\", at)
            at += _ESCAPES.get(self._text[at + 1 : at + 2], 2) if escaped else 1
        return min(at if literal else self._continued(at), match.end() - 1)

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Return a place as line and column, both counted from 1."""
        return self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)

    def _place(self, gate: int | None, name: str) -> tuple[int, int]:
        found = self._found.get((gate, name))
        if found:
            return found
        if gate is not None and gate < len(self._gates):
            return self._gates[gate], self._gates[gate]
        return self._found.get((None, "gate"), (0, 0))

    def _continued(self, at: int) -> int:
        """Return the place after a backslash that ends a line, and after the following spaces; else `at`."""
        match = _CONTINUED.match(self._text, at)
        return match.end() if match else at


def _statements(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield each header and key of a file: its names with the table's, where it begins, where its value begins."""
    table: tuple[str, ...] = ()
    at = _skip(_BLANK, text, 0)
    while at < len(text):
        start = at
        if text[at] == "[":
            table, _ = _key(text, _skip(re.compile(r"\[{1,2}"), text, at))
            at = _skip(_REST, text, at)
            yield table, start, start
        else:
            names, at = _key(text, at)
            at = _skip(_SPACES, text, at + 1)  # after the equals sign
            yield table + names, start, at
            at = _end(text, at)
        at = _skip(_BLANK, text, max(at, start + 1))


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the names of a dotted key, and where it ends."""
    match = _KEY.match(text, at)
    if not match:
        return ("",), at
    return tuple(part.strip(" \t").strip("\"'") for part in _PARTS.findall(match[0])), match.end()


def _end(text: str, at: int) -> int:
    """Return where a value ends: at the end of its line, unless a bracket is open or the line is in a string."""
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter in "\"'" and (match := _STRING.match(text, at)):
            at = match.end()
            continue
        if letter == "#":
            at = _skip(_REST, text, at)
            continue
        if letter == "\n" and depth <= 0:
            break
        depth += (letter in "[{") - (letter in "]}")
        at += 1
    return at


def _skip(expected: re.Pattern[str], text: str, at: int) -> int:
    match = expected.match(text, at)
    return match.end() if match else at
