"""Reading JSON without the `json` module, whose import takes 5 ms: its scanner alone is enough.

This module is on the `wrap` path, so it imports only a built-in module.
"""

from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Scanner = Callable[[str, int], tuple[Any, int]]
    """Accepts a text and a position in it; returns the value that begins there, and the position of its end."""


class _Settings:
    """The settings of the standard library's scanner: those of `json.loads`, except for numbers."""

    strict = True
    object_hook = None
    object_pairs_hook = None

    def __init__(self, number: "type[str] | None") -> None:
        self.parse_int = number or int
        self.parse_float = self.parse_constant = number or float
        self.memo: dict[str, str] = {}  # only the scanner written in Python uses it


def scanner(number: "type[str] | None" = None) -> "Scanner":
    """Return a scanner that reads values; `number` is the class for numbers, if they must not become Python numbers."""
    return make_scanner(_Settings(number))  # type: ignore[arg-type]


def value_at(text: str, at: int, scan: "Scanner") -> "tuple[Any, int]":
    """Return the value that begins at a position, and where it ends. Raises ValueError or RecursionError."""
    try:
        return scan(text, at)
    except (StopIteration, SystemError):  # SystemError: Python 3.11, if nothing has imported `json`
        raise ValueError("not JSON") from None


def only_value(text: str, scan: "Scanner") -> "Any":
    """Return the only value in a text; whitespace around it is allowed. Raises ValueError or RecursionError."""
    text = text.strip(" \t\r\n")
    value, end = value_at(text, 0, scan)
    if end != len(text):
        raise ValueError("more than one value")
    return value
