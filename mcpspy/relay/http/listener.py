"""The relay of `proxy`: the listener, its routes, and how it ends.

    client ── request ──▶ Relay ─ HttpRoute, ForwardedRequest ─▶ Upstream ──▶ server

aiohttp's server parses requests, and refuses those that could be parsed in two ways (RFC 9112, 11.2). Each request
becomes a `ForwardedRequest` with the upstream of its route. A route has one upstream and one capture. The port serves
only the clients of those routes: it has no control interface.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from mcpspy.relay.http.forward import CONNECT, ForwardedRequest
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.http1 import Http1Server
from mcpspy.relay.http.route import HttpRoute

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers

_REST = (
    "concurrent.futures.thread",  # resolves names
    "encodings.utf_8_sig",  # for bodies of logins
    "mcpspy.secrets.body",
    "mcpspy.secrets.tokens",
    "mcpspy.relay.http.forward",
    "mcpspy.relay.http.response",
    "mcpspy.relay.http.tunnel",
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
        from mcpspy.relay.http.own_requests import OwnRequests
        from mcpspy.relay.live_gate import LiveGate

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
