"""One replay from beginning to end: what is skipped, what is sent, the outcome, and what seems to be volatile.

The driver (`drive`) handles the messages of the capture in order. It sends the client's messages, and waits for the
server's, because a later message may depend on them. So a request is sent when everything before it in the capture has
been received, and concurrent requests stay concurrent. Each wait has a time-out. The server's requests are answered as
in the capture whenever they are received. Messages are sent as recorded, byte for byte, except for the values that the
server has issued (`mcpspy.replay.issued_values`) and the ids of its requests.

A server that dies, hangs or sends malformed messages is an outcome: the driver notes why responses are missing, and
continues if that makes sense. The messages are compared later, from the new capture.
"""

import os
import queue
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpspy.conversation.model import Message
from mcpspy.json_values import member
from mcpspy.recording.copy import write_with_sessions
from mcpspy.replay.issued_values import Values, canonical, json_text, rewritten
from mcpspy.replay.match import key
from mcpspy.replay.script import LOG, PROGRESS, Script, ScriptLine, Turn, accept, script_of
from mcpspy.replay.sessions import Compared, Pairs, compare
from mcpspy.replay.tolerance import Rules
from mcpspy.spec.revisions import SUBSCRIPTION_ID
from mcpspy.transport.link import Ended, Failed, run_session
from mcpspy.wire.jsonrpc import Error, Id, Notification, Request, Result, parse

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink
    from mcpspy.transport.link import Link

LEAST = 10.0
"""Minimum time-out for a response, in seconds."""
TIMES = 10
"""The time-out is this multiple of the recorded latency, if that is more than the minimum."""
START = 60.0
"""Minimum time-out for the first response, in seconds: `npx` and `uvx` may have to install the server first."""
GRACE = 2.0
"""Time-out in seconds for messages that answer no request, because they may have come by chance."""


@dataclass(slots=True)
class Driven:
    """The outcome of a replay."""

    path: str = ""
    """The capture of the new session."""
    sent: list[Turn] = field(default_factory=list)
    """The turns that were sent, in that order; the turns of the new capture are in the same order."""
    reasons: dict[Turn, str] = field(default_factory=dict)
    """Why responses are missing."""


def drive(
    script: Script,
    connect: Callable[[], "Link | WebLink"],
    *,
    skip: Collection[Turn],
    advance: Callable[[int], None] = lambda _: None,
) -> Driven:
    """Play the client of `script`, without the turns in `skip`, over the link that `connect` returns.

    `advance` is called with the number of messages that are done, from another thread.

    Call it from the main thread, while that is the only thread. Raises what `connect` raises. Raises KeyboardInterrupt
    after the server has ended if a signal interrupted the replay.
    """

    def play(link: "Link | WebLink") -> Driven:
        player = Player(script, link, skip)
        player.driven.path = link.path
        player.run(advance)
        return player.driven

    return run_session(connect, play)


class _Stop(Exception):
    """It makes no sense to continue; the text is the reason."""


