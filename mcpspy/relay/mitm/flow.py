"""One HTTP exchange or WebSocket that passes the interceptor, recorded in the capture of its server if it is MCP.

What has been forwarded is recorded in short turns of the event loop, because other traffic must not wait for a
recording (`Turns`). So a compressed body, which may decode to many times its size, is decoded piece by piece.

This module does not know mitmproxy. It gets heads and chunks, with the times at which they were read.
"""

import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcpspy.recording.http_exchange import Body, Fields, HttpExchange, Pending
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.heads import RawHeaders, every, recorded
from mcpspy.wire.http_head import may_hold_messages, speaks_mcp

if TYPE_CHECKING:
    from mcpspy.relay.http.gated_channel import GatedChannel
    from mcpspy.relay.live_gate import LiveGate

MOST_ORIGINS = 64
"""The most origins at a time: some systems allow a process only 256 open files."""


class Origin:
    """A server, identified by its URL, with its clock; its first MCP exchange opens its capture.

    `begin` creates the recording for a URL and a clock; if that fails, it has reported the reason.
    """

    def __init__(self, url: str, begin: Callable[[str, Clock], Recording], gate: "LiveGate | None" = None) -> None:
        self.url = url
        self.gate = gate
        """Decides on frames; None if all frames pass and that cannot change."""
        self.clock = Clock()
        self._begin = begin
        self._recording: Recording | None = None
        self.held: list[tuple[str, GatedChannel]] = []
        """The sessions and bodies of the requests that wait for a gate."""

    def now(self) -> int:
        """Return the nanoseconds since the origin was first seen."""
        return self.clock.now()

    def recording(self) -> Recording:
        """Return the recording of the capture; the first call creates it."""
        if self._recording is None:
            self._recording = self._begin(self.url, self.clock)
            if self.gate:
                self.gate.begin(self._recording)
        return self._recording

    def end(self) -> None:
        """End the capture, if there is one."""
        if self.gate:
            self.gate.end()
        if self._recording:
            self._recording.end(self.now())


class Origins:
    """The latest origins, by URL; a new one may end the capture of the one that has been idle for longest."""

    def __init__(self, begin: Callable[[str, Clock], Recording], gate: "Callable[[], LiveGate] | None" = None) -> None:
        """`gate` creates the gate of an origin."""
        self._begin = begin
        self._gate = gate
        self._known: dict[str, Origin] = {}  # least recently used first

    def at(self, url: str, busy: Callable[[], Collection[Origin]]) -> Origin | None:
        """Return the origin of that URL; None if there are too many and all are in `busy`, which have flows."""
        origin = self._known.pop(url, None)
        if origin is None:
            if len(self._known) >= MOST_ORIGINS:
                working = busy()
                idle = next((it for it in self._known.values() if it not in working), None)
                if idle is None:
                    return None
                self._known.pop(idle.url).end()
            origin = Origin(url, self._begin, self._gate() if self._gate else None)
        self._known[url] = origin
        return origin

    def end(self) -> None:
        """End every capture."""
        for origin in self._known.values():
            origin.end()


_SWITCHED = 101


