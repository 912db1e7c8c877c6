"""The fold from messages to spans: each exchange is one span, which is finished when its outcome is final.

Related exchanges become one trace. The parent of an exchange is the first of these: the context in `_meta.traceparent`;
the exchange whose `input_required` response it continues (2026-07-28); for a request of the server, the exchange of the
client during which it came, if only one is possible. Otherwise it begins a trace. Progress is an event of its span. The
context of an HTTP request is a link, because it belongs to the transport.
"""

from collections.abc import Callable, Iterable, Iterator

from mcpspy.capture.records import Header
from mcpspy.conversation.model import Event, Exchange, HttpUnit, Message
from mcpspy.json_values import member
from mcpspy.telemetry.attributes import PEERS, server_attributes, span_attributes, span_name
from mcpspy.telemetry.span import (
    ExchangeSpan,
    SpanEvent,
    TraceContext,
    Value,
    bounded,
    parse_traceparent,
    span_id,
    trace_id,
)
from mcpspy.wire.http_head import header as field_of
from mcpspy.wire.jsonrpc import Error, Request

_EVENTS = 128
"""Maximum number of events of one span; the limits of most consumers are not higher."""
_LONGEST = 1024  # characters of a name, a URI or a message
_ANSWERS = 4096  # `input_required` responses that a later request may continue
_PROGRESS = "notifications/progress"
_OF_PROGRESS = {
    "progress": "mcpspy.progress",
    "total": "mcpspy.progress.total",
    "message": "mcpspy.progress.message",
}
"""The attributes of an event, by the members of the notification."""


class Spans:
    """Folds the events of one capture's conversation into spans; `feed` each event, then `end`.

    `content` adds attributes to a span from its exchange, for callers that want arguments and results. `redact`
    replaces secrets in values that a peer chooses: names, URIs, codes and messages, which are also truncated.
    """

    def __init__(
        self,
        header: Header,
        content: Callable[[Exchange], dict[str, Value]] = lambda _: {},
        redact: Callable[[str], str] = str,
    ) -> None:
        self._capture = header.id
        self._redact = redact
        self._server = server_attributes(header, redact)
        self._content = content
        self._open: dict[int, ExchangeSpan] = {}  # by the ordinal of the exchange
        self._answers: dict[int, TraceContext] = {}  # by the line of a response that requests input
        self._t = 0

    def feed(self, event: Event) -> Iterator[ExchangeSpan]:
        """Process the next event; yield the spans that it completes."""
        self._t = max(self._t, event.t)
        if isinstance(event, HttpUnit):
            yield from self._refused(event)
        if not isinstance(event, Message):
            return
        exchange = event.exchange
        if event.cancels:
            yield from self._close(event.cancels, "cancelled", event.t)
        elif exchange is None:
            self._add_progress(event)
        elif isinstance(event.body, Request):
            self._open[exchange.ordinal] = self._begin(event, exchange)
        else:
            span = self._open.get(exchange.ordinal)
            if span and exchange.inputs is not None:
                self._remember(event.n, span.context)
            yield from self._close(exchange, exchange.status, event.t)

    def context(self, exchange: Exchange) -> TraceContext | None:
        """Return the context of the span of an exchange that is not finished yet."""
        span = self._open.get(exchange.ordinal)
        return span.context if span else None

    def waiting(self, since: int) -> Iterator[tuple[int, int]]:
        """Yield lines and parts of the latest requests without a finished span, back to the first one before `since`.

        So the cost depends on what is new, however many requests are never answered.
        """
        for span in reversed(self._open.values()):
            if span.n < since:
                return
            yield span.n, span.part

    def end(self, pending: Iterable[Exchange]) -> Iterator[ExchangeSpan]:
        """End the capture: yield the spans of the exchanges without a response."""
        for exchange in pending:
            yield from self._close(exchange, exchange.final_status(live=False), exchange.left or self._t)
        for ordinal in list(self._open):  # those of forgotten sessions
            span = self._open.pop(ordinal)
            span.end, span.error = self._t, ""
            span.attributes |= {"error.type": "unanswered", "mcpspy.outcome": "in-doubt"}
            yield span

    def _refused(self, unit: HttpUnit) -> Iterator[ExchangeSpan]:
        """Yield the spans of requests that were refused by an HTTP status without a response."""
        for carried in unit.http.request.carried if unit.http.request else ():
            if carried.exchange and carried.exchange.refused:
                yield from self._close(carried.exchange, carried.exchange.status, unit.t)

    def _begin(self, request: Message, exchange: Exchange) -> ExchangeSpan:
        parent = self._parent(request, exchange)
        trace = parent.trace if parent else trace_id(self._capture, request.n, request.part)
        own, state = span_id(self._capture, request.n, request.part), parent.state if parent else ""
        context = TraceContext(trace, own, state)
        link = parse_traceparent(field_of(request.http.opened.head, "traceparent")) if request.http else None
        return ExchangeSpan(
            request.n, request.part, context, self._bounded(span_name(exchange)), request.t, request.t,
            {"mcp.method.name": self._bounded(exchange.method), "mcpspy.frame": request.n}, parent, link
        )  # fmt: skip

    def _parent(self, request: Message, exchange: Exchange) -> TraceContext | None:
        meta = member(request.body.value, "params", "_meta")
        given = parse_traceparent(member(meta, "traceparent"), member(meta, "tracestate"))
        if given:
            return given
        if exchange.continues is not None:
            return self._answers.get(exchange.continues)
        return self._during(request) if request.side == "server" else None

    def _during(self, request: Message) -> TraceContext | None:
        """Return the exchange of the client during which the server sends a request; over HTTP, that of its stream."""
        if request.http and request.http.request and not request.http.legacy:
            waiting = [carried.exchange for carried in request.http.request.carried if carried.exchange]
        else:
            waiting = [it for it in request.session.exchanges() if it.request.side == "client"]
        spans = [self._open[it.ordinal] for it in waiting if it.ordinal in self._open]
        return spans[0].context if len(spans) == 1 else None

    def _add_progress(self, message: Message) -> None:
        span = self._open.get(message.link) if message.link is not None and message.method == _PROGRESS else None
        if span is None or len(span.events) >= _EVENTS:
            return
        params = member(message.body.value, "params")
        told = {attribute: member(params, name) for name, attribute in _OF_PROGRESS.items()}
        known: dict[str, Value] = {name: it for name, it in told.items() if isinstance(it, int | float)}
        known |= {name: self._bounded(it) for name, it in told.items() if isinstance(it, str)}
        span.events.append(SpanEvent("progress", message.t, known))

    def _remember(self, n: int, context: TraceContext) -> None:
        self._answers[n] = context
        if len(self._answers) > _ANSWERS:
            del self._answers[next(iter(self._answers))]

    def _close(self, exchange: Exchange, status: str, t: int) -> Iterator[ExchangeSpan]:
        """Yield the span of an exchange whose outcome is final; nothing if it was finished before."""
        span = self._open.pop(exchange.ordinal, None)
        if span is None:
            return
        span.end = max(t, span.start)
        found = span_attributes(exchange, status, self._server)
        for name in PEERS & found.keys():
            found[name] = self._bounded(str(found[name]))
        span.attributes = found | self._content(exchange)
        if "error.type" in span.attributes:
            body = exchange.response.body if exchange.response else None
            told = member(body.value, "error", "message") if isinstance(body, Error) else None
            span.error = self._bounded(told) if isinstance(told, str) else ""
        yield span

    def _bounded(self, text: str) -> str:
        return bounded(text, self._redact, _LONGEST)
