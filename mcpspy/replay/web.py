"""A mock over HTTP: Streamable HTTP of both eras, and the HTTP+SSE of 2024-11-05.

The theory. A `Mock` says lines, each of which belongs to a request or to none; here they get their streams. An answer
that comes alone is a JSON body; if anything comes before it, the POST is answered by events. What belongs to no request
goes to the stream that the client has opened by GET, and waits for it. Each `initialize` begins a session with a mock
of its own; requests that state their revision themselves (2026-07-28) share one. A GET without a session is a client of
HTTP+SSE: its endpoint is told, and all that the mock says goes to that stream.

The heads are our own, and so are the events: of those that were recorded the data alone is said again.
"""

import asyncio
import itertools
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from mcpspy.errors import UsageError
from mcpspy.jsonrpc import Id, Invalid, Request, parse
from mcpspy.protocol.revisions import PROTOCOL_VERSION
from mcpspy.relay.security import Guard
from mcpspy.replay.edit import json_text
from mcpspy.replay.mock import Mock, Said
from mcpspy.replay.script import member

_SESSION = "Mcp-Session-Id"
_EVENTS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class _Session:
    """A mock, and the streams of its client."""

    def __init__(self, mock: Mock) -> None:
        self.mock = mock
        self.name = ""
        self.streams: dict[Id, asyncio.Queue[Said]] = {}
        self.aside: asyncio.Queue[Said] = asyncio.Queue()
        self.legacy = False
        """All that is said goes aside."""
        self._timer: asyncio.TimerHandle | None = None
        mock.begin(time.monotonic_ns())

    def feed(self, raw: bytes) -> None:
        """Take what the client says."""
        self.mock.feed(raw, time.monotonic_ns())
        self._say()

    def _say(self) -> None:
        """Put what is due on its streams, and come back when more is."""
        for said in self.mock.due(time.monotonic_ns()):
            stream = None if self.legacy or said.request is None else self.streams.get(said.request)
            (stream or self.aside).put_nowait(said)
            if said.answer and said.request is not None:
                self.streams.pop(said.request, None)  # it ends with the answer: what comes later goes aside
        if self._timer:
            self._timer.cancel()
        if self.mock.next is not None:
            wait = max(self.mock.next - time.monotonic_ns(), 0) / 1e9
            self._timer = asyncio.get_running_loop().call_later(wait, self._say)


