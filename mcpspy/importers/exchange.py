"""One HTTP exchange that another program recorded as a whole, converted to records.

It is recorded as in `mcpspy.relay.mitm.flow`. It has to be MCP: a header of the protocol shows that, or a JSON-RPC
message. Its channels and heads are recorded, and its event stream is split into events.

A file may only have the start and the end of a stream. An event came after the message that it answers, and before any
message that answers it. So each event gets the earliest possible time: not before the stream, the event above it, or,
for a response, the request with its id. Then messages that the event caused are later, and requests are paired as they
were. In a stream that a request opened, the last event is usually the response, so it gets the end of the stream. All
these times are approximate, and the capture says so.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from mcpspy.capture import scan
from mcpspy.importers.captures import LARGEST, Captures, ImportedServer, Steps
from mcpspy.importers.text import sound
from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.secrets.redactor import unquoted
from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.http_head import PORTS, SIGN_OF_MCP, authority_of, may_hold_messages, speaks_mcp
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse
from mcpspy.wire.lines import PIECE
from mcpspy.wire.sse import Events, parse_event

_AFTER = 1  # nanosecond between a request and its response


class RequestTimes:
    """When requests were sent, by server and id; several clients may use the same id."""

    def __init__(self) -> None:
        self._walls: dict[tuple[str, Id], list[int]] = {}

    def note(self, origin: str, wall: int, body: bytes) -> None:
        """Store the time of the requests in a body."""
        for message in parse(body) if len(body) <= scan.LARGEST else ():
            if isinstance(message, Request):
                walls = self._walls.setdefault((origin, message.id), [])
                if wall not in walls[bisect_left(walls, wall) :][:1]:
                    insort(walls, wall)

    def first(self, origin: str, event: bytes, since: int) -> int:
        """Return when the request that this event answers was first sent after `since`; `since` if there was none."""
        data = parse_event(event).data
        if not data or len(data) > scan.LARGEST:
            return since
        answered = [message.id for message in parse(data) if isinstance(message, Result | Error) and message.id]
        found = [since]
        for walls in (self._walls.get((origin, answer), []) for answer in answered):
            found += [wall + _AFTER for wall in walls[bisect_left(walls, since) :][:1]]
        return max(found)


def decoded(raw: bytes, encoding: str, most: int) -> bytes | None:
    """Return a body without its content codings; None if decoding fails or gives more than `most` bytes."""
    decoder = Decoder(encoding)
    if decoder.plain:
        return raw
    parts, size = [], 0
    for part in decoder.feed(raw):
        parts.append(part)
        size += len(part)
        if size > most:
            return None
    decoder.end()
    return None if decoder.fault else b"".join(parts)


def blocks(raw: bytes) -> Iterator[bytes]:
    """Yield the events of a stream with their terminators, one at a time, because three bytes may be one event."""
    pieces: list[bytes] = []
    for piece, more, cut in _framed(raw):
        pieces.append(piece)
        if not more:
            yield b"".join(pieces) + (b"" if cut else b"\n")
            pieces.clear()


def _framed(raw: bytes) -> Iterator[tuple[bytes, bool, bool]]:
    events = Events()
    for start in range(0, len(raw), PIECE):
        yield from events.feed(raw[start : start + PIECE])
    yield from events.end()


def placed(
    events: Iterable[bytes], origin: str, since: int, until: int, asked: RequestTimes, *, to_a_request: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield each event of a stream with its time; `to_a_request` is True unless a GET opened the stream."""
    wall = since
    coming = iter(events)
    event = next(coming, None)
    while event is not None:
        following = next(coming, None)
        wall = max(wall, asked.first(origin, event, since))
        if following is None and to_a_request:
            wall = until
        yield min(wall, until), event
        event = following


_LOOKED_AT = 8  # maximum number of 64 KiB parts of a coded body that are searched for MCP
_SWITCHED = 101
_EMPTY = (202, 204, 205, 304)  # statuses whose responses have no body, or no body in MCP
_CLOSE = 8  # RFC 6455, 11.8

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A message of a WebSocket. All times here are nanoseconds since the epoch."""

    wall: int
    from_client: bool
    opcode: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request, its response, and the messages of the WebSocket that it opened."""

    origin: str
    """The server: scheme, host, and port unless it is the default."""
    asked: int
    answered: int
    ended: int
    head: dict[str, Any]
    """Method, target and version."""
    headers: Headers
    body: bytes | None
    """None if the file does not contain it; so for the members below."""
    status: int | None
    """None if the file has no response."""
    reason: str
    response_headers: Headers
    answer: tuple[tuple[int, bytes], ...] | None
    """The response body, in parts with their times."""
    peer: str | None = None
    coded: bool = False
    """Whether bodies are still in the content codings of their heads."""
    broken: str = ""
    """Why it broke off."""
    messages: tuple[RecordedMessage, ...] = ()
    closed: tuple[int, str] | None = None
    """Code and reason of the WebSocket's close."""


def place(scheme: str, host: str, port: int | None) -> str:
    """Return the origin of a server, as in the captures of `mitm`. Raises ValueError if it is invalid."""
    scheme = {"ws": "http", "wss": "https"}.get(scheme.lower(), scheme.lower())
    if scheme not in PORTS or not host:
        raise ValueError(f"{scheme!r} is not a scheme of HTTP")
    origin = f"{scheme}://{authority_of(scheme, host.lower(), PORTS[scheme] if port is None else port)}"
    parts = urlsplit(origin)
    if parts.hostname != host.lower() or parts.port == 0:
        raise ValueError(f"{origin!r} is not an origin")
    return origin


