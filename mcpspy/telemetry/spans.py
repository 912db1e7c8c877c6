"""Exchanges as spans, by the OpenTelemetry conventions for MCP, and the trace context that peers put into messages.

The conventions: https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp (status Development). The trace context:
https://www.w3.org/TR/trace-context/. Ids are hashes of the capture's id and of line numbers, so an exchange has the
same span whenever and wherever the capture is read (T-03).

Each exchange is one span, which is finished when its outcome is final. Related exchanges become one trace. The parent
of an exchange is the first of these: the context in `_meta.traceparent`; the context in the head of the HTTP request
that carried it; the exchange whose `input_required` response it continues (2026-07-28); for a request of the server,
the exchange of the client during which it came, if only one is possible. Otherwise it begins a trace. Progress is an
event of its span. If the parent is in `_meta`, another context in the HTTP head is a link.

Attributes without a convention have names that begin with `mcpspy.`. Arguments and results are not included, except on
request.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from mcpspy import __version__
from mcpspy.capture.records import Header
from mcpspy.conversation.model import Event, Exchange, HttpChannel, HttpUnit, Message
from mcpspy.json_values import member
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.http_head import header as field_of
from mcpspy.wire.jsonrpc import Error, Request

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})-[0-9a-f]{2}"
    r"(?:(?<!^00.{53})-[ -~]{0,200})?"
)
_TRACESTATE = re.compile(r"[ -~]{1,512}")

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of a trace."""

    trace: bytes
    """16 bytes."""
    span: bytes
    """8 bytes."""
    state: str = ""
    """The `tracestate`, unchanged."""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event during a span."""

    name: str
    t: int
    """Nanoseconds since the capture started."""
    attributes: dict[str, Value]


@dataclass(slots=True)
class ExchangeSpan:
    """One exchange. Times are nanoseconds since the capture started."""

    n: int
    """The line number of the request."""
    part: int
    """The position in a batch, else 0."""
    context: TraceContext
    name: str
    start: int
    end: int
    attributes: dict[str, Value]
    parent: TraceContext | None = None
    link: TraceContext | None = None
    """The trace context in the HTTP head, if the parent is in `_meta`."""
    events: list[SpanEvent] = field(default_factory=list)
    error: str | None = None
    """The description of a failure, which may be empty; None if the exchange did not fail."""


def valid_text(text: str) -> str:
    """Return a text that every encoder accepts: peers may send unpaired surrogates."""
    return text.encode("utf-8", "replace").decode()


def valid_values(values: dict[str, Value]) -> dict[str, Value]:
    """Return attributes that every encoder accepts: texts by `valid_text`, and integers of at most 64 bits."""
    return {name: _valid(value) for name, value in values.items()}


def _valid(value: Value) -> Value:
    if isinstance(value, str):
        return valid_text(value)
    if type(value) is not int or -(1 << 63) <= value < 1 << 63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def nanoseconds(started: int, t: int) -> int:
    """Return nanoseconds since the epoch, limited to 63 bits, from the start of a capture and a time in it."""
    return min(max(started + t, 0), (1 << 63) - 1)


def bounded(text: str, redact: Callable[[str], str], limit: int) -> str:
    """Return at most `limit` characters of a text without its secrets.

    Secrets are replaced in a longer part than is kept, so that none is cut in two and missed.
    """
    return redact(text[: 8 * limit])[:limit]


def parse_traceparent(value: Any, state: Any = None) -> TraceContext | None:
    """Return the context in a `traceparent` and a `tracestate` (W3C Trace Context, 3.2 and 3.3); None if invalid.

    A version after 00 may have additional fields.
    """
    found = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    kept = state if isinstance(state, str) and _TRACESTATE.fullmatch(state) else ""
    return TraceContext(bytes.fromhex(found["trace"]), bytes.fromhex(found["span"]), kept)


def span_id(capture: str, n: int, part: int) -> bytes:
    """Return the id of the span of the request on line `n`."""
    return _hash(f"span {capture} {n} {part}", 8)


def trace_id(capture: str, n: int, part: int) -> bytes:
    """Return the id of the trace that the request on line `n` begins."""
    return _hash(f"trace {capture} {n} {part}", 16)


def _hash(text: str, size: int) -> bytes:
    found = blake2b(text.encode(), digest_size=size).digest()
    return found if any(found) else b"\1" * size  # an id of zeros is invalid


LONGEST_VALUE = 256
"""The most characters of an attribute of a resource."""


def resource_attributes(header: Header, client: str, redact: Callable[[str], str]) -> dict[str, Value]:
    """Return the attributes of the resource that the telemetry of a capture belongs to.

    `client` is the name and version of the client; empty if it is not known yet. `redact` replaces secrets in a text:
    a capture may be edited by hand.
    """
    found: dict[str, Value] = {
        "service.version": __version__,
        "service.instance.id": bounded(header.id, redact, LONGEST_VALUE),
        "mcpspy.server": bounded(header.name, redact, LONGEST_VALUE),
        "mcpspy.transport": header.transport,
    }
    return found | {"mcpspy.client": client} if client else found


def start_of(header: Header) -> int:
    """Return the start of a capture, in nanoseconds since the epoch."""
    return round(datetime.fromisoformat(header.started).timestamp() * 1e6) * 1000


_CALL = "tools/call"
_PROMPT = "prompts/get"
_OF_RESOURCES = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_FAILURES = {"tool-error": "tool_error", "cancelled": "cancelled", "unanswered": "unanswered", "dropped": "dropped"}
"""`error.type` by the status of an exchange, if there is no code."""
PEERS = frozenset(
    (
        "error.type",
        "gen_ai.prompt.name",
        "gen_ai.tool.name",
        "jsonrpc.protocol.version",
        "jsonrpc.request.id",
        "mcp.method.name",
        "mcp.resource.uri",
        "mcp.session.id",
        "network.protocol.version",
        "rpc.response.status_code",
    )
)
"""Attributes whose values a peer chooses, so they may have any length and contain secrets."""
_VARIABLES, _NAME = 64, 128  # arguments of a prompt that are sent, characters of their names
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def span_name(exchange: Exchange) -> str:
    """Return the method, with the tool or prompt if there is one; a URI would have too many values."""
    target = exchange.name if exchange.method in (_CALL, _PROMPT) else None
    return f"{exchange.method} {target}" if target else exchange.method


def span_attributes(exchange: Exchange, status: str, server: dict[str, Value]) -> dict[str, Value]:
    """Return the attributes of an exchange with its final status; `server` is the result of `server_attributes`."""
    request = exchange.request
    found: dict[str, Value] = {"mcp.method.name": exchange.method}
    if request.id is not None and request.id.kind != "null":
        found["jsonrpc.request.id"] = request.id.token
    version = member(request.body.value, "jsonrpc")
    if isinstance(version, str) and version != "2.0":
        found["jsonrpc.protocol.version"] = version
    if exchange.revision:
        found["mcp.protocol.version"] = exchange.revision.value
    if request.session.name and exchange.revision not in STATELESS:
        found["mcp.session.id"] = request.session.name
    found |= _subject(exchange) | server | network_attributes(request.http) | _failure(exchange, status)
    act = request.act
    if act and act.held:
        found["mcpspy.held"] = act.held / 1e9
    return found | {"mcpspy.frame": request.n, "mcpspy.outcome": exchange.outcome}


def server_attributes(header: Header, redact: Callable[[str], str]) -> dict[str, Value]:
    """Return the address of the server behind the proxy, as the conventions require."""
    if header.url is None:
        return {}
    try:
        url = urlsplit(header.url)
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return {}
    if not url.hostname:
        return {}
    found: dict[str, Value] = {"server.address": redact(url.hostname)}
    return found if port is None else found | {"server.port": port}


def content_attributes(exchange: Exchange) -> dict[str, Any]:
    """Return the arguments and the result of a tool call, and the arguments of a prompt, as JSON values."""
    found: dict[str, Any] = {}
    params = member(exchange.request.body.value, "params")
    arguments = member(params, "arguments")
    if exchange.method == _PROMPT and isinstance(arguments, dict):
        few = islice(arguments.items(), _VARIABLES)
        return {f"gen_ai.prompt.variable.{name[:_NAME]}": value for name, value in few}
    if exchange.method != _CALL:
        return found
    if arguments is not None:
        found["gen_ai.tool.call.arguments"] = arguments
    response = exchange.response
    result = member(response.body.value, "result") if response else None
    if result is not None:
        found["gen_ai.tool.call.result"] = result
    return found


def _subject(exchange: Exchange) -> dict[str, Value]:
    """Return the attributes for the tool, prompt or resource."""
    name = exchange.name
    if exchange.method == _CALL:
        found: dict[str, Value] = {"gen_ai.operation.name": "execute_tool"}
        return found | {"gen_ai.tool.name": name} if name else found
    if not name:
        return {}
    if exchange.method == _PROMPT:
        return {"gen_ai.prompt.name": name}
    return {"mcp.resource.uri": name} if exchange.method in _OF_RESOURCES else {}


def network_attributes(channel: HttpChannel | None) -> dict[str, Value]:
    """Return the attributes for the transport of a message; `channel` is `None` for stdio."""
    if channel is None:
        return {"network.transport": "pipe"}
    found: dict[str, Value] = {"network.transport": "tcp"}
    if channel.opened.role == "ws":
        return found | {"network.protocol.name": "websocket"}
    found["network.protocol.name"] = "http"
    head = (channel.request or channel).opened.head or {}
    version = str(head.get("version") or "").upper().removeprefix("HTTP/")
    return found | {"network.protocol.version": version} if version else found


def _failure(exchange: Exchange, status: str) -> dict[str, Value]:
    """Return the attributes for the failure of an exchange, if it failed."""
    body = exchange.response.body if exchange.response else None
    if isinstance(body, Error):
        code = member(body.value, "error", "code")
        text = str(code) if isinstance(code, int | float | str) else "_OTHER"
        return {"error.type": text, "rpc.response.status_code": text}
    if status == "error":  # over HTTP a status of failure came, without a message
        return {"error.type": "_OTHER"}
    return {"error.type": _FAILURES[status]} if status in _FAILURES else {}


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
        meta = member(request.body.value, "params", "_meta")
        head = request.http.opened.head if request.http and request.side == "client" else None
        given = parse_traceparent(member(meta, "traceparent"), member(meta, "tracestate"))
        carried = parse_traceparent(field_of(head, "traceparent"), field_of(head, "tracestate"))
        parent = given or carried or self._caller(request, exchange)
        trace = parent.trace if parent else trace_id(self._capture, request.n, request.part)
        own, state = span_id(self._capture, request.n, request.part), parent.state if parent else ""
        context = TraceContext(trace, own, state)
        link = carried if carried and parent and carried.span != parent.span else None
        return ExchangeSpan(
            request.n, request.part, context, self._bounded(span_name(exchange)), request.t, request.t,
            {"mcp.method.name": self._bounded(exchange.method), "mcpspy.frame": request.n}, parent, link
        )  # fmt: skip

    def _caller(self, request: Message, exchange: Exchange) -> TraceContext | None:
        """Return the exchange of the capture that led to a request, if it is certain which one that is."""
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
