"""The messages of a WebSocket of `mitm` on their way through the gate.

mitmproxy handles both directions of a WebSocket one event after the other, so no message may wait where mitmproxy asks
about it. A message that goes at once, unchanged and with nothing before it, passes unchanged. Any other is taken out;
what is to be sent in its place is in `out`, which the layer of mitmproxy sends in its order: at once, or when `wake`
has asked it to. While more is held of one peer than `FrameOrder` allows, nothing more is read from it: the read waits
for `room`, outside of mitmproxy's events, so that the other direction goes on. To release the oldest message instead
would break delays, and take messages out of a person's hands, whenever a peer sends much.

Nothing here imports mitmproxy.
"""

import struct
from collections.abc import Callable, Iterator

from mcpspy.gate.verdicts import PASS, Reply
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.gated_channel import GatedChannel
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm.queue import Turns

TEXT, BINARY = 1, 2  # RFC 6455, 5.2
_HEAD = struct.Struct(">BQ")  # opcode and length of a message: a gated channel writes bytes
_OPS = {TEXT: None, BINARY: "binary"}

Message = tuple[bool, int, bytes]
"""Whether it goes to the client, its opcode, its payload."""


class GatedSocket:
    """Both directions; `wake` makes mitmproxy send what is in `out`."""

    def __init__(self, gate: LiveGate, turns: Turns, say: Callable[[str], None], wake: Callable[[], None]) -> None:
        self.out: list[Message] = []
        """What is to be sent now."""
        self.closed = False
        """Whether a verdict has ended the connection."""
        self._asked = False  # mitmproxy waits, and sends what is in `out` afterwards
        self._gate = gate
        self._wake = wake
        self._turns = turns
        turns.finish()  # so that the channels are open
        session = object()  # what tells this connection apart for the gate
        self._facts = {sender: gate.facts(sender, "message", session) for sender in ("client", "server")}
        self._gated_channels = {sender: self._gated_channel(sender, say) for sender in self._facts}

    async def message(self, opcode: int, payload: bytes, *, from_client: bool) -> bool:
        """Take a received message; True if it is forwarded unchanged, and is not to be taken out."""
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
        """Wait while so much of a peer's is held that nothing more should be read from it."""
        await self._gated_channels[sender].room()

    async def closing(self, *, by_client: bool) -> None:
        """One side closes the connection, or has broken off: what it has sent goes on, and it gets nothing more."""
        closer, other = ("client", "server") if by_client else ("server", "client")
        self._asked = True
        try:
            await self._gated_channels[closer].end()
            self._gated_channels[other].abandon()
        finally:
            self._asked = False

    def abandon(self) -> None:
        """Record that nothing is forwarded of what is held."""
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
    """A message as bytes that can stand beside others."""
    return _HEAD.pack(opcode, len(payload)) + payload


def _unpacked(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Opcode and payload of the messages in `raw`."""
    start = 0
    while start < len(raw):
        opcode, size = _HEAD.unpack_from(raw, start)
        start += _HEAD.size + size
        yield opcode, raw[start - size : start]
