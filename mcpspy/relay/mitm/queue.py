"""One HTTP exchange or WebSocket that passes an interceptor, recorded as the other relays record theirs, if it is MCP.

An interceptor sees everything that a client says to a host, and only content tells what of it is MCP: a header that the
protocol owns, or a message of JSON-RPC. Until then the records of a flow are held here; its bytes have gone on already.
A flow that has said so much without a sign is none, and is forgotten, as is one whose answer cannot hold a message.

Nothing here knows the library that intercepts: heads and chunks come in, with the time at which they were read. Nobody
waits until they are recorded, so a body that stands for many times as much is taken apart in turns with all else.
"""

import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from mcpspy.recording.stream import Body, Tap
from mcpspy.relay.http.heads import RawHeaders, every, recorded
from mcpspy.secrets.redactor import is_form, is_oauth_endpoint
from mcpspy.wire.http_head import SIGN_OF_MCP, may_hold_messages, speaks_mcp

if TYPE_CHECKING:
    from mcpspy.capture.writer import Writer

HELD = 1 << 18
"""Bytes of a flow that are held until it has told what it is."""
_RECORD = 64  # what an empty frame takes of that

_SIGN = 64  # bytes that a sign of MCP may have before the border of a piece

CODED_PIECE = 1024
"""Bytes of a coded body that are taken apart at once, for each may stand for a thousand."""
TURN = 5_000_000
"""Nanoseconds for which pieces are taken apart in one turn of the event loop."""
BACKLOG = 16 << 20
"""Bytes of a flow that may wait for their turns; past that, everything else waits for them."""

ORIGINS = 64
"""Origins that are kept at a time: a process may have open no more than 256 files on some systems."""

_SWITCHED = 101
_CLOSE = 8
_NO_CLOSE_FRAME = 1006  # RFC 6455, 7.1.5


class Origin:
    """An upstream origin: its clock, and its capture, which its first MCP flow opens.

    `create` makes the capture's writer; it has said why when it returns None.
    """

    def __init__(self, url: str, create: "Callable[[Origin], Writer | None]") -> None:
        self.url = url
        self.started, self.wall = time.monotonic_ns(), time.time_ns()
        """Nanoseconds: on the monotonic clock, and since the epoch."""
        self._create: Callable[[Origin], Writer | None] | None = create
        self._writer: Writer | None = None
        self._channels = 0

    def now(self) -> int:
        """Nanoseconds since the origin was first seen."""
        return time.monotonic_ns() - self.started

    def writer(self) -> "Writer | None":
        """The writer of the capture, which is made at the first call."""
        if self._create:
            create, self._create = self._create, None
            self._writer = create(self)
        return self._writer

    def channel(self) -> int:
        """The number of the next channel of the capture."""
        self._channels += 1
        return self._channels

    def end(self) -> None:
        """End the capture, if there is one."""
        if self._writer:
            self._writer.end(self.now(), None, None)
            self._writer = None
        self._create = None


class Origins:
    """The origins of late, by URL; a new one may end the capture of the one that has been idle for longest."""

    def __init__(self, create: "Callable[[Origin], Writer | None]") -> None:
        self._create = create
        self._known: dict[str, Origin] = {}  # what was asked for last stands last

    def at(self, url: str, busy: Callable[[], Collection[Origin]]) -> Origin | None:
        """The origin of that URL; None if there are too many of which none is idle. `busy` are those with a flow."""
        origin = self._known.pop(url, None)
        if origin is None:
            if len(self._known) >= ORIGINS:
                working = busy()
                idle = next((it for it in self._known.values() if it not in working), None)
                if idle is None:
                    return None
                self._known.pop(idle.url).end()
            origin = Origin(url, self._create)
        self._known[url] = origin
        return origin

    def end(self) -> None:
        """End every capture."""
        for origin in self._known.values():
            origin.end()