class WebMock:
    """Serves a new mock to each client; `say` gets each answer that was given loosely."""

    def __init__(self, make: Callable[[], Mock], guard: Guard, say: Callable[[str], None]) -> None:
        self._make = make
        self._guard = guard
        self._say = say
        self._names = itertools.count(1)
        self._sessions: dict[str, _Session] = {}
        self._stateless: _Session | None = None

    @property
    def mocks(self) -> Sequence[Mock]:
        """Those of all clients."""
        there = [*self._sessions.values(), *([self._stateless] if self._stateless else [])]
        return [session.mock for session in there]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        refusal = self._guard.refusal(list(request.raw_headers))
        if refusal:
            return web.Response(status=403, text=f"mcpspy: {refusal}\n")
        if request.method == "POST":
            return await self._post(request)
        name = request.headers.get(_SESSION)
        if request.method == "DELETE":
            return web.Response(status=200 if name in self._sessions else 404)
        if request.method != "GET":
            return web.Response(status=405, headers={"Allow": "GET, POST, DELETE"})
        if name is None and "MCP-Protocol-Version" not in request.headers:
            return await self._legacy(request)
        session = self._sessions.get(name or "")
        return await self._events(request, session.aside) if session else web.Response(status=404 if name else 405)

    async def _post(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()  # `request.read` has a limit
        bodies = parse(raw)
        session = self._session(request, bodies)
        if session is None:
            return web.Response(status=404, text="mcpspy: no such session\n")
        faults = [body.reason for body in bodies if isinstance(body, Invalid)]
        if len(faults) == len(bodies):
            return web.Response(status=400, text=f"mcpspy: this is {faults[0]}\n")
        asked = [body for body in bodies if isinstance(body, Request)]
        stream: asyncio.Queue[Said] = asyncio.Queue()
        session.streams |= {body.id: stream for body in asked}
        session.feed(raw)
        for miss in session.mock.loosely:
            self._say(f"answered by name alone: {miss}")
        session.mock.loosely.clear()
        if session.legacy or not asked:
            return web.Response(status=202)
        headers = {_SESSION: session.name} if asked[0].method == "initialize" else {}
        try:
            first = await stream.get()
            if first.answer and len(asked) == 1:
                return web.Response(body=first.raw, headers=headers | {"Content-Type": "application/json"})
            return await self._events(request, stream, headers, first=first, answers=len(asked))
        except asyncio.CancelledError:  # the client has left, which says in 2026-07-28 that it wants no answer
            for body in asked:
                if _states_revision(body):
                    session.feed(_cancelled(body.id))
            raise
        finally:
            for body in asked:
                session.streams.pop(body.id, None)

    def _session(self, request: web.BaseRequest, bodies: tuple[Any, ...]) -> _Session | None:
        """The session that a POST belongs to; None if it names one that is not there."""
        name = request.headers.get(_SESSION) or request.query.get("session_id")
        if name is not None:
            return self._sessions.get(name)
        if any(isinstance(body, Request) and body.method == "initialize" for body in bodies):
            return self._begin()
        if self._stateless is None:
            self._stateless = _Session(self._make())
        return self._stateless

    def _begin(self) -> _Session:
        session = _Session(self._make())
        session.name = f"mcpspy-mock-{next(self._names)}"
        self._sessions[session.name] = session
        return session

    async def _legacy(self, request: web.BaseRequest) -> web.StreamResponse:
        """The stream of a client of HTTP+SSE, which is told where to POST."""
        session = self._begin()
        session.legacy = True
        endpoint = f"{request.path}?session_id={session.name}"
        return await self._events(request, session.aside, start=f"event: endpoint\ndata: {endpoint}\n\n")

    async def _events(
        self,
        request: web.BaseRequest,
        stream: "asyncio.Queue[Said]",
        headers: dict[str, str] | None = None,
        *,
        start: str = "",
        first: Said | None = None,
        answers: int = 0,
    ) -> web.StreamResponse:
        """Say what is put on a stream, up to so many answers; without `answers` as long as the client stays."""
        response = web.StreamResponse(headers=_EVENTS | (headers or {}))
        await response.prepare(request)
        await response.write(start.encode())
        said = first or await stream.get()
        left = answers
        while True:
            await response.write(b"event: message\ndata: " + said.raw + b"\n\n")
            left -= said.answer
            if answers and not left:
                break
            said = await stream.get()
        await response.write_eof()
        return response


def serve_web(make: Callable[[], Mock], where: str, say: Callable[[str], None]) -> Sequence[Mock]:
    """Listen at `HOST:PORT`, print the URL, and serve until a signal comes; returns the mocks of all clients.

    Raises UsageError if that is no address, or cannot be had.
    """
    host, colon, port = where.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen takes HOST:PORT, such as 127.0.0.1:6279, not {where!r}")
    host = host.strip("[]") or "127.0.0.1"
    served = WebMock(make, Guard(host, ()), say)
    asyncio.run(_listen(served, host, int(port)))
    for mock in served.mocks:
        mock.end()
    return served.mocks


async def _listen(served: WebMock, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        try:
            loop.add_signal_handler(getattr(signal, name), stop.set)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
    runner = web.ServerRunner(web.Server(served.handle, handler_cancellation=True, access_log=None))
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, shutdown_timeout=0)
        await site.start()
        address = runner.addresses[0]
        print(f"http://{f'[{host}]' if ':' in host else host}:{address[1]}/mcp", flush=True)
        await stop.wait()
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    finally:
        await runner.cleanup()


def _states_revision(request: Request) -> bool:
    meta = member(request.params, "_meta")
    return member(meta, PROTOCOL_VERSION) is not None


def _cancelled(number: Id) -> bytes:
    params = f'{{"requestId":{json_text(number)}}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'.encode()
