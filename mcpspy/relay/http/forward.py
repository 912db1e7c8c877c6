"""One HTTP request: forward it to its upstream, forward the response with a `Response`, and record both.

Heads are forwarded unchanged except for what `heads` has to change. Each chunk of a body is forwarded as soon as it is
read, and recorded after that. The two directions do not wait for each other: a response may begin before the request's
body ends, informational responses are forwarded when they arrive, and streams have no time limit. When one side
disconnects, the other side is disconnected at once (H-05), because in 2026-07-28 a client cancels a call by
disconnecting.

Heads are written here and in `response`, so that aiohttp adds nothing to them.
"""

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from mcpspy.recording.http_exchange import Body, HttpExchange
from mcpspy.relay.http.gates import oauth
from mcpspy.relay.http.heads import (
    UPGRADE,
    Head,
    RawHeaders,
    mapped_reference,
    recorded,
    response_head,
)
from mcpspy.relay.http.known_heads import judged_request, recorded_request
from mcpspy.relay.http.local_replies import answer, reason
from mcpspy.relay.http.request_body import RequestBody
from mcpspy.relay.http.response import BROKEN, Response
from mcpspy.relay.http.route import HttpRoute, LatestRequest, RelayContext
from mcpspy.relay.http.tunnel import Pump, pump, tunnel
from mcpspy.relay.http.upstream import protocol_of
from mcpspy.wire.http_head import LEGACY_SESSION, query

_SAFE = ("GET", "HEAD", "OPTIONS")  # may be sent a second time (RFC 9110, 9.2.1)
_INFORMATIONAL = 1000  # the most informational responses before the final one; more are refused as endless


CONNECT = "CONNECT"
"""A method that is refused, and whose connection is closed: aiohttp's parser reads no body of it, whatever its head
announces (RFC 9112, 6.3). So what follows could be its body, and would be taken for the next request."""


