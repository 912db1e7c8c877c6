"""Escapes of characters in texts: percent-encoding of URLs, escapes of JSON and of source code, references of HTML.

Any of them may be applied several times, one after another. So a text is unescaped until it has no more escapes, and
each place in the result is mapped to its place in the original. Only escapes of ASCII characters count: all tokens
consist of these.
"""

import re
from binascii import a2b_qp
from bisect import bisect_right

_HEX = "[0-9A-Fa-f]"
BEFORE = (
    r"\\[bfnrt]",
    *(rf"{sign}{_HEX}{{2}}" for sign in ("%", "%25", "%2525", r"\\u0025", r"\\x", r"\\u00")),
    "=3D",  # quoted-printable
)
"""Regexes of fixed width for escapes that end with a letter or a digit, which is not part of the word after them."""
_CODE = r"[2-7][0-9A-Fa-f]|0[9AaDd]"  # printable ASCII, and white space
_ESCAPE = re.compile(
    rf"(?:%(?:25)*+|\\{{1,8}}(?:u00|x))(?P<hex>{_CODE})|&#[xX]0{{0,4}}(?P<reference>{_CODE});"
    r"|&#0{0,4}(?P<decimal>9|1[03]|3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]);|\\{1,8}/"
)
_SIGNS = ("%", "&#", "\\u00", "\\x", "\\/")
_ROUNDS = 4  # escapes of escapes that are followed
_PERCENT_ESCAPE = re.compile(b"%" + 2 * _HEX.encode())
_TO_QUOTED, _FROM_QUOTED = bytes.maketrans(b"%=\r\n", b"=\x7f\1\2"), bytes.maketrans(b"\x7f\1\2", b"=\r\n")


def has_escapes(text: str) -> bool:
    """Return whether a text has an escape of an ASCII character."""
    return any(sign in text for sign in _SIGNS) and _ESCAPE.search(text) is not None


def without_percent(raw: bytes) -> bytes:
    """Return bytes without percent-encoding; the same object if there is none. Any other `%` may become `=`.

    The C function for quoted-printable is ten times as fast as `unquote_to_bytes`.
    """
    for _ in range(_ROUNDS):
        if not _PERCENT_ESCAPE.search(raw):
            break
        raw = a2b_qp(raw.translate(_TO_QUOTED)).translate(_FROM_QUOTED)
    return raw


class Unescaped:
    """A text without its escapes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._rounds: list[tuple[list[int], list[int]]] = []
        for _ in range(_ROUNDS):
            if not self._unescape():
                break

    def place(self, at: int) -> int:
        """Return the place in the original of a place in `text`."""
        for befores, afters in reversed(self._rounds):
            last = bisect_right(befores, at) - 1
            at += afters[last] - befores[last] if last >= 0 else 0
        return at

    def _unescape(self) -> bool:
        """Unescape once; for each escape, note where it ends in the new text and in the old one."""
        parts: list[str] = []
        befores, afters = [], []
        done = size = 0
        for found in _ESCAPE.finditer(self.text):
            name = found.lastgroup
            character = chr(int(found[name], 10 if name == "decimal" else 16)) if name else "/"
            parts += [self.text[done : found.start()], character]
            size += found.start() - done + len(character)
            done = found.end()
            befores.append(size)
            afters.append(done)
        if parts:
            self.text = "".join(parts) + self.text[done:]
            self._rounds.append((befores, afters))
        return bool(parts)