class Held:
    """Takes the place of an origin's `Writer` for one flow, and looks for a sign of MCP in what it is given.

    Channels of the flow are numbered from 1; in the capture they get numbers that its other flows do not have.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._waiting: list[tuple[Any, ...]] | None = []  # None once it is known what the flow is
        self._size = 0
        self._tails: dict[int, bytes] = {}  # of frames whose next piece is to come, by channel
        self._writer: Writer | None = None
        self._numbers: dict[int, int] = {}

    @property
    def path(self) -> str:
        """Where the capture lies, for a user who has to be told that recording stopped."""
        return self._writer.path if self._writer else f"the capture of {self._origin.url}"

    def release(self) -> None:
        """It is MCP: write what was held, and from now on what comes."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._writer = self._origin.writer()
            for method, *arguments in waiting:
                method(self, *arguments)

    def forget(self) -> None:
        """It is something else, unless it was released."""
        self._waiting = None

    @property
    def forgotten(self) -> bool:
        """Whether nothing of it is written any more."""
        return self._waiting is None and self._writer is None

    def open(self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any]) -> None:
        """As of a Writer."""
        if self._waiting is not None:
            self._waiting.append((Held.open, ch, t, sender, role, framing, rest))
        elif self._writer:
            self._numbers[ch] = self._origin.channel()
            if "answers" in rest:
                rest = rest | {"answers": self._numbers[rest["answers"]]}
            self._writer.open(self._numbers[ch], t, sender, role, framing, rest)

    def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, object] | None = None) -> None:
        """As of a Writer."""
        if self._waiting is not None:
            seen = self._tails.pop(ch, b"") + raw
            if more:
                self._tails[ch] = seen[-_SIGN:]
            if SIGN_OF_MCP.search(seen):
                self.release()
        if self._waiting is not None:
            self._size += len(raw) + _RECORD
            if self._size > HELD:
                self.forget()
            else:
                self._waiting.append((Held.frame, ch, t, raw, more, cut, rest))
        elif self._writer:
            self._writer.frame(self._numbers[ch], t, raw, more, cut, rest)

    def close(self, ch: int, t: int, how: str, rest: dict[str, object] | None = None) -> None:
        """As of a Writer."""
        if self._waiting is not None:
            self._waiting.append((Held.close, ch, t, how, rest))
        elif self._writer:
            self._writer.close(self._numbers[ch], t, how, rest)


