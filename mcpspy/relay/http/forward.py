"""One HTTP request: forward it to its upstream, forward the response with a `Response`, and record both.

Heads are forwarded unchanged except for what `heads` has to change. Each chunk of a body is forwarded as soon as it is
read, and recorded after that. The two directions do not wait for each other: a response may begin before the request's
body ends, informational responses are forwarded when they arrive, and streams have no time limit. When one side
disconnects, the other side is disconnected at once (H-05), because in 2026-07-28 a client cancels a call by
disconnecting. Heads are written here and in `response`, so that aiohttp adds nothing to them.

A body that has arrived together with its head is forwarded together with it, and so is a body that a gate has decided
on. Any other body is uploaded chunk by chunk in a task of its own, because the response may come before the body ends.
The beginning of the body is kept, so that an error that we answer with has the id of the request.

The gate decides on a body of JSON as a whole, up to 1 MiB. A request that is dropped or answered never reaches the
upstream. For a dropped request, the client gets status 202. For an answered one, it gets the answer with status 200.
For a refused one, it gets the status that the gate names and a JSON-RPC error. A client of HTTP+SSE gets the answer on
its event stream, unless that stream has a content coding and was open before the gate was in force. If a verdict
replaces one frame by several, they are written into the same body, one after the other.

A cancellation in another request of the session drops the request that it names if that request is held, and is dropped
itself. A held request in a batch is not dropped.

A client that waits before it sends its body (`Expect: 100-continue`) gets the 100 response here if a gate decides on
it; the upstream gets the request when the body is known. A body with an unknown content coding passes undecided, and
the user gets one notice.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader

from mcpspy.gate.gate import LIMIT, Drop, Hold, Pass, Refuse, Reply, Send
from mcpspy.recording.http_exchange import Body, HttpExchange
from mcpspy.relay.http import own_gates
from mcpspy.relay.http.gated_channel import CollectedBody, announces_too_much, cancel, keeps_body
from mcpspy.relay.http.heads import (
    UPGRADE,
    Head,
    RawHeaders,
    every,
    first,
    is_json,
    mapped_reference,
    recorded,
    response_head,
)
from mcpspy.relay.http.http1 import arrived, is_chunked, unread
from mcpspy.relay.http.known_heads import judged_request, recorded_request
from mcpspy.relay.http.local_replies import answer, gated_answer, reason
from mcpspy.relay.http.response import BROKEN, GatedResponse, Response, chunk, record
from mcpspy.relay.http.route import HttpRoute, LatestRequest, RelayContext, RequestContext, protocol_of, say_once
from mcpspy.relay.http.tunnel import GatedTunnel, Pump, pump, tunnel
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.http_head import LEGACY_SESSION, query
from mcpspy.wire.lines import PIECE

if TYPE_CHECKING:
    from mcpspy.gate.gate import Verdict


async def _collect(request: web.BaseRequest, head: Head) -> tuple[bytes, bool, bool]:
    """Read a body until it is complete or too long for a decision.

    Returns the bytes read so far, whether they are the whole body, and whether it is too long; if it is, more may
    follow. If the Content-Length is too large, nothing is read.
    """
    content = request.content
    if announces_too_much(list(request.raw_headers)):
        return b"", False, True
    if any(name.lower() == b"expect" for name, _ in head.headers):
        if request.version >= HttpVersion11:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # RFC 9110, 10.1.1
        head.drop(b"expect", "gate")
    parts, size, broken = [], 0, False
    try:
        while not content.at_eof() and size <= LIMIT:
            parts.append(await content.readany())
            size += len(parts[-1])
    except (web.RequestPayloadError, ConnectionError):  # the code that forwards the body gets this error again
        broken = True
    return b"".join(parts), content.at_eof() and not broken, size > LIMIT


async def _decide(
    exchange: RequestContext, gate: LiveGate, body: bytes, head: Head, *, chunked: bool, begin: Callable[[], Body]
) -> bytes | Pass | None:
    """Apply the gate's verdict to the body of a request.

    Returns the bytes to forward instead, the verdict if the body passes, or None if the request is not forwarded.
    `head` is changed if the length may change; `begin` opens the channel of the request.
    """
    collected = CollectedBody(body, every(exchange.headers, b"content-encoding"))
    if collected.damaged:
        say_once(exchange, "a request has a content coding that cannot be decoded; such requests pass undecided")
    t = exchange.route.now()
    facts = gate.facts("client", "body", exchange.session)
    verdict: Verdict = collected.decide(gate, facts, t)
    if isinstance(verdict, Pass):
        by = await cancel(exchange.route.held, exchange.session, verdict.cancels) if verdict.cancels else ""
        if not by:
            return verdict
        verdict = Drop(by)
    if isinstance(verdict, Send | Hold) and not (chunked or keeps_body(verdict)):
        head.chunk(verdict.by)
        chunked = True
    out: list[bytes] = []
    answers: list[Reply | Refuse] = []

    async def write(forwarded: bytes) -> None:
        out.append(forwarded)

    async def reply(answer: Reply | Refuse) -> None:
        answers.append(answer)

    channel = begin()
    gated_channel = collected.gated_channel(
        gate, facts, channel, exchange.route.recording, write, partial(say_once, exchange), reply=reply, refuse=reply
    )
    waiting = (exchange.session, gated_channel)
    exchange.route.held.append(waiting)
    try:
        await collected.carry_out(gated_channel, verdict, t)
    finally:
        exchange.route.held.remove(waiting)
    channel.end(exchange.route.now(), "eof")
    if out:
        if out[0] is not body and not chunked:  # the body was changed while it was delayed
            head.chunk("gate")
        return out[0]
    if gated_channel.closed:
        exchange.keep_alive = False
        if exchange.request.transport:
            exchange.request.transport.close()
    else:
        await _answer(exchange, answers[0] if answers else None, collected.plain)
    return None


async def _answer(exchange: RequestContext, reply: Reply | Refuse | None, request: bytes) -> None:
    """Answer the client in place of the upstream: with the reply or the status; with 202 if there is neither."""
    t = exchange.route.now()
    stream = exchange.route.streams.get(exchange.session)
    if stream and isinstance(reply, Reply):  # a client of HTTP+SSE expects the answer on its stream
        stream.add(Reply(b"event: message\ndata: " + reply.frame + b"\n", reply.by))
        reply = None
    status, head, body = gated_answer(reply, request)
    exchange.say_whether_we_close(head)
    await exchange.request.writer.write(head.encode() + body)
    came = {"status": status, "reason": reason(status), "headers": recorded(head.headers)}
    channel = exchange.recorded.open_response(t, came, "mcpspy", {"by": reply.by} if reply else None)
    if reply:
        channel.frame(body, t, gated={"by": reply.by})
    channel.end(t, "eof")


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
        if self._request.method != "POST" or not is_json(self._exchange.headers):
            return True
        if self.whole is None:
            self._collected, whole, self._undecided = await _collect(self._request, head)
            if not whole:
                return True
            self.whole, self.begun, self._collected = self._collected, self._collected[:_KEPT], b""
        if not self.whole:
            return True
        begin = self._exchange.open_request
        outcome = await _decide(
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
        sent = self._exchange.route.upstream.dialer.head(head.encode())
        if self.whole is None:
            await writer.write(sent, drain=False)
            channel = self._exchange.open_request(head.fields())
            if self._undecided:
                channel.undecided()
            return asyncio.create_task(self._upload(writer, connection, channel))
        body = chunk(self.whole, last=True) if self._chunked else self.whole
        await writer.write(sent + body, drain=False)  # a server may answer without reading the body
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
        self.metadata = own_gates.is_metadata(request.raw_path, route.metadata)
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
                self.route.upstream.check(message)
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
