"""Large files of JSON and of lines, read in portions: positions of the elements of an array, lines of limited length.

The results are positions, not values, so a file of gigabytes needs little memory, and a truncated file yields
everything before its end.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, AnyStr, BinaryIO

from mcpspy.importers.captures import VALUES, Span, TooManyValues, Torn

MARK = b"\xef\xbb\xbf"
"""A byte order mark, which may begin a text file."""
LONGEST = 1 << 26
"""Maximum length of a line in bytes; a longer one is skipped."""
CHUNK = 1 << 20
"""Bytes read at once."""
BEFORE = 1 << 22
"""Maximum size of what precedes the list of entries, in bytes."""
_TOKEN = re.compile(rb'"([^"]*+)"?|[{}\[\]]')  # a string or a bracket; `_masked` has removed escaped quotes
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_NO_BRACKETS = bytes({*range(256)} - {*_STEPS})
_SPACE = re.compile(r"[ \t\n\r]*")


def lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a file, from its start, without their terminators; None for a line that is too long."""
    file.seek(0)
    file.seek(len(MARK) if file.read(len(MARK)) == MARK else 0)
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield None
        else:
            yield line.rstrip(b"\r\n")


def checked(text: AnyStr) -> AnyStr:
    """Return a JSON text. Raises TooManyValues if it has more values than may be parsed at once.

    Strings are left out, because most large texts are one string.
    """
    marks: Sequence[Any] = ",{[" if isinstance(text, str) else (b",", b"{", b"[")
    if sum(text.count(mark) for mark in marks) > VALUES:
        number, rest, inside = 0, b"", False
        for place in range(0, len(text), CHUNK):
            piece = text[place : place + CHUNK]
            masked, rest = _masked(rest + (piece.encode(errors="replace") if isinstance(piece, str) else piece))
            outside, inside = _outside(masked, inside=inside)
            number += sum(outside.count(mark) for mark in (b",", b"{", b"["))
            if number > VALUES:
                raise TooManyValues(f"has more than {VALUES:,} values")
    return text


def members(text: str) -> dict[str, str]:
    """Return the members of a JSON object, each value as source text. Raises ValueError or RecursionError."""
    checked(text)
    decode = json.JSONDecoder().raw_decode
    found: dict[str, str] = {}
    place = _skip(text, 0)
    if text[place : place + 1] != "{":
        raise ValueError("not a JSON object")
    place = _skip(text, place + 1)
    while text[place : place + 1] != "}" or found:
        key, place = decode(text, place)
        place = _skip(text, place)
        start = _skip(text, place + 1)
        if text[place : place + 1] != ":" or not isinstance(key, str):
            raise ValueError("not a member of a JSON object")
        _, place = decode(text, start)
        found[key] = text[start:place]
        place = _skip(text, place)
        if text[place : place + 1] == "}":
            break
        if text[place : place + 1] != ",":
            raise ValueError("no comma between members")
        place = _skip(text, place + 1)
    return found


def sound(value: Any) -> Any:
    """Return a JSON value if it can be written. Raises ValueError for an unpaired surrogate."""
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def elements(file: BinaryIO, path: Sequence[str]) -> Iterator[Span]:
    """Yield the positions of the objects in the array at `path`, the keys from the outermost object on.

    The file is read from its start; its position may change between steps. Raises Torn if it ends before the array.
    Brackets are counted by functions in C, because a file may consist of little else.
    """
    base, rest, inside = _array(file, path), b"", False
    depth, start = 0, None
    while True:
        file.seek(base + len(rest))
        chunk = file.read(CHUNK)
        if not chunk:
            raise Torn(f"it ends inside {'an entry' if start is not None else 'its list of entries'}")
        masked, rest = _masked(rest + chunk)
        outside, ends_inside = _outside(masked, inside=inside)
        brackets = outside.translate(None, _NO_BRACKETS)
        depths = [*accumulate(map(_STEPS.__getitem__, brackets), initial=depth)]
        depth, number = depths[-1], 0
        places = _places(masked, inside=inside) if 0 in depths else []
        while True:
            if depths[number] == 0:
                if number == len(brackets):
                    break
                if depths[number + 1] < 0:
                    return
                start = base + places[number] if brackets[number] in b"{" else None
                number += 1
            try:
                number = depths.index(0, number)
            except ValueError:  # the element does not end in this chunk
                break
            if start is not None:
                yield start, base + places[number - 1] + 1 - start
                start = None
        base, inside = base + len(masked), ends_inside


def _array(file: BinaryIO, path: Sequence[str]) -> int:
    """Return where the elements of the array at `path` begin. Raises Torn if that is not in the first megabytes."""
    file.seek(0)
    masked, _ = _masked(file.read(BEFORE))
    keys = [b""] * (len(path) + 1)  # the last string at each depth
    wanted = [key.encode() for key in path]
    depth = 0
    for match in _TOKEN.finditer(masked):
        mark = match[0]
        if match[1] is not None:
            if depth < len(keys):
                keys[depth] = match[1]
        elif mark == b"[" and depth == len(path) and keys[1:] == wanted:
            return match.end()
        else:
            depth = max(depth + _STEPS[mark[0]], 0)
    if len(masked) < BEFORE - 1:
        raise Torn("it ends inside what precedes its entries")
    raise Torn(f"what precedes its entries is larger than {BEFORE >> 20} MiB")


def _masked(raw: bytes) -> tuple[bytes, bytes]:
    """Return JSON of the same length without escaped quotes, and what remains of it: an escape that is incomplete."""
    masked = raw.replace(rb"\\", b"__").replace(rb"\"", b"__")
    return (masked[:-1], masked[-1:]) if masked.endswith(b"\\") else (masked, b"")


def _outside(masked: bytes, *, inside: bool) -> tuple[bytes, bool]:
    """Return what is outside of strings, and whether it ends inside a string, as `inside` states of its start."""
    parts = masked.split(b'"')
    return b"".join(parts[inside::2]), inside ^ (len(parts) % 2 == 0)


def _places(masked: bytes, *, inside: bool) -> list[int]:
    """Return the positions of the brackets outside of strings."""
    begin = (masked.find(b'"') + 1 or len(masked)) if inside else 0
    return [match.start() for match in _TOKEN.finditer(masked, begin) if match[1] is None]
