"""Typed netstrings, the encoding of mitmproxy's flow files: a decimal length, a colon, the bytes, a type.

The format is https://tnetstrings.info, with mitmproxy's own type `;` for text in addition to `,` for bytes. The input
is untrusted: lengths are checked against the available bytes, and nesting is limited.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, BinaryIO

from mcpspy.importers.order import VALUES, Span, TooManyValues, Torn

_DIGITS = 12  # digits of a length
_DEPTH = 32


def spans(file: BinaryIO) -> Iterator[Span]:
    """Yield the positions of the consecutive elements of a file; the position of the file may change between steps.

    Raises Torn if an element is incomplete, or if no element begins at a position.
    """
    file.seek(0, 2)
    end = file.tell()
    place = count = 0
    while place < end:
        count += 1
        file.seek(place)
        digits, colon, _ = file.read(_DIGITS + 1).partition(b":")
        if not colon or not digits.isdigit():
            raise Torn(f"behind flow {count - 1}, at byte {place}, no flow begins")
        size = len(digits) + 1 + int(digits) + 1
        if place + size > end:
            raise Torn(f"it ends inside flow {count}: {place + size - end} bytes are missing")
        yield place, size
        place += size


def loads(raw: bytes) -> Any:
    """Return the value of one element. Raises ValueError."""
    value, end = _value(raw, 0, len(raw), _DEPTH, count())
    if end != len(raw):
        raise ValueError("more than one element")
    return value


def _value(raw: bytes, place: int, end: int, depth: int, numbers: Iterator[int]) -> tuple[Any, int]:
    """Return the element at `place`, which ends before `end`, and its end."""
    if next(numbers) > VALUES:
        raise TooManyValues(f"has more than {VALUES:,} values")
    colon = raw.find(b":", place, place + _DIGITS + 1)
    digits = raw[place:colon]
    if colon < 0 or not digits.isdigit() or not depth:
        raise ValueError("no element")
    start = colon + 1
    stop = start + int(digits)
    if stop >= end:
        raise ValueError("an element that is longer than what holds it")
    kind = raw[stop : stop + 1]
    if kind in (b"]", b"}"):
        return _collection(raw, start, stop, depth - 1, numbers, is_dict=kind == b"}"), stop + 1
    if kind not in _TYPES:
        raise ValueError("an element of no known type")
    return _TYPES[kind](raw[start:stop]), stop + 1


def _collection(raw: bytes, place: int, stop: int, depth: int, numbers: Iterator[int], *, is_dict: bool) -> Any:
    found = []
    while place < stop:
        value, place = _value(raw, place, stop, depth, numbers)
        found.append(value)
    if not is_dict:
        return found
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in found[::2]]
    return dict(zip(names, found[1::2], strict=True))


def _number(raw: bytes) -> int:
    if len(raw) > 32:
        raise ValueError("a number of too many digits")
    return int(raw)


_TYPES: dict[bytes, Any] = {
    b",": bytes,
    b";": lambda raw: raw.decode("utf-8", "replace"),
    b"#": _number,
    b"^": float,
    b"!": lambda raw: raw == b"true",
    b"~": lambda _: None,
}
