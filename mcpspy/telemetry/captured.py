"""One capture as telemetry: its records in, spans, log entries and measures out, as far as it has come.

What comes out depends on the records alone, so whoever starts again from the beginning gets the same spans.
"""

from collections.abc import Callable, Iterable, Iterator

from mcpspy.capture.records import Header, Record
from mcpspy.conversation.content import content
from mcpspy.conversation.model import Exchange, Message
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from mcpspy.telemetry.logs import LogEntry, Logs
from mcpspy.telemetry.measures import Measure, Measures, of_span
from mcpspy.telemetry.span import ExchangeSpan, Value
from mcpspy.telemetry.spans import Spans
from mcpspy.timeline import INTRODUCE
from mcpspy.wire.jsonrpc import Request

Telemetry = ExchangeSpan | LogEntry | Measure


class CapturedTelemetry:
    """Folds the records of one capture; `feed` some, then more, then `end`.

    `redact` replaces secrets in a text. `contents` gives attributes of an exchange beyond those without content.
    """

    def __init__(
        self, header: Header, redact: Callable[[str], str], contents: Callable[[Exchange], dict[str, Value]]
    ) -> None:
        self._judge = Judge()
        self._spans, self._logs, self._measures = Spans(header, contents), Logs(redact), Measures()
        self._t = 0
        self.client = ""
        """Name and version of the client, as it introduces itself first."""

    def feed(self, records: Iterable[Record]) -> Iterator[Telemetry]:
        """Take the next records."""
        for record in records:
            self._t = max(self._t, record.t)
            for event in self._judge.feed(record):
                if not isinstance(event, Finding):
                    yield from self._measured(self._spans.feed(event))
                if isinstance(event, Message) and event.exchange:
                    self._logs.know(event, event.exchange, self._spans.context(event.exchange))
                    if not self.client and event.method in INTRODUCE and isinstance(event.body, Request):
                        self.client = content("request", event.method, event.body.value) or ""
                yield from self._logs.feed(event, self._t)
                yield from self._measures.feed(event)

    @property
    def oldest(self) -> int | None:
        """The lowest line of the requests whose span has not come out yet; None if there is none."""
        return self._spans.oldest

    def end(self) -> Iterator[Telemetry]:
        """The capture has ended."""
        for finding in self._judge.end():
            yield from self._logs.feed(finding, self._t)
            yield from self._measures.feed(finding)
        yield from self._measured(self._spans.end(self._judge.pending()))
        yield from self._measures.end()

    def _measured(self, spans: Iterable[ExchangeSpan]) -> Iterator[Telemetry]:
        for span in spans:
            yield span
            yield from of_span(span)
