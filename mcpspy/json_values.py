"""JSON values: their text, their members, paths inside them, excerpts.

Peers send anything, so members are read only from values that are objects. The position of a value inside another is a
path: member names and array indexes, from the outside inwards. A path is written as a JSON Pointer (RFC 6901), where
`~` in a name becomes `~0` and `/` becomes `~1`. No other module of the package escapes names or parses pointers.

The import of the `json` module takes 5 ms; its scanner alone is enough to read a value. This module is on the `wrap`
path, so it imports only a built-in module.
"""

from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Members = Callable[[list[tuple[str, Any]]], dict[str, Any]]
    """Accepts the members of an object in their order, with repeated names; returns the object."""
    Scanner = Callable[[str, int], tuple[Any, int]]
    """Accepts a text and a position in it; returns the value that begins there, and the position of its end."""

Path = tuple[str | int, ...]
"""The position of a value inside another: member names and array indexes."""

LONGEST_POINTER = 1000
"""The maximum length of a reported pointer in characters; a name may have millions."""


class Number(str):
    """A JSON number as its original digits, if a Python number would change it or cannot hold it."""

    __slots__ = ()


def parsed(text: str | bytes) -> "Any":
    """Return the value of a JSON text. Raises ValueError, also if it is nested too deeply."""
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def member(value: "Any", *names: str) -> "Any":
    """Return the value at a path of names; None if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def pointer(*steps: str | int) -> str:
    """Return a path as a JSON Pointer; empty for the whole value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def steps_of(text: str) -> tuple[str, ...]:
    """Return the path of a JSON Pointer; an array index is a string of digits."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def resolve(value: "Any", text: str) -> "Any":
    """Return the value that a JSON Pointer points to. Raises LookupError if there is none."""
    for step in steps_of(text):
        value = _inner(value, step)
    return value


def nearest(value: "Any", text: str) -> str:
    """Return the longest prefix of a JSON Pointer that points to a value, in at most LONGEST_POINTER characters."""
    end = 0
    for part, step in zip(text.split("/")[1:], steps_of(text), strict=True):
        longer = end + 1 + len(part)
        try:
            value = _inner(value, step)
        except LookupError:
            break
        if longer > LONGEST_POINTER:
            break
        end = longer
    return text[:end]


def walk(value: "Any") -> "Iterator[tuple[list[str | int], Any]]":
    """Yield each value inside a value with its path, at any depth; the whole value comes first.

    The yielded path is one list that the walk changes: convert it to a pointer immediately.
    """
    path: list[str | int] = []
    yield path, value
    open_: list[Iterator[tuple[str | int, Any]]] = [_parts(value)]
    while open_:
        for step, inner in open_[-1]:
            path.append(step)
            yield path, inner
            if isinstance(inner, dict | list):
                open_.append(_parts(inner))
                break
            path.pop()
        else:
            open_.pop()
            if path:
                path.pop()


def excerpt(value: "Any", limit: int = 60) -> str:
    """Return a value as JSON of about `limit` characters, however large it is."""
    import json
    from itertools import islice

    if isinstance(value, dict):
        names = ", ".join(f"{json.dumps(name[:20])}: …" for name in islice(value, 6))
        return f"{{{names}{', …' if len(value) > 6 else ''}}}"
    if isinstance(value, list):
        return f"an array of {len(value)}" if value else "[]"
    if isinstance(value, str) and not isinstance(value, Number):
        return json.dumps(value if len(value) <= limit else value[: limit - 1] + "…", ensure_ascii=False)
    if isinstance(value, Number):
        text = str(value)
    elif isinstance(value, int) and abs(value) >= 10**limit:
        text = "a number of many digits"
    else:
        text = json.dumps(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of(value: "Any") -> str:
    """Return a text that is the same for equal values, for comparisons; empty if the value is nested too deeply."""
    try:
        return repr(value)
    except RecursionError:
        return ""


def _parts(value: "Any") -> "Iterator[tuple[str | int, Any]]":
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())


def _inner(value: "Any", step: str) -> "Any":
    """Return a member or an element. Raises LookupError."""
    if isinstance(value, dict):
        return value[step]
    if isinstance(value, list) and step.isdecimal() and len(step) < 10 and str(int(step)) == step:
        return value[int(step)]
    raise LookupError(step)


class _Settings:
    """The settings of the standard library's scanner: those of `json.loads`, except for numbers and objects."""

    strict = True
    object_hook = None

    def __init__(self, number: "type[str] | None", members: "Members | None") -> None:
        self.object_pairs_hook = members
        self.parse_int = number or int
        self.parse_float = self.parse_constant = number or float
        self.memo: dict[str, str] = {}  # only the scanner written in Python uses it


def scanner(number: "type[str] | None" = None, members: "Members | None" = None) -> "Scanner":
    """Return a scanner that reads values.

    `number` is the class for numbers, if they must not become Python numbers; `members` makes the objects, if they must
    not become plain ones.
    """
    return make_scanner(_Settings(number, members))  # type: ignore[arg-type]


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
