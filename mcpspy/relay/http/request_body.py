"""The body of one request on its way to the upstream.

A body that has arrived with its head goes on together with it, and so does one that a gate has decided on. Any other is
uploaded chunk by chunk by a task of its own, since an answer may come before it has ended. The beginning of it is kept:
an error that we answer with has the id of the request.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_writer import StreamWriter

from mcpspy.recording.http_body import Body
from mcpspy.relay.http.heads import Head, first, is_json
from mcpspy.relay.http.http1 import arrived, is_chunked, unread
from mcpspy.relay.http.response import chunk, record
from mcpspy.relay.http.route import RequestContext
from mcpspy.wire.lines import PIECE

if TYPE_CHECKING:
    from mcpspy.relay.live_gate import LiveGate

_KEPT = 1 << 18  # bytes of a request that are kept
_PATIENCE = 1.0  # seconds in which a request is awaited that cannot be forwarded


class RequestBody:
    """What the client sends after the head of an exchange's request."""

    def __init__(self, exchange: RequestContext) -> None:
        self._exchange = exchange
        self._request = exchange.request
        self._chunked = is_chunked(exchange.request)
        self._t = exchange.route.now()
        self.whole: bytes | None = None
        """All of it, if it had arrived with its head or was collected."""
        self.begun = b""
        """The beginning of what has arrived of it."""
        self.fault: str | None = None
        """What is wrong with its framing."""
        self._collected = b""  # a gate has read it, and it is too long to decide on
        self._gated = False  # a gate has decided on it, and it is recorded
        self._undecided = False  # it is too long for a gate

    async def take(self) -> None:
        """Take the body if all of it has arrived."""
        if self._request.content.is_eof():
            self.whole = self.begun = arrived(self._request.content)

    async def pass_gate(self, head: Head, gate: "LiveGate") -> bool:
        """Let the gate decide on the body; False where the request goes no further."""
        from mcpspy.relay.http.gated_request import collect, decide

        if self._request.method != "POST" or not is_json(self._exchange.headers):
            return True
        if self.whole is None:
            self._collected, whole, self._undecided = await collect(self._request, head)
            if not whole:
                return True
            self.whole, self.begun, self._collected = self._collected, self._collected[:_KEPT], b""
        if not self.whole:
            return True
        begin = self._exchange.open_request
        outcome = await decide(
            self._exchange, gate, self.whole, head, chunked=self._chunked, begin=lambda: begin(head.fields())
        )
        if isinstance(outcome, bytes):
            self.whole, self._gated = outcome, True
            self._chunked = first(head.headers, b"transfer-encoding") is not None
        elif outcome is not None:
            self._undecided = outcome.undecided
        return outcome is not None

    async def send(self, head: Head, protocol: ResponseHandler, connection: Connection) -> "asyncio.Task[None] | None":
        """Send the request: as a whole if it has arrived; else its body from a task of its own, which is returned."""
        writer = StreamWriter(protocol, asyncio.get_running_loop())
        if self.whole is None:
            await writer.write(head.encode(), drain=False)
            channel = self._exchange.open_request(head.fields())
            if self._undecided:
                channel.undecided()
            return asyncio.create_task(self._upload(writer, connection, channel))
        body = chunk(self.whole, last=True) if self._chunked else self.whole
        await writer.write(head.encode() + body, drain=False)  # a server that answers without reading is heard
        known = self._exchange.known
        if head is known.head and known.opening.plain and len(body) <= PIECE and not self._exchange.recorded.request:
            self._exchange.record_whole(self.whole)
        else:
            await self.record_whole(self._exchange.open_request(head.fields()))
        return None

    async def record_whole(self, channel: Body) -> None:
        """Record a body that has arrived, unless a gate has done that."""
        if self._undecided:
            channel.undecided()
        if self.whole and not self._gated:
            await record(channel, self.whole, self._t)
        channel.end(self._t, "eof")

    async def await_rest(self, upload: "asyncio.Task[None] | None") -> None:
        """Await a body that cannot be forwarded: clients send it after its head, and the error shall have its id."""
        if self.whole is not None or not self.asks_json or first(self._exchange.headers, b"expect"):
            return
        with contextlib.suppress(TimeoutError, web.RequestPayloadError, ConnectionError):
            async with asyncio.timeout(_PATIENCE):
                if upload:
                    await asyncio.wait([upload])
                    return
                content = self._request.content
                while not content.at_eof() and len(self.begun) < _KEPT:
                    self._keep(await content.readany())
                if content.at_eof():
                    self.whole = self.begun

    @property
    def asks_json(self) -> bool:
        """Whether the client asks by JSON."""
        return self._exchange.known.json

    async def _upload(self, writer: StreamWriter, connection: Connection, channel: Body) -> None:
        """Forward the body as it comes."""
        content, now = self._request.content, self._exchange.route.now
        try:
            while self._collected or not content.at_eof():
                came, self._collected = self._collected or await content.readany(), b""
                t = now()
                self._keep(came)
                last = content.at_eof()
                try:
                    await writer.write(chunk(came, last=last) if self._chunked else came)
                except ConnectionError:  # the upstream takes no more; it may still have answered
                    await record(channel, came, t)
                    channel.end(now(), "abort")
                    return
                await record(channel, came, t)
            channel.end(now(), "eof")
        except (web.RequestPayloadError, ConnectionError) as error:  # the client broke off
            self.fault = str(error)
            await record(channel, unread(content), now())
            channel.end(now(), "reset")
            connection.close()

    def _keep(self, came: bytes) -> None:
        if len(self.begun) < _KEPT:
            self.begun += came
