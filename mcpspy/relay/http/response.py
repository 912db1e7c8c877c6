"""The response of one exchange, streamed to the client, with or without a gate.

Its body is forwarded chunk by chunk, and each chunk is recorded after that. Two kinds of body pass a gate of the proxy
itself: the event stream of legacy HTTP+SSE and, if the user wants it, OAuth metadata. If the upstream breaks off, the
client must not take the response for complete (H-05). So the client does not get the end that the framing requires.

With a gate, JSON is decided on as a whole, an event stream event by event. The rules:

- The head of a JSON body waits for the verdict, so that it changes only if the body does.
- A compressed event stream is decoded and encoded again, with a flush after each write, whatever the verdicts are: when
  its first bytes are forwarded, it is not known yet what will be changed.
- Held frames keep the stream to the client open after the upstream has ended. If the upstream broke off, they are all
  forwarded at once.
- A changed body is sent in chunks. A client of HTTP/1.0, which does not support chunks, gets it without a length, and
  the connection is closed after it.
- A body that the gate cannot decide on is forwarded as it arrives: one that is too long or incomplete, or has an
  unknown content coding. The user gets one notice about it.

A gate that comes into force applies from the next response on. An open event stream switches to the gate between two
events, unless it has a content coding or a length, because the client could not read the rest of it. An open HTTP+SSE
stream also switches when the gate answers a request on it.
"""

import asyncio
import functools
import socket
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from mcpspy.gate.gate import LIMIT, PASS, UNDECIDED, Facts, Gate, Pass, Reply
from mcpspy.gate.order import FRAMES
from mcpspy.network.access import REFUSES_CERTIFICATE, certificate_hint
from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http import own_gates
from mcpspy.relay.http.gated_body import Encoder, EventBlocks, FirstEvent, HeldDocument, encoder
from mcpspy.relay.http.gated_channel import CollectedBody, GatedChannel, announces_too_much, decodable
from mcpspy.relay.http.heads import Head, every, first, is_json, own_origin
from mcpspy.relay.http.http1 import arrived, unread
from mcpspy.relay.http.known_heads import judged_response
from mcpspy.relay.http.own_gates import EndpointGate
from mcpspy.relay.http.route import AnswerStream, RequestContext, say_once
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.lines import PIECE

if TYPE_CHECKING:
    from mcpspy.relay.http.gated_body import HeldBody

BROKEN = (aiohttp.ClientError, HttpProcessingError, OSError)
"""The exceptions that are raised if an upstream cannot be reached or breaks off."""

_PIECE = 65536  # the most bytes recorded at once; then other exchanges run
_CODED_PIECE = 16384  # the same for a compressed body, which decodes to more bytes
_LOCATIONS = 64  # the most locations of OAuth metadata that are remembered
_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # makes `close` send RST


