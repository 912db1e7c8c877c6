"""Validate compiled gates: tables from a key to the values that are allowed, and the error for other values."""

from mcpspy.gate.messages import Digits, decode, key_of
from mcpspy.json_values import excerpt, walk

DEEPEST = 250
"""The deepest nesting of values; Python encodes and decodes some hundreds of levels."""
GATES = 1000
"""The most gates of a file, or of the viewers of a session."""
VALUES = 1000
"""The most values in a `when`, operations in an `edit`, and texts in a `send`."""
TEXTS = 10_000
"""The most texts in all filters of a file, or of the viewers of a session: each is compared with each frame."""
LONGEST = 1 << 16
"""The length of the longest text in a `when`, in characters."""
_DAY = 86_400_000_000_000
BOUNDS = {
    "hold": (1, _DAY),
    "delay": (1, _DAY),
    "throttle": (1, 10**12),
    "repeat": (2, 10_000),
    "cut": (0, 1 << 30),
    "status": (400, 599),
    "exit": (0, 255),
    "after": (0, 1 << 53),
    "times": (1, 1 << 53),
    "size": (0, 1 << 63),
    "seed": (1 - (1 << 63), (1 << 63) - 1),
}
"""The smallest and the largest whole number for a key, in a gate file and in the gates of viewers.

Times are in nanoseconds. A larger number has no use, and a timer or the capture cannot hold it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Allowed = tuple[Callable[[Any], bool], str]
    """A test of a value, and the allowed values in words."""


def check(by: str, where: str, values: "dict[str, Any]", allowed: "dict[str, Allowed]") -> None:
    """Raise ValueError for the first key that is not allowed or has a value that is not allowed."""
    for key, value in values.items():
        if key not in allowed:
            raise ValueError(f"{by} has an unknown key {where}{key}; allowed: {', '.join(allowed)}")
        suits, words = allowed[key]
        if not suits(value):
            raise ValueError(f"{by}: {where}{key} is {_shown(value)}; it must be {words}")


def one_of(*allowed: str) -> "Allowed":
    """Allow one of some words."""
    return (lambda value: value in allowed), ", ".join(allowed[:-1]) + " or " + allowed[-1]


def whole(least: int, most: int) -> "Allowed":
    """Allow a whole number between two bounds."""
    return (lambda value: type(value) is int and least <= value <= most), f"a whole number from {least} to {most}"


def bounded(key: str) -> "Allowed":
    """Allow the whole numbers of a key of `BOUNDS`."""
    return whole(*BOUNDS[key])


def one_or_more(allowed: "Allowed", kind: type = str) -> "Allowed":
    """Allow a value, or a list of such values; with `kind` list, a single value is a list itself."""
    suits, words = allowed

    def test(value: "Any") -> bool:
        several = type(value) in (list, tuple) and len(value) > 0
        if kind is list:
            several = several and type(value[0]) in (list, tuple)
        return all(map(suits, value)) if several else suits(value)

    return test, f"{words}; or a list of these"


def fault_of(value: "Any") -> str | None:
    """Return why a value cannot be recorded: too deep nesting or an invalid text; None if it can."""
    for path, inner in walk(value):
        if len(path) > DEEPEST:
            return f"values are nested in more than {DEEPEST} levels"
        if not all(is_text(text) for text in (inner, *path[-1:]) if type(text) is str):
            return "half a surrogate pair is not text"
    return None


def size_fault_of(when: "dict[str, Any]") -> str | None:
    """Return why a `when` is too large to be tested with each frame; None if it is not."""
    for number, (_, inner) in enumerate(walk(when)):
        if number > VALUES:
            return f"its filter has more than {VALUES} values"
        if type(inner) is str and len(inner) > LONGEST:
            return f"a text in its filter has more than {LONGEST} characters"
    return None


def count_texts(when: "Any") -> int:
    """Return how many texts a `when` has."""
    return sum(type(inner) is str for _, inner in walk(when))


def is_text(value: "Any") -> bool:
    """Return whether a value is a text that can be sent: it has no half of a surrogate pair."""
    return type(value) is str and not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_sent(value: "Any") -> bool:
    """Return whether a value is a text that can be sent, or a list of such texts."""
    return is_text(value) or (type(value) in (list, tuple) and 0 < len(value) <= VALUES and all(map(is_text, value)))


def is_id(value: "Any") -> bool:
    """Return whether a value is the type and the text of an id, or of a glob for ids."""
    if type(value) not in (list, tuple) or len(value) != 2 or any(type(part) is not str for part in value):
        return False
    if value[0] in ("string", "glob"):
        return True
    return is_text(value[1]) and key_of(_decoded(value[1])) == tuple(value)


def is_answer(value: "Any") -> bool:
    """Return whether a value is the JSON text of a response without its envelope."""
    if not is_text(value) or not value.strip(" \t\r\n").startswith("{"):
        return False
    found = _decoded(value)
    if type(found) is not dict or ("result" in found) == ("error" in found) or "id" in found or "jsonrpc" in found:
        return False
    return not any(type(inner) is Digits and inner.lstrip("-").isalpha() for _, inner in walk(found))  # such as NaN


def is_patch(value: "Any") -> bool:
    """Return whether a value is a JSON Patch (RFC 6902, 4)."""
    return type(value) in (list, tuple) and 0 < len(value) <= VALUES and all(map(_is_operation, value))


def _is_operation(value: "Any") -> bool:
    if type(value) is not dict or type(value.get("op")) is not str or value["op"] not in _MEMBER_OF:
        return False
    member = _MEMBER_OF[str(value["op"])]
    pointers: list[Any] = [value.get("path"), *([value.get("from")] if member == "from" else [])]
    return all(is_text(it) and str(it)[:1] in ("", "/") for it in pointers) and member in (None, *value)


def _shown(value: "Any") -> str:
    """Return a value as JSON, or an excerpt of it if it is long."""
    from json import dumps  # imported only for an error

    text = dumps(value) if type(value) not in (str, list, dict) or len(value) <= 60 else ""
    return text if 0 < len(text) <= 60 else excerpt(value)


def _decoded(text: str) -> "Any":
    """Return the value of a JSON text; False if it is not JSON."""
    try:
        return decode(text.encode())
    except (ValueError, RecursionError):
        return False


_MEMBER_OF: "dict[str, str | None]" = {
    "add": "value",
    "replace": "value",
    "test": "value",
    "remove": None,
    "move": "from",
    "copy": "from",
}
"""The member that an operation needs in addition to its path."""
NAME: "Allowed" = (
    (lambda value: type(value) is str and 0 < len(value) <= 1000),
    "a text that is not empty, of at most 1000 characters",
)
GLOB: "Allowed" = (lambda value: type(value) is str and value != ""), "a text that is not empty"
OBJECT: "Allowed" = (lambda value: type(value) is dict), "an object"
TRUE: "Allowed" = (lambda value: value is True), "true"
