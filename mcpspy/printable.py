"""Captured text on a terminal: it is hostile until it has been through here (REQUIREMENTS F-08).

A server that can put an escape sequence on the screen can hide what it did; one with a right-to-left override can make
it read differently; one with a line of 100 kB can make the screen unusable.
"""

import re

# C0 and C1 controls, surrogates, and what changes direction, hides or joins: Bidi_Control, tag characters, zero width.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def printable(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, whatever is in it."""
    clipped = text[: limit + 1]  # before the substitution: the text may be megabytes long
    safe = _UNSAFE.sub(_escape, clipped)
    return safe if len(safe) <= limit else safe[: max(limit - 1, 0)] + "…"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
