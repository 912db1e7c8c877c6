"""Send the body of one request to the upstream.

A body that has arrived together with its head is forwarded together with it, and so is a body that a gate has decided
on. Any other body is uploaded chunk by chunk in a task of its own, because the response may come before the body ends.
The beginning of the body is kept, so that an error that we answer with has the id of the request.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_writer import StreamWriter

from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http.heads import Head, first, is_json
from mcpspy.relay.http.http1 import arrived, is_chunked, unread
from mcpspy.relay.http.response import chunk, record
from mcpspy.relay.http.route import RequestContext
from mcpspy.wire.lines import PIECE

if TYPE_CHECKING:
    from mcpspy.relay.live_gate import LiveGate

_KEPT = 1 << 18  # bytes of a request that are kept
_PATIENCE = 1.0  # seconds to wait for the rest of a request that cannot be forwarded


class RequestBody:
    """The body of an exchange's request."""

    def __init__(self, exchange: RequestContext) -> None:
        self._exchange = exchange
        self._request = exchange.request
        self._chunked = is_chunked(exchange.request)
        self._t = exchange.route.now()
        self.whole: bytes | None = None
        """The whole body, if it arrived with its head or was collected; else None."""
        self.begun = b""
        """The beginning of the body, as far as it has arrived."""
        self.fault: str | None = None
        """The fault of its framing."""
        self._collected = b""  # the part that was read for a gate before the body became too long
        self._gated = False  # whether a gate has decided on it; then it is recorded already
        self._undecided = False  # whether it is too long for a gate

    async def take(self) -> None:
        """Read the body if all of it has arrived."""
        if self._request.content.is_eof():
            self.whole = self.begun = arrived(self._request.content)

    async def pass_gate(self, head: Head, gate: "LiveGate") -> bool:
        """Let the gate decide on the body; return False if the request is not forwarded."""
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
        """Send the request: as a whole if its body has arrived.

        Else a task uploads the body; the task is returned.
        """
        writer = StreamWriter(protocol, asyncio.get_running_loop())
        if self.whole is None:
            await writer.write(head.encode(), drain=False)
            channel = self._exchange.open_request(head.fields())
            if self._undecided:
                channel.undecided()
            return asyncio.create_task(self._upload(writer, connection, channel))
        body = chunk(self.whole, last=True) if self._chunked else self.whole
        await writer.write(head.encode() + body, drain=False)  # a server may answer without reading the body
        known = self._exchange.known
        if head is known.head and known.opening.plain and len(body) <= PIECE and not self._exchange.recorded.request:
            self._exchange.record_whole(self.whole)
        else:
            await self.record_whole(self._exchange.open_request(head.fields()))
        return None

    async def record_whole(self, channel: Body) -> None:
        """Record a body that has arrived, unless it was recorded for a gate."""
        if self._undecided:
            channel.undecided()
        if self.whole and not self._gated:
            await record(channel, self.whole, self._t)
        channel.end(self._t, "eof")

    async def await_rest(self, upload: "asyncio.Task[None] | None") -> None:
        """Wait for a body that cannot be forwarded: it has the request's id, which the error response needs."""
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
        """Whether the request's body is JSON."""
        return self._exchange.known.json

    async def _upload(self, writer: StreamWriter, connection: Connection, channel: Body) -> None:
        """Forward the body as it arrives."""
        content, now = self._request.content, self._exchange.route.now
        try:
            while self._collected or not content.at_eof():
                came, self._collected = self._collected or await content.readany(), b""
                t = now()
                self._keep(came)
                last, refused = content.at_eof(), False
                try:
                    await writer.write(chunk(came, last=last) if self._chunked else came)
                except ConnectionError:  # the upstream reads no more; it may still have answered
                    refused = True
                finally:
                    await record(channel, came, t)
                if refused:
                    channel.end(now(), "abort")
                    return
            channel.end(now(), "eof")
        except (web.RequestPayloadError, ConnectionError) as error:  # the client broke off
            self.fault = str(error)
            await record(channel, unread(content), now())
            channel.end(now(), "reset")
            connection.close()

    def _keep(self, came: bytes) -> None:
        if len(self.begun) < _KEPT:
            self.begun += came
