"""One decision of the gate on a collected body: JSON of at most 1 MiB, decoded.

The rules:

- Decoding stops as soon as the body is too long for a decision. The body then passes undecided. So does a body whose
  content coding cannot be decoded or cannot be encoded again.
- If a verdict replaces one frame by several, they are written into the same body, one after the other, and encoded
  together.
- A body that no verdict changes is forwarded with exactly the bytes that were received.

This module knows no HTTP library. The relay of the body opens its channel and writes the output.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from mcpspy.gate.gate import LIMIT, Gate
from mcpspy.gate.verdicts import PASS, UNDECIDED, Hold, Pass, Refuse, Reply
from mcpspy.recording.http_exchange import Body
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.encoders import coded, encoder
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.gated_channel import GatedChannel
from mcpspy.relay.http.heads import RawHeaders, first
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.content_coding import Decoder

if TYPE_CHECKING:
    from mcpspy.gate.facts import Facts
    from mcpspy.gate.verdicts import Verdict


def decodable(encoding: str) -> bool:
    """Return whether the content codings of a Content-Encoding value can be decoded and encoded again."""
    decoder = Decoder(encoding)
    return decoder.plain or (decoder.fault is None and encoder(encoding) is not None)


def announces_too_much(headers: RawHeaders) -> bool:
    """Return whether the Content-Length is too large for a decision on the body."""
    length = first(headers, b"content-length") or b""
    return length.isdigit() and int(length[:20]) > LIMIT


def keeps_body(verdict: "Verdict") -> bool:
    """Return whether a body is forwarded unchanged: passed or only delayed. A viewer may still override a delay."""
    if isinstance(verdict, Hold):
        return verdict.how == "delayed" and isinstance(verdict.then, Pass)
    return isinstance(verdict, Pass)


class CollectedBody:
    """A whole body: `raw` is as received, `plain` is without its content coding."""

    def __init__(self, raw: bytes, encoding: str) -> None:
        """`encoding` is the value of Content-Encoding."""
        self.raw = raw
        self.plain = b""
        """The decoded body; empty if the gate cannot decide on it."""
        self.undecided = len(raw) > LIMIT
        """Whether the body is too long for a decision."""
        self.damaged = not decodable(encoding)
        """Whether the body cannot be decoded."""
        self._encoding = encoding
        if not self.damaged and not self.undecided:
            self._decode()

    def decide(self, gate: Gate, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on the body, whose end was read at `t`."""
        if self.undecided:
            return UNDECIDED
        return gate.decide(self.plain, facts, t) if self.plain else PASS

    def forwarded(self, frames: Iterable[bytes]) -> bytes:
        """Return the body with these frames as content, encoded; the received bytes if nothing changes."""
        plain = b"".join(frames)
        return self.raw if plain == self.plain else coded(plain, self._encoding)

    def gated_channel(
        self,
        gate: LiveGate,
        facts: "Facts",
        channel: Body,
        recording: Recording,
        write: Callable[[bytes], Awaitable[None]],
        say: Callable[[str], None],
        *,
        drain: Callable[[], Awaitable[None]] | None = None,
        reply: Callable[[Reply], Awaitable[None]] | None = None,
        refuse: Callable[[Refuse], Awaitable[None]] | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> GatedChannel:
        """Return the `GatedChannel` that applies the verdict. It calls `write` with the whole body, at most once.

        The channel must be open.
        """

        async def write_coded(plain: bytes) -> None:
            await write(self.forwarded([plain]))

        channel.decoded()
        return GatedChannel(
            gate, facts, channel, recording, write_coded, say, drain=drain, reply=reply, refuse=refuse, close=close
        )

    async def carry_out(self, gated_channel: GatedChannel, verdict: "Verdict", t: int) -> None:
        """Apply the verdict, with its delays and holds. Raises ConnectionError if the receiver has disconnected."""
        try:
            await gated_channel.take(Piece(self.plain, self.plain), verdict, t)
            await gated_channel.drained()
        finally:
            gated_channel.abandon()

    def _decode(self) -> None:
        decoder, parts, size = Decoder(self._encoding), [], 0
        for part in decoder.feed(self.raw):
            parts.append(part)
            size += len(part)
            if size > LIMIT:
                self.undecided = True
                return
        decoder.end()
        self.damaged = decoder.fault is not None
        if not self.damaged:
            self.plain = b"".join(parts)