class Response:
    """The upstream's response to a request."""

    def __init__(
        self,
        exchange: RequestContext,
        message: RawResponseMessage,
        payload: StreamReader,
        protocol: ResponseHandler,
    ) -> None:
        request = exchange.request
        self._exchange = exchange
        self._message = message
        self._payload = payload
        self._protocol = protocol
        self._t = exchange.route.now()
        self._empty = request.method == "HEAD" or message.code in (204, 304)
        self._chunked = chunked = message.chunked and request.version >= HttpVersion11
        host, address = exchange.known.host, exchange.route.address
        self._known = exchange.route.responses.find(
            message.raw_headers,
            (message.code, message.reason, host, chunked),
            lambda: judged_response(message, host, address, chunked),
        )
        self._headers = self._known.headers
        length = not message.chunked and self._known.length
        self._delimited = self._empty or self._chunked or length
        """Whether the client can tell that the body is complete."""
        self._events = not self._empty and self._known.events
        self._held: HeldBody | None = None
        self._metadata: own_gates.MetadataGate | None = None
        self._rewritten = False  # whether a gate has changed it

    async def forward(self) -> None:
        """Forward head and body, and close the channel of the response unless the upstream broke off."""
        exchange = self._exchange
        if self._passes_whole():
            body = arrived(self._payload)
            passed = chunk(body, last=True) if self._chunked else body
            await exchange.request.writer.write(self._known.head.encode() + passed)
            exchange.recorded.whole_response(self._t, self._known.opening, body)
            self._explain(body)
            return
        head = self._known.head.copy()
        if self._message.code == 401:
            self._challenge(head)
        else:
            self._choose_gate(head)
        exchange.keep_alive = exchange.keep_alive and self._delimited
        exchange.say_whether_we_close(head)
        if await self._stream(head):
            self._channel().end(exchange.route.now(), "eof")
        else:
            self._break_off()
        if self._metadata and not self._rewritten:
            self._diagnose(self._metadata.resource)

    def _passes_whole(self) -> bool:
        """Return whether the response is complete, is not changed, and is recorded as at most one frame."""
        exchange, payload = self._exchange, self._payload
        gate = exchange.route.gate
        return (
            payload.is_eof()
            and payload.total_bytes <= PIECE
            and payload.exception() is None
            and self._delimited
            and not self._empty
            and self._message.code != 401
            and self._known.opening.plain
            and not exchange.known.opening.secret
            and exchange.keep_alive
            and exchange.request.version >= HttpVersion11
            and not exchange.metadata
            and not (gate and gate.look(self._t))
        )

    def _choose_gate(self, head: Head) -> None:
        exchange = self._exchange
        legacy = exchange.known.legacy and self._events and first(self._headers, b"content-length") is None
        if not legacy and not (exchange.metadata and self._message.code == 200 and not self._empty):
            return
        encoding, say = every(self._headers, b"content-encoding"), exchange.relay.say
        if legacy:
            self._held = FirstEvent(Gate([EndpointGate(exchange.endpoint)], say), encoding, say)
            return
        rewrite = exchange.relay.rewrite_oauth and exchange.request.version >= HttpVersion11
        self._metadata = own_gates.MetadataGate(exchange.mapped if rewrite else None)
        self._held = HeldDocument(Gate([self._metadata], say), encoding, hold=rewrite)
        if rewrite:
            head.chunk("oauth")
            self._chunked = self._delimited = True

    async def _stream(self, head: Head) -> bool:
        """Forward head and body, together if the body has arrived; return False if the upstream broke off."""
        write = self._exchange.request.writer.write
        start = head.encode()
        if self._empty or self._held or not self._payload.is_eof():
            await write(start)
            start = b""
            self._open(head)
        ended, broken = self._empty, False
        while not ended and not broken:
            came, t, ended, broken = await self._read()
            passed = start + self._passed(came, t, ended=ended, broken=broken)
            try:
                if passed:
                    await write(passed)
            finally:  # a client that leaves during the write may have received all of it
                if start:
                    self._open(head)
                    start = b""
                await self._record(came, t)
        return not broken

    async def _read(self) -> tuple[bytes, int, bool, bool]:
        """Read the next part of the body.

        Returns the bytes, when they were read, whether the body ended, and whether the upstream broke off.
        """
        broken = False
        try:
            came = await self._payload.readany()
            # aiohttp reports this reset as the end of the body.
            broken = not self._delimited and isinstance(self._protocol.exception(), aiohttp.ClientOSError)
        except BROKEN:
            came, broken = unread(self._payload), True
        return came, self._exchange.route.now(), self._payload.at_eof() and not broken, broken

    def _passed(self, came: bytes, t: int, *, ended: bool, broken: bool) -> bytes:
        """Return the bytes to forward for a received chunk."""
        passed = came
        if self._held:
            passed = self._held.feed(came, t)
            if ended or broken:
                passed += self._held.end(t)
        return chunk(passed, last=ended) if self._chunked else passed

    async def _record(self, came: bytes, t: int) -> None:
        """Record what was forwarded of a chunk, after the proxy's own gate if there is one."""
        channel = self._channel()
        self._explain(came)
        if not self._held:
            await record(channel, came, t)
            return
        for entry in self._held.recorded():
            if entry.decoded:
                channel.decoded()
            if entry.whole:
                self._rewritten = True
                channel.frame(entry.raw, t, gated=entry.gated)
            else:
                await record(channel, entry.raw, t)

    def _open(self, head: Head) -> None:
        message = self._message
        self._exchange.open_response("server", self._t, self._headers, message.code, message.reason, head)

    def _channel(self) -> Body:
        """Return the response's channel in the capture, which must be open."""
        channel = self._exchange.recorded.response
        assert channel
        return channel

    def _break_off(self) -> None:
        """Close without the length or the last chunk that the client expects; if it expects neither, reset."""
        self._exchange.keep_alive = False
        transport = self._exchange.request.transport
        if transport is None:
            return
        if not self._delimited:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        transport.close()

    def _challenge(self, head: Head) -> None:
        """Process the OAuth challenge of a 401 response."""
        if not self._exchange.relay.rewrite_oauth:
            self._diagnose(own_gates.named_resource(self._headers))
            return
        for index, (name, value) in enumerate(head.headers):
            if name.lower() == b"www-authenticate":
                rewritten = own_gates.rewritten_challenge(value, self._exchange.mapped)
                if rewritten is not None:
                    head.replace(index, rewritten, "oauth")
                    self._remember_metadata(own_gates.named_path([(name, rewritten)], self._exchange.request.raw_path))
                    if first(self._exchange.headers, b"authorization") is not None:
                        self._say_once(own_gates.oauth_refusal(self._exchange.route.upstream.authority))

    def _remember_metadata(self, path: str | None) -> None:
        """Remember a metadata path that only the challenge names, because it is not the well-known one."""
        known = self._exchange.route.metadata
        if path is not None and len(known) < _LOCATIONS:
            known.add(path)

    def _diagnose(self, named: str | None) -> None:
        """Tell the user if clients will refuse this resource, because it has another origin than the proxy."""
        if named is not None:
            own = own_origin(self._exchange.headers)
            self._say_once(own_gates.oauth_diagnosis(named, own, self._exchange.route.upstream.authority))

    def _explain(self, came: bytes) -> None:
        """Tell the user if the server answers with a page because it requires a client certificate."""
        dialer = self._exchange.route.upstream.dialer
        if self._message.code in REFUSES_CERTIFICATE and dialer.tls and (hint := certificate_hint(came, dialer.cert)):
            say_once(self._exchange, f"{dialer.origin} {hint}")

    def _say_once(self, sentence: str | None) -> None:
        if sentence and not self._exchange.route.diagnosed:
            self._exchange.route.diagnosed = True
            self._exchange.relay.say(sentence)


