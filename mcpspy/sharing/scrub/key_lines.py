"""Private keys (PEM) in several lines, with something around each: the prefix of a logger, quotes, colours.

A key without it is found as a whole, by its form.
"""

import re

from mcpspy.sharing.scrub.texts import Texts
from mcpspy.sharing.scrub.values import Category, is_placeholder

_PEM_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\W){0,16}$")
_PEM_BODY = re.compile(r"[\w+/=:,. -]{0,200}\s*")
_PEM_RUN = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,}={1,2}(?![\w=])")
_PEM_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
_PEM = Category("scrub/secret", "private key (PEM)", "redacted-private-key-line-")
_PEM_LINES = 200
_COLOUR = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")


class KeyLines:
    """The lines of one text or channel; some of them may belong to a key."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._left = 0  # lines that the key may still have

    @property
    def busy(self) -> bool:
        """Whether the next line may belong to a key."""
        return self._left > 0

    def line(self, text: str) -> str | None:
        """Return a scrubbed line of a key; None for another line, also one between those of a key."""
        if text.lstrip().startswith(("{", "[{")):
            return None
        plain = _COLOUR.sub("", text)
        if not self._left:
            self._left = _PEM_LINES if _PEM_BEGINS.search(plain) else 0
            return None
        self._left = 0 if _PEM_ENDS.search(plain) else self._left - 1
        if not self._left:
            return None
        if _PEM_BODY.fullmatch(plain):
            body = plain.strip()
            return text if is_placeholder(body) else plain.replace(body, self._texts.label(_PEM, body))
        if not _PEM_RUN.search(plain):
            return None
        clean = _PEM_RUN.sub(lambda it: self._texts.label(_PEM, it[0]), plain)
        return self._texts.text(clean)  # what is around the key may hold other secrets


def without_keys(text: str, texts: Texts) -> str:
    """Return a scrubbed text of several lines without the keys that have no form as a whole."""
    if "PRIVATE KEY" not in text or "\n" not in text:
        return text
    key = KeyLines(texts)
    return "\n".join(line if (new := key.line(line)) is None else new for line in text.split("\n"))
