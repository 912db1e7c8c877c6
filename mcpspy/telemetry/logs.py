"""The fold from events to log records: stderr of the server, log messages of the protocol, and findings.

A record belongs to a span if it is about one: a finding about a request or a response, or a message in a stream that
answers a request. Severities are those of the OpenTelemetry logs data model. The levels of MCP are those of syslog
(RFC 5424, 6.2.1).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mcpspy.capture.records import Frame
from mcpspy.conversation.model import Event, Exchange, Message
from mcpspy.json_values import member
from mcpspy.rules import RULES, Finding, LocatedFinding
from mcpspy.telemetry.spans import TraceContext, Value, bounded

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
