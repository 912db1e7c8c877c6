"""What still looks random in a scrubbed capture: words without a name, which the user has to judge."""

import re
from dataclasses import dataclass

from mcpspy.sharing.scrub.categories import LABEL
from mcpspy.sharing.scrub.known_values import KnownValues
from mcpspy.sharing.scrub.looks import LONGEST, looks_random

_MOST = 1000  # different words that are kept
_BINARY = 500  # characters of a text without a space that counts as base64 data
_CLASS = "A-Za-z0-9_+=-"
_SHORTEST = 20  # minimum length of such a word
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[_-]\d+)?")
_WORD = re.compile(rf"(?<![{_CLASS}])[{_CLASS}]{{{_SHORTEST},{LONGEST}}}(?![{_CLASS}])")
_BLANKS = bytes(
    code if chr(code).isascii() and re.match(f"[{_CLASS}]", chr(code)) else 0x20 for code in range(256)
)  # bytes of words unchanged, others as spaces


@dataclass(frozen=True, slots=True)
class Leftover:
    """A word that looks random and was not replaced."""

    n: int
    """The number of the first record that contains it."""
    where: str
    text: str
    length: int
    count: int


class Leftovers:
    """Collects such words, each once; `look` at each text after its secrets were replaced."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str, int]] = {}

    def look(self, text: str, n: int, where: str) -> None:
        """Add the words of a text that look random."""
        if len(text) < _SHORTEST or (len(text) > _BINARY and not re.search(r"\s", text)):
            return
        for match in _WORD.finditer(text):
            word = match[0].strip("=")
            if word in self._found:
                first, place, count = self._found[word]
                self._found[word] = first, place, count + 1
            elif len(self._found) < _MOST and _is_left(word):
                self._found[word] = n, where, 1

    def of(self, known: KnownValues) -> tuple[Leftover, ...]:
        """Return the words that were not replaced in the end, the most frequent first."""
        left = [
            Leftover(n, where, word, len(word), count)
            for word, (n, where, count) in self._found.items()
            if known.replaced(word, lambda *_: None) == word and known.whole(word) is None
        ]
        return tuple(sorted(left, key=lambda it: (-it.count, it.n)))


def _is_left(word: str) -> bool:
    """Return whether a word is a leftover; a UUID is not, because sessions are full of ids."""
    return looks_random(word) and not LABEL.search(word) and not _UUID.fullmatch(word)


def may_have_leftovers(line: bytes) -> bool:
    """Return whether a line of a capture has a word that is long enough."""
    return max(map(len, line.translate(_BLANKS).split()), default=0) >= _SHORTEST
