"""HTTP heads on their way through: what is forwarded of what came, and what has to change (RFC 9110, RFC 9112).

Pure functions over the bytes that a peer sent. Everything end-to-end keeps its order, case and number; hop-by-hop
fields are ours to set. What must differ, because the client dials us and the server does not know it, is collected in
`sent` and `by` for the capture: the Host, an Origin or a Location that names the wrong side, the path under a route.
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
_KEPT = frozenset(b"close host content-length mcp-session-id".split())  # whatever a Connection field says
CHUNKED = (b"transfer-encoding",)
"""The fields of the hop that stay where the next hop is chunked as well."""
UPGRADE = (b"connection", b"upgrade")
"""Those that ask for a WebSocket, or grant one."""
_REWRITTEN = frozenset(b"host origin sec-websocket-extensions accept-encoding".split())
_REFERENCE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#\\]*)(.*)", re.DOTALL)
_LONG = 1024  # bytes of a value that is not remembered
_STREAMS = ("stream", "seq", "ndjson", "jsonl")  # before +json: several texts, each sent when there is one

Origin = tuple[str, str, int]
"""Scheme, host and port; two URLs are same-origin when these are equal (RFC 6454)."""


class Address:
    """Where a route leads: `url` as the user named it, and `prefix`, what stands before its paths on our side."""

    def __init__(self, url: str, prefix: str = "", *, preserve_host: bool = False) -> None:
        """Raises UsageError for what is no http or https URL."""
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
        """The upstream's host, with its port unless that is the default."""
        parts = urlsplit(url)
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        """The path and query of the URL: what a client has to ask for."""


@dataclass(slots=True)
class Head:
    """A head to forward: its first line and fields, and what differs from what came."""

    line: bytes
    headers: RawHeaders = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    by: list[str] = field(default_factory=list)
    encoded: bytes | None = None
    """The bytes on the wire, of a head that nobody changes any more."""

    def copy(self) -> "Head":
        """The same head, to be changed."""
        return Head(self.line, list(self.headers), copy.deepcopy(self.sent) if self.sent else {}, list(self.by))

    def change(self, name: bytes, value: bytes, by: str) -> None:
        """Forward `value` in place of what came."""
        self.headers.append((name, value))
        self.sent.setdefault("headers", []).append([text(name), text(value)])
        self._because(by)

    def replace(self, index: int, value: bytes, by: str) -> None:
        """Forward `value` in a field that is there already."""
        name, _ = self.headers.pop(index)
        self.change(name, value, by)
        self.headers.insert(index, self.headers.pop())

    def chunk(self, by: str) -> None:
        """Send a body whose length will be another in chunks."""
        self.headers = [field for field in self.headers if field[0].lower() not in (b"content-length", *CHUNKED)]
        self.change(b"Transfer-Encoding", b"chunked", by)

    def drop(self, name: bytes, by: str) -> None:
        """Forward no field of a name in lower case."""
        for field_ in [field_ for field_ in self.headers if field_[0].lower() == name]:
            self.headers.remove(field_)
            self.sent.setdefault("headers", []).append([text(field_[0]), None])
            self._because(by)

    def retarget(self, method: str, target: str, by: str) -> None:
        """Ask for `target` instead."""
        self.line = request_line(method, target)
        self.sent["target"] = target
        self._because(by)

    def fields(self) -> dict[str, Any]:
        """`sent` and `by` as the capture has them; several reasons are joined by commas."""
        return {"sent": self.sent, "by": ",".join(self.by)} if self.by else {}

    def encode(self) -> bytes:
        """The bytes on the wire."""
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
    """The request as the upstream gets it.

    `keep` is CHUNKED, or UPGRADE for a WebSocket, which gets no extensions; with `plain` the response may have to be
    rewritten, so that no content coding is asked for.
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
            head.sent.setdefault("headers", []).append([text(name), None])  # dropped
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
    """The response as the client gets it: a Location at the upstream's own origin leads back to us (H-07)."""
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
    """A URL that the upstream named, as the client has to see it; None where it leads to the right place already.

    Only an absolute URL at the upstream's own origin leads past us, and a path only where we stand under a prefix; what
    follows the authority stays byte for byte.
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
    """The fields that are not for the next hop alone (RFC 9110, 7.6.1), and those of the hop that are to be kept."""
    dropped = _for_one_hop(every(headers, b"connection"), keep)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


@lru_cache(maxsize=32)
def _for_one_hop(options: str, keep: tuple[bytes, ...]) -> frozenset[bytes]:
    """The names of fields that go no further; `options` is what the Connection fields say."""
    named = {option.strip().lower().encode() for option in options.split(",")} - _KEPT if options else set()
    return (_HOP_BY_HOP | named).difference(keep)


@lru_cache(maxsize=256)
def origin_of(url: str) -> Origin | None:
    """The origin of an http or https URL; None for anything else."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in PORTS or not parts.hostname:
            return None
        return scheme, parts.hostname.lower(), parts.port or PORTS[scheme]
    except ValueError:
        return None


def _is_own(origin: bytes, headers: RawHeaders) -> bool:
    """Whether an Origin is where we listen."""
    own = own_origin(headers)
    return own is not None and origin_of(text(origin)) == own


def own_origin(headers: RawHeaders) -> Origin | None:
    """Our own origin, as the client that sent these headers knows it."""
    host = first(headers, b"host")
    return origin_of(f"http://{text(host)}") if host else None


def first(headers: RawHeaders, name: bytes) -> bytes | None:
    """The value of the first field of a name in lower case."""
    size = len(name)  # which tells most fields apart; a dozen of these questions are asked for each request
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value
    return None


def every(headers: RawHeaders, name: bytes) -> str:
    """The values of all fields of a name, joined as one list."""
    size = len(name)
    return ", ".join([text(value) for key, value in headers if len(key) == size and key.lower() == name])


def is_json(headers: RawHeaders) -> bool:
    """Whether the body is one JSON text (RFC 8259), which may be collected; not a stream of several, as NDJSON is."""
    kind = every(headers, b"content-type").partition(";")[0].strip().lower()
    subtype = kind.partition("/")[2]
    if subtype.endswith("+json"):
        return subtype.removesuffix("+json").rpartition(".")[2] not in _STREAMS
    return kind == "application/json"


def request_line(method: str, target: str) -> bytes:
    """The first line of a request."""
    return f"{method} {target} HTTP/1.1".encode("utf-8", "surrogateescape")


def recorded(headers: RawHeaders) -> list[tuple[str, str]]:
    """Headers as the capture has them."""
    return [_repeated(name, value) if len(value) < _LONG else (text(name), text(value)) for name, value in headers]


@lru_cache(maxsize=1024)
def _repeated(name: bytes, value: bytes) -> tuple[str, str]:
    """A field as the capture has it; most come again with the next request."""
    return text(name), text(value)


def text(raw: bytes) -> str:
    """Header bytes as text: UTF-8, else the octets of ISO 8859-1 (RFC 9110, 5.5)."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
