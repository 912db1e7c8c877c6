"""HTTP heads on their way through the relay: what is forwarded unchanged, and what is changed (RFC 9110, RFC 9112).

These are pure functions over the bytes that a peer sent. End-to-end fields keep their order, case and number.
Hop-by-hop fields belong to our own hop. Some fields must differ because the client connects to us and the server does
not know that: the Host, an Origin or a Location that names the wrong side, and the path under a route. These changes
are collected in `sent` and `by` for the capture.
"""

import copy
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import shown
from mcpspy.wire.http_head import PORTS, authority_of

RawHeaders = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade".split())
_KEPT = frozenset(b"close host content-length mcp-session-id".split())  # even if a Connection field lists them
CHUNKED = (b"transfer-encoding",)
"""The hop-by-hop fields that are kept if the next hop is chunked as well."""
UPGRADE = (b"connection", b"upgrade")
"""The hop-by-hop fields that request or accept a WebSocket."""
_REWRITTEN = frozenset(b"host origin sec-websocket-extensions accept-encoding".split())
_REFERENCE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#\\]*)(.*)", re.DOTALL)
_LONG = 1024  # bytes; a value of this size or more is not cached
_STREAMS = ("stream", "seq", "ndjson", "jsonl")  # before +json: a sequence of texts, sent one by one

Origin = tuple[str, str, int]
"""Scheme, host and port; two URLs are same-origin when these are equal (RFC 6454)."""


class Address:
    """The address of a route: `url` is the upstream as the user gave it, `prefix` precedes its paths on our side."""

    def __init__(self, url: str, prefix: str = "", *, preserve_host: bool = False) -> None:
        """Raises UsageError if `url` is not an http, https, ws or wss URL."""
        self.websocket = url[:3].lower() == "ws:" or url[:4].lower() == "wss:"
        """Whether clients connect by WebSocket, which begins as an HTTP request."""
        if self.websocket:
            url = f"http{url[2:]}"
        origin = origin_of(url)
        if origin is None or "@" in urlsplit(url).netloc:
            why = (
                "has a password: let the client send it"
                if origin
                else "is not a URL, such as http://127.0.0.1:8000/mcp"
            )
            raise UsageError(f"{shown(url)!r} {why}")
        self.prefix = prefix
        self.preserve_host = preserve_host
        self.origin: Origin = origin
        self.authority = authority_of(*origin)
        """The upstream's host, with its port if that is not the default."""
        parts = urlsplit(url)
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        """The path and query of the URL, which a client has to request."""


@dataclass(slots=True)
class Head:
    """A head to forward: its first line and fields, and what differs from the received head."""

    line: bytes
    headers: RawHeaders = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    by: list[str] = field(default_factory=list)
    encoded: bytes | None = None
    """The encoded head; set only if the head is not changed any more."""

    def copy(self) -> "Head":
        """Return a copy that may be changed."""
        return Head(self.line, list(self.headers), copy.deepcopy(self.sent) if self.sent else {}, list(self.by))

    def change(self, name: bytes, value: bytes, by: str) -> None:
        """Add a field with `value` instead of the received one."""
        self.headers.append((name, value))
        self.sent.setdefault("headers", []).append([text(name), text(value)])
        self._because(by)

    def replace(self, index: int, value: bytes, by: str) -> None:
        """Replace the value of an existing field."""
        name, _ = self.headers.pop(index)
        self.change(name, value, by)
        self.headers.insert(index, self.headers.pop())

    def chunk(self, by: str) -> None:
        """Send the body in chunks, because its length will change."""
        self.headers = [field for field in self.headers if field[0].lower() not in (b"content-length", *CHUNKED)]
        self.change(b"Transfer-Encoding", b"chunked", by)

    def drop(self, name: bytes, by: str) -> None:
        """Remove all fields with a name in lower case."""
        for field_ in [field_ for field_ in self.headers if field_[0].lower() == name]:
            self.headers.remove(field_)
            self.sent.setdefault("headers", []).append([text(field_[0]), None])
            self._because(by)

    def retarget(self, method: str, target: str, by: str) -> None:
        """Change the request target."""
        self.line = request_line(method, target)
        self.sent["target"] = target
        self._because(by)

    def fields(self) -> dict[str, Any]:
        """Return `sent` and `by` as they are recorded; several reasons are joined by commas."""
        return {"sent": self.sent, "by": ",".join(self.by)} if self.by else {}

    def encode(self) -> bytes:
        """Return the bytes to send."""
        return self.encoded or b"\r\n".join(
            [self.line, *(name + b": " + value for name, value in self.headers), b"", b""]
        )

    def _because(self, by: str) -> None:
        if by not in self.by:
            self.by.append(by)


def request_head(
    method: str,
    target: str,
    headers: RawHeaders,
    address: Address,
    *,
    keep: tuple[bytes, ...] = (),
    plain: bool = False,
) -> Head:
    """Return the head of the request to the upstream.

    `keep` is CHUNKED, or UPGRADE for a WebSocket, whose extensions are removed. `plain` is set if the response may have
    to be rewritten; then no content coding is requested.
    """
    head = Head(request_line(method, target))
    if address.prefix:
        head.retarget(method, target.removeprefix(address.prefix) or "/", "host")
        if head.sent["target"].startswith("?"):
            head.retarget(method, "/" + head.sent["target"], "host")
    named = False
    for name, value in end_to_end(headers, keep):
        lower = name.lower()
        if lower not in _REWRITTEN:
            head.headers.append((name, value))
            continue
        named = named or lower == b"host"
        if lower == b"host" and not address.preserve_host:
            if value != address.authority.encode():
                head.change(name, address.authority.encode(), "host")
                continue
        elif lower == b"origin" and not address.preserve_host and _is_own(value, headers):
            head.change(name, f"{address.origin[0]}://{address.authority}".encode(), "origin")
            continue
        elif lower == b"sec-websocket-extensions" and keep == UPGRADE:
            head.sent.setdefault("headers", []).append([text(name), None])  # removed
            head.by.append("encoding")
            continue
        elif lower == b"accept-encoding" and plain and value.strip().lower() != b"identity":
            head.change(name, b"identity", "encoding")
            continue
        head.headers.append((name, value))
    if not named:
        head.change(b"Host", address.authority.encode(), "host")
    return head


