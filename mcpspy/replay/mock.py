"""A capture as a mock server: takes lines of a client, returns recorded lines.

A request that was recorded plays its turn: everything that the server sent in response, in that order. A line that had
waited for the client (for its response to a request of the server, or for a cancellation) waits for it again. The
output is recorded byte for byte, except for the values of the current client: the ids of its requests, its progress
tokens, its subscriptions. The values that a server issues (cursors, tasks, states) are the recorded ones, so the client
returns recorded values too.

`Mock` knows no streams and no clock: the caller passes the time in nanoseconds, and the mock returns when a line is
due. `serve` provides both, on stdio; `http_mock` over HTTP.

`Missing` is the real server for what a capture lacks: it takes lines of a client and of that server, and returns lines
for both. The real server receives only a part of the session: the client's own handshake, then the requests that the
capture cannot answer. They are sent byte for byte, with their ids, because the ids of one client are unique. Only the
requests of the real server get other ids, because the capture's server may use the same ones. The response to the
handshake is for the mock. Everything else is for the client: responses, progress, log messages, changes of lists.
`Missing` knows no processes either. `begin` starts the server at the first request that needs it. `said` and `ended`
are called with its output.
"""

import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mcpspy.conversation.model import Message
from mcpspy.conversation.offers import HANDSHAKES
from mcpspy.json_values import Path, member
from mcpspy.replay.differences import Difference, answer_differences
from mcpspy.replay.issued_values import canonical, edited, json_text, rewritten
from mcpspy.replay.match import Matcher, Miss, key
from mcpspy.replay.script import CANCELLED, PROGRESS, Script, ScriptLine, Turn, answer, progress_token
from mcpspy.replay.tolerance import NO_RULES, Rules
from mcpspy.spec.revisions import SUBSCRIPTION_ID
from mcpspy.transport.streams import chunks, lines, send
from mcpspy.wire.jsonrpc import Body, Error, Id, Invalid, Notification, Request, Result, exact_id, parse
from mcpspy.wire.subject import subject


@dataclass(frozen=True, slots=True)
class OutgoingFrame:
    """A line that the mock sends."""

    raw: bytes
    """The bytes without a newline."""
    request: Id | None
    """The client's request whose stream it belongs to, if there are several streams."""
    answer: bool
    """Whether it answers that request."""


def result_line(number: Id, result: dict[str, Any]) -> bytes:
    """Return the line of a result that the mock itself makes."""
    return _line({"result": result}, number)


def error_line(number: Id | None, code: int, text: str) -> bytes:
    """Return the line of an error that the mock itself makes."""
    return _line({"error": {"code": code, "message": text}}, number)


def _line(fields: dict[str, Any], number: Id | None) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{json_text(number)},{json_text(fields)[1:]}'.encode()


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


_UNKNOWN = -32601  # no request of this method was recorded: this server does not have it
_NOT_REPEATED = (*HANDSHAKES, "ping")  # a client may connect once where several sessions were recorded
_NOT_RECORDED = -32603  # one was, with other params; those may be valid, but the mock cannot answer them


Heard = queue.SimpleQueue[Callable[[], None] | None]
"""The calls that a mock still has to make, in order: one for each line."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A response of the client that differs from the recorded one, or that did not come."""

    question: Message
    """The recorded request of the server."""
    difference: Difference | None
    """The first difference between the responses; None if there was no response."""


@dataclass(slots=True, eq=False)
class _Playing:
    """A turn in progress."""

    left: list[ScriptLine]
    """The lines that are still to be sent."""
    turn: Turn | None
    asked: Request | None
    """The client's request that it answers."""
    at: int
    """When the line before was due, or when the message that it waited for came."""
    then: int
    """The time of that in the capture."""
    tokens: dict[str, Any] = field(default_factory=dict)
    """The current progress token of the request, by the recorded one."""
    met: set[int] = field(default_factory=set)
    """The line numbers of messages that lines wait for and the client has sent."""


