"""Sending telemetry by OTLP over HTTP, with the exporters of the OpenTelemetry SDK (extra `otel`).

The exporters read the standard `OTEL_*` variables themselves. Spans are made with mcpspy's own ids, because the SDK
would choose random ones. A batch is acknowledged completely or not at all; the caller keeps batches that were not
acknowledged.

The exporters count a redirection, or a page of any web server, as success, and do not report the cause of a failure. So
responses are checked by `CollectorSession`, before the exporters receive them.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from socket import gethostname
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from requests import Response, Session
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import (
    InvalidSchema,
    InvalidURL,
    MissingSchema,
    ProxyError,
    RequestException,
    SSLError,
    Timeout,
)

from mcpspy import __version__
from mcpspy.errors import UsageError
from mcpspy.network.proxies import ForwardProxy, ProxyRefusal, proxy_for
from mcpspy.telemetry.captured import BUCKETS, BYTES, FINDINGS, OPERATIONS, SESSIONS, LogEntry, Measure
from mcpspy.telemetry.followed import Batch
from mcpspy.telemetry.spans import ExchangeSpan, TraceContext, Value, nanoseconds, valid_text, valid_values
from mcpspy.text import printable
from mcpspy.wire.http_head import PORTS

TOO_LARGE = 413
_BEFORE_RETRY = 2  # attempts; the server may have closed a connection that was kept open
_LONGEST = 200  # characters of a text from a collector or a library
_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d{3}) ?([^'\")]*)")
_PROTOBUF = "application/x-protobuf"


class NotTaken(RequestException):
    """The other side accepted nothing; the exporters do not retry after this."""


class CollectorSession(Session):
    """Sends requests. `report` receives a sentence if a collector accepts only a part, once for each reason."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._reported: set[str] = set()
        self.status: int | None = None
        """The status of the last response; None if none came."""
        self.failure = ""
        """Why the last request was not accepted; empty if it was."""

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> Response:
        """Send a request. Raises NotTaken if it failed for good, or if the collector was unreachable."""
        self.status, self.failure = None, ""
        host, proxy = _host(url), None
        try:
            proxy = proxy_for(url, os.environ) if host else None
            response = self._attempt(method, url, *args, **options | {"proxies": _proxies(proxy)})
        except UsageError as error:
            self.failure = str(error)
            raise NotTaken(self.failure) from error
        except RequestException as error:
            self.failure = _reason(error, proxy, host)
            raise NotTaken(self.failure) from error
        self.status, self.failure = response.status_code, _refusal(response, proxy, host)
        if self.failure and response.status_code < 400:
            raise NotTaken(self.failure)
        if not self.failure:
            self._note_rejections(response)
        return response

    def _attempt(self, *args: Any, **options: Any) -> Response:
        for _ in range(_BEFORE_RETRY - 1):
            try:
                return super().request(*args, **options)
            except (SSLError, Timeout):
                raise
            except NoConnection:
                continue
        return super().request(*args, **options)

    def _note_rejections(self, response: Response) -> None:
        """Report rejected entries; the responses for spans, logs and metrics have the same two fields."""
        if not response.headers.get("content-type", "").startswith(_PROTOBUF):
            return
        try:
            partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        except DecodeError:
            return
        why = printable(partial.error_message, _LONGEST)
        if partial.rejected_spans > 0 and why not in self._reported and len(self._reported) < _LONGEST:
            self._reported.add(why)
            self._report(f"the collector rejected {partial.rejected_spans} of what was sent{why and ': '}{why}")


def _proxies(proxy: ForwardProxy | None) -> dict[str, str | None]:
    """Return a proxy as `requests` takes it, so that it reads no variables itself."""
    place = proxy.url if proxy else None
    if proxy and proxy.login is not None:
        raw = proxy.login.encode().decode("latin-1")  # `requests` encodes it so
        user, _, password = raw.partition(":")
        place = f"http://{quote(user, safe='')}:{quote(password, safe='')}@{proxy.url.removeprefix('http://')}"
    return {"http": place, "https": place, "all": None}


def _host(url: str) -> str:
    """Return the host of a URL; empty if it is not one, which `requests` reports."""
    try:
        there = urlsplit(url)
        return there.hostname or "" if there.scheme in PORTS else ""
    except ValueError:
        return ""


def _refusal(response: Response, proxy: ForwardProxy | None, host: str) -> str:
    """Return why a response is not an acceptance by a collector; empty if it is."""
    status = response.status_code
    if status == 407 and proxy:
        asks = response.headers.get("proxy-authenticate", "").split(", ")
        return f"the collector {proxy.refusal(ProxyRefusal(status, '', asks), host)}"
    if status >= 400:
        reason = printable(response.reason or "", 60)
        return f"the collector answers with status {status}{reason and f' ({reason})'}"
    if status >= 300:
        return f"the collector answers with a redirection (status {status}); use the URL that it points to"
    if "html" in response.headers.get("content-type", "").lower():
        return "the response is a web page, so no collector of OTLP over HTTP listens there"
    return ""


