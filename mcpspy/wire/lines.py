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

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> list[tuple[bytes, bool, bool]]:
        """Take the next bytes of the stream and return what they complete."""
        end = chunk.find(b"\n")
        if end == len(chunk) - 1 and end <= PIECE and not self._pending and chunk:  # what almost every read looks like
            return [(chunk[:end], False, False)]
        frames: list[tuple[bytes, bool, bool]] = []
        lines = chunk.split(b"\n")
        for line in lines[:-1]:
            self._pending += line
            self._shed(frames)
            frames.append((bytes(self._pending), False, False))
            self._pending.clear()
        self._pending += lines[-1]
        self._shed(frames)
        return frames

    def end(self) -> list[tuple[bytes, bool, bool]]:
        """Return the unterminated rest, if there is one."""
        frames = [(bytes(self._pending), False, True)] if self._pending else []
        self._pending.clear()
        return frames

    def _shed(self, frames: list[tuple[bytes, bool, bool]]) -> None:
        """Move what the unfinished line has too much of into `frames`; at least one byte stays."""
        while len(self._pending) > PIECE:
            cut = _boundary(self._pending, PIECE)
            frames.append((bytes(self._pending[:cut]), True, False))
            del self._pending[:cut]


def _boundary(raw: bytearray, limit: int) -> int:
    """Where to cut `raw`, at `limit` or up to three bytes before, so that no UTF-8 sequence is divided (RFC 3629)."""
    for cut in range(limit, limit - 4, -1):
        if raw[cut] & 0xC0 != 0x80:  # a sequence begins here, so one ends before
            return cut
    return limit  # not UTF-8 anyway
