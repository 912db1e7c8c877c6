"""A response of a relay with a gate: JSON is decided on as a whole, an event stream event by event.

The rules:

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
from collections.abc import Callable
from typing import Any

from aiohttp.http import HttpVersion11

from mcpspy.gate.facts import Facts
from mcpspy.gate.gate import LIMIT, Gate
from mcpspy.gate.order import FRAMES
from mcpspy.gate.verdicts import PASS, UNDECIDED, Pass, Reply
from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http.collected_body import CollectedBody, announces_too_much, decodable
from mcpspy.relay.http.encoders import Encoder, encoder
from mcpspy.relay.http.gated_body import EventBlocks
from mcpspy.relay.http.gated_channel import GatedChannel
from mcpspy.relay.http.gates.endpoint import EndpointGate
from mcpspy.relay.http.heads import Head, every, is_json
from mcpspy.relay.http.response import Response, chunk, record
from mcpspy.relay.http.route import AnswerStream, say_once
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.content_coding import Decoder

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
