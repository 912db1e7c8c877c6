"""A cache of what follows from the head of a message alone, computed once for each distinct head.

Most heads are repeated in the next call. The key is all bytes of a head, so heads that differ in the case of a letter
are different. A peer whose heads are all different costs time, not memory: at most `HEADS` are kept, of at most
`LARGEST` bytes each. When the cache is full, it is cleared.

A cached value is shared by all messages with that head. Code that changes its `Head` must change a copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aiohttp import web
from aiohttp.http import RawResponseMessage

from mcpspy.recording.http_exchange import Opening
from mcpspy.relay.http.heads import (
    CHUNKED,
    UPGRADE,
    Address,
    Head,
    RawHeaders,
    every,
    first,
    recorded,
    request_head,
    response_head,
)
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.http1 import is_chunked, is_upgrade

HEADS = 128
"""The most heads that are kept for each direction of a route."""
LARGEST = 4096
"""The most bytes of a head that is kept."""
_FIELD = 64  # bytes that a field needs in addition to its content

T = TypeVar("T")


class KnownHeads(Generic[T]):
    """The cache of one direction of a route."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], T] = {}

    def __len__(self) -> int:
        """Return the number of cached heads."""
        return len(self._known)

    def find(self, headers: tuple[tuple[bytes, bytes], ...], line: tuple[Any, ...], work_out: Callable[[], T]) -> T:
        """Return the cached result of `work_out`, which must depend on `headers` and `line` only."""
        found = self._known.get((headers, line))
        if found is None:
            found = work_out()
            size = sum([len(name) + len(value) + _FIELD for name, value in headers]) + len(str(line))
            if size <= LARGEST:
                if len(self._known) >= HEADS:
                    self._known.clear()
                self._known[headers, line] = found
        return found


@dataclass(slots=True)
class RequestHead:
    """A request's head on one route."""

    headers: RawHeaders
    upgrade: bool
    """Whether it is a handshake that may become a tunnel (RFC 6455, 4.1)."""
    legacy: bool
    """Whether the response may be an event stream of HTTP+SSE, which names an endpoint."""
    json: bool
    """Whether the request's body is JSON."""
    host: bytes | None
    session: str | None
    refusal: str | None
    """Why the request is refused by the guard; None if it is not."""
    head: Head
    """The head to forward."""
    opening: Opening
    """What is recorded of the head."""


@dataclass(slots=True)
class ResponseHead:
    """A response's head, for a client that addressed us by a certain Host."""

    headers: RawHeaders
    length: bool
    """Whether it has a Content-Length."""
    events: bool
    """Whether the body is an event stream."""
    head: Head
    """The head to forward, for a response that is not changed and leaves the connection open."""
    opening: Opening
    """What is recorded of that head."""


def judged_request(request: web.BaseRequest, address: Address, guard: Guard, *, plain: bool) -> RequestHead:
    """Compute the `RequestHead` of a request.

    `plain` is as in `request_head`; it is also set if the response may be a stream of HTTP+SSE.
    """
    headers = list(request.raw_headers)
    upgrade = _asks_for_a_websocket(request, headers)
    legacy = (
        request.method == "GET"
        and "text/event-stream" in every(headers, b"accept").lower()
        and first(headers, b"mcp-session-id") is None
        and first(headers, b"mcp-protocol-version") is None
    )
    head = request_head(
        request.method,
        request.raw_path,
        headers,
        address,
        keep=UPGRADE if upgrade else CHUNKED,
        plain=plain or legacy,
    )
    head.encoded = head.encode()
    session = first(headers, b"mcp-session-id")
    came = recorded_request(request, headers)
    return RequestHead(
        headers,
        upgrade,
        legacy,
        request.method == "POST" and "json" in every(headers, b"content-type").lower(),
        first(headers, b"host"),
        session.decode("latin-1") if session else None,
        guard.refusal(headers),
        head,
        Opening(came, head.fields(), came["target"]),
    )


def recorded_request(request: web.BaseRequest, headers: RawHeaders) -> dict[str, Any]:
    """Return a request's head as it is recorded."""
    target = request.raw_path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    version = f"{request.version.major}.{request.version.minor}"
    return {"method": request.method, "target": target, "version": version, "headers": recorded(headers)}


def judged_response(message: RawResponseMessage, host: bytes | None, address: Address, chunked: bool) -> ResponseHead:
    """Compute the `ResponseHead` for a client that addressed us as `host`; `chunked` keeps the chunks of the body."""
    headers = list(message.raw_headers)
    named = [(b"host", host)] if host is not None else []
    head = response_head(message.code, message.reason, headers, named, address, keep=CHUNKED if chunked else ())
    head.encoded = head.encode()
    came = {"status": message.code, "reason": message.reason, "headers": recorded(headers)}
    return ResponseHead(
        headers,
        first(headers, b"content-length") is not None,
        "text/event-stream" in every(headers, b"content-type").lower(),
        head,
        Opening(came, head.fields()),
    )


def _asks_for_a_websocket(request: web.BaseRequest, headers: RawHeaders) -> bool:
    """Return whether this is a handshake that may become a tunnel (RFC 6455, 4.1): it must not have a body."""
    if not is_upgrade(request) or request.method != "GET":
        return False
    bodiless = not is_chunked(request) and (first(headers, b"content-length") or b"0") == b"0"
    return bodiless and every(headers, b"upgrade").lower() == "websocket"