class Mock:
    """The server's side of some scripts."""

    def __init__(
        self,
        scripts: Iterable[Script],
        *,
        recorded_pace: bool = False,
        loose: bool = False,
        rules: Rules = NO_RULES,
        missing: Missing | None = None,
    ) -> None:
        """With `loose`, the nearest recording of the same method and name answers a request that has no answer.

        `rules` say what may differ in the client's requests and answers. With `missing`, that receives the requests
        that have no answer in the scripts.
        """
        self.misses: list[Miss] = []
        self.wrong: list[Wrong] = []
        self.notices: list[str] = []
        """A sentence for each request that the nearest recording answers; the caller empties the list."""
        self._scripts = list(scripts)
        turns = [turn for script in self._scripts for turn in script.turns if not (missing and turn.unanswered)]
        self._matcher = Matcher(turns, rules)
        self._rules = rules
        self._notified = [turn for turn in turns if isinstance(turn.cause.body, Notification) and turn.said]
        self._nonsense = {turn.cause.frame.raw: turn for turn in turns if isinstance(turn.cause.body, Invalid)}
        self._methods = {turn.method for turn in turns if turn.exchange}
        self._missing = missing
        self._recorded_pace = recorded_pace
        self._loose = loose
        self._playing: dict[Id, _Playing] = {}  # by the id of the client's request
        self._ids: dict[Id, Id] = {}  # ids of the client's requests, by the recorded ids
        self._tokens: dict[str, Any] = {}  # its progress tokens, by the recorded ones
        self._questions: dict[Id, tuple[_Playing, Message]] = {}  # pending requests to the client, by the id in use
        self._question_ids: dict[Id, Id] = {}  # the ids in use, by the recorded ids
        self._numbers, self._order = itertools.count(1), itertools.count()
        self._due: list[tuple[int, int, _Playing | None, OutgoingFrame]] = []  # a heap: when due, order, turn, line

    def begin(self, now: int) -> None:
        """Begin the session: the lines that the server sent before any request are due."""
        for script in self._scripts:
            self._play(None, script.opening, None, now)

    def feed(self, raw: bytes, now: int) -> None:
        """Process a line of the client."""
        for part, body in enumerate(parse(raw)):
            if self._missing and self._missing.hear(raw, part, body):
                continue
            if isinstance(body, Request):
                self._request(raw, part, body, now)
            elif isinstance(body, Result | Error):
                self._answer(body, now)
            elif isinstance(body, Invalid):
                self._invalid(raw, body, now)
            elif body.method == CANCELLED:
                target = member(body.params, "requestId")
                self._cancel(exact_id(target, raw, part, "params", "requestId"), now)
            else:
                self._notification(body, now)

    def due(self, now: int) -> list[OutgoingFrame]:
        """Return the lines that are due by now."""
        found = self._missing.take() if self._missing else []
        while self._due and self._due[0][0] <= now:
            found.append(heapq.heappop(self._due)[3])
        return found

    @property
    def failed(self) -> bool:
        """Whether the real server left a request unanswered that the scripts lack."""
        return self._missing is not None and self._missing.failed

    @property
    def unused(self) -> list[Turn]:
        """The recorded requests that the client never sent, except for those that it need not repeat."""
        return [turn for turn in self._matcher.unserved if turn.method not in _NOT_REPEATED]

    @property
    def next(self) -> int | None:
        """When the next line is due; None if the mock waits for the client."""
        return self._due[0][0] if self._due else None

    def end(self) -> None:
        """Record that the client has left: its pending requests have no response."""
        for _, asked in self._questions.values():
            if asked.exchange and asked.exchange.response:
                self.wrong.append(Wrong(asked, None))

    def _request(self, raw: bytes, part: int, request: Request, now: int) -> None:
        turn = self._matcher.find(request)
        if isinstance(turn, Miss) and self._loose and turn.loose:
            self.notices.append(f"answered with the nearest recording: {turn}")
            turn = self._matcher.serve(turn.loose)
        if isinstance(turn, Miss):
            if not self._answer_by_rule(request, now):
                self._miss(raw, part, request, turn, now)
            return
        assert isinstance(turn.cause.body, Request)
        self._ids[turn.cause.body.id] = request.id
        token = progress_token(turn.params)
        tokens = {} if token is None else {canonical(token): progress_token(request.params)}
        self._tokens |= tokens
        self._play(turn, turn.said, request, now, tokens)

    def _answer_by_rule(self, request: Request, now: int) -> bool:
        """Answer or refuse standard requests whose method was not recorded; return whether that was done.

        These are `ping`, which any server answers, and `server/discover`, which servers of the handshake era refuse.
        """
        if request.method in self._methods:
            return False
        if request.method == "ping":
            line = result_line(request.id, {})
        elif request.method == "server/discover" and (self._methods or not self._missing):
            line = error_line(request.id, _UNKNOWN, "Method not found")
        else:
            return False
        self._put(now, None, OutgoingFrame(line, request.id, answer=True))
        return True

    def _miss(self, raw: bytes, part: int, request: Request, miss: Miss, now: int) -> None:
        """Answer a request that was not recorded with an error, or pass it to the real server."""
        if self._missing:
            self._missing.ask(raw, part, request, miss.asked)
            return
        self.misses.append(miss)
        code = _NOT_RECORDED if request.method in self._methods else _UNKNOWN
        self._put(now, None, OutgoingFrame(error_line(request.id, code, str(miss)), request.id, answer=True))

    def _invalid(self, raw: bytes, body: Invalid, now: int) -> None:
        """Send the recorded response to an invalid frame, or the JSON-RPC error for it if it was not recorded."""
        turn = self._nonsense.get(raw)
        if turn:
            self._play(turn, turn.said, None, now)
        else:
            code = -32700 if body.value is None else -32600
            self._put(now, None, OutgoingFrame(error_line(None, code, f"this is {body.reason}"), None, answer=False))

    def _notification(self, notification: Notification, now: int) -> None:
        """Send what the server sent after such a notification, once for each recorded notification."""
        alike = [turn for turn in self._notified if turn.method == notification.method]
        same = key(notification.method, notification.params)
        turns = [turn for turn in alike if key(notification.method, turn.params) == same] or alike
        if turns:
            self._notified.remove(turns[0])
            self._play(turns[0], turns[0].said, None, now)

    def _cancel(self, target: Id, now: int) -> None:
        """Stop sending for a cancelled request, unless the recorded server answered it anyway."""
        playing = self._playing.get(target)
        if playing is None:
            return
        gates = [gate for line in playing.left for gate in line.gates if gate.cancels]
        if gates:
            self._meet(playing, gates[0], now)
            return
        playing.left.clear()
        self._due = [it for it in self._due if it[2] is not playing]
        heapq.heapify(self._due)
        self._questions = {number: it for number, it in self._questions.items() if it[0] is not playing}

    def _answer(self, body: Result | Error, now: int) -> None:
        playing, asked = self._questions.pop(body.id, (None, None)) if body.id else (None, None)
        recorded = asked.exchange.response if asked and asked.exchange else None
        if playing is None or asked is None or recorded is None:
            return
        assert isinstance(recorded.body, Result | Error)
        name = subject(asked.body.value["method"], member(asked.body.value, "params"))
        every = answer_differences(answer(recorded.body), answer(body))
        found = self._rules.unexpected(asked.body.value["method"], name, every)
        if found:
            self.wrong.append(Wrong(asked, found[0]))
        self._meet(playing, recorded, now)

    def _meet(self, playing: _Playing, said: Message, now: int) -> None:
        """Record that the client has sent what lines of a turn wait for."""
        playing.met.add(said.n)
        playing.at, playing.then = now, said.t
        self._advance(playing)

    def _play(
        self,
        turn: Turn | None,
        said: list[ScriptLine],
        asked: Request | None,
        now: int,
        tokens: dict[str, Any] | None = None,
    ) -> None:
        playing = _Playing(list(said), turn, asked, now, turn.cause.t if turn else 0, tokens or {})
        if asked:
            self._playing[asked.id] = playing
        self._advance(playing)

    def _advance(self, playing: _Playing) -> None:
        """Schedule the lines of a turn, up to one that waits for the client."""
        while playing.left and all(gate.n in playing.met for gate in playing.left[0].gates):
            message = playing.left.pop(0).message
            if self._recorded_pace:
                playing.at += max(message.t - playing.then, 0)
                playing.then = message.t
            said = self._rendered(message, playing)
            if said is not None:
                self._put(playing.at, playing, said)

    def _rendered(self, message: Message, playing: _Playing) -> OutgoingFrame | None:
        """Return a recorded message for the current client; None for progress that it did not request."""
        body = message.body
        changes: dict[Path, Any] = {}
        request = playing.asked.id if playing.asked else None
        if isinstance(body, Request):
            number = body.id if body.id not in self._questions else Id("string", f"mcpspy-{next(self._numbers)}")
            self._questions[number] = (playing, message)
            self._question_ids[body.id] = number
            changes = _change(("id",), body.id, number)
        elif isinstance(body, Result | Error):
            if body.id and playing.asked and message.exchange:
                changes = _change(("id",), body.id, playing.asked.id) | self._echoed(message, playing)
        elif isinstance(body, Notification):
            token = member(body.params, "progressToken") if body.method == PROGRESS else None
            today = token if token is None else self._token(token, playing)
            if token is not None and today is None:
                return None
            subscription = Id.of(member(body.params, "_meta", SUBSCRIPTION_ID))
            request = self._ids.get(subscription, request)
            changes = _change(("params", "progressToken"), token, today) | self._named_today(body, subscription)
        answers = isinstance(body, Result | Error) and message.exchange is not None
        return OutgoingFrame(rewritten(message, changes), request, answers)

    def _echoed(self, message: Message, playing: _Playing) -> dict[Path, Any]:
        """Return the changes to an answer that repeats values of the request."""
        if playing.turn is None or playing.asked is None or message is not playing.turn.response:
            return {}
        method, name = playing.asked.method, playing.turn.name
        return self._rules.echoed(method, name, playing.turn.params, playing.asked.params, message.body.value)

    def _token(self, recorded: Any, playing: _Playing) -> Any:
        """Return the current progress token; None if the client requested no progress."""
        known = canonical(recorded)
        return playing.tokens.get(known, self._tokens.get(known, recorded))

    def _named_today(self, body: Notification, subscription: Id) -> dict[Path, Any]:
        """Return the changes for the other ids in a notification: subscription and cancelled request."""
        listen = self._ids.get(subscription, subscription)
        changes = _change(("params", "_meta", SUBSCRIPTION_ID), subscription, listen)
        if body.method == CANCELLED:
            asked = Id.of(member(body.params, "requestId"))
            changes |= _change(("params", "requestId"), asked, self._question_ids.get(asked, asked))
        return changes

    def _put(self, at: int, playing: _Playing | None, said: OutgoingFrame) -> None:
        heapq.heappush(self._due, (at, next(self._order), playing, said))