async def record(channel: Body, passed: bytes, t: int) -> None:
    """Record what has been forwarded; other exchanges run in between."""
    size = _CODED_PIECE if channel.coded else _PIECE
    channel.feed(passed[:size] if len(passed) > size else passed, t)
    for start in range(size, len(passed), size):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            channel.feed(passed[start:], t)
            raise
        channel.feed(passed[start : start + size], t)


def chunk(payload: bytes, *, last: bool) -> bytes:
    """Return a chunk of a chunked body, with `last` also the end of the body (RFC 9112, 7.1)."""
    framed = b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""
    return framed + b"0\r\n\r\n" if last else framed


_UNDECIDED = "a response has a content coding that cannot be decoded; such responses pass undecided"


class _UngatedEvents:
    """An open event stream of HTTP+SSE that switches to the gate when a request is to be answered on it."""

    def __init__(self, channel: Body, begin: Callable[[], GatedChannel]) -> None:
        """`channel` is the stream's channel in the capture; `begin` returns the `GatedChannel` to use."""
        self._channel = channel
        self._begin = begin
        self._replies: list[Reply] = []
        self.busy = False
        """Whether bytes are being forwarded that are not recorded yet."""
        self.gated: GatedChannel | None = None
        """The `GatedChannel`, once the stream has switched to the gate."""

    def add(self, reply: Reply) -> None:
        """Forward a frame of our own as soon as no event is incomplete."""
        if self.gated:
            self.gated.add(reply)
        elif len(self._replies) < FRAMES:
            self._replies.append(reply)
            self.go_over()

    def go_over(self, *, wanted: bool = False) -> GatedChannel | None:
        """Switch to the gate between two events, if that is `wanted` or a frame of our own is queued.

        Returns the `GatedChannel` once the stream has switched, else None.
        """
        if not self.gated and (wanted or self._replies) and not self.busy and self._channel.between:
            self.gated = self._begin()
            for reply in self._replies:
                self.gated.add(reply)
        return self.gated


