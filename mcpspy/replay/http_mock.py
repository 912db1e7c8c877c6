"""A mock over HTTP: Streamable HTTP of both eras, and the HTTP+SSE of 2024-11-05.

A `Mock` returns lines. Each line belongs to a request, or to no request; this module assigns the streams. A response
that comes alone is a JSON body; if anything comes before it, the POST is answered by events. A line that belongs to no
request goes to the stream that the client has opened by GET, and waits for such a stream. Each `initialize` begins a
session with a mock of its own. Requests that state their revision themselves (2026-07-28) share one, unless their ids
show that they come from two clients. A GET without a session is a client of HTTP+SSE: the stream begins with its
endpoint, and all lines of the mock are sent on it. Lines that a stream had not sent when it broke are sent on the next
one that the session opens by GET.

The mock makes the heads and the events: only the data of recorded events is sent again.
"""

import asyncio
import itertools
import logging
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aiohttp import web

from mcpspy.json_values import member
from mcpspy.process.ports import bound, listening_place, on_ending_signal, to_dial
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.http1 import Http1Server
from mcpspy.replay.issued_values import json_text
from mcpspy.replay.mock import Mock, OutgoingFrame
from mcpspy.spec.revisions import PROTOCOL_VERSION
from mcpspy.wire.jsonrpc import Id, Invalid, Request, parse

_SESSION = "Mcp-Session-Id"
_EVENTS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class _Stream:
    """The lines to send on a stream; a line is removed after it is sent, because a stream may break."""

    def __init__(self, left: Iterable[OutgoingFrame] = ()) -> None:
        self.left = deque(left)
        self._over = False
        self._changed = asyncio.Event()

    def put(self, frame: OutgoingFrame) -> None:
        """Queue a line for sending."""
        self.left.append(frame)
        self._changed.set()

    def end(self) -> None:
        """End the stream; nothing more is sent."""
        self._over = True
        self._changed.set()

    async def next(self) -> OutgoingFrame | None:
        """Return the next line to send, as soon as there is one; None at the end."""
        while not (self.left or self._over):
            self._changed.clear()
            await self._changed.wait()
        return None if self._over else self.left[0]


class _Session:
    """A mock, and the streams of its client."""

    def __init__(self, mock: Mock) -> None:
        self.mock = mock
        self.name = ""
        self.streams: dict[Id, _Stream] = {}
        self.aside = _Stream()
        self.legacy = False
        """All lines go to the stream that belongs to no request."""
        self._timer: asyncio.TimerHandle | None = None
        mock.begin(time.monotonic_ns())

    def feed(self, raw: bytes) -> None:
        """Pass a body of the client to the mock."""
        self.mock.feed(raw, time.monotonic_ns())
        self._say()

    def reopened(self) -> _Stream:
        """Return a new stream without a request; end the earlier one, and take over its unsent lines."""
        self.aside.end()
        self.aside = _Stream(self.aside.left)
        return self.aside

    def leave(self, requests: Iterable[Request], stream: _Stream) -> None:
        """Record that the client closed a stream before it had its responses."""
        for body in requests:
            if _states_revision(body):  # the client cancels it (2026-07-28, basic/transports)
                self.feed(_cancelled(body.id))
            else:
                self.streams.pop(body.id, None)
        for frame in stream.left:
            self.aside.put(frame)

    def _say(self) -> None:
        """Put due lines on their streams, and set a timer for the next ones."""
        for frame in self.mock.due(time.monotonic_ns()):
            stream = None if self.legacy or frame.request is None else self.streams.get(frame.request)
            (stream or self.aside).put(frame)
            if frame.answer and frame.request is not None:
                self.streams.pop(frame.request, None)  # its stream ends with the response
        if self._timer:
            self._timer.cancel()
        if self.mock.next is not None:
            wait = max(self.mock.next - time.monotonic_ns(), 0) / 1e9
            self._timer = asyncio.get_running_loop().call_later(wait, self._say)


