"""The framing of one direction of a WebSocket after its handshake (RFC 6455, 5).

A frame of the capture is a WebSocket message, with its fragments joined and its mask removed. Pings and pongs are
frames of their own. The close frame is not a frame of the capture; `closing` has its code and reason. Extensions are
not supported, because the relay prevents their negotiation. Nothing is validated and nothing raises.
"""

from typing import NamedTuple

from mcpspy.wire.lines import PIECE, Lines

TEXT, BINARY, CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_NAMES = {TEXT: None, _PING: "ping", _PONG: "pong"}
LONGEST_HEAD = 14
"""Bytes of a WebSocket frame before its payload, at most."""

Quadruple = tuple[bytes, bool, bool, str | None]


class FrameHead(NamedTuple):
    """The head of a WebSocket frame; the payload of the frame is a message or a fragment of one."""

    final: bool
    """Whether the frame ends its message."""
    reserved: bool
    """Whether an extension changed the payload: one of the bits RSV1 to RSV3 is set."""
    opcode: int
    mask: bytes
    length: int
    """Bytes of the payload."""
    size: int
    """Bytes of the head itself."""


class Messages(Lines):
    """Splits a byte stream into messages.

    `feed` and `end` return the triples of `Lines` with the `op` of the message as fourth member: None for text,
    `binary`, `ping` or `pong`. Control frames between the pieces of a message are returned after that message.
    """

    __slots__ = ("_control", "_head", "_later", "_left", "_message", "_pending", "_pieces", "closing")

    def __init__(self) -> None:
        super().__init__()
        self.closing: tuple[int | None, str] | None = None
        """Code and reason of the close frame; None before it arrives. An empty close frame has no code."""
        self._pending = b""  # of a head
        self._head: FrameHead | None = None  # of the current WebSocket frame
        self._left = 0  # bytes of its payload to come
        self._control = b""  # payload of a control frame
        self._message: int | None = None  # opcode of the current message
        self._pieces = False  # whether a piece of it was returned already
        self._later: list[Quadruple] = []

    @property
    def between(self) -> bool:
        """Whether the next byte begins a message, and no close frame has arrived."""
        return self._message is None and self._head is None and not self._pending and self.closing is None

    def feed(self, chunk: bytes) -> list[Quadruple]:  # type: ignore[override]
        """Accept the next bytes of the stream and return the frames and pieces that are complete."""
        out: list[Quadruple] = []
        raw, place = self._pending + chunk, 0
        while True:
            if self._head is None:
                self._head = parse_head(raw[place : place + LONGEST_HEAD])
                if self._head is None:
                    break
                place += self._head.size
                self._begin(self._head)
            part = raw[place : place + self._left]
            place += len(part)
            self._payload(self._head, part, out)
            if self._left:
                break
            self._finish(self._head, out)
            self._head = None
        self._pending = raw[place:]
        return out

    def end(self) -> list[Quadruple]:  # type: ignore[override]
        """Return the message that the end of the stream cut off, if there is one."""
        if self._message is None:
            return []
        cut = (self._take() if self._parts else b"", False, True, self._op)
        return [cut, *self._later]

    @property
    def _op(self) -> str | None:
        assert self._message is not None
        return op_of(self._message)

    def _begin(self, head: FrameHead) -> None:
        self._left = head.length
        if head.opcode < CLOSE and self._message is None:
            self._message = head.opcode

    def _payload(self, head: FrameHead, part: bytes, out: list[Quadruple]) -> None:
        plain = unmask(part, head.mask, head.length - self._left)
        self._left -= len(part)
        if head.opcode >= CLOSE:
            self._control = (self._control + plain)[:PIECE]  # a valid one has at most 125 bytes
        elif plain:
            pieces: list[tuple[bytes, bool, bool]] = []
            self._add(plain, pieces)
            self._pieces = self._pieces or bool(pieces)
            out.extend((*piece, self._op) for piece in pieces)

    def _finish(self, head: FrameHead, out: list[Quadruple]) -> None:
        if head.opcode < CLOSE:
            if head.final:
                out.append((self._take() if self._parts else b"", False, False, self._op))
                out.extend(self._later)
                self._message, self._pieces, self._later = None, False, []
            return
        payload, self._control = self._control, b""
        if head.opcode == CLOSE:
            code = int.from_bytes(payload[:2], "big") if len(payload) > 1 else None
            self.closing = code, payload[2:].decode("utf-8", "replace")
        else:
            control = (payload, False, False, op_of(head.opcode))
            (self._later if self._pieces else out).append(control)


def op_of(opcode: int) -> str | None:
    """Return the `op` of a message with that opcode in a capture; None for text."""
    return _NAMES.get(opcode, "binary")


def encode(payload: bytes, opcode: int, mask: bytes = b"") -> bytes:
    """Encode a message as one frame.

    `mask` is four random bytes for a frame of a client, and empty for a frame of a server (RFC 6455, 5.1).
    """
    length = len(payload)
    masked = 0x80 if mask else 0
    if length < 126:
        head = bytes([0x80 | opcode, masked | length])
    elif length < 1 << 16:
        head = bytes([0x80 | opcode, masked | 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, masked | 127]) + length.to_bytes(8, "big")
    return head + mask + unmask(payload, mask, 0)


def parse_head(raw: bytes) -> FrameHead | None:
    """Parse the head at the start of `raw`; return None if it is incomplete (RFC 6455, 5.2)."""
    if len(raw) < 2:
        return None
    length = raw[1] & 0x7F
    start = 2
    if length > 125:
        start = 4 if length == 126 else 10
        length = int.from_bytes(raw[2:start], "big")
    size = start + (4 if raw[1] & 0x80 else 0)
    if len(raw) < size:
        return None
    return FrameHead(bool(raw[0] & 0x80), bool(raw[0] & 0x70), raw[0] & 0x0F, raw[start:size], length, size)


def unmask(part: bytes, mask: bytes, offset: int) -> bytes:
    """Apply or remove the mask of a part that begins `offset` bytes into its payload (RFC 6455, 5.3)."""
    if not mask or not part:
        return part
    shift = offset % 4
    key = (mask[shift:] + mask[:shift]) * (len(part) // 4 + 1)
    masked = int.from_bytes(part, "big") ^ int.from_bytes(key[: len(part)], "big")
    return masked.to_bytes(len(part), "big")