class _Written(web.StreamResponse):
    """A response for aiohttp that has been written already."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002
        return None


class ForwardedRequest:
    """A request and its response."""

    def __init__(self, relay: RelayContext, route: HttpRoute, request: web.BaseRequest) -> None:
        self.relay = relay
        self.route = route
        self.request = request
        self._t = route.now()
        peer = request.protocol.peername
        self._peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else None
        self.metadata = oauth.is_metadata(request.raw_path, route.metadata)
        plain = self.metadata and relay.rewrite_oauth
        self.known = route.requests.find(
            request.raw_headers,
            (request.method, request.raw_path, request.version, plain),
            lambda: judged_request(request, route.address, relay.guard, plain=plain),
        )
        self.headers = self.known.headers
        self.recorded = HttpExchange(route.recording)
        """The channels of the request and its response in the capture."""
        self._body = RequestBody(self)
        self.legacy_session: str | None = None
        """The session that the endpoint event of an HTTP+SSE stream names; None for other responses."""
        self.keep_alive = request.keep_alive and request.method != CONNECT
        """Whether the client's connection can be used for another request."""

    async def run(self) -> web.StreamResponse:
        """Relay the request; its channels are closed at the end, whatever happens."""
        asked, answer = "abort", "reset"  # how channels close that are still open: response was early, or broke off
        try:
            await self._relay_it()
        except asyncio.CancelledError:
            asked, answer = ("shutdown", "shutdown") if self.relay.ending else ("reset", "abort")
            raise
        except ConnectionError:  # the client no longer reads
            asked, answer = "reset", "abort"
            self.keep_alive = False
        finally:
            now = self.route.now()
            if self.recorded.request is None:  # the request ended before there was a connection
                self.open_request({}).feed(self._body.begun, now)
            self.recorded.end(now, asked if self._body.whole is None else "eof", answer)
            del self._body  # breaks a reference cycle, so that its memory is freed without the garbage collector
        return _Written(keep_alive=self.keep_alive)

    async def _relay_it(self) -> None:
        request = self.request
        await self._body.take()
        refusal = self.known.refusal
        if refusal and not self.route.guarded:
            self.route.guarded = True
            self.relay.say(f"{refusal}; refused by mcpspy, so the server was not tested")
        if refusal or request.method == CONNECT or not request.raw_path.startswith(("/", "*")):
            status, why = (403, refusal) if refusal else (400, "this is the URL of a server, not of a forward proxy")
            await self._refuse(Head(b""), status, why or "")
            return
        head, gate = self.known.head, self.route.gate
        if gate and gate.look(self._t):
            head = head.copy()
            if not await self._body.pass_gate(head, gate):
                return
        if self.route.own and self._body.asks_json:
            way = LatestRequest(request.raw_path, self.headers, self._peer)
            self.route.own.note(self.session, way)
        for attempt in range(2):
            try:
                connection, reused = await self.route.upstream.connect()
            except BROKEN as error:
                await self._fail(head, error)
                return
            try:
                if not await self._converse(head, connection, retry=reused and attempt == 0):
                    return
            finally:
                connection.close()  # has no effect if the connection was released for the next request

    async def _converse(self, head: Head, connection: Connection, *, retry: bool) -> bool:
        """Send the request and forward the response over one connection.

        Returns True if the caller may try another connection, because this idle one was closed by the upstream.
        """
        upload = None
        try:
            try:
                protocol = protocol_of(connection)
            except BROKEN as error:
                if not retry:
                    await self._fail(head, error)
                return retry
            try:
                protocol.expect_response(self.request.method)
                upload = await self._body.send(head, protocol, connection)
                message, payload = await self._final_response(protocol)
            except BROKEN as error:
                again = retry and self._body.whole == b"" and self.request.method in _SAFE
                if not again:
                    await self._fail(head, error, upload)
                return again
            if message.code == 101 and self.known.upgrade:
                await self._switch(message, protocol, connection)
            else:
                if message.should_close and upload and not upload.done():
                    self.keep_alive = False  # the upstream will not read the rest of the request
                await self._response(message, payload, protocol).forward()
                if upload and self.keep_alive:
                    await asyncio.wait([upload])  # the response was early; the next request begins after this one ends
                if upload is None or upload.done():
                    connection.release()
                else:
                    self.keep_alive = False
            return False
        finally:
            if upload:
                upload.cancel()
                await asyncio.wait([upload])

    def _response(self, message: RawResponseMessage, payload: StreamReader, protocol: ResponseHandler) -> Response:
        if self.route.gate is None:
            return Response(self, message, payload, protocol)
        from mcpspy.relay.http.gated_response import GatedResponse

        return GatedResponse(self, message, payload, protocol)

    @property
    def session(self) -> str:
        """The session id, also that of HTTP+SSE; if there is none, the client's address."""
        known = self.known.session or self.legacy_session
        return known or query(self.request.raw_path, *LEGACY_SESSION) or self._peer or ""

    async def _final_response(self, protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
        """Return the final response; forward the informational ones before it (RFC 9110, 15.2)."""
        for _ in range(_INFORMATIONAL):
            message, payload = await protocol.read()
            if message.code == 101 and not self.known.upgrade:
                raise HttpProcessingError(message="Protocol changed unasked")
            if not 100 <= message.code < 200 or message.code == 101:
                return message, payload
            if self.request.version >= HttpVersion11:
                await self.request.writer.write(self._response_head(message).encode())
        raise HttpProcessingError(message="Informational responses without end")

    def _response_head(self, message: RawResponseMessage, keep: tuple[bytes, ...] = ()) -> Head:
        headers = list(message.raw_headers)
        return response_head(message.code, message.reason, headers, self.headers, self.route.address, keep=keep)

    async def _switch(self, message: RawResponseMessage, protocol: ResponseHandler, connection: Connection) -> None:
        """Forward the handshake of a WebSocket, then its bytes until one side closes."""
        t = self.route.now()
        head = self._response_head(message, UPGRADE)
        await self.request.writer.write(head.encode())
        headers = list(message.raw_headers)
        self.open_response("server", t, headers, message.code, message.reason, head).end(t, "eof")
        self.keep_alive = False
        channels = self.recorded.open_socket(t)
        forward: Pump = pump
        gated_tunnel = None
        if self.route.gate is not None:
            from mcpspy.relay.http.gated_tunnel import GatedTunnel

            gated_tunnel = GatedTunnel(self, self.route.gate, self.request.protocol, protocol)
            forward = gated_tunnel.pump
            if self.route.own:
                self.route.own.note(self.session, gated_tunnel)
        await tunnel(
            self.request.protocol,
            protocol,
            channels["client"],
            channels["server"],
            self.route.now,
            lambda: "shutdown" if self.relay.ending else "abort",
            forward,
        )
        if self.route.own and gated_tunnel:
            self.route.own.forget(gated_tunnel)
        connection.close()

    async def _fail(self, head: Head, error: BaseException, upload: "asyncio.Task[None] | None" = None) -> None:
        """Answer the client in place of the upstream, which failed with `error`."""
        await self._body.await_rest(upload)
        status, why = self.route.upstream.failure(error)
        if self._body.fault:
            status, why = 400, f"the request's body is not valid HTTP/1.1: {self._body.fault}"
        await self._refuse(head, status, why)

    async def _refuse(self, head: Head, status: int, why: str) -> None:
        """Record the request, unless it is recorded, and answer it ourselves; `head` was to be forwarded."""
        if self.recorded.request is None:
            channel = self.open_request(head.fields())
            if self._body.whole is not None:
                await self._body.record_whole(channel)
        await self._answer_ourselves(status, why)

    async def _answer_ourselves(self, status: int, why: str) -> None:
        t, asked = self.route.now(), self._body
        head, body = answer(status, why, json_request=(asked.begun or b"null") if asked.asks_json else None)
        if asked.whole is None and not self.request.content.at_eof():
            self.keep_alive = False  # the rest of the request is not read
        self.say_whether_we_close(head)
        if self.request.method == "HEAD":
            body = b""
        await self.request.writer.write(head.encode() + body)
        channel = self.open_response("mcpspy", t, head.headers, status, reason(status), Head(b""))
        if body:
            channel.feed(body, t)
        channel.end(t, "eof")

    def say_whether_we_close(self, head: Head) -> None:
        """Add the Connection field of our own hop (RFC 9112, 9.3)."""
        if not self.keep_alive:
            head.headers.append((b"Connection", b"close"))
        elif self.request.version < HttpVersion11:
            head.headers.append((b"Connection", b"keep-alive"))

    def open_request(self, changes: dict[str, Any]) -> Body:
        """Open the channel of the request; return the open one at the second of two attempts."""
        if self.recorded.request:
            return self.recorded.request
        head = recorded_request(self.request, self.headers)
        return self.recorded.open_request(self._t, head, self._peer, changes)

    def record_whole(self, body: bytes) -> None:
        """Record a request that arrived as a whole and was forwarded unchanged; its `opening` must be `plain`."""
        self.recorded.whole_request(self._t, self.known.opening, self._peer, body)

    def open_response(self, sender: str, t: int, headers: RawHeaders, status: int, reason: str, head: Head) -> Body:
        """Open the channel of the response; `headers` are as received, `head` is as forwarded."""
        came = {"status": status, "reason": reason, "headers": recorded(headers)}
        return self.recorded.open_response(t, came, sender, head.fields())

    def mapped(self, reference: str) -> str | None:
        """Map a URL that the upstream named to the URL that this client needs; None if it needs no change."""
        return mapped_reference(reference, self.headers, self.route.address)

    def endpoint(self, reference: str) -> str | None:
        """Map the URL of the endpoint event, as `mapped` does, and store the session that it names."""
        self.legacy_session = query(reference, *LEGACY_SESSION)
        return self.mapped(reference)