def _reason(error: RequestException, proxy: ForwardProxy | None, host: str) -> str:
    """Return why no response came."""
    refused = _TUNNEL_REFUSED.search(str(error)) if proxy else None
    if proxy and refused:
        reason = printable(refused[2], 60)
        return f"the collector {proxy.refusal(ProxyRefusal(int(refused[1]), reason), host)}"
    if isinstance(error, MissingSchema | InvalidSchema | InvalidURL):
        return "the endpoint is not a valid URL that begins with http:// or https://"
    if isinstance(error, Timeout):
        return "the collector does not answer in time (OTEL_EXPORTER_OTLP_TIMEOUT)"
    system = [it for it in _causes(error) if isinstance(it, OSError) and it.strerror]
    if isinstance(error, SSLError):
        why = getattr(system[-1], "verify_message", "") or system[-1].strerror if system else "no TLS there"
        return f"the collector cannot be reached over TLS: {printable(str(why), _LONGEST)}"
    why = system[-1].strerror if system else type(error).__name__
    if proxy and isinstance(error, ProxyError):
        return f"the collector {proxy.unreachable(printable(str(why), _LONGEST).lower(), host)}"
    return f"the collector cannot be reached: {printable(str(why), _LONGEST)}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes: libraries store them as arguments, reasons and contexts."""
    known: list[BaseException] = []
    found: list[object] = [error]
    while found and len(known) < _LONGEST:
        one = found.pop(0)
        if isinstance(one, BaseException) and one not in known:
            known.append(one)
            found += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
    yield from known


