"""The relay of `proxy`: the listener, its routes, how it ends, and the requests of viewers to its servers.

    client ── request ──▶ Relay ─ HttpRoute, ForwardedRequest ─▶ Upstream ──▶ server

aiohttp's server parses requests, and refuses those that could be parsed in two ways (RFC 9112, 11.2). Each request
becomes a `ForwardedRequest` with the upstream of its route. A route has one upstream and one capture. The port serves
only the clients of those routes: it has no control interface.

A request of a viewer is sent like the latest request of its session: with the same head, which has the client's session
and authorization, or as a message of the same WebSocket. The heads of the latest sessions are kept in memory only. The
client never sees the response. If it is the HTTP response to the request, it is read here to its end. If it comes on a
stream of the client, it is dropped by its id (`LiveGate`). Both are recorded. Viewers are usually noticed when a frame
passes. In an idle session none passes, so once there is a client, this module checks for viewers at intervals.
"""

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader

from mcpspy.capture.format import OWN_ID, VIEWER
from mcpspy.gate.gate import LIMIT
from mcpspy.gate.messages import Envelope, read
from mcpspy.recording.http_exchange import Body, Fields, HttpExchange
from mcpspy.relay.http.forward import CONNECT, ForwardedRequest
from mcpspy.relay.http.gated_body import EventBlocks, Piece
from mcpspy.relay.http.heads import RawHeaders, every, first, recorded, request_head
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.http1 import Http1Server
from mcpspy.relay.http.local_replies import answer, reason
from mcpspy.relay.http.response import BROKEN, record
from mcpspy.relay.http.route import HttpRoute, LatestRequest, OpenSocket, protocol_of
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.content_coding import Decoder

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers

_SESSIONS = 64  # the most sessions whose latest requests are kept
_INTERVAL = 0.25  # seconds between two checks in an idle session
_OF_BODY = (b"content-length", b"transfer-encoding", b"content-encoding", b"expect", b"last-event-id")
_REPEAT = (b"mcp-method", b"mcp-name", b"mcp-param-")  # headers that repeat parts of the body
_NEVER_SENT: Fields = {"sent": None, "by": VIEWER}


class OwnRequests:
    """Sends requests of viewers; `say` gets a sentence for the user."""

    def __init__(self, route: HttpRoute, gate: LiveGate, say: Callable[[str], None]) -> None:
        self._route = route
        self._gate = gate
        self._say = say
        self._ways: dict[str, LatestRequest | OpenSocket] = {}  # by session, least recently used first
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, session: str, way: LatestRequest | OpenSocket) -> None:
        """Note that a client of that session has sent a request in this way."""
        if not self._tasks:
            self._start(self._watch())
        if self._ways.pop(session, None) is None and len(self._ways) >= _SESSIONS:
            del self._ways[next(iter(self._ways))]
        self._ways[session] = way

    def forget(self, way: OpenSocket) -> None:
        """Forget a WebSocket that has ended."""
        for session in [session for session, known in self._ways.items() if known is way]:
            del self._ways[session]

    def send(self, frame: bytes, session: str | None) -> None:
        """Send a request in the session with that id; if it is `None`, in the most recently used session."""
        messages = read(frame, "body")
        request = messages[0] if len(messages) == 1 else None
        if request is None or request.id is None or request.kind != "request" or not request.id[1].startswith(OWN_ID):
            self._say(f"a viewer's frame is not a request whose id begins with {OWN_ID}; it is not sent")
            return
        way = self._ways.get(session) if session is not None else next(reversed(self._ways.values()), None)
        if way is None:
            whose = "no client" if session is None else f"no client of the session {session!r}"
            self._say(f"a viewer's request cannot be sent: {whose} has sent one since the proxy began")
            return
        self._gate.await_answer(request.id)
        if isinstance(way, LatestRequest):
            self._start(self._post(way, frame, request))
        else:
            way.send(frame)

    async def end(self) -> None:
        """Cancel all running requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            self._gate.look(self._route.now())

    async def _post(self, way: LatestRequest, frame: bytes, request: Envelope) -> None:
        route, exchange = self._route, HttpExchange(self._route.recording)
        headers = [field for field in fitting(way.headers, request) if field[0].lower() not in _OF_BODY]
        head = request_head("POST", way.target, headers, route.address, plain=True)
        head.headers.append((b"Content-Length", b"%d" % len(frame)))
        _, target, _ = head.line.decode("utf-8", "replace").split(" ")
        sent = {"method": "POST", "target": target, "version": "1.1", "headers": recorded(head.headers)}
        now = route.now()
        channel = exchange.open_request(now, sent, way.peer, {"by": VIEWER})
        channel.frame(frame, now, gated={"from": "mcpspy", "by": VIEWER})
        how = "shutdown"
        try:
            connection, _ = await route.upstream.connect()
            try:
                protocol = protocol_of(connection)
                protocol.expect_response("POST")
                writer = StreamWriter(protocol, asyncio.get_running_loop())
                await writer.write(route.upstream.dialer.head(head.encode()) + frame, drain=False)
                channel.end(route.now(), "eof")
                message, payload = await _final_response(protocol)
                route.upstream.check(message)
                await self._receive(exchange, message, payload)
                if message.code != 202 and request.id:  # with HTTP+SSE (202) the response comes on another stream
                    self._gate.forget(request.id)
                connection.release()
            finally:
                connection.close()
        except BROKEN as error:
            how = "reset"
            if exchange.response is None:
                self._fail(exchange, error, frame)
        finally:
            exchange.end(route.now(), how, how)

    def _fail(self, exchange: HttpExchange, error: BaseException, frame: bytes) -> None:
        """Record the error response that a client would have got."""
        status, why = self._route.upstream.failure(error)
        head, body = answer(status, why, json_request=frame)
        came = {"status": status, "reason": reason(status), "headers": recorded(head.headers)}
        now = self._route.now()
        channel = exchange.open_response(now, came, "mcpspy", {"by": VIEWER})
        channel.frame(body, now, gated=_NEVER_SENT)
        channel.end(now, "eof")

    async def _receive(self, exchange: HttpExchange, message: RawResponseMessage, payload: StreamReader) -> None:
        """Read and record the response to its end."""
        now, headers = self._route.now, list(message.raw_headers)
        came = {"status": message.code, "reason": message.reason, "headers": recorded(headers)}
        channel = exchange.open_response(now(), came)
        channel.decoded()
        decoder = Decoder(every(headers, b"content-encoding"))
        events = "text/event-stream" in every(headers, b"content-type").lower()
        blocks, body = EventBlocks(LIMIT), b""
        while not payload.at_eof():
            coded = await payload.readany()
            for part in decoder.feed(coded):
                if events:
                    _record_events(channel, blocks.feed(part), now())
                elif len(body) > LIMIT:
                    await record(channel, part, now())
                else:
                    body += part
                    if len(body) > LIMIT:
                        await record(channel, body, now())
        _record_events(channel, blocks.end(), now())
        if body and len(body) <= LIMIT:
            channel.frame(body, now(), gated=_NEVER_SENT)
        channel.end(now(), "eof")


async def _final_response(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Return the final response; skip informational ones."""
    while True:
        message, payload = await protocol.read()
        if not 100 <= message.code < 200:
            return message, payload


