"""Sending telemetry by OTLP over HTTP, with the exporters of the OpenTelemetry SDK (extra `otel`).

The exporters read the standard `OTEL_*` variables themselves. Spans are made with ids of ours, which the SDK would
choose at random. A batch is acknowledged as a whole or not at all; whoever calls keeps what was not acknowledged.
"""

import logging
import os
from collections.abc import Callable
from typing import Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from requests import Response, Session

from mcpspy import __version__
from mcpspy.telemetry.followed import Batch
from mcpspy.telemetry.logs import LogEntry
from mcpspy.telemetry.measures import BUCKETS, BYTES, FINDINGS, OPERATIONS, SESSIONS, Measure
from mcpspy.telemetry.span import ExchangeSpan, TraceContext, Value, valid_text, valid_values

_SCOPE = InstrumentationScope("mcpspy", __version__)
_NO_PLACE = (404, 405, 501)
"""Statuses of a collector that has no such endpoint."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Sender:
    """Sends to one endpoint: the base URL of a collector, or None for what the environment says.

    `metrics` says whether measures are sent too, from time to time; `close` sends the last of them. `report` gets a
    sentence if the collector has no place for logs: some take spans alone.
    """

    def __init__(self, endpoint: str | None, report: Callable[[str], None], *, metrics: bool) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what fails is said once, by the caller
        base = endpoint.rstrip("/") if endpoint else None
        self._report = report
        self._taken: list[ExchangeSpan] | None = None  # the spans that were taken last
        self._refusal: int | None = None  # the status of the last answer about logs
        session = Session()
        session.hooks["response"].append(self._note)
        self._spans = OTLPSpanExporter(endpoint=base and f"{base}/v1/traces")
        self._logs: OTLPLogExporter | None = None
        if os.environ.get("OTEL_LOGS_EXPORTER") != "none":
            self._logs = OTLPLogExporter(endpoint=base and f"{base}/v1/logs", session=session)
        wanted = metrics and os.environ.get("OTEL_METRICS_EXPORTER") != "none"
        self._metrics = _Metrics(base) if wanted else None

    def send(self, batch: Batch, resource: dict[str, Value], started: int) -> bool:
        """Send the spans and logs of a batch; returns whether the collector took all of them.

        Spans that were taken are not sent again with the same batch.
        """
        about = sdk_resource(resource)
        if batch.spans and self._taken is not batch.spans:
            spans = [sdk_span(span, about, started) for span in batch.spans]
            if self._spans.export(spans) is not SpanExportResult.SUCCESS:
                return False
            self._taken = batch.spans
        return not batch.logs or self._send_logs([sdk_log(entry, about, started) for entry in batch.logs])

    def _send_logs(self, logs: list[ReadableLogRecord]) -> bool:
        self._refusal = None
        if self._logs is None or self._logs.export(logs) is LogRecordExportResult.SUCCESS:
            return True
        if self._refusal not in _NO_PLACE:
            return False
        self._report(f"the collector takes no logs (status {self._refusal}); only spans are sent")
        self._close_logs()
        return True

    def _note(self, response: Response, **_: object) -> None:
        self._refusal = response.status_code

    def _close_logs(self) -> None:
        if self._logs:
            self._logs.shutdown()  # type: ignore[no-untyped-call]
            self._logs = None

    def measure(self, batch: Batch, resource: dict[str, Value]) -> None:
        """Add the measures of a batch to what is sent next, with the server that they are about."""
        if self._metrics:
            for measure in batch.measures:
                self._metrics.add(measure, {"mcpspy.server": resource["mcpspy.server"]})

    def close(self) -> None:
        """Send what is left, and close the connections."""
        if self._metrics:
            self._metrics.close()
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._close_logs()


class _Metrics:
    """The instruments, and what sends them from time to time (`OTEL_METRIC_EXPORT_INTERVAL`)."""

    def __init__(self, base: str | None) -> None:
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=base and f"{base}/v1/metrics"))
        buckets = ExplicitBucketHistogramAggregation(BUCKETS)
        views = [View(instrument_name=name, aggregation=buckets) for name in (*OPERATIONS, *SESSIONS)]
        self._provider = MeterProvider([reader], Resource.create({"service.name": "mcpspy"}), views=views)
        meter = self._provider.get_meter("mcpspy", __version__)
        self._histograms = {name: meter.create_histogram(name, unit="s") for name in (*OPERATIONS, *SESSIONS)}
        units = {FINDINGS: "{finding}", BYTES: "By"}
        self._counters = {name: meter.create_counter(name, unit=unit) for name, unit in units.items()}

    def add(self, measure: Measure, server: dict[str, Value]) -> None:
        """Enter one value."""
        attributes = valid_values(measure.attributes | server)
        histogram = self._histograms.get(measure.metric)
        if histogram:
            histogram.record(measure.value, attributes)
        else:
            self._counters[measure.metric].add(measure.value, attributes)

    def close(self) -> None:
        """Send the last values."""
        self._provider.shutdown()


def sdk_span(span: ExchangeSpan, resource: Resource, started: int) -> ReadableSpan:
    """A span as the SDK has it; `started` is the start of the capture in nanoseconds since the epoch."""
    link = [Link(_context(span.link))] if span.link else []
    return ReadableSpan(
        valid_text(span.name),
        _context(span.context, remote=False),
        _context(span.parent) if span.parent else None,
        resource,
        valid_values(span.attributes),
        [Event(event.name, valid_values(event.attributes), started + event.t) for event in span.events],
        link,
        SpanKind.CLIENT,
        status=Status() if span.error is None else Status(StatusCode.ERROR, valid_text(span.error) or None),
        start_time=started + span.start,
        end_time=started + span.end,
        instrumentation_scope=_SCOPE,
    )


def sdk_log(entry: LogEntry, resource: Resource, started: int) -> ReadableLogRecord:
    """A log entry as the SDK has it."""
    span = NonRecordingSpan(_context(entry.context)) if entry.context else None
    record = LogRecord(
        timestamp=started + entry.t,
        observed_timestamp=started + entry.t,
        context=set_span_in_context(span, Context()) if span else Context(),
        severity_text=entry.level,
        severity_number=SeverityNumber(entry.severity),
        body=valid_text(entry.body),
        attributes=valid_values(entry.attributes),
        event_name=entry.event,
    )
    return ReadableLogRecord(record, resource, _SCOPE)


def sdk_resource(attributes: dict[str, Value]) -> Resource:
    """A resource with the attributes of a capture, and those of `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`."""
    given: dict[str, Any] = dict(valid_values(attributes))
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create(given if named else given | {"service.name": "mcpspy"})


def _context(context: TraceContext, *, remote: bool = True) -> SpanContext:
    return SpanContext(int.from_bytes(context.trace), int.from_bytes(context.span), remote, _SAMPLED)
