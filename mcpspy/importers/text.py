"""Large files of JSON and of lines, read in portions: positions of the elements of an array, lines of limited length.

The results are positions, not values, so a file of gigabytes needs little memory, and a truncated file yields
everything before its end.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, AnyStr, BinaryIO

from mcpspy.importers.order import VALUES, Span, TooManyValues, Torn

MARK = b"\xef\xbb\xbf"
"""A byte order mark, which may begin a text file."""
LONGEST = 1 << 26
"""Maximum length of a line in bytes; a longer one is skipped."""
CHUNK = 1 << 20
"""Bytes read at once."""
_STRUCTURE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)  # a string up to its end, or to the end of the chunk
_KEY = 64  # bytes of a string that may be one of the keys
_STRINGS: dict[type, Any] = {
    str: re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL),
    bytes: re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL),
}
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

    A regular expression removes the strings, because most large texts are one string.
    """
    marks: Sequence[Any] = ",{[" if isinstance(text, str) else (b",", b"{", b"[")
    if sum(text.count(mark) for mark in marks) > VALUES:
        rest = _STRINGS[type(text)].sub(text[:0], text)
        if sum(rest.count(mark) for mark in marks) > VALUES:
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
    """
    keys = [b""] * (len(path) + 1)  # the last string at each depth
    wanted = [b"", *(key.encode() for key in path)]
    depth, start = 0, None
    inside = False  # inside a string
    within = False  # inside the array
    base, rest = 0, b""
    while True:
        file.seek(base + len(rest))
        chunk = file.read(CHUNK)
        if not chunk:
            what = "an entry" if start is not None else "its list of entries" if within else "what precedes its entries"
            raise Torn(f"it ends inside {what}")
        buffer = rest + chunk
        place, rest = 0, b""
        while place < len(buffer):
            if inside:
                end = _end_of(buffer, place)
                if not within and depth < len(keys):
                    keys[depth] = (keys[depth] + buffer[place:end])[:_KEY]
                if buffer[end : end + 1] == b"\\":  # the escaped character is in the next chunk
                    rest = buffer[end:]
                    break
                inside = end == len(buffer)
                place = end + 1
                continue
            found = _STRUCTURE.search(buffer, place)
            if found is None:
                break
            place = found.end()
            mark = found[0]
            if mark == b'"':
                inside = True
                if not within and depth < len(keys):
                    keys[depth] = b""
            elif mark in b"{[":
                if within and depth == len(path) + 1 and mark == b"{":
                    start = base + found.start()
                within = within or (mark == b"[" and depth == len(path) and keys[1:] == wanted[1:])
                depth += 1
            else:
                depth = max(depth - 1, 0)
                if within and depth == len(path) + 1 and start is not None:
                    yield start, base + place - start
                    start = None
                if within and depth == len(path):
                    return
        base += len(buffer) - len(rest)


def _end_of(buffer: bytes, place: int) -> int:
    match = _INSIDE.match(buffer, place)
    return match.end() if match else place