class Player:
    """Plays the messages of a script over a link."""

    def __init__(self, script: Script, link: "Link | WebLink", skip: Collection[Turn]) -> None:
        self.driven = Driven()
        self._script = script
        self._link = link
        self._skip = skip
        self._turns = {id(turn.cause): turn for turn in script.turns}
        self._lines: dict[int, tuple[Turn | None, ScriptLine]] = {id(it.message): (None, it) for it in script.opening}
        self._lines |= {id(line.message): (turn, line) for turn in script.turns for line in turn.said}
        self._questions = list(script.asked)  # requests that the server has not sent again yet
        self._values = Values()
        self._pending: dict[Id, Turn] = {}
        self._limits: dict[Turn, float] = {}  # time-outs of responses, in seconds
        self._due: dict[Turn, float] = {}  # when they expire
        self._expected: Counter[str] = Counter()  # other messages that had come in the capture so far, by kind
        self._came: Counter[str] = Counter()
        self._given_up: set[str] = set()  # kinds that did not come once
        self._silent = False  # no response has come since the last time-out
        self._ended: str | None = None

    def run(self, advance: Callable[[int], None] = lambda _: None) -> None:
        """Play to the end; `advance` is called after each message."""
        why = "the session was over"
        try:
            for message in self._script.messages:
                self._step(message)
                advance(1)
        except _Stop as stop:
            why = str(stop)
        pending, sent = set(self._pending.values()), set(self.driven.sent)
        for turn in self._script.turns:
            if turn.response and turn in pending:
                self.driven.reasons.setdefault(turn, f"{why} before it answered")
            elif turn.exchange and turn not in sent:
                self.driven.reasons.setdefault(turn, f"not sent: {why}")

    def _step(self, message: Message) -> None:
        turn = self._turns.get(id(message))
        if turn:
            if turn not in self._skip and not any(it.exchange is message.cancels for it in self._skip if it.exchange):
                self._say(turn)
        elif id(message) in self._lines:
            turn, line = self._lines[id(message)]
            if turn not in self._skip:
                self._await(turn, line)

    def _say(self, turn: Turn) -> None:
        """Send the message that a turn begins with."""
        self._hear_all()
        if self._ended:
            raise _Stop(f"the server {self._ended}")
        body = turn.cause.body
        changes = self._values.changes(turn.method or "", turn.params, body.value)
        if isinstance(body, Request):
            took = (turn.exchange.latency if turn.exchange else None) or 0
            self._pending[body.id] = turn
            self._limits[turn] = max(LEAST if self.driven.sent else START, TIMES * took / 1e9)
            self._due[turn] = time.monotonic() + self._limits[turn]
        self.driven.sent.append(turn)
        self._link.send(rewritten(turn.cause, changes))

    def _await(self, turn: Turn | None, line: ScriptLine) -> None:
        """Wait for a recorded message of the server until it comes or can no longer be expected."""
        body = line.message.body
        pending = turn is not None and turn in self._pending.values()
        if isinstance(body, Request | Notification):
            kind = _kind(body)
            self._expected[kind] += 1
            if body.method != LOG and kind not in self._given_up:
                self._await_kind(kind, turn if pending and turn and turn.response else None)
        elif turn and pending and turn.response is line.message:
            cancelled = turn.exchange is not None and turn.exchange.cancelled
            due = time.monotonic() + GRACE if cancelled else self._due[turn]
            if not self._until(lambda: turn not in self._pending.values(), due) and not cancelled:
                self._fail(turn)

    def _await_kind(self, kind: str, turn: Turn | None) -> None:
        """Wait for a notification or request; if it came during a `turn`, wait for the response and a little longer.

        The message may come on another stream than the response, and so after it.
        """
        wanted = self._expected[kind]
        if turn:
            self._until(lambda: self._came[kind] >= wanted or turn not in self._pending.values(), self._due[turn])
        if not self._until(lambda: self._came[kind] >= wanted, time.monotonic() + GRACE):
            self._given_up.add(kind)

    def _fail(self, turn: Turn) -> None:
        """Record that a response has not come; two time-outs in succession end the replay."""
        if self._ended:
            raise _Stop(f"the server {self._ended}")
        self.driven.reasons[turn] = f"no answer within {self._limits[turn]:.3g} s"
        if self._silent:
            raise _Stop("the server no longer answered")
        self._silent = True

    def _until(self, condition: Callable[[], bool], due: float) -> bool:
        """Read messages until a condition is true; return False if the time is up or the server has ended."""
        while not condition():
            left = due - time.monotonic()
            if self._ended:
                return False
            if left <= 0:  # on a busy machine a response may have come in time and not been read yet
                self._hear_all()
                return condition()
            self._hear(left)
        return True

    def _hear_all(self) -> None:
        """Read the lines that have come so far; a server may never stop sending, so later lines are not read."""
        for _ in range(self._link.heard.qsize()):
            self._hear(0)

    def _hear(self, seconds: float) -> bool:
        """Read the next line of the server; return False if none comes in time."""
        try:
            heard = self._link.heard.get(timeout=seconds) if seconds else self._link.heard.get_nowait()
        except queue.Empty:
            return False
        if isinstance(heard, Ended):
            self._ended = self._ended or heard.how
            return True
        if isinstance(heard, Failed):
            failed = self._pending.pop(heard.request, None)
            if failed:
                self.driven.reasons[failed] = heard.how
            return True
        for body in parse(heard):
            if isinstance(body, Result | Error):
                self._answered(body)
            elif isinstance(body, Request | Notification):
                self._came[_kind(body)] += 1
                if isinstance(body, Request):
                    self._answer(body)
        return True

    def _answered(self, body: Result | Error) -> None:
        """Process a response of the server; a response whose id has another type ends the wait as well."""
        turn = self._pending.pop(body.id, None) if body.id else None
        if turn:
            self._silent = False
            if turn.response:
                self._values.learn(turn.method or "", turn.params, turn.response.body.value, body.value)
            return
        token = body.id.token if body.id else None
        for number in [number for number in self._pending if number.token == token]:
            self.driven.reasons[self._pending.pop(number)] = f"it was answered under the id {body.id}, not {number}"

    def _answer(self, request: Request) -> None:
        """Answer a request of the server as the client did; if the client did not answer it, send nothing.

        A request that is not in the capture gets an error, or an empty result for `ping`.
        """
        asked = self._recorded(request)
        if asked is None:
            outcome = '"result":{}' if request.method == "ping" else _REFUSAL
            self._link.send(f'{{"jsonrpc":"2.0","id":{json_text(request.id)},{outcome}}}'.encode())
            return
        assert isinstance(asked.body, Request)
        self._values.learn(request.method, request.params, asked.body.value, request.value)
        answer = asked.exchange.response if asked.exchange else None
        if answer:
            changes = self._values.changes(request.method, request.params, answer.body.value)
            self._link.send(rewritten(answer, changes | {("id",): request.id}))

    def _recorded(self, request: Request) -> Message | None:
        """Return the most similar recorded request: one that was not sent again yet, else the last of this method."""
        alike = [it for it in self._questions if it.body.value["method"] == request.method]
        same = key(request.method, request.params)
        exact = [it for it in alike if key(request.method, it.body.value.get("params")) == same]
        if alike:
            found = (exact or alike)[0]
            self._questions = [it for it in self._questions if it is not found]
            return found
        every = [it for it in self._script.asked if it.body.value["method"] == request.method]
        return every[-1] if every else None


