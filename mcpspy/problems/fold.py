"""The fold from judged events to problems.

Failed requests are kept in groups of equal ones, each with its first few failures. A request that has failed may turn
out to be normal later; it is taken out of its group then. The problems themselves are made when somebody asks for
them, because findings come after the messages that they are about.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from mcpspy.capture.records import End, Frame, Header, Signal
from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import Exchange, Message, Session, StreamEnd
from mcpspy.conversation.outcomes import Outcome, has_failed
from mcpspy.problems.causes import OTHERS, AlikeFailures, Evidence, ProcessEnd, ended_by, may_explain, problem_of
from mcpspy.problems.problem import (
    KINDS,
    FailedRequest,
    Kind,
    Problem,
    StderrLine,
    failure_of,
    failure_over_http,
    telling,
)
from mcpspy.problems.words import OF_METHOD, kind_of_failure, likeness, likeness_of
from mcpspy.rules import RULES, Finding, LocatedFinding
from mcpspy.rules.compat import refusals
from mcpspy.rules.judge import Fold, JudgedEvent
from mcpspy.spec.client_limits import clients_named
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Invalid, Request, Result

_GROUPS = 1000
"""Groups of equal problems; what does not fit is counted with the last of its kind."""
_DETAILED = 5
"""Failures of a group that are kept in detail: the first ones and the latest."""
_STDERR, _NEAR = 200, 40
"""Lines of stderr that are kept, and how many before the end of the server may tell why it ended."""
_RELATED = 6
"""Related frames of a finding to which it belongs as well."""
_PER_ROW = 32
"""Findings of a row that are kept."""
_BODY = 4096  # bytes of a frame that is kept, or shown
_LINE = 300
_METHOD, _WAITING = 60, 32  # characters of a method, and exchanges without an answer that are examined
_NOISE = ("framing/not-json", "framing/multiline-json", "framing/content-length", "framing/bom", "framing/null-byte",
          "framing/invalid-utf8", "framing/log-record", "jsonrpc/neither-result-nor-error",
          "jsonrpc/not-an-object")  # fmt: skip
_ENDED, _GLUED = "lifecycle/server-exit", "framing/glued"
_OF_SHAPES = "schema/invalid"  # of a wrong request, the answer shows what it costs


class Problems(Fold):
    """The problems of one capture. `header` is that of the capture."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._groups: OrderedDict[str, AlikeFailures] = OrderedDict()
        self._group_of: dict[tuple[int, int], str] = {}  # by line and part of a failed request: its group
        self._findings: dict[int, list[Finding]] = {}  # by line number: those that may explain a failure
        self._stderr: deque[StderrLine] = deque(maxlen=_STDERR)
        self._succeeded: dict[str, tuple[int, bytes]] = {}  # by tool: its latest call that succeeded
        self._lines: dict[int, str] = {}  # by line number: frames that are not messages
        self._refused: OrderedDict[Session, Session] = OrderedDict()  # for the limits of its client
        self._ends: list[ProcessEnd] = []
        self._left = False  # the client closed stdin, or sent a signal
        self._refusals: dict[str, list[str]] = {}  # by tool: the groups of what its client refuses about it
        self.pending: Sequence[Exchange] = ()
        """At the end: the exchanges without a response."""
        self.requests = 0
        """The number of JSON-RPC requests."""
        self.version = 0
        """Changes when the problems may have changed."""
        self._made: tuple[int, list[Problem]] = (-1, [])

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        kind = type(event)
        if kind is Message:
            self._add_message(event)  # type: ignore[arg-type]
        elif isinstance(event, LocatedFinding):
            self._add_finding(event.finding, event.event)
        elif isinstance(event, Outcome):
            self._add_outcome(event)
        elif isinstance(event, Frame):
            text = printable(event.raw[: 4 * _LINE].decode(errors="replace").rstrip(), _LINE)
            self._stderr.append(StderrLine(event.t, event.n, text))
        elif isinstance(event, End):
            self._add_end(event)
        elif isinstance(event, Signal) or (isinstance(event, StreamEnd) and event.sender == "client"):
            self._left = True

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:  # noqa: ARG002 (the end of a fold)
        """Finish."""
        self.pending = pending

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return sum(group.failed for group in self._groups.values())

    def made(self) -> list[Problem]:
        """Return the problems so far, the one that may have caused the others first."""
        if self._made[0] != self.version:
            kinds = list(KINDS)
            groups = sorted(self._shown(), key=lambda it: (kinds.index(it.kind), -it.failed - it.found))
            evidence = Evidence(self._header, self._findings, self._ends, self._lines, self._succeeded)
            self._made = self.version, [problem_of(group, evidence) for group in groups]
        return self._made[1]

    @property
    def number(self) -> int:
        """The number of problems so far."""
        return len(self._shown())

    def _shown(self) -> list[AlikeFailures]:
        """Return the groups that are problems: not the end of the server, if failed requests show it already."""
        groups = [it for it in self._groups.values() if it.failed or it.found]
        shows = any(it.failed and it.kind in ("exit", "start", "connection") for it in groups)
        failed = {n for it in groups for failure in it.failures for n in (failure.n, failure.answer)}
        return [it for it in groups if it.failed or not (_is_shown(it, failed) if it.kind != "exit" else shows)]

    def _add_end(self, end: End) -> None:
        """Take the end of a process: it is a problem if the process failed while its client was there."""
        if len(self._ends) < _PER_ROW:
            self._ends.append(ProcessEnd(end, telling(list(self._stderr)[-_NEAR:])))
        if self._header.transport == "stdio" and not self._left and (end.why or end.code or end.signal):
            self._group("exit", "exit").found += 1
        self._left = False
        self.version += 1

    def _add_message(self, message: Message) -> None:
        exchange = message.exchange
        if type(message.body) is Invalid and len(self._lines) < _GROUPS:
            self._lines[message.n] = printable(message.frame.raw[:_BODY].decode(errors="replace").strip(), _LINE)
        if exchange is None:
            return
        if exchange.response is not message:
            self.requests += 1
            return
        if has_failed(exchange.outcome, exchange.expected):
            if exchange.fate and exchange.cancelled:  # its failure is known since then
                self._mark_late(exchange, message)
            else:
                self._fail(failure_of(exchange, message.t))
            return
        if self._group_of:
            self._forget(exchange.request.n, exchange.request.part)
        if exchange.method == "tools/call" and exchange.name in self._refusals:  # so it was offered
            for key in self._refusals.pop(exchange.name):
                self._groups.pop(key, None)
            self.version += 1
        if exchange.outcome == "ok" and exchange.method == "tools/call" and exchange.name:
            frame = exchange.request.frame
            keep(self._succeeded, exchange.name, (frame.n, frame.raw if frame.size <= _BODY else b""))
        elif exchange.method == "tools/list" and type(message.body) is Result:
            self._limit(message)

    def _add_outcome(self, outcome: Outcome) -> None:
        if not outcome.failed:
            if outcome.exchange is None or self._group_of:
                self._forget(outcome.n, outcome.part)
            return
        if outcome.exchange:
            self._fail(failure_of(outcome.exchange, outcome.t))
        elif outcome.request:
            self._fail(failure_over_http(outcome))
        else:
            n, part, t, how, name = outcome.n, outcome.part, outcome.t, outcome.outcome, outcome.name
            self._fail(FailedRequest(n, t, t, how, "tools/call", name, part))

    def _fail(self, failure: FailedRequest) -> None:
        """Enter a failed request into the group of its like."""
        self._forget(failure.n, failure.part)
        failure.stderr = telling(it for it in self._stderr if failure.t <= it.t <= failure.ended)
        kind, alike = kind_of_failure(failure), likeness(failure)
        ended = ended_by(failure, self._ends) if kind in ("exit", "start") else None
        if ended:
            last = ended.stderr
            alike += f" {ended.end.code} {ended.end.signal} {ended.end.why} {likeness_of(last and last.text)}"
        group = self._group(kind, alike)
        group.failed += 1
        if len(group.failures) == _DETAILED:
            group.failures.pop()
        group.failures.append(failure)
        self._group_of[failure.n, failure.part] = group.likeness
        if len(self._group_of) > bounds.ACTS:
            bounds.forget(self._group_of)
        self.version += 1

    def _group(self, kind: Kind, alike: str) -> AlikeFailures:
        key = f"{kind} {alike}"
        if key not in self._groups and len(self._groups) >= _GROUPS:
            key = kind + OTHERS
        return self._groups.setdefault(key, AlikeFailures(kind, key))

    def _forget(self, n: int, part: int) -> None:
        """Take a request out of its group: it has not failed after all, or its outcome has changed."""
        key = self._group_of.pop((n, part), None)
        if key is None:
            return
        group = self._groups[key]
        group.failed -= 1
        remaining = [failure for failure in group.failures if (failure.n, failure.part) != (n, part)]
        # If none is known in detail, the one that was taken out still tells what they share.
        group.failures = remaining or [replace(group.failures[0], n=0, answer=None)]
        if not group.failed:
            del self._groups[key]
        self.version += 1

    def _mark_late(self, exchange: Exchange, response: Message) -> None:
        """Note that a request was answered after its sender had given up."""
        group = self._groups.get(self._group_of.get((exchange.request.n, exchange.request.part), ""))
        for failure in group.failures if group else ():
            if (failure.n, failure.part) == (exchange.request.n, exchange.request.part):
                failure.late = response.n, response.t
                self.version += 1

    def _add_finding(self, finding: Finding, event: object) -> None:
        explains = may_explain(finding)
        for n in (finding.frame, *finding.related[:_RELATED]) if explains else ():
            known = self._findings.setdefault(n, []) if len(self._findings) < bounds.FACTS else self._findings.get(n)
            if known is not None and len(known) < _PER_ROW:
                known.append(finding)
        own = finding.severity == "error" and finding.blame == "server" and self._header.transport == "stdio"
        if own and finding.rule == _ENDED:
            self._enter("exit", "exit", finding)
            self._group("exit", "exit").found = 1  # the end of the process itself is counted already
        elif own and finding.rule in _NOISE:
            self._enter("noise", "stdout", finding)
        elif RULES[finding.rule].loss and not (finding.rule == _OF_SHAPES and _is_request(event)):
            subject = _subject(finding, event)
            alike = "answers" if subject and finding.rule == _GLUED else subject  # they have one cause
            self._enter("fault", f"{finding.rule} {alike}".rstrip(), finding, subject)
        elif explains and self._group_of:
            self.version += 1

    def _enter(self, kind: Kind, alike: str, finding: Finding, subject: str = "") -> None:
        group = self._group(kind, alike)
        if len(group.subjects) < _DETAILED:
            group.subjects |= {subject: None} if subject else {}
        if kind == "fault" and group.findings and group.findings[-1].frame == finding.frame:
            return  # what a message costs, it costs once
        group.found += 1
        if len(group.findings) < _DETAILED:
            group.findings.append(finding)
        self.version += 1

    def _limit(self, message: Message) -> None:
        """Find what the client of a session refuses in a list of tools, if its limits are known."""
        clients = clients_named(message.session.client_name)
        if not clients:
            return
        known = self._refused.setdefault(message.session, Session(clients=clients))
        if len(self._refused) > bounds.SESSIONS:
            self._refused.popitem(last=False)
        for finding in refusals(message, known):
            if finding.severity != "info" and message.session.once(f"{finding.rule} {finding.concerns}"):
                self._enter("not-offered", f"{finding.rule} {finding.concerns}", finding)
                name = finding.concerns[-1] if len(finding.concerns) > 1 else None
                if name is not None and len(self._refusals) < _GROUPS:
                    key = f"not-offered {finding.rule} {finding.concerns}"
                    self._refusals.setdefault(name, []).append(key)


def _is_request(event: object) -> bool:
    return isinstance(event, Message) and isinstance(event.body, Request)


def _subject(finding: Finding, event: object) -> str:
    """Return the method of the message that a finding is about, or of the request whose answer it is."""
    if finding.rule not in OF_METHOD:
        return ""
    method = finding.concerns[0] if finding.concerns else None
    if method is None and isinstance(event, Message) and finding.related:
        waiting = islice(event.session.exchanges(), _WAITING)
        method = next((it.method for it in waiting if it.request.n in finding.related), None)
    return printable(method, _METHOD) if method else ""


def _is_shown(group: AlikeFailures, failed: Collection[int | None]) -> bool:
    """Return whether requests that failed already show what a rule found; `failed` has their rows."""
    shown = (any(n in failed for n in (it.frame, *it.related)) for it in group.findings)
    return any(shown) if group.kind == "fault" else group.found == len(group.findings) and all(shown)