def split(url: str) -> tuple[str, str]:
    """Return the origin and the target of a URL, without a password. Raises ValueError if it is invalid."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return place(parts.scheme, parts.hostname or "", parts.port), target


class Web:
    """Begins the exchanges of one file."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self._asked = RequestTimes()

    def start(self, exchange: RecordedExchange | None) -> Steps | None:
        """Return the steps of an exchange, or None if it is not MCP. Start all exchanges before you take steps.

        Raises ValueError if its heads cannot be written.
        """
        if exchange is None or not _is_mcp(exchange):
            return None
        sound([exchange.origin, exchange.head, exchange.headers, exchange.reason, exchange.response_headers])
        self._asked.note(exchange.origin, exchange.asked, exchange.body or b"")
        return _steps(exchange, self._captures, self._asked)


def _is_mcp(exchange: RecordedExchange) -> bool:
    if speaks_mcp(exchange.headers) or speaks_mcp(exchange.response_headers):
        return True
    bodies = [(exchange.headers, exchange.body or b"")]
    kind = _every(exchange.response_headers, "content-type")
    if not kind or may_hold_messages(kind):  # some formats have no heads
        bodies += [(exchange.response_headers, part) for _, part in exchange.answer or ()]
    bodies += [((), message.payload) for message in exchange.messages]
    return any(SIGN_OF_MCP.search(_beginning(headers, raw) if exchange.coded else raw) for headers, raw in bodies)


def _beginning(headers: Headers, raw: bytes) -> bytes:
    decoder = Decoder(_every(headers, "content-encoding"))
    return b"".join(islice(decoder.feed(raw), _LOOKED_AT)) if not decoder.plain else raw


def _steps(exchange: RecordedExchange, captures: Captures, request_times: RequestTimes) -> Steps:
    yield exchange.asked
    name = exchange.origin.partition("://")[2]
    server = captures.get(exchange.origin, exchange.asked, name, {"transport": "http", "url": exchange.origin})
    http = HttpExchange(server.recording)
    t = server.at(exchange.asked)
    head = exchange.head | {"headers": _fields(exchange.headers)}
    request = http.open_request(t, head, exchange.peer, decoded=not exchange.coded)
    if exchange.body:
        request.feed(exchange.body, t)
    elif exchange.body is None and exchange.head["method"] not in ("GET", "HEAD", "DELETE", "OPTIONS"):
        server.gap(exchange.asked, 1, "the file does not hold the body of this request")
    request.end(t, "eof")
    if exchange.status is None:
        yield exchange.ended
        why = f"the file does not hold an answer to the request of channel {request.number}"
        server.gap(exchange.ended, 1, f"{why}: {unquoted(exchange.broken)}" if exchange.broken else why)
    else:
        yield exchange.answered
        yield from _answer(exchange, server, http, request_times)


def _answer(
    exchange: RecordedExchange, server: ImportedServer, http: HttpExchange, request_times: RequestTimes
) -> Steps:
    head = {"status": exchange.status, "reason": exchange.reason, "headers": _fields(exchange.response_headers)}
    coded, parts = _parts(exchange, request_times)
    t = server.at(exchange.answered)
    response = http.open_response(t, head, decoded=not coded)
    for wall, part in parts:
        yield wall
        t = max(t, server.at(wall))
        response.feed(part, t)
    if exchange.status != _SWITCHED:
        yield exchange.ended
        t = max(t, server.at(exchange.ended))
        if exchange.answer is None and exchange.status not in _EMPTY and exchange.head["method"] != "HEAD":
            why = f"the file does not hold the body of the response of channel {response.number}"
            server.gap(exchange.ended, 1, why)
    response.end(t, "eof" if not exchange.broken else "abort" if "client" in exchange.broken.lower() else "reset")
    if exchange.status == _SWITCHED:
        yield from _socket(exchange, server, http)


def _parts(exchange: RecordedExchange, request_times: RequestTimes) -> tuple[bool, Iterable[tuple[int, bytes]]]:
    """Return whether the response body is still coded, and its parts with their times."""
    answer = exchange.answer or ()
    if len(answer) == 1 and _is_stream(exchange.response_headers):
        encoding = _every(exchange.response_headers, "content-encoding") if exchange.coded else ""
        stream = decoded(answer[0][1], encoding, LARGEST)
        if stream is not None:
            since, until, opens = exchange.answered, exchange.ended, exchange.head["method"] == "POST"
            return False, placed(blocks(stream), exchange.origin, since, until, request_times, to_a_request=opens)
    return exchange.coded, answer


def _socket(exchange: RecordedExchange, server: ImportedServer, http: HttpExchange) -> Steps:
    """Record the messages of a WebSocket, which are complete already."""
    t = server.at(exchange.answered)
    http.open_socket(t)
    for message in exchange.messages:
        if message.opcode == _CLOSE:
            continue
        yield message.wall
        t = max(t, server.at(message.wall))
        http.message(t, "client" if message.from_client else "server", message.opcode, message.payload)
    yield exchange.ended
    t = max(t, server.at(exchange.ended))
    code, reason = exchange.closed or (None, "")
    http.close_socket(t, code, reason, "client")


def _fields(headers: Headers) -> list[list[str]]:
    return [[name, value] for name, value in headers]


def _is_stream(headers: Headers) -> bool:
    return "text/event-stream" in _every(headers, "content-type").lower()


def _every(headers: Headers, name: str) -> str:
    return ", ".join(value for key, value in headers if key.lower() == name)
