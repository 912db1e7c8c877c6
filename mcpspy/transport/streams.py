"""Whole lines from a descriptor, whatever their length, for a mock and for a client."""

import os
from collections.abc import Iterable, Iterator

from mcpspy.wire.lines import Lines

ROOM = 1 << 24
"""The bytes that any server may send in addition to `_TIMES` as much as in the capture."""
_TIMES = 10


def room(recorded: int) -> int:
    """Return how many bytes a server may send, given the number in the capture; the limit makes every replay end."""
    return ROOM + _TIMES * recorded


def chunks(fd: int) -> Iterator[bytes]:
    """Yield the bytes of a descriptor until its end; an error counts as the end."""
    try:
        while chunk := os.read(fd, 65536):
            yield chunk
    except OSError:
        return


def lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream without their newlines; the last one may lack a newline."""
    decoder = Lines()
    parts: list[bytes] = []
    for chunk in stream:
        for raw, more, _ in decoder.feed(chunk):
            parts.append(raw)
            if not more:
                yield b"".join(parts)
                parts.clear()
    parts += [raw for raw, _, _ in decoder.end()]
    if parts:
        yield b"".join(parts)


def send(fd: int, line: bytes) -> bool:
    """Write one line; return False if the peer no longer reads."""
    rest = memoryview(line + b"\n")
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        return False
    return True