class Flow:
    """The channels of one flow: those of the request, of what answers it, and of a WebSocket.

    `head` is the request's but for its `headers`; `peer` the client's address; `say` gets a sentence for the user.
    """

    def __init__(
        self, origin: Origin, head: dict[str, Any], headers: RawHeaders, peer: str, say: Callable[[str], None]
    ) -> None:
        self.origin = origin
        self.held = Held(origin)
        self._mute = False  # what answers it cannot hold a message
        self._open = {"request", "response"}  # what has not ended yet
        self._secret = is_form(every(headers, b"content-type")) or is_oauth_endpoint(head["target"])
        self._tap = Tap(cast("Writer", self.held), say)
        self._sockets: dict[bool, Body] = {}  # by whether the client sends
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.held.release()
        self.asked = self._tap.open_body(
            origin.now(),
            "client",
            "request",
            "body",
            {"peer": peer, "head": head | {"headers": fields}},
            encoding=every(headers, b"content-encoding"),
            secret=self._secret,
        )
        self.answer: Body | None = None

    def respond(self, t: int, status: int, reason: str, headers: RawHeaders, sender: str = "server") -> Body:
        """Begin the answer, whose head came at `t`; `sender` is `mcpspy` where it was made on this side."""
        kind = every(headers, b"content-type").lower()
        fields = recorded(headers)
        if speaks_mcp(fields):
            self.held.release()
        self._mute = status != _SWITCHED and not may_hold_messages(kind)
        self._forget_if_mute()
        framing = "sse" if "text/event-stream" in kind else "body"
        self.answer = self._tap.open_body(
            t,
            sender,
            "response",
            framing,
            {
                "answers": self.asked.number,
                "head": {"status": status, "reason": reason, "headers": fields},
            },
            encoding=every(headers, b"content-encoding"),
            secret=(self._secret or "html" in kind) and sender == "server",
        )
        return self.answer

    @property
    def over(self) -> bool:
        """Whether all of it has ended."""
        return not self._open

    def asked_all(self, t: int) -> None:
        """The request has ended in order."""
        self.asked.end(t, "eof")
        self._open.discard("request")
        self._forget_if_mute()

    def answered_all(self, t: int, *, switch: bool) -> None:
        """The response has ended in order; with `switch` the flow goes on as a WebSocket."""
        if self.answer:
            self.answer.end(t, "eof")
        self._open.discard("response")
        if switch:
            self._switch(t)

    def refuse(self, t: int, status: int, reason: str, why: str) -> None:
        """It was answered on this side, and goes no further."""
        self.respond(t, status, reason, [], "mcpspy").feed(f"mcpspy: {why}".encode(), t)
        self.end(t, "abort", "eof")

    def _switch(self, t: int) -> None:
        self._open.add("socket")
        for sender in ("client", "server"):
            fields = {"answers": self.asked.number}
            body = self._tap.open_body(t, sender, "ws", "message", fields)
            self._sockets[sender == "client"] = body

    def message(self, t: int, opcode: int, payload: bytes, *, from_client: bool) -> None:
        """A whole message of the WebSocket, read at `t` (RFC 6455, 5.2)."""
        self._sockets[from_client].feed(_frame(opcode, payload), t)

    def hang_up(self, t: int, code: int, reason: str, *, by_client: bool) -> None:
        """The WebSocket was closed; each side got the close frame of the one that began."""
        ends = ("reset", "abort") if code == _NO_CLOSE_FRAME else ("eof", "eof")
        for from_client, how in ((by_client, ends[0]), (not by_client, ends[1])):
            if how == "eof":
                self.message(t, _CLOSE, code.to_bytes(2) + reason.encode(), from_client=from_client)
            self._sockets[from_client].end(t, how)
        self._open.clear()

    def end(self, t: int, asked: str, answer: str) -> None:
        """End what is open of the request, and of what answers it, in these ways."""
        self.asked.end(t, asked)
        for body in (self.answer, *self._sockets.values()):
            if body:
                body.end(t, answer)
        self._open.clear()

    def _forget_if_mute(self) -> None:
        if self._mute and "request" not in self._open:
            self.held.forget()


class Turns:
    """What is still to be recorded of a flow, in order, once it has been forwarded; a coded body in many turns.

    `later` has a function called in a later turn of the event loop.
    """

    def __init__(self, flow: Flow, later: Callable[[Callable[[], None]], object]) -> None:
        self.flow = flow
        self._later = later
        self._waiting: deque[Callable[[], bool]] = deque()  # each returns whether it took apart what is coded
        self._size = 0

    def add(self, record: Callable[[Flow, int], object]) -> None:
        """Something happens; `record` gets the time of now, unless the flow is over by then."""
        t = self.flow.origin.now()

        def step() -> bool:
            if not self.flow.over:
                record(self.flow, t)
            return False

        self._append(step)

    def feed(self, chunk: bytes, *, by_client: bool) -> None:
        """Bytes of a body go by, of the request or of what answers it."""
        t, rest = self.flow.origin.now(), chunk
        self._size += len(chunk)

        def step() -> bool:
            nonlocal rest
            body = self.flow.asked if by_client else self.flow.answer
            coded = body is not None and body.coded
            piece = rest[:CODED_PIECE] if coded and not self.flow.held.forgotten else rest
            self._size -= len(piece)
            rest = rest[len(piece) :]
            if rest:
                self._waiting.appendleft(step)
            if body and not self.flow.held.forgotten:
                body.feed(piece, t)
            return coded

        self._append(step)

    def finish(self) -> None:
        """Record all of it now, or up to a bug."""
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


def _frame(opcode: int, payload: bytes) -> bytes:
    """A message as one unmasked frame (RFC 6455, 5.2), which is what a channel of a WebSocket takes."""
    size = len(payload)
    if size < 126:
        length = bytes((size,))
    elif size < 1 << 16:
        length = b"\x7e" + size.to_bytes(2)
    else:
        length = b"\x7f" + size.to_bytes(8)
    return bytes((0x80 | opcode,)) + length + payload