class GatedResponse(Response):
    """The upstream's response, passed through the gate."""

    async def _stream(self, head: Head) -> bool:
        gate = self._exchange.route.gate
        encoding = every(self._headers, b"content-encoding")
        json = is_json(self._headers)
        if gate is None or self._empty or self._metadata or not (json or self._events):
            return await super()._stream(head)
        in_force, plain = gate.look(self._t), Decoder(encoding).plain
        if not in_force:
            open_end = self._events and plain and (self._chunked or not self._delimited) and not self._payload.is_eof()
            return await (self._stream_until_gated(head, gate) if open_end else super()._stream(head))
        if not decodable(encoding):
            say_once(self._exchange, _UNDECIDED)
            return await super()._stream(head)
        return await (self._stream_events if self._events else self._stream_json)(head, gate, encoding)

    async def _stream_until_gated(self, head: Head, gate: LiveGate) -> bool:
        """Forward bytes at once, as long as no gate is in force."""
        write = self._exchange.request.writer.write
        await write(head.encode())
        self._open(head)
        ungated = _UngatedEvents(self._channel(), functools.partial(self._begin_on_events, gate, None))
        ended = broken = False
        try:
            while not ended and not broken:
                self._answer_on(ungated)
                read = came, t, ended, broken = await self._read()
                wanted = gate.look(t) and (self._held is None or self._held.open)
                if gated_channel := ungated.go_over(wanted=wanted):
                    return await self._decide_on_events(gated_channel, "", None, read)
                ungated.busy = True
                passed = self._passed(came, t, ended=ended, broken=broken)
                try:
                    if passed:
                        await write(passed)
                finally:
                    await self._record(came, t)
                ungated.busy = False
                ungated.go_over()
        finally:
            self._answer_elsewhere(ungated)
            if ungated.gated:
                ungated.gated.abandon()
        return not broken

    async def _stream_events(self, head: Head, gate: LiveGate, encoding: str) -> bool:
        if self._delimited and not self._chunked:
            self._change_length(head, "gate")
        await self._exchange.request.writer.write(head.encode())
        self._open(head)
        coder = None if Decoder(encoding).plain else encoder(encoding)
        return await self._decide_on_events(self._begin_on_events(gate, coder), encoding, coder)

    def _begin_on_events(self, gate: LiveGate, coder: Encoder | None) -> GatedChannel:
        """Return the `GatedChannel` for the events that follow."""
        self._channel().decoded()
        facts = gate.facts("server", "sse", self._exchange.session)
        return self._gated_channel(gate, facts, self._endpoint_gate(facts), coder)

    def _answer_on(self, stream: AnswerStream) -> None:
        """Register this stream for answers to requests of its session, if it is an HTTP+SSE stream."""
        if self._exchange.legacy_session:
            self._exchange.route.streams[self._exchange.legacy_session] = stream

    def _answer_elsewhere(self, stream: AnswerStream) -> None:
        """Unregister this stream: it gets no more answers."""
        streams = self._exchange.route.streams
        if streams.get(self._exchange.session) is stream:
            del streams[self._exchange.session]

    async def _decide_on_events(
        self,
        gated_channel: GatedChannel,
        encoding: str,
        coder: Encoder | None,
        read: tuple[bytes, int, bool, bool] | None = None,
    ) -> bool:
        """Forward events according to the gate; `read` is a result of `_read` that is not processed yet."""
        decoder, blocks = Decoder(encoding), EventBlocks(LIMIT)
        ended = broken = False
        try:
            while not ended and not broken and not gated_channel.closed:
                self._answer_on(gated_channel)
                came, t, ended, broken = read or await self._read()
                read = None
                for part in decoder.feed(came):
                    await gated_channel.feed(blocks.feed(part), t)
                    await asyncio.sleep(0)  # a small chunk may decode to many parts; other tasks run in between
                broken = broken or decoder.fault is not None
                if broken:
                    await gated_channel.end()
            await gated_channel.feed(blocks.end(), t)
            await gated_channel.drained()
            if broken or gated_channel.closed:
                return False
            rest = coder.finish() if coder else b""
            await self._exchange.request.writer.write(chunk(rest, last=True) if self._chunked else rest)
        finally:
            gated_channel.abandon()
            self._answer_elsewhere(gated_channel)
        return True

    def _endpoint_gate(self, facts: Facts) -> Gate | None:
        """Return the proxy's own gate for a stream that may be HTTP+SSE; it sets the session of `facts`."""
        exchange = self._exchange
        if self._held is None or self._held.open:
            self._held = None
            return None
        self._held = None

        def endpoint(reference: str) -> str | None:
            mapped = exchange.endpoint(reference)
            facts.session = exchange.session
            return mapped

        return Gate([EndpointGate(endpoint)], exchange.relay.say)

    async def _stream_json(self, head: Head, gate: LiveGate, encoding: str) -> bool:
        """Collect the body, then decide on it and forward it."""
        parts, size, ended, broken, t = [], 0, False, False, self._t
        if announces_too_much(self._headers):
            return await self._go_on(head, b"", t, ended=False, broken=False, undecided=True)
        while not ended and not broken and size <= LIMIT:
            came, t, ended, broken = await self._read()
            parts.append(came)
            size += len(came)
        body = CollectedBody(b"".join(parts), encoding)
        if ended and body.damaged:
            say_once(self._exchange, _UNDECIDED)
        facts = gate.facts("server", "body", self._exchange.session)
        verdict = body.decide(gate, facts, t) if ended else UNDECIDED if size > LIMIT else PASS
        if isinstance(verdict, Pass):
            return await self._go_on(head, body.raw, t, ended=ended, broken=broken, undecided=verdict.undecided)
        if not self._chunked:
            self._change_length(head, verdict.by)
        writer: Any = self._exchange.request.writer
        await writer.write(head.encode())
        self._open(head)

        async def write(forwarded: bytes) -> None:
            await writer.write(chunk(forwarded, last=False) if self._chunked else forwarded, drain=False)

        gated_channel = body.gated_channel(
            gate,
            facts,
            self._channel(),
            self._exchange.route.recording,
            write,
            functools.partial(say_once, self._exchange),
            drain=writer.drain,
            close=self._break_off,
        )
        await body.carry_out(gated_channel, verdict, t)
        if not gated_channel.closed and self._chunked:
            await writer.write(chunk(b"", last=True))
        return not gated_channel.closed

    def _change_length(self, head: Head, by: str) -> None:
        """Change a head so that it is valid for a body of unknown length."""
        exchange = self._exchange
        if exchange.request.version >= HttpVersion11:
            head.chunk(by)
            self._chunked = self._delimited = True
        elif self._delimited:
            self._delimited = exchange.keep_alive = False
            head.drop(b"content-length", by)
            head.headers = [field for field in head.headers if field[0].lower() != b"connection"]
            exchange.say_whether_we_close(head)

    async def _go_on(self, head: Head, body: bytes, t: int, *, ended: bool, broken: bool, undecided: bool) -> bool:
        """Forward a body unchanged; `body` is its beginning, which was read already."""
        write = self._exchange.request.writer.write
        try:
            await write(head.encode() + (chunk(body, last=ended) if self._chunked else body))
        finally:
            self._open(head)
            if undecided:
                self._channel().undecided()
            await record(self._channel(), body, t)
        while not ended and not broken:
            came, t, ended, broken = await self._read()
            try:
                await write(chunk(came, last=ended) if self._chunked else came)
            finally:
                await record(self._channel(), came, t)
        return not broken

    def _gated_channel(self, gate: LiveGate, facts: Facts, own: Gate | None, coder: Encoder | None) -> GatedChannel:
        """Return the channel that applies the verdicts on events.

        `own` is a gate of the proxy itself, which decides before `gate`.
        """
        exchange = self._exchange

        writer: Any = exchange.request.writer

        async def write(plain: bytes) -> None:
            out = coder.encode(plain) if coder else plain
            await writer.write(chunk(out, last=False) if self._chunked else out, drain=False)

        return GatedChannel(
            gate,
            facts,
            self._channel(),
            exchange.route.recording,
            write,
            functools.partial(say_once, exchange),
            drain=writer.drain,
            first=own,
            close=self._break_off,
        )
