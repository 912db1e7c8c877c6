"""One capture as telemetry: takes its records, returns spans, log entries and measures as soon as they are complete.

The output depends only on the records, so a second run from the beginning returns the same spans.

Log entries are the stderr of the server, log messages of the protocol, and findings. An entry belongs to a span if it
is about one: a finding about a request or a response, or a message in a stream that answers a request. Severities are
those of the OpenTelemetry logs data model. The levels of MCP are those of syslog (RFC 5424, 6.2.1).

Measures are the values of the metrics: durations of operations and sessions, counts of findings and of bytes. The four
histograms are those of the conventions for MCP, in seconds. The counters have names of mcpspy. Attributes have few
values: they contain no ids of requests or sessions. A relay sees both ends at once, so a duration counts for the client
and for the server alike.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mcpspy.capture.records import Frame, Header, Record
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Event, Exchange, Message, Session
from mcpspy.conversation.outcomes import Outcome
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.json_values import member
from mcpspy.rules import RULES, Finding, LocatedFinding
from mcpspy.rules.judge import JudgedEvent, JudgedEvents
from mcpspy.spec.revisions import STATELESS, Revision
from mcpspy.telemetry.spans import (
    LONGEST_VALUE,
    ExchangeSpan,
    Spans,
    TraceContext,
    Value,
    bounded,
    network_attributes,
    resource_attributes,
)
from mcpspy.wire.jsonrpc import Request

_LOG = "notifications/message"
_LEVELS = {
    "debug": 5,
    "info": 9,
    "notice": 10,
    "warning": 13,
    "error": 17,
    "critical": 18,
    "alert": 19,
    "emergency": 21,
}
"""Severity numbers by level; the severities of findings are included."""
_BODY = 8192  # characters of a text
_NAME = 1024  # characters of the name of a logger, or of a pointer into a message
_SPANS = 1024  # messages whose span is remembered for findings that come later


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log entry. `t` is nanoseconds since the capture started."""

    t: int
    body: str
    event: str
    """The kind of log: `mcpspy.stderr`, `mcp.log` or `mcpspy.finding`."""
    severity: int = 0
    """By the logs data model, 1 to 24; 0 if unknown."""
    level: str | None = None
    """The same in the words of the source."""
    context: TraceContext | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


class Logs:
    """Folds the events of one capture, with its findings, into log entries; `feed` each.

    `redact` replaces secrets in a text: stderr, log messages and the messages of findings may quote anything. The
    message of a finding may quote arguments and results: without `content` the general explanation of its rule replaces
    it.
    """

    def __init__(self, redact: Callable[[str], str], *, content: bool) -> None:
        self._redact = redact
        self._content = content
        self._times: dict[int, int] = {}  # by line number, like the contexts
        self._contexts: dict[int, TraceContext] = {}

    def know(self, message: Message, exchange: Exchange, context: TraceContext | None) -> None:
        """Learn that a message belongs to an exchange.

        `context` is that of its span, None after the span is finished.
        """
        found = context or self._contexts.get(exchange.request.n)
        if found is None:
            return
        self._times[message.n], self._contexts[message.n] = message.t, found
        if len(self._contexts) > _SPANS:
            oldest = next(iter(self._contexts))
            del self._contexts[oldest], self._times[oldest]

    def feed(self, event: Event | LocatedFinding, t: int) -> Iterator[LogEntry]:
        """Yield the log entry of the next event.

        `t` is the newest time so far, for findings about forgotten messages.
        """
        if isinstance(event, Frame):
            body = self._bounded(event.raw[: 8 * _BODY].decode(errors="replace"))
            yield LogEntry(event.t, body, "mcpspy.stderr", attributes={"mcpspy.frame": event.n})
        elif isinstance(event, LocatedFinding):
            yield self._finding(event.finding, t)
        elif isinstance(event, Message) and event.method == _LOG and event.exchange is None:
            yield self._message(event)

    def _message(self, message: Message) -> LogEntry:
        params = member(message.body.value, "params")
        level, logger, told = (member(params, name) for name in ("level", "logger", "data"))
        text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
        attributes: dict[str, Value] = {"mcpspy.frame": message.n, "mcp.method.name": _LOG}
        if isinstance(logger, str):
            attributes["mcp.logger"] = bounded(logger, self._redact, _NAME)
        known = level if isinstance(level, str) and level in _LEVELS else None
        return LogEntry(message.t, self._bounded(text), "mcp.log", _LEVELS.get(known or "", 0), known, None, attributes)

    def _finding(self, finding: Finding, t: int) -> LogEntry:
        attributes: dict[str, Value] = {
            "mcpspy.frame": finding.frame,
            "mcpspy.rule": finding.rule,
            "mcpspy.blame": finding.blame,
            "mcpspy.pointer": bounded(finding.pointer, self._redact, _NAME),
        }
        rule = RULES.get(finding.rule)
        text = finding.message if self._content or rule is None else rule.explanation
        return LogEntry(
            self._times.get(finding.frame, t),
            self._bounded(text),
            "mcpspy.finding",
            _LEVELS[finding.severity],
            finding.severity,
            self._contexts.get(finding.frame),
            {name: value for name, value in attributes.items() if value},
        )

    def _bounded(self, text: str) -> str:
        return bounded(text, self._redact, _BODY)


BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Upper bounds in seconds, from the conventions."""
OPERATIONS = ("mcp.client.operation.duration", "mcp.server.operation.duration")
SESSIONS = ("mcp.client.session.duration", "mcp.server.session.duration")
FINDINGS, BYTES = "mcpspy.findings", "mcpspy.bytes"
AT_ONCE = 4096
"""The number of sessions whose duration is measured at once."""
_OF_OPERATIONS = frozenset(
    (
        "mcp.method.name",
        "mcp.protocol.version",
        "error.type",
        "rpc.response.status_code",
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.prompt.name",
        "jsonrpc.protocol.version",
        "network.transport",
        "network.protocol.name",
        "network.protocol.version",
        "server.address",
        "server.port",
    )
)
"""The attributes of a span that a histogram has too."""
_OF_SERVERS = ("server.address", "server.port")
"""Those of them that a server does not report about itself."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One value of one metric."""

    metric: str
    value: float
    attributes: dict[str, Value] = field(default_factory=dict)


def of_span(span: ExchangeSpan) -> Iterator[Measure]:
    """Yield the duration of an exchange, for both sides."""
    kept = {name: value for name, value in span.attributes.items() if name in _OF_OPERATIONS}
    client, server = OPERATIONS
    seconds = (span.end - span.start) / 1e9
    yield Measure(client, seconds, kept)
    yield Measure(server, seconds, {name: value for name, value in kept.items() if name not in _OF_SERVERS})


class Measures:
    """Folds the events of one capture into measures: `feed` each, then `end`."""

    def __init__(self) -> None:
        self._sessions: dict[Session, _Duration] = {}  # in the order of their beginning

    def feed(self, event: Event | LocatedFinding) -> Iterator[Measure]:
        """Yield the measures of the next event."""
        if isinstance(event, LocatedFinding):
            attributes: dict[str, Value] = {
                "mcpspy.rule": event.finding.rule,
                "mcpspy.severity": event.finding.severity,
                "mcpspy.blame": event.finding.blame,
            }
            yield Measure(FINDINGS, 1, attributes)
        elif isinstance(event, Frame):
            yield Measure(BYTES, event.size, {"mcpspy.sender": "server", "mcpspy.stream": "stderr"})
        elif isinstance(event, Message):
            if event.part == 0:
                yield Measure(BYTES, event.frame.size, {"mcpspy.sender": event.sender, "mcpspy.stream": "messages"})
            if event.revision not in STATELESS:  # there are no sessions since 2026-07-28
                yield from self._last(event)

    def end(self) -> Iterator[Measure]:
        """End the capture, and its sessions with it."""
        for duration in self._sessions.values():
            yield from duration.measures()

    def _last(self, message: Message) -> Iterator[Measure]:
        """Store the time of a session's newest message; yield the duration of a session that is dropped."""
        known = self._sessions.get(message.session)
        if known is None:
            known = self._sessions[message.session] = _Duration(message.t, network_attributes(message.http))
            if len(self._sessions) > AT_ONCE:
                yield from self._sessions.pop(next(iter(self._sessions))).measures()
        known.last = message.t
        known.revision = message.revision or known.revision


@dataclass(slots=True)
class _Duration:
    """The duration of a session, from its first message to its last."""

    first: int
    network: dict[str, Value]
    last: int = 0
    revision: Revision | None = None

    def measures(self) -> Iterator[Measure]:
        """Yield the duration for both sides."""
        revision: dict[str, Value] = {"mcp.protocol.version": self.revision.value} if self.revision else {}
        attributes = revision | self.network
        for metric in SESSIONS:
            yield Measure(metric, (self.last - self.first) / 1e9, attributes)


Telemetry = ExchangeSpan | LogEntry | Measure


class CapturedTelemetry:
    """Folds the records of one capture: `feed` portions of them, then `end`.

    `redact` replaces secrets in a text. `contents` returns the attributes of an exchange that are its content; without
    it, no content is in the output.
    """

    def __init__(
        self,
        header: Header,
        redact: Callable[[str], str],
        contents: Callable[[Exchange], dict[str, Value]] | None = None,
    ) -> None:
        self._header = header
        self._events = JudgedEvents()
        self._redact = redact
        self._spans = Spans(header, contents or (lambda _: {}), redact)
        self._logs, self._measures = Logs(redact, content=contents is not None), Measures()
        self._t = 0
        self.client = ""
        """Name and version of the client, from its first introduction."""

    def resource(self) -> dict[str, Value]:
        """Return the attributes of the resource that the telemetry is about."""
        return resource_attributes(self._header, self.client, self._redact)

    def feed(self, records: Iterable[Record]) -> Iterator[Telemetry]:
        """Process the next records."""
        for record in records:
            self._t = max(self._t, record.t)
            yield from self._told(self._events.feed(record))

    def end(self) -> Iterator[Telemetry]:
        """End the capture."""
        yield from self._told(self._events.end())
        yield from self._measured(self._spans.end(self._events.pending()))
        yield from self._measures.end()

    def _told(self, events: Iterable[JudgedEvent]) -> Iterator[Telemetry]:
        for event in events:
            if isinstance(event, GateAct | Outcome):
                continue
            if not isinstance(event, LocatedFinding):
                yield from self._measured(self._spans.feed(event))
            if isinstance(event, Message) and event.exchange:
                self._logs.know(event, event.exchange, self._spans.context(event.exchange))
                if not self.client and event.method in INTRODUCE and isinstance(event.body, Request):
                    self.client = bounded(introduction(event.body.value), self._redact, LONGEST_VALUE)
            yield from self._logs.feed(event, self._t)
            yield from self._measures.feed(event)

    def waiting(self, since: int) -> Iterator[tuple[int, int]]:
        """Yield lines and parts of the requests without a finished span, back to the first one before line `since`."""
        return self._spans.waiting(since)

    def _measured(self, spans: Iterable[ExchangeSpan]) -> Iterator[Telemetry]:
        for span in spans:
            yield span
            yield from of_span(span)
