"""Spans, and the trace context that peers put into messages; plain data.

The conventions: https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp (status Development). The trace context:
https://www.w3.org/TR/trace-context/. Ids are hashes of the capture's id and of line numbers, so an exchange has the
same span whenever and wherever the capture is read (T-03).
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

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
    """The trace context of the HTTP request."""
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