class WebMock:
    """Serves a new mock to each client; `say` receives the notices of the mocks."""

    def __init__(self, make: Callable[[], Mock], guard: Guard, say: Callable[[str], None]) -> None:
        self._make = make
        self._guard = guard
        self._say = say
        self._names = itertools.count(1)
        self._sessions: dict[str, _Session] = {}  # by their ids, those that have one
        self._stateless: list[_Session] = []
        self.mocks: list[Mock] = []
        """The mocks of all clients, including clients that have left."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        refusal = self._guard.refusal(list(request.raw_headers))
        if refusal:
            return web.Response(status=403, text=f"mcpspy: {refusal}\n")
        if request.method == "POST":
            return await self._post(request)
        name = request.headers.get(_SESSION)
        if request.method == "DELETE":
            ended = self._sessions.pop(name or "", None)
            if ended:
                ended.aside.end()
            return web.Response(status=200 if ended else 404)
        if request.method != "GET":
            return web.Response(status=405, headers={"Allow": "GET, POST, DELETE"})
        if name is None and "MCP-Protocol-Version" not in request.headers:
            if "text/event-stream" not in request.headers.get(
                "Accept", ""
            ):  # a client that looks for an OAuth server, or a browser
                return web.Response(status=404, text="mcpspy: there is only an MCP server here\n")
            return await self._legacy(request)
        session = self._sessions.get(name or "")
        return await self._events(request, session.reopened()) if session else web.Response(status=404 if name else 405)

    async def _post(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()  # `request.read` has a limit
        bodies = parse(raw)
        session = self._session(request, bodies)
        if session is None:
            return web.Response(status=404, text="mcpspy: no such session\n")
        faults = [body.reason for body in bodies if isinstance(body, Invalid)]
        if len(faults) == len(bodies):
            return web.Response(status=400, text=f"mcpspy: this is {faults[0]}\n")
        requests = [body for body in bodies if isinstance(body, Request)]
        stream = _Stream()
        session.streams |= {body.id: stream for body in requests}
        session.feed(raw)
        for notice in session.mock.notices:
            self._say(notice)
        session.mock.notices.clear()
        if session.legacy or not requests:
            return web.Response(status=202)
        headers = {_SESSION: session.name} if requests[0].method == "initialize" else {}
        try:
            first = await stream.next()
            if first and first.answer and len(requests) == 1:
                return web.Response(body=first.raw, headers=headers | {"Content-Type": "application/json"})
            return await self._events(request, stream, headers, answers=len(requests))
        except (asyncio.CancelledError, ConnectionError):
            session.leave(requests, stream)
            raise
        finally:
            for body in requests:
                session.streams.pop(body.id, None)

    def _session(self, request: web.BaseRequest, bodies: tuple[Any, ...]) -> _Session | None:
        """Return the session that a POST belongs to; None if it names an unknown one."""
        name = request.headers.get(_SESSION) or request.query.get("session_id")
        if name is not None:
            return self._sessions.get(name)
        requests = [body for body in bodies if isinstance(body, Request)]
        if any(body.method == "initialize" for body in requests):
            return self._begin()
        for session in self._stateless:
            if not any(body.id in session.streams for body in requests):
                return session
        self._stateless.append(self._new())  # an id that is in use belongs to another client
        return self._stateless[-1]

    def _new(self) -> _Session:
        session = _Session(self._make())
        self.mocks.append(session.mock)
        return session

    def _begin(self) -> _Session:
        session = self._new()
        session.name = f"mcpspy-mock-{next(self._names)}"
        self._sessions[session.name] = session
        return session

    async def _legacy(self, request: web.BaseRequest) -> web.StreamResponse:
        """Open the stream of a client of HTTP+SSE; its first event names the endpoint for POST."""
        session = self._begin()
        session.legacy = True
        endpoint = f"{request.path}?session_id={session.name}"
        return await self._events(request, session.aside, start=f"event: endpoint\ndata: {endpoint}\n\n")

    async def _events(
        self,
        request: web.BaseRequest,
        stream: _Stream,
        headers: dict[str, str] | None = None,
        *,
        start: str = "",
        answers: int = 0,
    ) -> web.StreamResponse:
        """Send the lines of a stream until `answers` responses are sent; without `answers`, until the client leaves."""
        response = web.StreamResponse(headers=_EVENTS | (headers or {}))
        await response.prepare(request)
        await response.write(start.encode())
        left = answers
        while frame := await stream.next():
            await response.write(b"event: message\ndata: " + frame.raw + b"\n\n")
            stream.left.popleft()
            left -= frame.answer
            if answers and not left:
                break
        await response.write_eof()
        return response


Front = Callable[[str], AbstractAsyncContextManager[str]]
"""A context manager for a proxy in front of a mock: takes the mock's URL and returns the URL for clients."""


@asynccontextmanager
async def nothing_before(url: str) -> AsyncIterator[str]:
    """Yield the mock's own URL, for clients that connect to the mock directly."""
    yield url


def serve_web(
    make: Callable[[], Mock], where: str, say: Callable[[str], None], front: Front = nothing_before
) -> Sequence[Mock]:
    """Listen at `HOST:PORT`, print the URL, and serve until a signal comes; return the mocks of all clients.

    Raises UsageError if the address is invalid or in use.
    """
    host, port = listening_place(where, 6279)
    served = WebMock(make, Guard(host, ()), say)
    asyncio.run(_listen(served, bound(host, port), to_dial(host), front))
    for mock in served.mocks:
        mock.end()
    return served.mocks


async def _listen(served: WebMock, listener: socket.socket, host: str, front: Front) -> None:
    stop = asyncio.Event()
    on_ending_signal(asyncio.get_running_loop(), stop.set)
    silent = logging.getLogger(__name__)
    silent.disabled = True  # aiohttp logs tracebacks for faults of clients
    runner = web.ServerRunner(Http1Server(served.handle, logger=silent))
    await runner.setup()
    try:
        await web.SockSite(runner, listener, shutdown_timeout=0).start()
        async with front(f"http://{host}:{listener.getsockname()[1]}/mcp") as url:
            print(url, flush=True)
            await stop.wait()
    finally:
        await runner.cleanup()


def _states_revision(request: Request) -> bool:
    meta = member(request.params, "_meta")
    return member(meta, PROTOCOL_VERSION) is not None


def _cancelled(number: Id) -> bytes:
    params = f'{{"requestId":{json_text(number)}}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'.encode()
