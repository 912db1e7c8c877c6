"""The values of the metrics: durations of operations and sessions, counts of findings and of bytes.

The four histograms are those of the conventions for MCP, in seconds. The counters have names of mcpspy. Attributes have
few values: they contain no ids of requests or sessions. A relay sees both ends at once, so a duration counts for the
client and for the server alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpspy.capture.records import Frame
from mcpspy.conversation.model import Event, Message, Session
from mcpspy.rules import LocatedFinding
from mcpspy.spec.revisions import STATELESS, Revision
from mcpspy.telemetry.spans import ExchangeSpan, Value, network_attributes

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
