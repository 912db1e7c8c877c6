"""The framing of stdio: one JSON-RPC message per line (specification, basic/transports#stdio).

Only 0x0A ends a line. `splitlines` would also split at U+2028, which is legal inside JSON. Nothing is stripped or
repaired: a carriage return, a byte order mark and blank lines are kept as the peer sent them.

The decoder keeps at most `PIECE` bytes of an unfinished line. It returns a longer line in pieces as the bytes arrive,
so memory use does not depend on what a peer sends.

This module is on the `wrap` path, so it imports nothing.
"""

PIECE = 65536
"""The most bytes of an unfinished line that are kept; a longer line is returned in pieces."""


class Lines:
    """Splits a byte stream into lines.

    `feed` and `end` return `(raw, more, cut)` triples: the bytes without their newline, whether the frame continues in
    the next triple, and whether the stream ended before the newline. A piece with `more` never ends inside a UTF-8
    sequence.
    """

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of the unfinished line
        self._size = 0

    @property
    def between(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._parts

    def feed(self, chunk: bytes) -> list[tuple[bytes, bool, bool]]:
        """Accept the next bytes of the stream and return the frames and pieces that are complete."""
        frames: list[tuple[bytes, bool, bool]] = []
        lines = chunk.split(b"\n")
        for line in lines[:-1]:
            self._add(line, frames)
            frames.append((self._take(), False, False))
        if lines[-1]:
            self._add(lines[-1], frames)
        return frames

    def end(self) -> list[tuple[bytes, bool, bool]]:
        """Return the unterminated rest, if there is one."""
        return [(self._take(), False, True)] if self._parts else []

    def _add(self, part: bytes, frames: list[tuple[bytes, bool, bool]]) -> None:
        """Append to the unfinished line; move pieces of `PIECE` bytes to `frames`, and keep at least one byte."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > PIECE:
            line, start = self._take(), 0
            while len(line) - start > PIECE:
                cut = _boundary(line, start + PIECE)
                frames.append((line[start:cut], True, False))
                start = cut
            self._parts, self._size = [line[start:]], len(line) - start

    def _take(self) -> bytes:
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line


def _boundary(raw: bytes, limit: int) -> int:
    """Return the index to cut `raw` at: `limit`, or up to 3 less so that no UTF-8 sequence is split (RFC 3629)."""
    for cut in range(limit, limit - 4, -1):
        if raw[cut] & 0xC0 != 0x80:  # a sequence begins here, so one ends before
            return cut
    return limit  # not UTF-8 anyway