def fitting(headers: RawHeaders, request: Envelope) -> RawHeaders:
    """Return the headers of another request, with the fields that repeat the body (2026-07-28) adapted to this one."""
    method, name = request.method or "", request.name
    repeated = [(b"Mcp-Method", _field(method))] + ([(b"Mcp-Name", _field(name))] if name is not None else [])
    if first(headers, b"mcp-method") is None:
        return headers
    if all(first(headers, key.lower()) == value for key, value in repeated):
        return headers
    return [field for field in headers if not field[0].lower().startswith(_REPEAT)] + repeated


def _field(value: str) -> bytes:
    """Return a text as a header value, encoded if it is not valid as one."""
    raw = value.encode("utf-8", "replace")
    plain = value.isascii() and value.isprintable() and value.strip() == value and not value.startswith("=?base64?")
    return raw if plain else b"=?base64?" + base64.b64encode(raw) + b"?="


def _record_events(channel: Body, pieces: list[Piece], t: int) -> None:
    for piece in pieces:
        if piece.frame is not None:
            channel.frame(piece.frame, t, gated=_NEVER_SENT)
        elif piece.passes.strip(b"\r\n"):  # an event that is too long or cut off
            channel.feed(piece.passes, t)


_REST = (
    "concurrent.futures.thread",  # resolves names
    "encodings.utf_8_sig",  # for bodies of logins
    "mcpspy.secrets.body",
    "mcpspy.secrets.tokens",
)


@dataclass(slots=True)
class Relay:
    """All routes that listen on one port; `say` gets a sentence for the user."""

    routes: list[HttpRoute]
    guard: Guard
    say: Callable[[str], None]
    rewrite_oauth: bool = False
    gates: list[dict[str, Any]] | None = None
    """The compiled gates of a file; each route counts its own matches."""
    answerers: "Answerers | None" = None
    control: bool = False
    """Whether viewers may set gates."""
    ending: bool = False
    """Whether the relay is ending, so that cancelled exchanges end because of us."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in _REST:  # an import while exchanges are relayed would delay all of them (V-02)
            __import__(name)
        for route in self.routes:
            if self.gates or (self.control and route.recording.live_path):
                self._set_gate(route)

    def _set_gate(self, route: HttpRoute) -> None:
        gate = LiveGate(self.gates or (), self.answerers or {}, self.say, control=self.control)
        own = OwnRequests(route, gate, self.say)
        gate.begin(route.recording, own.send)
        route.gate, route.own = gate, own if gate.controlled else None

    def server(self) -> web.Server:
        """Return the protocol factory for the listening socket."""
        silent = logging.getLogger("mcpspy.relay")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False  # faults of peers are in the capture; our own are reported in one sentence
        return Http1Server(self.handle, auto_decompress=False, logger=silent)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            route = self.route_of(request.raw_path)
            if route is None:
                refusal = self.guard.refusal(list(request.raw_headers))
                there = ", ".join(f"{route.address.prefix}/" for route in self.routes)
                why = refusal or f"there is no route at this path; there is {there}"
                # a client that may not use the port does not learn the routes
                response = web.Response(status=403 if refusal else 404, text=f"mcpspy: {why}\n")
                if request.method == CONNECT:
                    response.force_close()
                return response
            return await ForwardedRequest(self, route, request).run()
        except Exception as error:
            self.say(f"a bug ended an exchange ({type(error).__name__}: {error}); the proxy goes on")
            raise
        finally:
            self._tasks.discard(task)

    async def end(self) -> None:
        """End every exchange, then every capture."""
        self.ending = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for route in self.routes:
            if route.own:
                await route.own.end()
            if route.gate:
                route.gate.end()
            await route.upstream.close()
            route.recording.end(route.now())

    def route_of(self, target: str) -> HttpRoute | None:
        """Return the route of a request, by the prefix of its target; None if no route matches."""
        for route in self.routes:
            prefix = route.address.prefix
            if target.startswith(prefix) and (not prefix or target[len(prefix) : len(prefix) + 1] in ("", "/", "?")):
                return route
        return None
