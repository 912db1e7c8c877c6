"""One HTTP exchange that another program recorded as a whole, and the records that it becomes.

It is recorded as `relay.mitm.addon` records one: if it is MCP, which a header that the protocol owns or a message of
JSON-RPC tells; its channels, its heads, its event stream cut into events (`imports.events` says when these came).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from mcpspy.capture.writer import Writer
from mcpspy.importers.captures import Captures, Recording
from mcpspy.importers.events import Asked, blocks, decoded, placed
from mcpspy.importers.order import LARGEST, Steps
from mcpspy.importers.text import sound
from mcpspy.recording.stream import Body
from mcpspy.secrets.redactor import is_form, is_oauth_endpoint, unquoted
from mcpspy.wire.content_coding import Decoder, Whole
from mcpspy.wire.http_head import PORTS, SIGN_OF_MCP, authority_of, may_hold_messages, speaks_mcp

_LOOKED_AT = 8  # parts of 64 KiB at most of a coded body, which tell whether it is MCP
_SWITCHED = 101
_EMPTY = (202, 204, 205, 304)  # statuses whose responses have no body, or none in MCP
_OPS = {2: "binary", 9: "ping", 10: "pong"}
_CLOSE = 8  # RFC 6455, 11.8

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a WebSocket; its time is nanoseconds since the epoch, as are all below."""

    wall: int
    from_client: bool
    opcode: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, what answered it, and the messages of the WebSocket that it opened."""

    origin: str
    """The server: scheme, host, and port unless that is the default."""
    asked: int
    answered: int
    ended: int
    head: dict[str, Any]
    """Method, target and version."""
    headers: Headers
    body: bytes | None
    """None: the file does not hold it; so below."""
    status: int | None
    """None: nothing answered that the file knows of."""
    reason: str
    response_headers: Headers
    answer: tuple[tuple[int, bytes], ...] | None
    """The response's body, in parts with their times."""
    peer: str | None = None
    coded: bool = False
    """Whether bodies are still in the content codings that their heads name."""
    broken: str = ""
    """Why it broke off."""
    said: tuple[Said, ...] = ()
    closed: tuple[int, str] | None = None
    """Code and reason of the WebSocket's close."""


def place(scheme: str, host: str, port: int | None) -> str:
    """The origin of a server, as the captures of `mitm` call it. Raises ValueError for what is none."""
    scheme = {"ws": "http", "wss": "https"}.get(scheme.lower(), scheme.lower())
    if scheme not in PORTS or not host:
        raise ValueError(f"{scheme!r} is no scheme of HTTP")
    origin = f"{scheme}://{authority_of(scheme, host, PORTS[scheme] if port is None else port)}"
    parts = urlsplit(origin)
    if parts.hostname != host.lower() or parts.port == 0:
        raise ValueError(f"{origin!r} is no origin")
    return origin


def split(url: str) -> tuple[str, str]:
    """The origin and the target of a URL; a password in it is left out. Raises ValueError for what is none."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return place(parts.scheme, parts.hostname or "", parts.port), target


class Web:
    """Begins the exchanges of one file."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self._asked = Asked()

    def start(self, exchange: Exchange | None) -> Steps | None:
        """The steps of an exchange; None where it is not MCP. Before they are taken, all others are to be started.

        Raises ValueError for one whose heads cannot be written.
        """
        if exchange is None or not _is_mcp(exchange):
            return None
        sound([exchange.origin, exchange.head, exchange.headers, exchange.reason, exchange.response_headers])
        self._asked.note(exchange.origin, exchange.asked, exchange.body or b"")
        return _steps(exchange, self._captures, self._asked)


def _is_mcp(exchange: Exchange) -> bool:
    if speaks_mcp(exchange.headers) or speaks_mcp(exchange.response_headers):
        return True
    bodies = [(exchange.headers, exchange.body or b"")]
    kind = _every(exchange.response_headers, "content-type")
    if not kind or may_hold_messages(kind):  # some forms have no heads
        bodies += [(exchange.response_headers, part) for _, part in exchange.answer or ()]
    bodies += [((), said.payload) for said in exchange.said]
    return any(SIGN_OF_MCP.search(_beginning(headers, raw) if exchange.coded else raw) for headers, raw in bodies)


def _beginning(headers: Headers, raw: bytes) -> bytes:
    decoder = Decoder(_every(headers, "content-encoding"))
    return b"".join(islice(decoder.feed(raw), _LOOKED_AT)) if not decoder.plain else raw


