"""Captures as OTLP in JSON: the spans that `mcpspy otel` sends, as a file that collectors read (`otlpjsonfile`).

Each line of the file is one `TracesData` object, as the file exporter of OpenTelemetry writes it
(https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/). In JSON, ids are hexadecimal and 64-bit integers are
strings (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). A file contains one kind of data, so logs
are left out. Arguments and results are left out too.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.exporters.source import ExportSource
from mcpspy.secrets.redactor import Withheld
from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.spans import (
    ExchangeSpan,
    SpanEvent,
    TraceContext,
    Value,
    nanoseconds,
    start_of,
    valid_text,
    valid_values,
)

_CLIENT, _ERROR = 3, 2  # SpanKind and StatusCode
_SAMPLED = 1
_AT_ONCE = 256
"""The number of spans on a line."""


def write(sources: Sequence[ExportSource]) -> Iterator[bytes]:
    """Yield the lines of a file for some captures."""
    for source in sources:
        yield from _lines(source)


def _lines(source: ExportSource) -> Iterator[bytes]:
    header = source.capture.header
    started = start_of(header)
    wanted = None if source.wants is None else {row.n for row in source.rows() if source.wanted(row)}
    telemetry = CapturedTelemetry(header, Withheld().url)
    batch: list[dict[str, Any]] = []
    for item in _items(telemetry, source):
        if isinstance(item, ExchangeSpan) and (wanted is None or item.n in wanted):
            batch.append(_span(item, started))
        if len(batch) == _AT_ONCE:
            yield _line(telemetry.resource(), batch)
            batch = []
    if batch:
        yield _line(telemetry.resource(), batch)


def _items(telemetry: CapturedTelemetry, source: ExportSource) -> Iterator[object]:
    yield from telemetry.feed(source.records())
    if not source.capture.live:
        yield from telemetry.end()


def _line(resource: dict[str, Value], spans: list[dict[str, Any]]) -> bytes:
    scope = {"scope": {"name": "mcpspy", "version": __version__}, "spans": spans}
    about = {"attributes": _attributes(resource | {"service.name": "mcpspy"})}
    return orjson.dumps(
        {"resourceSpans": [{"resource": about, "scopeSpans": [scope]}]}, option=orjson.OPT_APPEND_NEWLINE
    )


def _span(span: ExchangeSpan, started: int) -> dict[str, Any]:
    fields: dict[str, Any] = _context(span.context) | {
        "name": valid_text(span.name),
        "kind": _CLIENT,
        "startTimeUnixNano": str(nanoseconds(started, span.start)),
        "endTimeUnixNano": str(nanoseconds(started, span.end)),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        fields["parentSpanId"] = span.parent.span.hex()
    if span.link:
        fields["links"] = [_context(span.link)]
    if span.events:
        fields["events"] = [_event(event, started) for event in span.events]
    if span.error is not None:
        fields["status"] = {"code": _ERROR} | ({"message": valid_text(span.error)} if span.error else {})
    return fields


def _context(context: TraceContext) -> dict[str, Any]:
    state = {"traceState": context.state} if context.state else {}
    return {"traceId": context.trace.hex(), "spanId": context.span.hex(), "flags": _SAMPLED} | state


def _event(event: SpanEvent, started: int) -> dict[str, Any]:
    return {
        "timeUnixNano": str(nanoseconds(started, event.t)),
        "name": event.name,
        "attributes": _attributes(event.attributes),
    }


def _attributes(values: dict[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in valid_values(values).items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):  # JSON has no infinity; the JSON mapping of protocol buffers uses a string
        return {"doubleValue": value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"}
    return {"stringValue": value}
