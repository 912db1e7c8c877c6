"""Captured text on a terminal: it is hostile until it has been through here (REQUIREMENTS F-08).

A server that can put an escape sequence on the screen can hide what it did; one with a right-to-left override can make
it read differently; one with a line of 100 kB can make the screen unusable; one that piles accents on a letter draws
over the lines around it.
"""

from collections.abc import Iterator
from unicodedata import category

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# Controls, surrogates, line and paragraph separators, and all format characters: they hide, join or change direction.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_MARKS = frozenset(("Mn", "Me"))  # they stand on, below or around the character before them
_PILE = 4  # of those on one character: what languages are written with has no more
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\ufe0f\uffa0")  # seen as nothing, though of other categories


def printable(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, whatever is in it."""
    clipped = text[: limit + 1]  # the text may be megabytes long
    safe = clipped if clipped.isascii() and clipped.isprintable() else "".join(_shown(clipped))
    return safe if len(safe) <= limit else safe[: max(limit - 1, 0)] + "…"


def _shown(text: str) -> Iterator[str]:
    """Each character as it is shown."""
    pile = 0
    for character in text:
        if " " <= character <= "~":
            pile = 0
            yield character
            continue
        kind = category(character)
        pile = pile + 1 if kind in _MARKS else 0
        tag = "\U000e0000" <= character <= "\U000e0fff"  # most of these are not assigned, and none is seen
        if kind in _UNSAFE or character in _BLANK or tag or pile > _PILE:
            yield _escape(character)
        else:
            yield character


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