def _change(path: Path, before: Any, now: Any) -> dict[Path, Any]:
    return {} if before == now else {path: now}


def serve(mock: Mock, source: int, sink: int, say: Callable[[str], None], heard: Heard | None = None) -> bool:
    """Serve a client with `mock` on two descriptors until the client leaves; `say` receives the notices.

    Other threads put further calls into `heard`, and None to end the mock. Return whether the client still reads.
    """
    todo = heard or queue.SimpleQueue()

    def listen() -> None:
        for line in lines(chunks(source)):
            todo.put(lambda line=line: mock.feed(line, time.monotonic_ns()))  # type: ignore[misc]
        todo.put(None)

    threading.Thread(target=listen, daemon=True).start()
    mock.begin(time.monotonic_ns())
    while say_due(mock, sink):
        wait = None if mock.next is None else max(mock.next - time.monotonic_ns(), 0) / 1e9
        try:
            take = todo.get(timeout=wait)
        except queue.Empty:
            continue
        if take is None:
            mock.end()
            return True
        take()
        for notice in mock.notices:
            say(notice)
        mock.notices.clear()
    mock.end()
    return False


def say_due(mock: Mock, sink: int) -> bool:
    """Send the lines that are due to the client; return False if it no longer reads."""
    return all(send(sink, said.raw) for said in mock.due(time.monotonic_ns()))
