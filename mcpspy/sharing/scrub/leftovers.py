"""What still looks random in a scrubbed capture: words that nothing names, for the user to judge."""

import re
from dataclasses import dataclass

from mcpspy.sharing.scrub.categories import LABEL
from mcpspy.sharing.scrub.known_values import KnownValues
from mcpspy.sharing.scrub.looks import LONGEST, looks_random

_MOST = 1000  # different words that are kept
_BINARY = 500  # characters of a text without a space that is data in base64
_CLASS = "A-Za-z0-9_+=-"
_SHORTEST = 20  # characters of such a word
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[_-]\d+)?")
_WORD = re.compile(rf"(?<![{_CLASS}])[{_CLASS}]{{{_SHORTEST},{LONGEST}}}(?![{_CLASS}])")
_BLANKS = bytes(
    code if chr(code).isascii() and re.match(f"[{_CLASS}]", chr(code)) else 0x20 for code in range(256)
)  # the bytes of words as they are, others as spaces


@dataclass(frozen=True, slots=True)
class Leftover:
    """A word that looks random and was not replaced."""

    n: int
    """The number of the first record that has it."""
    where: str
    text: str
    length: int
    count: int


class Leftovers:
    """Collects them, each once; `look` at each text after its secrets were replaced."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str, int]] = {}

    def look(self, text: str, n: int, where: str) -> None:
        """Take what looks random in a text."""
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
        """Those that are not replaced after all, the most frequent first."""
        left = [
            Leftover(n, where, word, len(word), count)
            for word, (n, where, count) in self._found.items()
            if known.replaced(word, lambda *_: None) == word and known.whole(word) is None
        ]
        return tuple(sorted(left, key=lambda it: (-it.count, it.n)))


def _is_left(word: str) -> bool:
    """Whether a word is one of them; a UUID is not, for sessions are full of ids."""
    return looks_random(word) and not LABEL.search(word) and not _UUID.fullmatch(word)


def may_have_leftovers(line: bytes) -> bool:
    """Whether a line of a capture has a word that is long enough."""
    return max(map(len, line.translate(_BLANKS).split()), default=0) >= _SHORTEST
