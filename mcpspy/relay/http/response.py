"""The response of one exchange, streamed to the client.

Its body is forwarded chunk by chunk, and each chunk is recorded after that. Two kinds of body pass a gate of the proxy
itself: the event stream of legacy HTTP+SSE and, if the user wants it, OAuth metadata. If the upstream breaks off, the
client must not take the response for complete (H-05). So the client does not get the end that the framing requires.
"""

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http.gates import oauth
from mcpspy.relay.http.heads import Head, every, first, own_origin
from mcpspy.relay.http.http1 import arrived, unread
from mcpspy.relay.http.known_heads import judged_response
from mcpspy.relay.http.route import RequestContext
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
        self._metadata: oauth.MetadataGate | None = None
        self._rewritten = False  # whether a gate has changed it

    async def forward(self) -> None:
        """Forward head and body, and close the channel of the response unless the upstream broke off."""
        exchange = self._exchange
        if self._passes_whole():
            body = arrived(self._payload)
            passed = chunk(body, last=True) if self._chunked else body
            await exchange.request.writer.write(self._known.head.encode() + passed)
            exchange.recorded.whole_response(self._t, self._known.opening, body)
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
        from mcpspy.gate.gate import Gate
        from mcpspy.relay.http.gated_body import FirstEvent, HeldDocument
        from mcpspy.relay.http.gates.endpoint import EndpointGate

        encoding, say = every(self._headers, b"content-encoding"), exchange.relay.say
        if legacy:
            self._held = FirstEvent(Gate([EndpointGate(exchange.endpoint)], say), encoding, say)
            return
        rewrite = exchange.relay.rewrite_oauth and exchange.request.version >= HttpVersion11
        self._metadata = oauth.MetadataGate(exchange.mapped if rewrite else None)
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
            self._diagnose(oauth.named_resource(self._headers))
            return
        for index, (name, value) in enumerate(head.headers):
            if name.lower() == b"www-authenticate":
                rewritten = oauth.rewritten_challenge(value, self._exchange.mapped)
                if rewritten is not None:
                    head.replace(index, rewritten, "oauth")
                    self._remember_metadata(oauth.named_path([(name, rewritten)], self._exchange.request.raw_path))
                    if first(self._exchange.headers, b"authorization") is not None:
                        self._say_once(oauth.refusal(self._exchange.route.upstream.authority))

    def _remember_metadata(self, path: str | None) -> None:
        """Remember a metadata path that only the challenge names, because it is not the well-known one."""
        known = self._exchange.route.metadata
        if path is not None and len(known) < _LOCATIONS:
            known.add(path)

    def _diagnose(self, named: str | None) -> None:
        """Tell the user if clients will refuse this resource, because it has another origin than the proxy."""
        if named is not None:
            own = own_origin(self._exchange.headers)
            self._say_once(oauth.diagnosis(named, own, self._exchange.route.upstream.authority))

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