class Flow:
    """The channels of one flow: request, response, and the two directions of a WebSocket.

    `head` is the request's head without its `headers`, `peer` the client's address. `report` gets a sentence for the
    user. The request's channel opens with its first use; its time is that at which the flow was created.
    """

    def __init__(
        self, origin: Origin, head: dict[str, Any], headers: RawHeaders, peer: str, report: Callable[[str], None]
    ) -> None:
        self.origin = origin
        self.pending = Pending(origin.recording, f"the capture of {origin.url}")
        self._mute = False  # whether the response cannot contain a message
        self._open = {"request", "response"}  # the parts that have not ended yet
        self.recording = Recording(report, origin.clock, sink=self.pending)
        self.abandon: Callable[[], None] = lambda: None
        """Called before the end, so that a gate records what it still holds."""
        self._exchange = HttpExchange(self.recording)
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.pending.accept()
        self._request = origin.now(), head | {"headers": fields}, peer

    def open_request(self, changes: Fields | None = None) -> Body:
        """Open the channel of the request; `changes` are `sent` and `by` if its head is forwarded changed."""
        return self._exchange.request or self._exchange.open_request(*self._request, changes)

    @property
    def request(self) -> Body:
        """The channel of the request."""
        return self.open_request()

    @property
    def response(self) -> Body | None:
        """The channel of the response; None before it begins."""
        return self._exchange.response

    @property
    def sockets(self) -> dict[str, Body]:
        """The two directions of the WebSocket, by sender; empty before it begins."""
        return self._exchange.sockets

    def respond(
        self,
        t: int,
        status: int,
        reason: str,
        headers: RawHeaders,
        sender: str = "server",
        changes: Fields | None = None,
    ) -> Body:
        """Open the channel of the response, whose head was read at `t`; `sender` is `mcpspy` for our own response.

        `changes` are `sent` and `by` if the head is forwarded changed.
        """
        self.open_request()
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.pending.accept()
        self._mute = status != _SWITCHED and not may_hold_messages(every(headers, b"content-type"))
        self._discard_if_mute()
        return self._exchange.open_response(t, {"status": status, "reason": reason, "headers": fields}, sender, changes)

    @property
    def over(self) -> bool:
        """Whether all parts have ended."""
        return not self._open

    def request_ended(self, t: int) -> None:
        """Record that the request ended normally."""
        self.request.end(t, "eof")
        self._open.discard("request")
        self._discard_if_mute()

    def response_ended(self, t: int, *, switch: bool) -> None:
        """Record that the response ended normally; with `switch` the flow continues as a WebSocket."""
        if self.response:
            self.response.end(t, "eof")
        self._open.discard("response")
        if switch:
            self._open.add("socket")
            self._exchange.open_socket(t)

    def refuse(self, t: int, status: int, reason: str, why: str) -> None:
        """Record that we answered the request ourselves and did not forward it."""
        self.respond(t, status, reason, [], "mcpspy").feed(f"mcpspy: {why}".encode(), t)
        self.end(t, "abort", "eof")

    def message(self, t: int, opcode: int, payload: bytes, *, from_client: bool) -> None:
        """Record a complete message of the WebSocket, read at `t` (RFC 6455, 5.2)."""
        self._exchange.message(t, "client" if from_client else "server", opcode, payload)

    def socket_ended(self, t: int, code: int, reason: str, *, by_client: bool) -> None:
        """Record that the WebSocket was closed; both sides got the close frame of the side that closed first."""
        self._exchange.close_socket(t, code, reason, "client" if by_client else "server")
        self._open.clear()

    def end(self, t: int, request: str, response: str) -> None:
        """End what is still open; `request` and `response` are the values of `close.how`."""
        self.abandon()
        self.open_request()
        self._exchange.end(t, request, response)
        self._open.clear()

    def _discard_if_mute(self) -> None:
        if self._mute and "request" not in self._open:
            self.pending.discard()


CODED_PIECE = 1024
"""Bytes of a compressed body that are decoded at once; one byte may decode to a thousand."""
TURN = 5_000_000
"""Nanoseconds of decoding in one turn of the event loop."""
BACKLOG = 16 << 20
"""Bytes of a flow that may wait to be recorded; if there are more, the turn goes on and other traffic waits."""


class Turns:
    """The entries of a flow that are forwarded and not recorded yet, in order; a compressed body takes many turns.

    `later` schedules a function for a later turn of the event loop.
    """

    def __init__(self, flow: Flow, later: Callable[[Callable[[], None]], object]) -> None:
        self.flow = flow
        self._later = later
        self._waiting: deque[Callable[[], bool]] = deque()  # each returns whether it decoded a compressed body
        self._size = 0

    def add(self, record: Callable[[Flow, int], object]) -> None:
        """Add an entry; `record` is called with the current time, unless the flow is over by then."""
        t = self.flow.origin.now()

        def step() -> bool:
            if not self.flow.over:
                record(self.flow, t)
            return False

        self._append(step)

    def feed(self, chunk: bytes, *, by_client: bool) -> None:
        """Add bytes of a body: of the request, or of the response."""
        t, rest = self.flow.origin.now(), chunk
        self._size += len(chunk)

        def step() -> bool:
            nonlocal rest
            body = self.flow.request if by_client else self.flow.response
            coded = body is not None and body.coded
            piece = rest[:CODED_PIECE] if coded and not self.flow.pending.discarded else rest
            self._size -= len(piece)
            rest = rest[len(piece) :]
            if rest:
                self._waiting.appendleft(step)
            if body and not self.flow.pending.discarded:
                body.feed(piece, t)
            return coded

        self._append(step)

    def finish(self) -> None:
        """Record everything now; an exception of a bug stops it silently."""
        with suppress(Exception):
            while self._waiting:
                self._waiting.popleft()()

    def _append(self, step: Callable[[], bool]) -> None:
        self._waiting.append(step)
        if len(self._waiting) == 1:
            self._later(self._turn)

    def _turn(self) -> None:
        until = time.monotonic_ns() + TURN
        try:
            while self._waiting:
                coded = self._waiting.popleft()()
                if coded and time.monotonic_ns() >= until and self._size <= BACKLOG:
                    break
        finally:
            if self._waiting:
                self._later(self._turn)
