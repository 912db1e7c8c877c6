"""The gate of `mitm` for one flow: JSON bodies, event streams and the messages of a WebSocket.

The rules:

- A request with a JSON body is collected and decided on before it is forwarded; so is a JSON response.
- A body that is too long passes undecided. So does a body that cannot be decoded, with a notice for the user.
- A request that is dropped or answered never reaches the server. For a dropped request, the client gets status 202. For
  an answered one, it gets the answer with status 200. For a refused one, it gets the status that the gate names and a
  JSON-RPC error.
- A body keeps its content coding, and its length is corrected.
- A cancellation drops a request of its session that is held in another flow, and is dropped itself.
- While no gate is in force, nothing is collected. A gate that comes into force applies from the next head on, or from
  the next message of a WebSocket on.

**An event stream** gets only those verdicts that need no waiting: mitmproxy calls for the bytes to forward when a chunk
arrives, and never later. So a frame that a gate would hold is forwarded at once, as the verdict after the hold
requires, and the user gets a notice. An event that is too long passes undecided. A compressed stream is decoded part by
part, because a small chunk may decode to megabytes, and encoded again with a flush after each part. Events after one
that ends the stream are not forwarded; they are recorded as dropped by the same gate.

**A WebSocket:** mitmproxy handles both directions one event after the other, so its hook for a message must not wait. A
message that is forwarded at once, unchanged and with no message held before it, simply passes. Any other message is
removed; what is sent in its place is put into `out`. The layer of mitmproxy sends `out` in order: at once, or after
`wake` was called. While more is held of one peer than `FrameOrder` allows, nothing more is read from it. The read waits
for `room` outside of mitmproxy's events, so that the other direction continues. The alternative, to release the oldest
message, would break delays and release messages that a person is editing, whenever a peer sends much.

Nothing here imports mitmproxy; only attributes of its flows and messages are used.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mcpspy.gate.gate import LIMIT, PASS, CloseStream, Drop, Exit, Facts, Gate, Hold, Pass, Refuse, Reply, Send
from mcpspy.recording.http_exchange import Body, Fields
from mcpspy.relay.http.gated_body import EventBlocks, Piece, encoder
from mcpspy.relay.http.gated_channel import CollectedBody, GatedChannel, announces_too_much, cancel, decodable
from mcpspy.relay.http.heads import RawHeaders, every, first, is_json
from mcpspy.relay.http.local_replies import gated_answer, reason
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm.flow import Flow, Turns
from mcpspy.wire.content_coding import Decoder

if TYPE_CHECKING:
    from mcpspy.gate.gate import Verdict

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


Answer = tuple[int, bytes, RawHeaders]
"""Status, body and headers of our own response."""


class GatedFlow:
    """The gate of one flow.

    `peer` is the client's address. `say` gets a sentence for the user, `record` an entry that ends the recorded flow.
    """

    def __init__(
        self,
        gate: LiveGate,
        turns: Turns,
        headers: RawHeaders,
        peer: str,
        say: Callable[[str], None],
        record: Callable[[Callable[[Flow, int], object]], None],
    ) -> None:
        session = first(headers, b"mcp-session-id")
        self._gate = gate
        self._turns = turns
        self._session = session.decode("latin-1") if session else peer
        self._say = say
        self._record = record
        self._begin: Callable[[Fields | None], object] | None = None
        self._by_client = True  # whether the collected body is the client's
        self._gated_channel: GatedChannel | None = None
        self._plain = b""  # the last body that was decided on, decoded
        self._left = False  # whether the client has disconnected while a body was held
        self._closed = False
        self.events: GatedEvents | None = None
        """The response, if it is an event stream."""
        self.socket: GatedSocket | None = None
        """The WebSocket, if the flow has become one."""
        turns.flow.abandon = self.abandon

    @property
    def collecting(self) -> bool:
        """Whether a body is being collected, so that nothing of it is recorded yet."""
        return self._begin is not None

    @property
    def closed(self) -> bool:
        """Whether a verdict has ended the flow."""
        parts = self.events, self.socket
        return self._closed or any(part.closed for part in parts if part)

    def collect_request(self, request: Any) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return the value for `request.stream`, as `_collect` does."""
        if request.method != "POST" or not self._gate.look(self._turns.flow.origin.now()):
            return None
        return self._collect(request, self._turns.flow.open_request, by_client=True)

    def take_response(
        self, request: Any, response: Any, begin: Callable[[Fields | None], object]
    ) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return the value for `response.stream`, as `_collect` does; `begin` opens the channel of the response.

        If an event stream has a length, it is removed from the head, because the gate may change the length.
        """
        headers = list(response.headers.fields)
        if request.method == "HEAD" or response.status_code in (101, 204, 304):
            return None
        if not self._gate.look(self._turns.flow.origin.now()):
            return None
        if "text/event-stream" not in every(headers, b"content-type").lower():
            return self._collect(response, begin, by_client=False)
        encoding = every(headers, b"content-encoding")
        if not decodable(encoding):
            self._say(_undecidable("server"))
            return None
        if request.http_version == "HTTP/1.0" and first(headers, b"content-length"):
            return None
        changes = _without_length(response) if first(headers, b"content-length") else None
        self._turns.add(lambda _flow, _t: begin(changes))
        facts = self._gate.facts("server", "sse", self._session)
        self.events = GatedEvents(self._gate, facts, self._turns, encoding, self._say)
        return self.events

    def _collect(
        self, message: Any, begin: Callable[[Fields | None], object], *, by_client: bool
    ) -> bool | Callable[[bytes], list[bytes]] | None:
        """Return False to collect a JSON body, a function to stream one that passes undecided, else None."""
        headers = list(message.headers.fields)
        if not is_json(headers):
            return None
        self._begin, self._by_client = begin, by_client
        if not decodable(every(headers, b"content-encoding")):
            self._say(_undecidable("client" if by_client else "server"))
            return self.let_pass(undecided=True)
        return self.let_pass(undecided=True) if announces_too_much(headers) else False

    def let_pass(self, *, undecided: bool) -> Callable[[bytes], list[bytes]]:
        """Stop collecting: open the channel, and return the function that passes chunks on and records them.

        `undecided` is set if the gate cannot decide on the body.
        """
        begin, self._begin, by_client = self._begin, None, self._by_client

        def opened(flow: Flow, _: int) -> None:
            if begin:
                begin(None)
            body = flow.request if by_client else flow.response
            if undecided and body:
                body.undecided()

        def pass_on(chunk: bytes) -> list[bytes]:
            if chunk:
                self._turns.feed(chunk, by_client=by_client)
            return [chunk] if chunk else []

        self._turns.add(opened)
        return pass_on

    async def request(self, flow: Any) -> Answer | None:
        """Decide on the body of the request; return the answer to it if it is not forwarded, else None.

        If a verdict closes the stream, the flow is killed.
        """
        replies: list[Reply | Refuse] = []

        async def reply(answer: Reply | Refuse) -> None:
            replies.append(answer)

        passes = await self._decide(flow.request, "client", reply)
        self._turns.add(lambda recording, t: recording.request_ended(t))
        if self._left or self._closed:
            self.close(flow)
        if passes or self._left or self._closed:
            return None
        answer = replies[0] if replies else None
        status, head, body = gated_answer(answer, self._plain)
        by = {"by": answer.by} if answer else None

        def answered(recording: Flow, t: int) -> None:
            channel = recording.respond(t, status, reason(status), head.headers, "mcpspy", by)
            if answer:
                channel.frame(body, t, gated=by)
            recording.response_ended(t, switch=False)

        self._record(answered)
        return status, body, [field for field in head.headers if field[0] != b"Content-Length"]

    async def response(self, flow: Any) -> None:
        """Decide on the body of the response. If a verdict closes the stream, the flow is killed."""
        passes = await self._decide(flow.response, "server", None)
        if self._left or self._closed:
            self.close(flow)
        elif not passes:
            flow.response.raw_content = b""
            _set_length(flow.response, 0)

    def close(self, flow: Any) -> None:
        """End the flow; the client gets no response, or not all of it."""
        self._record(lambda recording, t: recording.end(t, "eof", "abort"))
        if flow.killable:
            flow.kill()

    def open_socket(self, wake: Callable[[], None]) -> GatedSocket:
        """Return the `GatedSocket` of a flow that has become a WebSocket; `wake` is passed to it."""
        self.socket = GatedSocket(self._gate, self._turns, self._say, wake)
        return self.socket

    def left(self) -> None:
        """Stop holding a body, because the client has disconnected."""
        if self._gated_channel:
            self._left = True
            self._gated_channel.abandon()

    def abandon(self) -> None:
        """Record that held frames are not forwarded."""
        self.left()
        if self.events:
            self.events.abandon()
        if self.socket:
            self.socket.abandon()

    async def _decide(self, message: Any, sender: str, reply: Callable[[Reply | Refuse], Any] | None) -> bool:
        """Decide on a whole body, apply the verdict, and put the result into the message.

        Returns False if nothing of the body is forwarded.
        """
        headers = list(message.headers.fields)
        body = CollectedBody(message.raw_content or b"", every(headers, b"content-encoding"))
        flow, self._plain = self._turns.flow, body.plain
        t = flow.origin.now()
        facts = self._gate.facts(sender, "body", self._session)
        verdict = body.decide(self._gate, facts, t)
        if isinstance(verdict, Pass) and verdict.cancels and sender == "client":
            by = await cancel(flow.origin.held, self._session, verdict.cancels)
            verdict = Drop(by) if by else verdict
        if isinstance(verdict, Pass):
            if body.damaged:
                self._say(_undecidable(sender))
            self.let_pass(undecided=verdict.undecided or body.damaged)(body.raw)
            return True
        begin, self._begin = self._begin, None
        self._turns.finish()  # so that this channel is recorded next
        sent = verdict.frames if isinstance(verdict, Send) else () if isinstance(verdict, Drop) else None
        changes = None
        if sent is not None and (sent or sender == "server"):
            size = b"%d" % (len(body.forwarded(sent)) if sent else 0)
            if first(headers, b"content-length") not in (None, size):
                changes = {"sent": {"headers": [["content-length", size.decode()]]}, "by": verdict.by}
        if begin:
            begin(changes)
        channel = flow.request if sender == "client" else flow.response
        return channel is None or await self._wait(message, body, channel, facts, verdict, reply, t)

    async def _wait(
        self,
        message: Any,
        body: CollectedBody,
        channel: Body,
        facts: Facts,
        verdict: "Verdict",
        reply: Callable[[Reply | Refuse], Any] | None,
        t: int,
    ) -> bool:
        out: list[bytes] = []

        async def write(forwarded: bytes) -> None:
            out.append(forwarded)

        flow = self._turns.flow
        gated_channel = body.gated_channel(
            self._gate, facts, channel, flow.recording, write, self._say, reply=reply, refuse=reply
        )
        self._gated_channel, waiting = gated_channel, (self._session, gated_channel)
        if facts.sender == "client":
            flow.origin.held.append(waiting)
        try:
            await body.carry_out(gated_channel, verdict, t)
        finally:
            self._gated_channel = None
            if waiting in flow.origin.held:
                flow.origin.held.remove(waiting)
        self._closed = gated_channel.closed
        if out:
            message.raw_content = out[0]
            _set_length(message, len(out[0]))
        return bool(out)


def _undecidable(sender: str) -> str:
    """Return the notice for the user about a content coding that cannot be decoded."""
    what = "request" if sender == "client" else "response"
    return f"a {what} has a content coding that cannot be decoded; such {what}s pass undecided"


def _set_length(message: Any, size: int) -> None:
    """Correct the length of a body, if the head has one."""
    if "content-length" in message.headers:
        message.headers["content-length"] = str(size)


def _without_length(message: Any) -> Fields:
    """Remove the length from a head, because the body may change. Returns `sent` and `by`."""
    del message.headers["content-length"]
    sent: list[Iterable[str | None]] = [["content-length", None]]
    if message.http_version.startswith("HTTP/1"):
        message.headers["transfer-encoding"] = "chunked"
    return {"sent": {"headers": sent}, "by": "gate"}
