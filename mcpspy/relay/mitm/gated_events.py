"""An event stream of `mitm` that passes the gate, with those verdicts only that need no waiting.

mitmproxy calls for the bytes to forward when a chunk arrives, and never later. So a frame that a gate would hold is
forwarded at once, as the verdict after the hold requires, and the user gets a notice. An event that is too long passes
undecided. A compressed stream is decoded part by part, because a small chunk may decode to megabytes, and encoded again
with a flush after each part. Events after one that ends the stream are not forwarded; they are recorded as dropped by
the same gate.
"""

from collections.abc import Callable

from mcpspy.gate.facts import Facts
from mcpspy.gate.gate import LIMIT, Gate
from mcpspy.gate.verdicts import PASS, CloseStream, Drop, Exit, Hold, Pass, Refuse, Reply, Send
from mcpspy.recording.http_exchange import Body, Fields
from mcpspy.relay.http.encoders import encoder
from mcpspy.relay.http.gated_body import EventBlocks, Piece
from mcpspy.relay.mitm.flow import Flow
from mcpspy.relay.mitm.queue import Turns
from mcpspy.wire.content_coding import Decoder

Decided = tuple[Piece, "Pass | Send | Drop | CloseStream"]


class GatedEvents:
    """The value of `response.stream`: called with each chunk, and with an empty one at the end."""

    def __init__(self, gate: Gate, facts: Facts, turns: Turns, encoding: str, say: Callable[[str], None]) -> None:
        self._gate = gate
        self._facts = facts
        self._turns = turns
        self._say = say
        self._decoder = Decoder(encoding)
        self._encoder = None if self._decoder.plain else encoder(encoding)
        self._blocks = EventBlocks(LIMIT)
        self._closed_by: Drop | None = None  # the verdict for events after the one that ended the stream
        self.closed = False
        """Whether a verdict or a decoding fault has ended the stream."""
        turns.add(lambda flow, _: flow.response.decoded() if flow.response else None)

    def __call__(self, chunk: bytes) -> list[bytes]:
        """Return the parts to forward now."""
        out = [self._take(self._blocks.feed(plain)) for plain in self._decoder.feed(chunk)]
        if self._decoder.fault:
            self.closed = True
        if not chunk:
            out.append(self._take(self._blocks.end()))
            if self._encoder and not self.closed:
                out.append(self._encoder.finish())
        return [part for part in out if part]

    def rest(self) -> list[bytes]:
        """Return the part of an incomplete event to forward, because the server broke off."""
        out = self._take(self._blocks.end())
        return [out] if out else []

    def abandon(self) -> None:
        """Record the part of an incomplete event, because the client has disconnected."""
        body, now = self._turns.flow.response, self._turns.flow.origin.now()
        for piece in self._blocks.end():
            if body:
                _record_piece(body, piece, self._closed_by or PASS, now)

    def _take(self, pieces: list[Piece]) -> bytes:
        """Decide on the pieces, schedule their recording, and return the bytes to forward."""
        t = self._turns.flow.origin.now()
        decided: list[Decided] = []
        out: list[bytes] = []
        for piece in pieces:
            verdict = self._closed_by or (PASS if piece.frame is None else self._decide(piece.frame, t))
            decided.append((piece, verdict))
            if isinstance(verdict, Pass):
                out.append(piece.passes)
            elif isinstance(verdict, Send):
                out += [frame + piece.delimiter for frame in verdict.frames]
            elif isinstance(verdict, CloseStream):
                self.closed, self._closed_by = True, Drop(verdict.by)
        if decided:
            self._turns.add(lambda flow, t: _record(flow, decided, t))
        plain = b"".join(out)
        return self._encoder.encode(plain) if self._encoder and plain else plain

    def _decide(self, frame: bytes, t: int) -> Pass | Send | Drop | CloseStream:
        verdict = self._gate.decide(frame, self._facts, t)
        if isinstance(verdict, Hold):
            self._say(f"{verdict.by} cannot hold or delay events of a stream; they pass at once")
            verdict = verdict.then
        if isinstance(verdict, Reply | Refuse | Exit):
            self._say(f"{verdict.by} cannot answer a server over HTTP; such frames pass unchanged")
            return PASS
        return verdict


def _record(flow: Flow, decided: list[Decided], t: int) -> None:
    """Record the decisions on a chunk that was read at `t`."""
    if flow.response:
        for piece, verdict in decided:
            _record_piece(flow.response, piece, verdict, t)


def _record_piece(channel: Body, piece: Piece, verdict: Pass | Send | Drop | CloseStream, t: int) -> None:
    if piece.frame is None:
        if piece.undecided:
            channel.undecided()
        if not isinstance(verdict, Drop):
            channel.feed(piece.passes, t)
        elif piece.passes.strip(b"\r\n"):
            channel.frame(piece.passes, t, cut=True, gated={"sent": None, "by": verdict.by})
        return
    frames = verdict.frames if isinstance(verdict, Send) else ()
    gated: Fields = {}
    if not isinstance(verdict, Pass):
        gated = {"sent": frames[0] if frames else None, "by": verdict.by}
    channel.frame(piece.frame, t, gated=gated)
    for extra in frames[1:]:
        channel.frame(extra, t, gated={"from": "mcpspy", "by": gated["by"]})
