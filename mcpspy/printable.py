"""Captured text on a terminal: it is hostile until it has been through here (REQUIREMENTS F-08).

A server that can put an escape sequence on the screen can hide what it did; one with a right-to-left override can make
it read differently; one with a line of 100 kB can make the screen unusable.
"""

import unicodedata

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# Controls, surrogates, line and paragraph separators, and all format characters: they hide, join or change direction.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\ufe0f\uffa0")  # seen as nothing, though of other categories


def printable(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, whatever is in it."""
    clipped = text[: limit + 1]  # the text may be megabytes long
    safe = clipped if clipped.isascii() and clipped.isprintable() else "".join(map(_escape, clipped))
    return safe if len(safe) <= limit else safe[: max(limit - 1, 0)] + "…"


def _escape(character: str) -> str:
    code = ord(character)
    tag = 0xE0000 <= code <= 0xE0FFF  # most of these are not assigned, and none is seen
    if unicodedata.category(character) not in _UNSAFE and character not in _BLANK and not tag:
        return character
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
