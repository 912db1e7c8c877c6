"""One capture as telemetry: takes its records, returns spans, log entries and measures as soon as they are complete.

The output depends only on the records, so a second run from the beginning returns the same spans.
"""

from collections.abc import Callable, Iterable, Iterator

from mcpspy.capture.records import Header, Record
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Exchange, Message
from mcpspy.conversation.outcomes import Outcome
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.rules import LocatedFinding
from mcpspy.rules.judge import JudgedEvent, JudgedEvents
from mcpspy.telemetry.logs import LogEntry, Logs
from mcpspy.telemetry.measures import Measure, Measures, of_span
from mcpspy.telemetry.spans import ExchangeSpan, Spans, Value, bounded, resource_attributes
from mcpspy.wire.jsonrpc import Request

_LONGEST = 256  # characters of the name and version of a client

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
                    self.client = bounded(introduction(event.body.value), self._redact, _LONGEST)
            yield from self._logs.feed(event, self._t)
            yield from self._measures.feed(event)

    def waiting(self, since: int) -> Iterator[tuple[int, int]]:
        """Yield lines and parts of the requests without a finished span, back to the first one before line `since`."""
        return self._spans.waiting(since)

    def _measured(self, spans: Iterable[ExchangeSpan]) -> Iterator[Telemetry]:
        for span in spans:
            yield span
            yield from of_span(span)
