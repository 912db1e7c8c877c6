"""Whole lines out of a descriptor, however long they are, for the two that talk to a peer: the mock and the driver."""

import os
from collections.abc import Iterable, Iterator

from mcpspy.wire.lines import Lines

ROOM = 1 << 24
"""Bytes that any server may say besides `_TIMES` as much as in the capture."""
_TIMES = 10


def room(recorded: int) -> int:
    """How many bytes a server may say that said so many in the capture: without an end a replay would have none."""
    return ROOM + _TIMES * recorded


def chunks(fd: int) -> Iterator[bytes]:
    """What comes out of a descriptor until its end; one that breaks has ended."""
    try:
        while chunk := os.read(fd, 65536):
            yield chunk
    except OSError:
        return


def lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream without their newlines; the rest of it that has none is the last."""
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
    """Write one line; False if the peer takes no more."""
    rest = memoryview(line + b"\n")
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        return False
    return True