def _steps(exchange: Exchange, captures: Captures, asked: Asked) -> Steps:
    yield exchange.asked
    name = exchange.origin.partition("://")[2]
    recording = captures.get(exchange.origin, exchange.asked, name, {"transport": "http", "url": exchange.origin})
    secret = is_form(_every(exchange.headers, "content-type")) or is_oauth_endpoint(exchange.head["target"])
    fields: dict[str, Any] = {"head": exchange.head | {"headers": list(map(list, exchange.headers))}}
    fields |= {"peer": exchange.peer} if exchange.peer else {}
    request = _open(recording, exchange, "request", fields, secret=secret, coded=exchange.coded)
    t = recording.at(exchange.asked)
    if exchange.body:
        request.feed(exchange.body, t)
    elif exchange.body is None and exchange.head["method"] not in ("GET", "HEAD", "DELETE", "OPTIONS"):
        recording.gap(exchange.asked, 1, "the file does not hold the body of this request")
    request.end(t, "eof")
    if exchange.status is None:
        yield exchange.ended
        why = f"the file does not hold an answer to the request of channel {request.number}"
        recording.gap(exchange.ended, 1, f"{why}: {unquoted(exchange.broken)}" if exchange.broken else why)
    else:
        yield exchange.answered
        yield from _answer(exchange, recording, request.number, asked, secret=secret)


def _answer(exchange: Exchange, recording: Recording, request: int, asked: Asked, *, secret: bool) -> Steps:
    head = {"status": exchange.status, "reason": exchange.reason, "headers": list(map(list, exchange.response_headers))}
    coded, parts = _parts(exchange, asked)
    fields = {"answers": request, "head": head}
    response = _open(recording, exchange, "response", fields, secret=secret, coded=coded)
    t = recording.at(exchange.answered)
    for wall, part in parts:
        yield wall
        t = max(t, recording.at(wall))
        response.feed(part, t)
    if exchange.status != _SWITCHED:
        yield exchange.ended
        t = max(t, recording.at(exchange.ended))
        if exchange.answer is None and exchange.status not in _EMPTY and exchange.head["method"] != "HEAD":
            why = f"the file does not hold the body of the response of channel {response.number}"
            recording.gap(exchange.ended, 1, why)
    response.end(t, "eof" if not exchange.broken else "abort" if "client" in exchange.broken.lower() else "reset")
    if exchange.status == _SWITCHED:
        yield from _socket(exchange, recording, request)


def _parts(exchange: Exchange, asked: Asked) -> tuple[bool, Iterable[tuple[int, bytes]]]:
    """The response's body in parts with their times, and whether it is still coded."""
    answer = exchange.answer or ()
    if len(answer) == 1 and _is_stream(exchange.response_headers):
        encoding = _every(exchange.response_headers, "content-encoding") if exchange.coded else ""
        stream = decoded(answer[0][1], encoding, LARGEST)
        if stream is not None:
            since, until, opens = exchange.answered, exchange.ended, exchange.head["method"] == "POST"
            return False, placed(blocks(stream), exchange.origin, since, until, asked, to_a_request=opens)
    return exchange.coded, answer


def _socket(exchange: Exchange, recording: Recording, request: int) -> Steps:
    """The messages of a WebSocket, which are whole already."""
    t = recording.at(exchange.answered)
    numbers = {
        sender: recording.tap.open_body(t, sender, "ws", "message", {"answers": request}).number
        for sender in ("client", "server")
    }
    for said in exchange.said:
        if said.opcode == _CLOSE:
            continue
        yield said.wall
        t = max(t, recording.at(said.wall))
        number = numbers["client" if said.from_client else "server"]
        rest = {"op": _OPS[said.opcode]} if said.opcode in _OPS else None
        whole = Whole()
        for raw, more, cut in whole.feed(said.payload) + whole.end() or [(b"", False, False)]:
            recording.tap.record(Writer.frame, number, t, raw, more, cut, rest)
    yield exchange.ended
    t = max(t, recording.at(exchange.ended))
    closing: dict[str, object] = {}
    if exchange.closed:
        closing = {"code": exchange.closed[0], "reason": recording.tap.redactor.url(exchange.closed[1])}
    for number in numbers.values():
        recording.tap.record(Writer.close, number, t, "eof", closing)


def _open(
    recording: Recording, exchange: Exchange, role: str, fields: dict[str, Any], *, secret: bool, coded: bool
) -> Body:
    asks = role == "request"
    headers = exchange.headers if asks else exchange.response_headers
    framing = "sse" if not asks and _is_stream(headers) else "body"
    page = not asks and is_form(_every(headers, "content-type"))
    return recording.tap.open_body(
        recording.at(exchange.asked if asks else exchange.answered),
        "client" if asks else "server",
        role,
        framing,
        fields,
        encoding=_every(headers, "content-encoding") if coded else "",
        secret=secret or page,
    )


def _is_stream(headers: Headers) -> bool:
    return "text/event-stream" in _every(headers, "content-type").lower()


def _every(headers: Headers, name: str) -> str:
    return ", ".join(value for key, value in headers if key.lower() == name)
