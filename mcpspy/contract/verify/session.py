"""The session that is run bare and through a wrapper: what the client says, and one saying of it.

The theory. A session that two runs can be compared by is always the same. So the first run finds out what there is to
say (`scouted`): it greets the server as a client of the newest revision does, asks for all listings, and calls tools
that only read and need no arguments. What it said is the plan, and every later run says that, one request after the
other. A capture gives a plan without that (`recorded`). What the server issues anew each time (cursors) is put in its
place, and requests of the server are answered.
"""

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Protocol

from mcpspy import __version__
from mcpspy.conversation.offers import HANDSHAKES, LISTED
from mcpspy.errors import McpspyError, UsageError
from mcpspy.json_values import member
from mcpspy.replay.run import writing
from mcpspy.replay.script.edit import json_text, rewritten
from mcpspy.replay.script.issued_values import Values
from mcpspy.replay.script.turns import CANCELLED, Script, Turn
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse

EVERY = "all"
"""Names every tool."""
_DISCOVERY = 10.0  # seconds until a server that says nothing to `server/discover` is taken for an older one
_PAGES = 20  # of one listing
_READING = frozenset((*HANDSHAKES, *LISTED, "ping", "resources/read", "prompts/get", "completion/complete"))
_REPLIES: Mapping[str, Any] = {"ping": {}, "roots/list": {"roots": []}}
_ME = {"name": "mcpspy-verify", "version": __version__}
_META = {
    PROTOCOL_VERSION: STATELESS[0].value,
    "io.modelcontextprotocol/clientInfo": _ME,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class NoSession(McpspyError):
    """The server does not answer the first request, so there is nothing to compare."""


class Correspondent(Protocol):
    """A server that takes lines and gives lines."""

    def send(self, line: bytes) -> None:
        """Have a message sent."""

    def receive(self, seconds: float) -> bytes | None:
        """The next message; None when there will be none. Raises TimeoutError."""


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """One message of the client."""

    line: bytes
    method: str | None
    name: str | None = None
    """The tool, prompt or resource concerned."""
    id: Id | None = None
    """Of a request."""
    turn: Turn | None = None
    """Where it was recorded."""

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.method} {self.name}" if self.name else str(self.method)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a client says."""

    messages: tuple[PlannedMessage, ...]
    left_out: tuple[str, ...] = ()
    """What is not said again, for the server did not answer it."""
    replies: Mapping[str, Any] = field(default_factory=lambda: _REPLIES)
    """What the client answers to requests of the server, by their methods: results."""
    stateless: bool = False
    """There is no handshake: each request states its revision."""

    def without(self, place: int, why: str) -> "SessionPlan":
        """The plan less one message."""
        messages = (*self.messages[:place], *self.messages[place + 1 :])
        return replace(self, messages=messages, left_out=(*self.left_out, why))

    @property
    def greeting(self) -> tuple[PlannedMessage, ...]:
        """The messages up to the end of the handshake."""
        for place, message in enumerate(self.messages):
            if message.method not in (*HANDSHAKES, "notifications/initialized"):
                return self.messages[:place]
        return self.messages

    def ping(self, number: int) -> PlannedMessage:
        """A request that costs the server next to nothing."""
        if self.stateless:
            return _request(number, "server/discover", {"_meta": _META})
        return _request(number, "ping")


@dataclass(slots=True)
class Transcript:
    """What the server said in one run."""

    answers: dict[int, bytes] = field(default_factory=dict)
    """By the place of the request in the plan."""
    others: list[bytes] = field(default_factory=list)
    """Everything else: requests, notifications, what is no message."""
    trouble: str | None = None
    """Why the session broke off."""
    unanswered: int | None = None
    """The place of the request that was not answered in time, if that is why."""
    first: int | None = None
    """When the first answer came: nanoseconds of `time.perf_counter_ns`."""


