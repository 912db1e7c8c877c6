"""The session that is run bare and through a wrapper: what the client sends, and how a run sends it.

The theory. Two runs can be compared only if the session is always the same. So the first run finds out what to send
(`scouted`). It introduces itself to the server like a client of the newest revision, requests all listings, and calls
tools that only read and need no arguments. What it sent becomes the plan. Every later run sends the plan, one request
after the other. A capture can also give the plan (`recorded`). Values that differ in each run (cursors) are replaced,
and requests of the server are answered.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from mcpspy.conversation.offers import HANDSHAKES, LISTED
from mcpspy.errors import McpspyError, UsageError
from mcpspy.json_values import member
from mcpspy.replay.issued_values import Values, json_text, rewritten
from mcpspy.replay.run import writing
from mcpspy.replay.script import CANCELLED, Script, Turn
from mcpspy.text import suggestion
from mcpspy.transport.client import (
    AskingClient,
    Gone,
    Late,
    NoAnswer,
    SentMessage,
    Transport,
    listings,
    request_line,
    self_introduction,
)
from mcpspy.transport.link import Failed
from mcpspy.wire.jsonrpc import Error, Id, Request, Result

EVERY = "all"
"""Means every tool."""
_DISCOVERY = 10.0  # seconds without an answer to `server/discover` before `initialize` is tried
_PAGES = 20  # limit for one listing
_READING = frozenset((*HANDSHAKES, *LISTED, "ping", "resources/read", "prompts/get", "completion/complete"))
_REPLIES: Mapping[str, Any] = {"ping": {}, "roots/list": {"roots": []}}
_NAME = "mcpspy-verify"


class NoSession(McpspyError):
    """The server does not answer the first request, so there is nothing to compare."""


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
        method, params = ("server/discover", self_introduction(_NAME)) if self.stateless else ("ping", {})
        return PlannedMessage(request_line(number, method, params), method, id=Id.of(number))


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

    def __init__(self, peer: Transport, seconds: float, replies: Mapping[str, Any] = _REPLIES) -> None:
        """Create it. `seconds` is the limit for one answer."""
        self.said = Transcript()
        self._client = AskingClient(peer, _NAME, replies, self.said.others.append)
        self._seconds = seconds

    def ask(self, message: PlannedMessage, place: int) -> Result | Error | None:
        """Send a message, and wait for its answer. Return None for a notification.

        Raises TimeoutError, and Gone if the server has ended.
        """
        sent = SentMessage(message.line, message.label, {}, message.id)
        self._client.say(sent)
        if message.id is None:
            return None
        found = self._client.hear([sent], time.monotonic() + self._seconds)
        if found is None:
            raise TimeoutError(f"no answer to {message.label} within {self._seconds:g} s")
        answer, raw = sent.answer, found[1]
        if isinstance(answer, Failed):
            refusal = json_text({"code": -32000, "message": answer.how})
            raw, answer = f'{{"jsonrpc":"2.0","id":{message.id.text},"error":{refusal}}}'.encode(), None
        self.said.answers[place] = raw
        self.said.first = self.said.first or time.perf_counter_ns()
        return answer


def said(plan: SessionPlan, peer: Transport, seconds: float) -> Transcript:
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
    except Gone as error:
        talk.said.trouble = f"the server {error}"
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


def scouted(peer: Transport, seconds: float, calls: Mapping[str, Any], *, discover: bool = True) -> SessionPlan:
    """Find out what to send to a server. `calls` has the arguments of tools by name.

    Without `discover`, the client begins with `initialize`, as clients up to 2025-11-25 do. Raises NoSession, and
    UsageError if a tool is unknown.
    """
    return _Scout(peer, seconds).plan(calls, discover=discover)


class _Scout:
    """Sends requests that depend on the server's answers, and keeps those that were answered."""

    def __init__(self, peer: Transport, seconds: float) -> None:
        self._client = AskingClient(peer, _NAME, _REPLIES)
        self._seconds = seconds

    def plan(self, calls: Mapping[str, Any], *, discover: bool) -> SessionPlan:
        introduction = self._greeted(discover=discover)
        tools: list[Any] = []
        for method in listings(introduction):
            entries = self._listed(method)
            tools += entries if method == "tools/list" else []
        if not self._client.meta:
            self._ask("ping", {})
        for name, arguments in _to_call(tools, calls).items():
            self._ask("tools/call", {"name": name, "arguments": arguments})
        return self._found()

    def _greeted(self, *, discover: bool) -> dict[str, Any]:
        """Agree on a revision. Return how the server introduces itself."""
        try:
            probe = min(_DISCOVERY, self._seconds)
            return self._client.greet(self._seconds, probe, discover=discover)[1]
        except Gone as error:
            raise NoSession(f"the server {error}") from None
        except Late as error:
            raise NoSession(f"no answer to {error.method} within {error.seconds:g} s") from None
        except NoAnswer as error:
            raise NoSession(f"the server refuses initialize: {error.why}") from None

    def _listed(self, method: str) -> list[Any]:
        """Return all entries of a listing."""
        found: list[Any] = []
        with suppress(NoAnswer):
            for page in islice(self._client.pages(method, self._seconds), _PAGES):
                entries = member(page, LISTED[method])
                found += entries if isinstance(entries, list) else []
        return found

    def _ask(self, method: str, params: Mapping[str, Any]) -> None:
        with suppress(NoAnswer):
            self._client.ask(method, params, self._seconds)

    def _found(self) -> SessionPlan:
        """Return the plan, without requests that were not answered.

        It has the one at which the server ended: either that happens in each run, or it is a difference.
        """
        messages, left_out = [], []
        for sent in self._client.sent:
            name = sent.params.get("name") if sent.method == "tools/call" else None
            message = PlannedMessage(sent.line, sent.method, name, sent.id)
            if sent.id is None or sent.answer or (self._client.ended and sent is self._client.sent[-1]):
                messages.append(message)
            else:
                left_out.append(f"no answer to {message.label} within {sent.seconds:g} s")
        return SessionPlan(tuple(messages), tuple(left_out), stateless=bool(self._client.meta))


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
