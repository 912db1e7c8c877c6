"""The relay of `proxy`: what listens, where its paths lead, and how it ends.

    client ── request ──▶ Relay ─ Route, ForwardedRequest ─▶ Upstream ──▶ server

aiohttp's server parses what arrives, and refuses what could be read in two ways (RFC 9112, 11.2); each request becomes
a `ForwardedRequest` with the upstream of its route. A route has one upstream and one capture. Nothing here listens to
anybody but clients of those routes: there is no control interface.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.web_protocol import _ErrInfo

from mcpspy.recording.recording import Recording
from mcpspy.relay.http.forward import ForwardedRequest
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.upstream import FIELDS, LARGEST, Upstream


@dataclass(slots=True)
class Route:
    """An upstream, where it stands on our side, and its capture."""

    address: Address
    upstream: Upstream
    recording: Recording
    diagnosed: bool = False
    """Whether the user has been told what OAuth will do here."""

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return self.recording.clock.now()


@dataclass(slots=True)
class Relay:
    """Everything that listens on one port; `say` gets a sentence for the user."""

    routes: list[Route]
    guard: Guard
    say: Callable[[str], None]
    rewrite_oauth: bool = False
    ending: bool = False
    """Whether exchanges that are cancelled now end because we do."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def server(self) -> web.Server:
        """The protocol factory to listen with."""
        silent = logging.getLogger("mcpspy.relay")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False  # what peers do wrong is in the capture, and what we do wrong is said in a sentence
        return _Server(
            self.handle,
            handler_cancellation=True,  # a client that leaves ends its exchange, however idle (H-05)
            auto_decompress=False,
            access_log=None,
            logger=silent,
            max_line_size=LARGEST,
            max_field_size=LARGEST,
            max_headers=FIELDS,
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            route = self._route(request.raw_path)
            if route is None:
                refusal = self.guard.refusal(list(request.raw_headers))
                if refusal:  # whoever may not use the port need not know what stands here
                    return web.Response(status=403, text=f"mcpspy: {refusal}\n")
                there = ", ".join(f"{route.address.prefix}/" for route in self.routes)
                return web.Response(status=404, text=f"mcpspy: no route stands at this path; there is {there}\n")
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
            await route.upstream.close()
            route.recording.end(route.now())

    def _route(self, target: str) -> Route | None:
        for route in self.routes:
            prefix = route.address.prefix
            if target.startswith(prefix) and (not prefix or target[len(prefix) : len(prefix) + 1] in ("", "/", "?")):
                return route
        return None


class _Server(web.Server):
    """aiohttp's, with connections of our own."""

    def __call__(self) -> web.RequestHandler:
        """The protocol of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    """aiohttp's, but a body whose framing is broken ends there: whoever waits for more of it would wait for ever."""

    def data_received(self, data: bytes) -> None:
        """Called with what the client sent."""
        super().data_received(data)
        if not self._messages or not isinstance(self._messages[-1][0], _ErrInfo):
            return
        fault = web.RequestPayloadError(self._messages[-1][0].message.partition(":")[0])
        bodies = [body for _, body in self._messages]
        if self._current_request is not None:
            bodies.append(self._current_request.content)
        for body in bodies:
            if not body.is_eof() and body.exception() is None:
                body.set_exception(fault)