class Talk:
    """Says one message after the other to a server, and keeps what it says."""

    def __init__(self, peer: Correspondent, seconds: float, replies: Mapping[str, Any] = _REPLIES) -> None:
        """`seconds` are for one answer."""
        self.said = Transcript()
        self._peer = peer
        self._seconds = seconds
        self._replies = replies

    def ask(self, message: PlannedMessage, place: int, seconds: float | None = None) -> Result | Error | None:
        """Send a message, and wait for what answers it; None for a notification.

        Raises TimeoutError, and EOFError where the server has ended.
        """
        self._peer.send(message.line)
        if message.id is None:
            return None
        limit = self._seconds if seconds is None else seconds
        due = time.monotonic() + limit
        while True:
            left = due - time.monotonic()
            try:
                if left <= 0:  # a server that talks without end always has a next line
                    raise TimeoutError
                raw = self._peer.receive(left)
            except TimeoutError:
                raise TimeoutError(f"no answer to {message.label} within {limit:g} s") from None
            if raw is None:
                raise EOFError(f"the server ended before it answered {message.label}")
            answer = self._taken(raw, message.id)
            if answer:
                self.said.answers[place] = raw
                self.said.first = self.said.first or time.perf_counter_ns()
                return answer

    def _taken(self, raw: bytes, wanted: Id) -> Result | Error | None:
        """Take what the server said: the answer that is waited for, or something else."""
        bodies = parse(raw)
        for body in bodies:
            if isinstance(body, Result | Error) and body.id == wanted:
                return body
            if isinstance(body, Request):
                known = self._replies.get(body.method)
                refusal = '"error":{"code":-32601,"message":"this client does not answer that"}'
                outcome = refusal if known is None else f'"result":{json_text(known)}'
                self._peer.send(f'{{"jsonrpc":"2.0","id":{json_text(body.id)},{outcome}}}'.encode())
        self.said.others.append(raw)
        return None


def said(plan: SessionPlan, peer: Correspondent, seconds: float) -> Transcript:
    """Say all of a plan; what cannot be gone on with ends it."""
    talk = Talk(peer, seconds, plan.replies)
    values = Values()
    place = 0
    try:
        for place, message in enumerate(plan.messages):
            turn = message.turn
            if turn:
                changes = values.changes(turn.method or "", turn.params, turn.cause.body.value)
                line = rewritten(turn.cause, changes)
                message = PlannedMessage(line, message.method, message.name, message.id, turn)  # noqa: PLW2901
            answer = talk.ask(message, place)
            if answer and turn and turn.response:
                values.learn(turn.method or "", turn.params, turn.response.body.value, answer.value)
    except EOFError as error:
        talk.said.trouble = str(error)
    except TimeoutError as error:
        talk.said.trouble, talk.said.unanswered = str(error), place
    return talk.said


def recorded(script: Script, calls: Collection[str]) -> SessionPlan:
    """What the client of a capture said: what only reads, and calls of the tools in `calls`. Raises UsageError."""
    skip = writing(script)
    tools = dict.fromkeys(turn.name or "" for turn in script.turns if turn.method == "tools/call")
    _known(calls, tools, "the capture calls no tool")
    messages = []
    for turn in script.turns:
        method = turn.method or ""
        allowed = method in _READING or (method.startswith("notifications/") and method != CANCELLED)
        if method == "tools/call":
            allowed = turn not in skip or EVERY in calls or turn.name in calls
        if allowed and not turn.abandoned and not turn.unanswered:
            body = turn.cause.body
            number = body.id if isinstance(body, Request) else None
            messages.append(PlannedMessage(rewritten(turn.cause, {}), turn.method, turn.name, number, turn))
    if not any(message.id for message in messages):
        raise UsageError("the capture has no request that only reads: there is nothing to compare; see --call")
    replies = dict(_REPLIES)
    for asked in reversed(script.asked):
        answer = asked.exchange.response.body if asked.exchange and asked.exchange.response else None
        if isinstance(answer, Result) and asked.method:
            replies[asked.method] = answer.result
    handshake = any(message.method == "initialize" for message in messages)
    return SessionPlan(tuple(messages), replies=replies, stateless=not handshake)


def scouted(peer: Correspondent, seconds: float, calls: Mapping[str, Any], *, discover: bool = True) -> SessionPlan:
    """Find out what there is to say to a server. `calls` are arguments of tools, by their names.

    Without `discover` it is greeted as clients up to 2025-11-25 do. Raises NoSession, and UsageError where a tool is
    unknown.
    """
    return _Scout(peer, seconds).plan(calls, discover=discover)


