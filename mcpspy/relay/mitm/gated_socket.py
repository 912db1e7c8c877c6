"""The messages of a WebSocket of `mitm` that pass the gate.

mitmproxy handles both directions of a WebSocket one event after the other, so its hook for a message must not wait. A
message that is forwarded at once, unchanged and with no message held before it, simply passes. Any other message is
removed; what is sent in its place is put into `out`. The layer of mitmproxy sends `out` in order: at once, or after
`wake` was called.

While more is held of one peer than `FrameOrder` allows, nothing more is read from it. The read waits for `room` outside
of mitmproxy's events, so that the other direction continues. The alternative, to release the oldest message, would
break delays and release messages that a person is editing, whenever a peer sends much.

Nothing here imports mitmproxy.
"""

import struct
from collections.abc import Callable, Iterator

from mcpspy.gate.gate import PASS, Reply
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.gated_channel import GatedChannel
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm.flow import Turns

TEXT, BINARY = 1, 2  # RFC 6455, 5.2
_HEAD = struct.Struct(">BQ")  # opcode and length of a message, because a gated channel writes bytes
_OPS = {TEXT: None, BINARY: "binary"}

Message = tuple[bool, int, bytes]
"""Whether the message is sent to the client, its opcode, its payload."""


class GatedSocket:
    """Both directions of a WebSocket; `wake` makes mitmproxy send what is in `out`."""

    def __init__(self, gate: LiveGate, turns: Turns, say: Callable[[str], None], wake: Callable[[], None]) -> None:
        self.out: list[Message] = []
        """The messages to send now."""
        self.closed = False
        """Whether a verdict has ended the connection."""
        self._asked = False  # whether mitmproxy waits for a hook; it sends what is in `out` after it
        self._gate = gate
        self._wake = wake
        self._turns = turns
        turns.finish()  # opens the channels
        session = object()  # identifies this connection for the gate
        self._facts = {sender: gate.facts(sender, "message", session) for sender in ("client", "server")}
        self._gated_channels = {sender: self._gated_channel(sender, say) for sender in self._facts}

    async def message(self, opcode: int, payload: bytes, *, from_client: bool) -> bool:
        """Process a received message; return True if it is forwarded unchanged and need not be removed."""
        sender = "client" if from_client else "server"
        piece = Piece(_packed(opcode, payload), payload, op=_OPS[opcode])
        t = self._turns.flow.origin.now()
        gated_channel = self._gated_channels[sender]
        decides = self._gate.look(t) and not gated_channel.closed
        verdict = self._gate.decide(payload, self._facts[sender], t) if decides else PASS
        self._asked = True
        try:
            await gated_channel.take(piece, verdict, t)
        finally:
            self._asked = False
        passes = self.out == [(not from_client, opcode, payload)]
        if passes:
            self.out.clear()
        return passes

    async def room(self, sender: str) -> None:
        """Wait while so much of one peer is held that no more should be read from it."""
        await self._gated_channels[sender].room()

    async def closing(self, *, by_client: bool) -> None:
        """Process the end of one side: release what it has sent, and drop what it would receive."""
        closer, other = ("client", "server") if by_client else ("server", "client")
        self._asked = True
        try:
            await self._gated_channels[closer].end()
            self._gated_channels[other].abandon()
        finally:
            self._asked = False

    def abandon(self) -> None:
        """Record that held messages are not forwarded."""
        for gated_channel in self._gated_channels.values():
            gated_channel.abandon()

    def _gated_channel(self, sender: str, say: Callable[[str], None]) -> GatedChannel:
        channels, recording = self._turns.flow.sockets, self._turns.flow.recording
        other = "server" if sender == "client" else "client"

        async def write(raw: bytes) -> None:
            self.out += [(sender == "server", opcode, payload) for opcode, payload in _unpacked(raw)]
            self._waken()

        async def reply(answer: Reply) -> None:
            self.out.append((sender == "client", TEXT, answer.frame))
            channels[other].frame(answer.frame, recording.clock.now(), gated={"from": "mcpspy", "by": answer.by})
            self._waken()

        return GatedChannel(
            self._gate,
            self._facts[sender],
            channels[sender],
            recording,
            write,
            say,
            render=lambda frame, piece: _packed(BINARY if piece.op else TEXT, frame),
            reply=reply,
            close=self._close,
        )

    def _close(self) -> None:
        self.closed = True
        self._waken()

    def _waken(self) -> None:
        if not self._asked:
            self._wake()


def _packed(opcode: int, payload: bytes) -> bytes:
    """Encode a message with its opcode and length, so that several can be joined."""
    return _HEAD.pack(opcode, len(payload)) + payload


def _unpacked(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and payload of the messages in `raw`."""
    start = 0
    while start < len(raw):
        opcode, size = _HEAD.unpack_from(raw, start)
        start += _HEAD.size + size
        yield opcode, raw[start - size : start]
