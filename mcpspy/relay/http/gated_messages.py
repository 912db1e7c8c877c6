"""WebSocket messages that pass a gate: split the received bytes into messages for the gate (RFC 6455, 5).

The rules. No byte is lost: all pieces together have exactly the received bytes. Only control frames may change their
place. A message becomes a piece when its last fragment is complete; pings and pongs between its fragments are returned
before it. These pass undecided:

- a message that is too long, as it arrives from then on;
- a message whose payload an extension has changed; the relay lets no extension be negotiated, so no message is
  compressed;
- a message that the end of the stream or a close frame cuts off;
- everything after a close frame, or after a control frame that is too long to be valid.

Nothing here reads, writes or waits.
"""

from collections.abc import Iterator

from mcpspy.relay.http.gated_body import Piece
from mcpspy.wire.websocket import CLOSE, LONGEST_HEAD, FrameHead, op_of, parse_head, unmask

CLOSES = "close"
"""`Piece.op` of a close frame and of a message that it cuts off."""
_CONTROL = 125  # the longest payload of a control frame in bytes (RFC 6455, 5.5)


class MessagePieces:
    """Splits one direction of a WebSocket like `wire.websocket.Messages`, and keeps every byte."""

    def __init__(self, limit: int) -> None:
        """`limit` is the size in bytes of the longest payload that the gate decides on."""
        self._limit = limit
        self._pending = bytearray()
        self._raw: list[bytes] = []  # the fragments of the current message
        self._payload: list[bytes] = []
        self._size = self._raw_size = 0
        self._opcode: int | None = None  # of the current message
        self._long = False  # whether the current message passes as it arrives
        self._left = 0  # bytes that are missing from the current fragment
        self._final = False  # whether that fragment is the last one
        self._open = False  # whether all following bytes pass
        self._extended = False  # whether an extension has changed the current message
        self.fault: str | None = None
        """Why a message passes undecided, unless it is only too long."""

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """Accept the next bytes and yield the pieces that are complete; exhaust it before the next call."""
        self._pending += chunk
        goes_on = True
        while self._pending and goes_on:
            pieces: list[Piece] = []
            goes_on = self._step(pieces)
            yield from pieces

    def end(self) -> list[Piece]:
        """Return the bytes that the end of the stream cuts off."""
        rest = b"".join(self._raw) + self._take(len(self._pending))
        self._forget()
        return [Piece(rest)] if rest else []

    def _step(self, pieces: list[Piece]) -> bool:
        """Parse the next frame, or a part of a long one; return False if more bytes are needed."""
        if self._open:
            pieces.append(Piece(self._take(len(self._pending))))
            return False
        if self._left:
            pieces.append(self._go_on(self._take(min(self._left, len(self._pending)))))
            return not self._left
        head = parse_head(bytes(self._pending[:LONGEST_HEAD]))
        if head is None:
            return False
        if head.opcode >= CLOSE and head.length > _CONTROL:
            self.fault = "a WebSocket control frame is too long"
            self._open = True
            pieces += self.end()
            return False
        if head.opcode < CLOSE:
            self._opcode = head.opcode if self._opcode is None else self._opcode
            if self._long or self._exceeds(head):
                pieces.append(self._begin_long(head))
                return True
        if len(self._pending) < head.size + head.length:
            return False
        raw = self._take(head.size + head.length)
        if head.opcode >= CLOSE:
            self._control(head, raw, pieces)
        else:
            self._fragment(head, raw, pieces)
        return True

    def _exceeds(self, head: FrameHead) -> bool:
        """Return whether this fragment makes the message too long; many empty fragments do as well."""
        raw_size = self._raw_size + head.size + head.length
        return self._size + head.length > self._limit or raw_size > 2 * self._limit

    def _begin_long(self, head: FrameHead) -> Piece:
        """Pass a fragment of a message that is too long, together with the fragments kept before it."""
        first, self._long = not self._long, True
        raw = b"".join(self._raw) + self._take(head.size)
        self._raw, self._payload = [], []
        self._left, self._final = head.length, head.final
        return self._go_on(raw + self._take(min(self._left, len(self._pending))), len(raw), undecided=first)

    def _go_on(self, raw: bytes, before: int = 0, *, undecided: bool = False) -> Piece:
        """Return a part of a long message; its first `before` bytes are not payload of this fragment."""
        self._left -= len(raw) - before
        more = self._left > 0 or not self._final
        if not more:
            self._forget()
        return Piece(raw, undecided=undecided, more=more)

    def _control(self, head: FrameHead, raw: bytes, pieces: list[Piece]) -> None:
        if head.opcode == CLOSE:
            pieces.append(Piece(b"".join([*self._raw, raw]), op=CLOSES))
            self._forget()
            self._open = True
        elif self._long:
            pieces.append(Piece(raw, more=True))  # stays between the fragments
        else:
            pieces.append(Piece(raw, unmask(raw[head.size :], head.mask, 0), op=op_of(head.opcode), control=True))

    def _fragment(self, head: FrameHead, raw: bytes, pieces: list[Piece]) -> None:
        self._raw.append(raw)
        self._raw_size += len(raw)
        self._payload.append(unmask(raw[head.size :], head.mask, 0))
        self._size += head.length
        self._extended = self._extended or head.reserved
        if not head.final:
            return
        passes, opcode = b"".join(self._raw), self._opcode or 0
        if self._extended:
            self.fault = "a WebSocket message uses an extension that was not negotiated"
            pieces.append(Piece(passes, undecided=True))
        else:
            pieces.append(Piece(passes, b"".join(self._payload), op=op_of(opcode)))
        self._forget()

    def _forget(self) -> None:
        """Reset the state: the message has ended."""
        self._raw, self._payload = [], []
        self._size = self._raw_size = 0
        self._opcode = None
        self._long = self._extended = False

    def _take(self, size: int) -> bytes:
        taken = bytes(self._pending[:size])
        del self._pending[:size]
        return taken
