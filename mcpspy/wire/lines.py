"""The framing of stdio: one JSON-RPC message a line (specification, basic/transports#stdio).

Lines end at 0x0A and nowhere else: `splitlines` would also break at U+2028, which is legal inside JSON. Nothing is
stripped or repaired; a carriage return, a byte order mark and blank lines are part of what the peer sent.

The decoder keeps at most `PIECE` bytes of an unfinished line. A longer line comes out in pieces as it arrives, so
memory stays constant whatever a peer sends.

Imported on the `wrap` path: no imports here.
"""

PIECE = 65536
"""Bytes of an unfinished line that are kept before they come out as a piece."""


class Lines:
    """Splits a byte stream into lines.

    `feed` and `end` return `(raw, more, cut)` triples: the bytes without their newline; whether the frame goes on in
    the next triple; whether the peer ended before the newline. A piece with `more` never ends inside a UTF-8 sequence.
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
        """Take the next bytes of the stream and return what they complete."""
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
        """Lengthen the unfinished line; pieces of `PIECE` bytes go into `frames`, and at least one byte stays."""
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
    """Where to cut `raw`, at `limit` or up to three bytes before, so that no UTF-8 sequence is divided (RFC 3629)."""
    for cut in range(limit, limit - 4, -1):
        if raw[cut] & 0xC0 != 0x80:  # a sequence begins here, so one ends before
            return cut
    return limit  # not UTF-8 anyway
