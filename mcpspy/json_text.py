"""Reading JSON without the module of the standard library, which takes 5 ms to import: its scanner alone is enough.

On the `wrap` path: nothing but a built-in module.
"""

from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Scanner = Callable[[str, int], tuple[Any, int]]
    """Takes a text and a place in it; returns the value that begins there, and where that ends."""


class _Settings:
    """The settings of the standard library's scanner: those of `json.loads`, but for numbers."""

    strict = True
    object_hook = None
    object_pairs_hook = None

    def __init__(self, number: "type[str] | None") -> None:
        self.parse_int = number or int
        self.parse_float = self.parse_constant = number or float
        self.memo: dict[str, str] = {}  # the scanner written in C has its own


def scanner(number: "type[str] | None" = None) -> "Scanner":
    """What reads values; `number` is made of the digits of a number, where that shall be no Python number."""
    return make_scanner(_Settings(number))  # type: ignore[arg-type]


def value_at(text: str, at: int, scan: "Scanner") -> "tuple[Any, int]":
    """The value that begins at a place, and where it ends. Raises ValueError where there is none, or RecursionError."""
    try:
        return scan(text, at)
    except (StopIteration, SystemError):  # Python 3.11 has no exception for it where nobody has imported `json`
        raise ValueError("not JSON") from None


def only_value(text: str, scan: "Scanner") -> "Any":
    """The value of a whole text, with spaces around it. Raises ValueError or RecursionError."""
    text = text.strip(" \t\r\n")
    value, end = value_at(text, 0, scan)
    if end != len(text):
        raise ValueError("more than one value")
    return value
