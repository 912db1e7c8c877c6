"""The session that is run bare and through a wrapper: what the client sends, and how a run sends it.

The theory. Two runs can be compared only if the session is always the same. So the first run finds out what to send
(`scouted`). It introduces itself to the server like a client of the newest revision, requests all listings, and calls
tools that only read and need no arguments. What it sent becomes the plan. Every later run sends the plan, one request
after the other. A capture can also give the plan (`recorded`). Values that differ in each run (cursors) are replaced,
and requests of the server are answered.
"""

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcpspy import __version__
from mcpspy.conversation.offers import HANDSHAKES, LISTED
from mcpspy.errors import McpspyError, UsageError
from mcpspy.json_values import member
from mcpspy.replay.issued_values import Values, json_text, rewritten
from mcpspy.replay.run import writing
from mcpspy.replay.script import CANCELLED, Script, Turn
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS
from mcpspy.text import suggestion
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse

EVERY = "all"
"""Means every tool."""
_DISCOVERY = 10.0  # seconds without an answer to `server/discover` before `initialize` is tried
_PAGES = 20  # limit for one listing
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
    """A server that receives and sends lines."""

    def send(self, line: bytes) -> None:
        """Send a message."""

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message, or None if there will be none. Raises TimeoutError."""


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """One message of the client."""

    line: bytes
    method: str | None
    name: str | None = None
    """The tool, prompt or resource concerned."""
    id: Id | None = None
    """The id of a request."""
    turn: Turn | None = None
    """The turn of the capture that has it."""

    @property
    def label(self) -> str:
        """A description for people."""
        return f"{self.method} {self.name}" if self.name else str(self.method)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a client sends."""

    messages: tuple[PlannedMessage, ...]
    left_out: tuple[str, ...] = ()
    """What is not sent again because the server did not answer it."""
    replies: Mapping[str, Any] = field(default_factory=lambda: _REPLIES)
    """By method of the server's request: the result that the client answers."""
    stateless: bool = False
    """Whether there is no handshake, so that each request names its revision."""

    def without(self, place: int, why: str) -> "SessionPlan":
        """Return the plan without one message."""
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
        """Return a request that costs the server very little."""
        if self.stateless:
            return _request(number, "server/discover", {"_meta": _META})
        return _request(number, "ping")


@dataclass(slots=True)
class Transcript:
    """What the server sent in one run."""

    answers: dict[int, bytes] = field(default_factory=dict)
    """By index of the request in the plan."""
    others: list[bytes] = field(default_factory=list)
    """Everything else: requests, notifications, and what is not a message."""
    trouble: str | None = None
    """Why the session broke off."""
    unanswered: int | None = None
    """The index of the request that was not answered in time, if that is the reason."""
    first: int | None = None
    """The time of the first answer: nanoseconds of `time.perf_counter_ns`."""


class Talk:
    """Sends messages to a server one after the other, and keeps what it sends."""

    def __init__(self, peer: Correspondent, seconds: float, replies: Mapping[str, Any] = _REPLIES) -> None:
        """Create it. `seconds` is the limit for one answer."""
        self.said = Transcript()
        self._peer = peer
        self._seconds = seconds
        self._replies = replies

    def ask(self, message: PlannedMessage, place: int, seconds: float | None = None) -> Result | Error | None:
        """Send a message, and wait for its answer. Return None for a notification.

        Raises TimeoutError, and EOFError if the server has ended.
        """
        self._peer.send(message.line)
        if message.id is None:
            return None
        limit = self._seconds if seconds is None else seconds
        due = time.monotonic() + limit
        while True:
            left = due - time.monotonic()
            try:
                if left <= 0:  # a server that writes without end always has a next line
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
        """Process what the server sent. Return it if it is the wanted answer."""
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
    """Run a whole plan. Stop if the session cannot go on."""
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
    """Return what the client of a capture sent: requests that only read, and calls of the tools in `calls`.

    Raises UsageError.
    """
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
    """Find out what to send to a server. `calls` has the arguments of tools by name.

    Without `discover`, the client begins with `initialize`, as clients up to 2025-11-25 do. Raises NoSession, and
    UsageError if a tool is unknown.
    """
    return _Scout(peer, seconds).plan(calls, discover=discover)


class _Scout:
    """Sends requests that depend on the server's answers, and keeps those that were answered."""

    def __init__(self, peer: Correspondent, seconds: float) -> None:
        self._talk = Talk(peer, seconds)
        self._seconds = seconds
        self._messages: list[PlannedMessage] = []
        self._left_out: list[str] = []
        self._meta: dict[str, Any] = {}
        self._number = 0
        self._ended = False
        self._refusal = ""  # the message of the last answer, if it is an error

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
        """Agree on a revision. Return the server's capabilities."""
        if discover:
            self._meta = {"_meta": _META}
            result = self._ask("server/discover", seconds=min(_DISCOVERY, self._seconds))
            supported = member(result, "supportedVersions")
            if isinstance(supported, list) and STATELESS[0].value in supported:
                return _capabilities(result)
            self._meta = {}
        asked = {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _ME}
        result = self._ask("initialize", asked)
        if not isinstance(result, dict):
            raise NoSession(self._left_out[-1] if self._left_out else f"the server refuses initialize{self._refusal}")
        initialized = PlannedMessage(_line({"method": "notifications/initialized"}), "notifications/initialized")
        self._talk.ask(initialized, -1)
        self._messages.append(initialized)
        return _capabilities(result)

    def _listed(self, method: str) -> list[Any]:
        """Return all entries of a listing."""
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
        """Return the result of a request, or None. A request without an answer is left out of the plan."""
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
            self._ended = True  # either this happens in each run, or it is a difference
            answer = None
        self._messages.append(message)
        self._refusal = f": {member(answer.error, 'message')}" if isinstance(answer, Error) else ""
        return answer.result if isinstance(answer, Result) else None


def _capabilities(result: Any) -> dict[str, Any]:
    found = member(result, "capabilities")
    return found if isinstance(found, dict) else {}


def _to_call(tools: list[Any], calls: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the tools to call, by name: those of `calls`, and tools that read and need none."""
    listed = {name: tool for tool in tools if isinstance(name := member(tool, "name"), str)}
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
            listed = f"the tools are {', '.join([*tools][:10])}" if tools else none
            raise UsageError(f"--call: there is no tool {name!r}; {suggestion(name, tools, listed)}")


def _request(number: int, method: str, params: dict[str, Any] | None = None, name: str | None = None) -> PlannedMessage:
    message = {"id": number, "method": method} | ({"params": params} if params else {})
    return PlannedMessage(_line(message), method, name, Id.of(number))


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":"), ensure_ascii=False).encode()