class _Scout:
    """Says what suits what the server answers, and keeps what was answered."""

    def __init__(self, peer: Correspondent, seconds: float) -> None:
        self._talk = Talk(peer, seconds)
        self._seconds = seconds
        self._messages: list[PlannedMessage] = []
        self._left_out: list[str] = []
        self._meta: dict[str, Any] = {}
        self._number = 0
        self._ended = False
        self._refusal = ""  # what the last answer says, if it is an error

    def plan(self, calls: Mapping[str, Any], *, discover: bool) -> SessionPlan:
        offered = self._greeted(discover=discover)
        tools: list[Any] = []
        if "tools" in offered:
            tools = self._listed("tools/list")
        if "resources" in offered:
            self._listed("resources/list")
            self._listed("resources/templates/list")
        if "prompts" in offered:
            self._listed("prompts/list")
        if not self._meta:
            self._ask("ping")
        for name, arguments in _to_call(tools, calls).items():
            self._ask("tools/call", {"name": name, "arguments": arguments}, name)
        return SessionPlan(tuple(self._messages), tuple(self._left_out), stateless=bool(self._meta))

    def _greeted(self, *, discover: bool) -> dict[str, Any]:
        """Agree on a revision; returns the server's capabilities."""
        if discover:
            self._meta = {"_meta": _META}
            result = self._ask("server/discover", seconds=min(_DISCOVERY, self._seconds))
            if STATELESS[0].value in (member(result, "supportedVersions") or ()):
                return member(result, "capabilities") or {}
            self._meta = {}
        asked = {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _ME}
        result = self._ask("initialize", asked)
        if not isinstance(result, dict):
            raise NoSession(self._left_out[-1] if self._left_out else f"the server refuses initialize{self._refusal}")
        initialized = PlannedMessage(_line({"method": "notifications/initialized"}), "notifications/initialized")
        self._talk.ask(initialized, -1)
        self._messages.append(initialized)
        found = member(result, "capabilities")
        return found if isinstance(found, dict) else {}

    def _listed(self, method: str) -> list[Any]:
        """All entries of a listing."""
        found: list[Any] = []
        cursor: Any = None
        for _ in range(_PAGES):
            result = self._ask(method, {} if cursor is None else {"cursor": cursor})
            entries = member(result, LISTED[method])
            found += entries if isinstance(entries, list) else []
            cursor = member(result, "nextCursor")
            if cursor is None:
                break
        return found

    def _ask(
        self, method: str, params: dict[str, Any] | None = None, name: str | None = None, seconds: float | None = None
    ) -> Any:
        """The result of a request; None where there is none. One that is not answered is left out of the plan."""
        if self._ended:
            return None
        self._number += 1
        message = _request(self._number, method, (params or {}) | self._meta, name)
        try:
            answer = self._talk.ask(message, len(self._messages), seconds)
        except TimeoutError as error:
            self._left_out.append(str(error))
            return None
        except EOFError as error:
            if self._number == 1 or method == "initialize":
                raise NoSession(str(error)) from None
            self._ended = True  # the same happens in each run, or is a difference
            answer = None
        self._messages.append(message)
        self._refusal = f": {member(answer.error, 'message')}" if isinstance(answer, Error) else ""
        return answer.result if isinstance(answer, Result) else None


def _to_call(tools: list[Any], calls: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the tools that are called, by their names: those of `calls`, and what reads and needs none."""
    listed = {str(member(tool, "name")): tool for tool in tools}
    _known(calls, listed, "the server lists no tool")
    found = {}
    for name, tool in listed.items():
        reads = member(tool, "annotations", "readOnlyHint") is True
        if name in calls or EVERY in calls or (reads and not member(tool, "inputSchema", "required")):
            found[name] = calls.get(name) or {}
    return found


def _known(calls: Collection[str], tools: Mapping[str, Any], none: str) -> None:
    for name in calls:
        if name not in tools and name != EVERY:
            near = get_close_matches(name, tools, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"the tools are {', '.join([*tools][:10])}" if tools else none
            )
            raise UsageError(f"--call: there is no tool {name!r}; {hint}")


def _request(number: int, method: str, params: dict[str, Any] | None = None, name: str | None = None) -> PlannedMessage:
    message = {"id": number, "method": method} | ({"params": params} if params else {})
    return PlannedMessage(_line(message), method, name, Id.of(number))


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":"), ensure_ascii=False).encode()
