"""The real server for what a capture lacks: takes lines of a client and of that server, returns lines for both.

The real server receives only a part of the session: the client's own handshake, then the requests that the capture
cannot answer. They are sent byte for byte, with their ids, because the ids of one client are unique. Only the requests
of the real server get other ids, because the capture's server may use the same ones. The response to the handshake is
for the mock. Everything else is for the client: responses, progress, log messages, changes of lists.

Nothing here knows processes or clocks. `begin` starts the server at the first request that needs it. `said` and `ended`
are called with its output.
"""

import itertools
from collections.abc import Callable
from typing import Any

from mcpspy.json_values import Path, member
from mcpspy.replay.issued_values import edited
from mcpspy.replay.mock.frames import OutgoingFrame, error_line
from mcpspy.replay.script.turns import CANCELLED, PROGRESS, progress_token
from mcpspy.wire.jsonrpc import Body, Error, Id, Invalid, Notification, Request, Result, exact_id, parse

_FAILED = -32603
_INITIALIZE, _INITIALIZED = "initialize", "notifications/initialized"


class Missing:
    """The requests of one client that are not in the capture, and the server that answers them.

    `begin` starts the server, which passes its lines to this object, and returns the function that sends it a line.
    """

    def __init__(self, begin: Callable[["Missing"], Callable[[bytes], None]]) -> None:
        self.asked: list[str] = []
        """The requests that were sent to the server, by method and name, for people."""
        self.failed = False
        """The server did not answer a request."""
        self.revision: str | None = None
        """The revision in the server's response to the handshake."""
        self._out: list[OutgoingFrame] = []
        self._begin = begin
        self._send: Callable[[bytes], None] | None = None
        self._over: str | None = None  # why the server answers nothing more
        self._initialize: tuple[Id, bytes] | None = None  # the handshake of the current client, and its end
        self._initialized: bytes | None = None
        self._handshake: Id | None = None  # the mock's request that is not answered yet
        self._waiting: list[tuple[Id | None, bytes]] = []  # lines to send after the handshake, with the ids of requests
        self._requests: dict[Id, str] = {}  # the client's pending requests: the name for people, by id
        self._questions: dict[Id, Id] = {}  # the server's requests: its own id by the id for the client
        self._tokens: list[Any] = []  # progress tokens in the server's requests
        self._numbers = itertools.count(1)

    @property
    def pending(self) -> bool:
        """Whether the server still has requests to answer."""
        return bool(self._requests)

    def take(self) -> list[OutgoingFrame]:
        """Return the lines for the client that were not taken before."""
        found, self._out = self._out, []
        return found

    def hear(self, raw: bytes, part: int, body: Body) -> bool:
        """Process a message of the client before the mock does; return True if only the real server needs it."""
        if isinstance(body, Request) and body.method == _INITIALIZE:
            self._initialize, self._initialized = (body.id, edited(raw, part, {})), None
        elif isinstance(body, Result | Error) and body.id in self._questions:
            self._tell(edited(raw, part, {("id",): self._questions.pop(body.id)}))
            return True
        elif isinstance(body, Notification):
            self._notified(raw, part, body)
        return False

    def ask(self, raw: bytes, part: int, request: Request, what: str) -> None:
        """Send a request that is not in the capture to the server; `what` is its name for people."""
        if self._over:
            self._fail(request.id, what)
            return
        line = edited(raw, part, {})
        self.asked.append(what)
        self._requests[request.id] = what
        if self._send is None:
            self._send = self._begin(self)
            if self._initialize and request.method != _INITIALIZE:
                self._handshake, handshake = self._initialize
                self._send(handshake)
        self._tell(line, request.id)

    def said(self, raw: bytes) -> None:
        """Process a line of the server."""
        for part, body in enumerate(parse(raw)):
            if isinstance(body, Result | Error):
                self._answered(raw, part, body)
            elif isinstance(body, Request):
                number = Id("string", f"mcpspy-live-{next(self._numbers)}")
                self._questions[number] = body.id
                token = progress_token(body.params)
                self._tokens += [] if token is None else [token]
                self._put(edited(raw, part, {("id",): number}))
            elif isinstance(body, Invalid):
                self._put(raw)
            else:
                self._put(edited(raw, part, self._renamed(raw, part, body)))

    def ended(self, how: str) -> None:
        """Record that the server sends nothing more: its pending requests fail."""
        self._over = self._over or f"the server {how}"
        for number, what in self._requests.items():
            self._fail(number, what)
        self._requests.clear()
        self._questions.clear()
        self._waiting.clear()

    def _notified(self, raw: bytes, part: int, body: Notification) -> None:
        """Forward the notifications that the server needs: for the handshake, its requests, and the client's state."""
        line = edited(raw, part, {})
        if body.method == _INITIALIZED:
            self._initialized = line
            if self._send is None or self._handshake:
                return  # it is sent after the handshake
        elif body.method == CANCELLED:
            target = exact_id(member(body.params, "requestId"), raw, part, "params", "requestId")
            waiting = [it for it in self._waiting if it[0] == target]
            self._waiting = [it for it in self._waiting if it[0] != target]
            if self._requests.pop(target, None) is None or waiting:
                return
        elif body.method == PROGRESS and member(body.params, "progressToken") not in self._tokens:
            return
        if self._send:
            self._tell(line)

    def _tell(self, line: bytes, request: Id | None = None) -> None:
        """Send a line after the handshake is complete."""
        if self._handshake:
            self._waiting.append((request, line))
        elif self._send:
            self._send(line)

    def _answered(self, raw: bytes, part: int, body: Result | Error) -> None:
        if self._handshake is not None and body.id == self._handshake:
            self._shaken(body)
            return
        answers = body.id is not None and self._requests.pop(body.id, None) is not None
        self._put(edited(raw, part, {}), body.id if answers else None)

    def _shaken(self, body: Result | Error) -> None:
        """Process the response to the handshake: send the lines that waited for it."""
        self._handshake = None
        if isinstance(body, Error):
            self.ended(f"refused the handshake: {member(body.error, 'message')}")
            return
        revision = member(body.result, "protocolVersion")
        self.revision = revision if isinstance(revision, str) else None
        assert self._send
        waiting, self._waiting = self._waiting, []
        for line in ([self._initialized] if self._initialized else []) + [line for _, line in waiting]:
            self._send(line)

    def _renamed(self, raw: bytes, part: int, body: Notification) -> dict[Path, Any]:
        """Return the changes to a notification by which the server cancels a request: the id that the client knows."""
        if body.method != CANCELLED:
            return {}
        target = exact_id(member(body.params, "requestId"), raw, part, "params", "requestId")
        found = [number for number, own in self._questions.items() if own == target]
        return {("params", "requestId"): found[0]} if found else {}

    def _put(self, raw: bytes, answers: Id | None = None) -> None:
        self._out.append(OutgoingFrame(raw, answers, answer=answers is not None))

    def _fail(self, number: Id, what: str) -> None:
        self.failed = True
        self._put(error_line(number, _FAILED, f"{what} was not recorded, and {self._over}"), number)
