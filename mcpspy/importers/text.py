"""Large files of JSON and of lines, read in portions: where the elements of an array lie, and lines of bounded length.

What is found are places, not values, so that a file of gigabytes takes no memory, and one that breaks off gives all
that stood before.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from mcpspy.importers.order import Span, Torn

MARK = b"\xef\xbb\xbf"
"""A byte order mark, with which a text file may begin."""
LONGEST = 1 << 26
"""Bytes of a line; a longer one is passed over."""
CHUNK = 1 << 20
"""Bytes read at once."""
_STRUCTURE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)  # a string up to its end, or to where the chunk ends
_KEY = 64  # bytes of a string that may be one of the keys
_SPACE = re.compile(r"[ \t\n\r]*")


def lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a file, from its start, without their terminators; None for one that is too long."""
    file.seek(0)
    file.seek(len(MARK) if file.read(len(MARK)) == MARK else 0)
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield None
        else:
            yield line.rstrip(b"\r\n")


def members(text: str) -> dict[str, str]:
    """The members of a JSON object, each value as it is written. Raises ValueError or RecursionError."""
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
    """A JSON value whose text can be written. Raises ValueError where a surrogate in it stands alone."""
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def elements(file: BinaryIO, path: Sequence[str]) -> Iterator[Span]:
    """Where the objects of an array lie that `path`, the keys from the outermost object on, leads to.

    The file is read from its start, and may be moved in between. Raises Torn where it ends before the array does.
    """
    keys = [b""] * (len(path) + 1)  # the last string at each depth
    wanted = [b"", *(key.encode() for key in path)]
    depth, start = 0, None
    inside = False  # a string
    within = False  # the array
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
                if buffer[end : end + 1] == b"\\":  # what it escapes is in the next chunk
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