_Given = TypeVar("_Given")
_Sent = TypeVar("_Sent")
_SCOPE = InstrumentationScope("mcpspy", __version__)
_NO_PLACE = (404, 405, 501)
"""Statuses of a collector that lacks the endpoint."""
_RESOURCES = 1024
"""Resources that are cached: the SDK takes longer to make one than to send a small batch."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Sender:
    """Sends to one endpoint: the base URL of a collector, or None for the endpoint of the environment.

    With `metrics`, measures are sent too, at intervals; `close` sends the last of them. `report` receives a sentence if
    the collector accepts no logs, because some accept only spans, or if it rejects a part.
    """

    def __init__(self, endpoint: str | None, report: Callable[[str], None], *, metrics: bool) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the caller reports failures once
        base = endpoint.rstrip("/") if endpoint else None
        self._report = report
        self._resource = lru_cache(_RESOURCES)(lambda attributes: sdk_resource(dict(attributes)))
        session = CollectorSession(report)
        spans = OTLPSpanExporter(endpoint=base and f"{base}/v1/traces", session=session)
        self._spans: _Exports[ReadableSpan] = _Exports(spans, session, report)
        self._logs: _Exports[ReadableLogRecord] | None = None
        if _wanted("OTEL_LOGS_EXPORTER"):
            session = CollectorSession(report)
            logs = OTLPLogExporter(endpoint=base and f"{base}/v1/logs", session=session)
            self._logs = _Exports(logs, session, report)
        wanted = metrics and _wanted("OTEL_METRICS_EXPORTER")
        self._metrics = _Metrics(base, CollectorSession(report)) if wanted else None

    def send(self, batch: Batch, resource: dict[str, Value], started: int) -> str | None:
        """Send the spans and logs of a batch; return why the collector did not accept all of them, else None.

        What was accepted is not sent again with the same batch.
        """
        about = self._resource(tuple(resource.items()))
        failure = self._spans.send(batch.spans, lambda span: sdk_span(span, about, started))
        if failure or not self._logs:
            return failure
        failure = self._logs.send(batch.logs, lambda entry: sdk_log(entry, about, started))
        if not failure or self._logs.status not in _NO_PLACE:
            return failure
        self._report(f"the collector accepts no logs (status {self._logs.status}); only spans are sent")
        self._logs.close()
        self._logs = None
        return None

    def measure(self, batch: Batch, resource: dict[str, Value]) -> None:
        """Add the measures of a batch to the next export, with the server that they are about."""
        if self._metrics:
            for measure in batch.measures:
                self._metrics.add(measure, {"mcpspy.server": resource["mcpspy.server"]})

    def close(self) -> None:
        """Send the remaining measures, and close the connections."""
        if self._metrics:
            self._metrics.close()
        self._spans.close()
        if self._logs:
            self._logs.close()


class _Exports(Generic[_Sent]):
    """One exporter, and how much of the newest list it has sent.

    A collector may refuse a request because of its size. Then the list is sent in smaller portions, and a single entry
    that is too large is left out.
    """

    def __init__(self, exporter: Any, session: CollectorSession, report: Callable[[str], None]) -> None:
        self._exporter = exporter
        self._session = session
        self._report = report
        self._given: list[Any] = []
        self._taken = 0

    @property
    def status(self) -> int | None:
        """The status of the last response."""
        return self._session.status

    def send(self, given: list[_Given], made: Callable[[_Given], _Sent]) -> str | None:
        """Send the result of `made` for each entry of a list; return why it was not accepted, else None."""
        if given is not self._given:
            self._given, self._taken = given, 0
        portion = len(given)
        while self._taken < len(given):
            self._session.failure = ""
            result = self._exporter.export([made(it) for it in given[self._taken : self._taken + portion]])
            if result.name == "SUCCESS":
                self._taken += portion
            elif self.status != TOO_LARGE:
                return self._session.failure or "the SDK cannot send it"
            elif portion > 1:
                portion = (portion + 1) // 2
            else:
                self._report("one span or log record was left out: the collector rejects it as too large")
                self._taken += 1
        return None

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


class _Metrics:
    """The instruments, and the reader that exports them at intervals (`OTEL_METRIC_EXPORT_INTERVAL`)."""

    def __init__(self, base: str | None, session: CollectorSession) -> None:
        exporter = OTLPMetricExporter(endpoint=base and f"{base}/v1/metrics", session=session)
        reader = PeriodicExportingMetricReader(exporter)
        buckets = ExplicitBucketHistogramAggregation(BUCKETS)
        views = [View(instrument_name=name, aggregation=buckets) for name in (*OPERATIONS, *SESSIONS)]
        self._provider = MeterProvider([reader], sdk_resource({"service.version": __version__}), views=views)
        meter = self._provider.get_meter("mcpspy", __version__)
        self._histograms = {name: meter.create_histogram(name, unit="s") for name in (*OPERATIONS, *SESSIONS)}
        units = {FINDINGS: "{finding}", BYTES: "By"}
        self._counters = {name: meter.create_counter(name, unit=unit) for name, unit in units.items()}

    def add(self, measure: Measure, server: dict[str, Value]) -> None:
        """Record one value."""
        attributes = valid_values(measure.attributes | server)
        histogram = self._histograms.get(measure.metric)
        if histogram:
            histogram.record(measure.value, attributes)
        else:
            self._counters[measure.metric].add(measure.value, attributes)

    def close(self) -> None:
        """Export the last values."""
        self._provider.shutdown()


def sdk_span(span: ExchangeSpan, resource: Resource, started: int) -> ReadableSpan:
    """Return a span of the SDK; `started` is the start of the capture in nanoseconds since the epoch."""
    link = [Link(_context(span.link))] if span.link else []
    return ReadableSpan(
        valid_text(span.name),
        _context(span.context, remote=False),
        _context(span.parent) if span.parent else None,
        resource,
        valid_values(span.attributes),
        [Event(event.name, valid_values(event.attributes), nanoseconds(started, event.t)) for event in span.events],
        link,
        SpanKind.CLIENT,
        status=Status() if span.error is None else Status(StatusCode.ERROR, valid_text(span.error) or None),
        start_time=nanoseconds(started, span.start),
        end_time=nanoseconds(started, span.end),
        instrumentation_scope=_SCOPE,
    )


def sdk_log(entry: LogEntry, resource: Resource, started: int) -> ReadableLogRecord:
    """Return a log record of the SDK."""
    span = NonRecordingSpan(_context(entry.context)) if entry.context else None
    record = LogRecord(
        timestamp=nanoseconds(started, entry.t),
        observed_timestamp=nanoseconds(started, entry.t),
        context=set_span_in_context(span, Context()) if span else Context(),
        severity_text=entry.level,
        severity_number=SeverityNumber(entry.severity),
        body=valid_text(entry.body),
        attributes=valid_values(entry.attributes),
        event_name=entry.event,
    )
    return ReadableLogRecord(record, resource, _SCOPE)


def sdk_resource(attributes: dict[str, Value]) -> Resource:
    """Return a resource with the attributes of a capture, `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`."""
    given: dict[str, Any] = {"service.name": "mcpspy", "host.name": gethostname()}
    named = OTELResourceDetector().detect()
    return Resource.create(given | dict(valid_values(attributes)) | dict(named.attributes))


def _context(context: TraceContext, *, remote: bool = True) -> SpanContext:
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(int.from_bytes(context.trace), int.from_bytes(context.span), remote, _SAMPLED, state)


def _wanted(variable: str) -> bool:
    """Return whether a signal is sent; the value `none` turns it off."""
    return os.environ.get(variable, "").strip().lower() != "none"