_REFUSAL = '"error":{"code":-32601,"message":"the client of the capture was never asked this"}'


def _kind(body: Request | Notification) -> str:
    """Return what distinguishes the messages to wait for: the method, and the request that the message names."""
    named = member(body.params, "progressToken") if body.method == PROGRESS else None
    if named is None:
        named = member(body.params, "_meta", SUBSCRIPTION_ID)
    return f"{type(body).__name__} {body.method} {canonical(named)}"


_NOT_READ_ONLY = "the tool has no readOnlyHint"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay."""

    recorded: Script
    observed: Script
    path: str
    """The capture of the new session."""
    pairs: Pairs
    reasons: Mapping[Turn, str]
    """Why responses are missing, or requests were not sent."""
    skipped: Collection[Turn]

    def compared(self, rules: Rules) -> list[Compared]:
        """Return the comparison under some rules."""
        return compare(
            self.recorded, self.observed, self.pairs, rules, reasons=self.reasons, skipped=frozenset(self.skipped)
        )


def replay(
    script: Script,
    connect: Callable[[str], "Link | WebLink"],
    path: str,
    *,
    read_only: bool,
    advance: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Replay a capture; with `read_only`, without calls that may write.

    `connect` returns a link that records at a path. The path is `path`, and a temporary one for each further process of
    the capture, whose session is then added to the capture at `path`.

    `advance` is called with the number of messages that are done, from another thread.

    Call it from the main thread, while that is the only thread. Raises what `connect` raises.
    """
    skip = writing(script) if read_only else set()
    driven = _drive(script, connect, path, skip, advance)
    observed = script_of(driven.path)
    reasons = driven.reasons | dict.fromkeys(skip, _NOT_READ_ONLY)
    return Replayed(script, observed, driven.path, _pairs(script, observed, driven), reasons, skip)


def _drive(
    script: Script,
    connect: Callable[[str], "Link | WebLink"],
    path: str,
    skip: Collection[Turn],
    advance: Callable[[int], None],
) -> Driven:
    """Play each process of a script over a link of its own; all sessions end up in one capture."""
    first, *others = script.processes
    driven = drive(first, lambda: connect(path), skip=skip, advance=advance)
    if not others:
        return driven
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        added: list[str] = []
        for part in others:
            place = os.path.join(folder, f"{len(added)}.jsonl")
            played = drive(part, partial(connect, place), skip=skip, advance=advance)
            added.append(played.path)
            driven.sent += played.sent
            driven.reasons |= played.reasons
        whole = os.path.join(folder, "whole.jsonl")
        write_with_sessions(driven.path, added, whole)
        accept(whole, driven.path)
    return driven


def _pairs(script: Script, observed: Script, driven: Driven) -> list[tuple[Turn | None, Turn | None]]:
    """Pair each turn with its counterpart in the new capture: by method and id, and in order if those are equal.

    If a request had to be sent twice (over HTTP, to find out which transport a server has), the second one counts.
    """
    waiting: dict[Any, list[Turn]] = {}
    for turn in reversed(observed.turns):
        waiting.setdefault(_sent_as(turn), []).append(turn)
    partner: dict[Turn, Turn] = {}
    for turn in reversed(driven.sent):
        if waiting.get(_sent_as(turn)):
            partner[turn] = waiting[_sent_as(turn)].pop(0)
    return [(turn, partner.get(turn)) for turn in script.turns]


def _sent_as(turn: Turn) -> tuple[str | None, Id | None]:
    body = turn.cause.body
    return turn.method, body.id if isinstance(body, Request) else None


def writing(script: Script) -> set[Turn]:
    """Return the calls of tools without `readOnlyHint`, and the requests for the tasks that they began."""
    hints: dict[str, bool] = {}
    for turn in script.turns:
        result = turn.response.body.value.get("result") if turn.response and turn.method == "tools/list" else None
        for tool in member(result, "tools") or []:
            hints[str(member(tool, "name"))] = member(tool, "annotations", "readOnlyHint") is True
    skip: set[Turn] = set()
    tasks: set[str] = set()
    for turn in script.turns:
        called = turn.method == "tools/call" and not hints.get(turn.name or "", False)
        if called or (str(turn.method).startswith("tasks/") and member(turn.params, "taskId") in tasks):
            skip.add(turn)
            result = turn.response.body.value.get("result") if turn.response else None
            tasks.add(str(member(result, "task", "taskId")))
    return skip