def response_head(
    status: int,
    reason: str,
    headers: RawHeaders,
    request_headers: RawHeaders,
    address: Address,
    *,
    keep: tuple[bytes, ...] = (),
) -> Head:
    """Return the head of the response to the client; a Location at the upstream's own origin is mapped to us (H-07)."""
    head = Head(f"HTTP/1.1 {status} {reason}".encode("utf-8", "surrogateescape"))
    for name, value in end_to_end(headers, keep):
        if keep == CHUNKED and name.lower() == b"content-length":
            continue  # it would contradict the chunks (RFC 9112, 6.3)
        if name.lower() in (b"location", b"content-location"):
            mapped = mapped_reference(text(value), request_headers, address)
            if mapped is not None:
                head.change(name, mapped.encode(), "location")
                continue
        head.headers.append((name, value))
    return head


def mapped_reference(reference: str, request_headers: RawHeaders, address: Address) -> str | None:
    """Map a URL that the upstream named to the URL that the client needs; None if it needs no change.

    Only two kinds of URL need a change: an absolute URL at the upstream's own origin, and a path if the route has a
    prefix. The part after the authority stays unchanged, byte for byte.
    """
    host = first(request_headers, b"host")
    absolute = _REFERENCE.match(reference)
    if absolute:
        scheme, authority, rest = absolute.groups()
        same = origin_of(f"{scheme or address.origin[0]}://{authority}") == address.origin
        if not same or host is None:
            return None
        if rest[:1] != "/":
            rest = "/" + rest
        mapped = f"http://{text(host)}{address.prefix}{rest}"
        return mapped if mapped != reference else None
    if reference.startswith("/") and address.prefix:
        return address.prefix + reference
    return None


def end_to_end(headers: RawHeaders, keep: tuple[bytes, ...] = ()) -> RawHeaders:
    """Return the fields that are not for the next hop alone (RFC 9110, 7.6.1), and the hop-by-hop fields in `keep`."""
    dropped = _for_one_hop(every(headers, b"connection"), keep)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


@lru_cache(maxsize=32)
def _for_one_hop(options: str, keep: tuple[bytes, ...]) -> frozenset[bytes]:
    """Return the names of fields that are not forwarded; `options` is the value of the Connection fields."""
    named = {option.strip().lower().encode() for option in options.split(",")} - _KEPT if options else set()
    return (_HOP_BY_HOP | named).difference(keep)


@lru_cache(maxsize=256)
def origin_of(url: str) -> Origin | None:
    """Return the origin of an http or https URL; None for any other text."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in PORTS or not parts.hostname:
            return None
        return scheme, parts.hostname.lower(), parts.port or PORTS[scheme]
    except ValueError:
        return None


def _is_own(origin: bytes, headers: RawHeaders) -> bool:
    """Return whether an Origin is our own."""
    own = own_origin(headers)
    return own is not None and origin_of(text(origin)) == own


def own_origin(headers: RawHeaders) -> Origin | None:
    """Return our own origin, as the client that sent these headers addressed it."""
    host = first(headers, b"host")
    return origin_of(f"http://{text(host)}") if host else None


def first(headers: RawHeaders, name: bytes) -> bytes | None:
    """Return the value of the first field with a name in lower case; None if there is none."""
    size = len(name)  # a quick test that excludes most fields; this is called a dozen times per request
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value
    return None


def every(headers: RawHeaders, name: bytes) -> str:
    """Return the values of all fields with a name in lower case, joined as one list."""
    size = len(name)
    return ", ".join([text(value) for key, value in headers if len(key) == size and key.lower() == name])


def is_json(headers: RawHeaders) -> bool:
    """Return whether the body is one JSON text (RFC 8259), which may be collected.

    A sequence of JSON texts, such as NDJSON, is not.
    """
    kind = every(headers, b"content-type").partition(";")[0].strip().lower()
    subtype = kind.partition("/")[2]
    if subtype.endswith("+json"):
        return subtype.removesuffix("+json").rpartition(".")[2] not in _STREAMS
    return kind == "application/json"


def request_line(method: str, target: str) -> bytes:
    """Return the first line of a request."""
    return f"{method} {target} HTTP/1.1".encode("utf-8", "surrogateescape")


def recorded(headers: RawHeaders) -> list[tuple[str, str]]:
    """Return headers as they are recorded."""
    return [_repeated(name, value) if len(value) < _LONG else (text(name), text(value)) for name, value in headers]


@lru_cache(maxsize=1024)
def _repeated(name: bytes, value: bytes) -> tuple[str, str]:
    """Return a field as it is recorded; cached, because most fields are repeated in the next request."""
    return text(name), text(value)


def text(raw: bytes) -> str:
    """Decode header bytes: as UTF-8, else as ISO 8859-1 (RFC 9110, 5.5)."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
