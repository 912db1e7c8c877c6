"""What follows from the head of a message and from nothing else, worked out once for each distinct head.

Most heads come again with the next call. One is known by all of its bytes, so a head that differs in the case of a
letter is another one. A peer whose heads are all different costs their work, not memory: at most `HEADS` are kept, of
`LARGEST` bytes each, and when there are more all are forgotten.

What is kept is shared by all messages with that head: code that changes a `Head` of it changes a copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aiohttp import web
from aiohttp.http import RawResponseMessage

from mcpspy.recording.opening import Opening
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
"""Heads that are kept for each direction of a route."""
LARGEST = 4096
"""Bytes of a head that is kept."""
_FIELD = 64  # what a field takes besides its bytes

T = TypeVar("T")


class KnownHeads(Generic[T]):
    """What was worked out of heads that came before."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], T] = {}

    def __len__(self) -> int:
        """How many heads are kept."""
        return len(self._known)

    def find(self, headers: tuple[tuple[bytes, bytes], ...], line: tuple[Any, ...], work_out: Callable[[], T]) -> T:
        """What follows from `headers` and `line`, which is all else that `work_out` depends on."""
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
    """A request's head, on its way through one route."""

    headers: RawHeaders
    upgrade: bool
    """Whether it is a handshake that may become a tunnel (RFC 6455, 4.1)."""
    legacy: bool
    """Whether an event stream may be one of HTTP+SSE, which names an endpoint."""
    json: bool
    """Whether the client asks by JSON."""
    host: bytes | None
    session: str | None
    refusal: str | None
    """Why it may not use our port; None if it may."""
    head: Head
    """What is forwarded."""
    opening: Opening
    """What is recorded of it."""


@dataclass(slots=True)
class ResponseHead:
    """A response's head, on its way to a client that named us by a certain Host."""

    headers: RawHeaders
    length: bool
    """Whether it has a Content-Length."""
    events: bool
    """Whether the body is an event stream."""
    head: Head
    """What is forwarded, of a response that nobody changes and that leaves the connection open."""
    opening: Opening
    """What is recorded of it then."""


def judged_request(request: web.BaseRequest, address: Address, guard: Guard, *, plain: bool) -> RequestHead:
    """A request; `plain` as of `request_head`, which a stream that may be HTTP+SSE is in any case."""
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
    """A request's head as the capture has it."""
    target = request.raw_path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    version = f"{request.version.major}.{request.version.minor}"
    return {"method": request.method, "target": target, "version": version, "headers": recorded(headers)}


def judged_response(message: RawResponseMessage, host: bytes | None, address: Address, chunked: bool) -> ResponseHead:
    """A response to a client that named us by `host`; with `chunked` its body is sent in chunks, as received."""
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
    """Whether it is a handshake that may become a tunnel (RFC 6455, 4.1): a request with a body may not."""
    if not is_upgrade(request) or request.method != "GET":
        return False
    bodiless = not is_chunked(request) and (first(headers, b"content-length") or b"0") == b"0"
    return bodiless and every(headers, b"upgrade").lower() == "websocket"
