"""The HTTP exchanges of a session as an HTTP Archive (HAR 1.2), which browsers and other proxies open.

http://www.softwareishard.com/blog/har-12-spec, with the members that Chrome adds for WebSockets. An archive contains
each exchange as a whole, and exchanges overlap: a stream may be open as long as the session. Entries are in the order
of their starts. So open exchanges are kept. A body may be larger than memory, and whether it is text or base64 is known
only at its end, so a long body is stored in a temporary file and written a portion at a time. Bodies are those of the
sender, without their content coding. Finished entries wait in another temporary file, and the archive is assembled at
the end. Only a few bytes per exchange stay in memory. With a filter, only exchanges that contain a matching row are
exported.

Each MCP session is a page, and the client is the browser. An archive has no members for line numbers, channels, acts of
gates and redactions; comments mention them.
"""

import base64
import codecs
import json
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from mcpspy import __version__
from mcpspy.capture.records import Close, Frame, Gap, Header, Open, Record
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import HttpUnit, Message, Session
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.exporters.source import ExportSource
from mcpspy.text import printable
from mcpspy.timeline import wall_time
from mcpspy.wire.http_head import Head, media_type, status
from mcpspy.wire.jsonrpc import Request
from mcpspy.wire.sse import parse_event

_IN_MEMORY = 1 << 16  # bytes of a body that are kept in memory
_ENCODED = 3 << 14  # bytes; base64 has four characters for three


class ArchivedBody:
    """The bytes of one body, added as they come; `close` it at the end."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (open as long as its exchange)
        self.size = 0
        self.is_text = True
        """The bytes so far are valid UTF-8."""
        self.omitted = 0
        """The number of bytes that are left out, because their frames are too large to join."""

    def add(self, raw: bytes) -> None:
        """Add the next bytes, which must not end inside a character."""
        self._file.write(raw)
        self.size += len(raw)
        if self.is_text:
            try:
                raw.decode()
            except UnicodeDecodeError:
                self.is_text = False

    def json(self) -> Iterator[bytes]:
        """Yield the body as a JSON string, a portion at a time: its text, or its bytes in base64."""
        self._file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield b'"'
        while portion := self._file.read(_ENCODED):
            yield json.dumps(decoder.decode(portion))[1:-1].encode() if self.is_text else base64.b64encode(portion)
        yield b'"'

    def raw(self) -> Iterator[bytes]:
        """Yield the original bytes, a portion at a time."""
        self._file.seek(0)
        while portion := self._file.read(_ENCODED):
            yield portion

    def close(self) -> None:
        """Release the memory or the file."""
        self._file.close()


SWITCHED = 101
_OPCODES = {"binary": 2, "ping": 9, "pong": 10}
_REDACTED, _WITHHELD = "«redacted:", "«withheld:"
_UNKNOWN_TYPE = "x-unknown"
_REDIRECTS = range(300, 400)

Fields = dict[str, Any]


@dataclass(slots=True, eq=False)
class ArchivedExchange:
    """The channels of one exchange and their content; times are nanoseconds since the capture started."""

    request: Open
    channels: list[int]
    posted: ArchivedBody = field(default_factory=ArchivedBody)
    asked: int | None = None
    """When the request was complete."""
    response: Open | None = None
    content: ArchivedBody = field(default_factory=ArchivedBody)
    end: Close | None = None
    """The end of the response."""
    ended: int = 0
    """The latest time of the exchange."""
    messages: ArchivedBody = field(default_factory=ArchivedBody)
    """The messages of a WebSocket as JSON, separated by commas."""
    events: ArchivedBody = field(default_factory=ArchivedBody)
    """The events of a stream that answers no POST, as Chrome writes those of an EventSource."""
    sockets: int = 0
    """The number of open directions of the WebSocket."""
    session: Session | None = None
    notes: list[str] = field(default_factory=list)
    """Remarks for the reader."""

    @property
    def switched(self) -> bool:
        """Whether it became a WebSocket."""
        return bool(self.response and status(self.response.head) == SWITCHED)

    def note(self, words: str) -> None:
        """Add a remark for the reader, once."""
        if words not in self.notes and len(self.notes) < 20:
            self.notes.append(words)

    def add(self, frame: Frame, channel: Open, header: Header) -> None:
        """Add a frame of one of the channels."""
        self.ended = max(self.ended, frame.t)
        if frame.by and (frame.dropped or frame.sent is not None):
            self.note(f"#{frame.n} was changed, dropped or replaced by {frame.by}; this file has the original")
        if _REDACTED.encode() in frame.raw or _WITHHELD.encode() in frame.raw:
            self.note("mcpspy replaced secrets when it recorded this; so sizes may differ")
        if channel.role == "ws":
            self._add_message(frame, channel, header)
            return
        body = self.posted if channel.role == "request" else self.content
        if frame.omitted:
            body.omitted += frame.omitted.size
            self.note(f"#{frame.n} has {frame.omitted.size} bytes and is left out")
            return
        body.add(frame.raw)
        if channel.framing == "sse" and not frame.cut:
            body.add(b"\n")  # the blank line that ended the event
            if self._kind() == "eventsource":
                self._add_event(frame, header)

    def _add_event(self, frame: Frame, header: Header) -> None:
        """Add an event with its time, which the text of a stream does not contain."""
        event = parse_event(frame.raw)
        if event.data is None:
            return
        fields = {"time": _epoch(header, frame.t), "eventName": event.name, "eventId": event.id or ""}
        _add_json(self.events, fields | {"data": event.data.decode("utf-8", "replace")})

    def _add_message(self, frame: Frame, channel: Open, header: Header) -> None:
        """Add a message as Chrome writes it: text unchanged, all else in base64."""
        opcode = _OPCODES.get(frame.op or "", 1)
        sender = frame.sender or channel.sender
        seconds = _epoch(header, frame.t)
        if frame.omitted:
            self.note(f"#{frame.n} has {frame.omitted.size} bytes and is left out")
            return
        try:
            data = frame.raw.decode() if opcode == 1 else base64.b64encode(frame.raw).decode()
        except UnicodeDecodeError:
            opcode, data = 2, base64.b64encode(frame.raw).decode()
            self.note(f"#{frame.n} is a text message that is not UTF-8; it is exported as a binary one")
        fields = {"type": "send" if sender == "client" else "receive", "time": seconds, "opcode": opcode, "data": data}
        _add_json(self.messages, fields)

    def json(self, header: Header, page: str) -> Iterator[bytes]:
        """Yield the entry, a portion at a time. The long members come last."""
        timings, total = self._timings()
        entry: Fields = {
            "pageref": page,
            "startedDateTime": wall_time(header, self.request.t),
            "time": total,
            "timings": timings,
            "cache": {},
            "_resourceType": self._kind(),
        }
        if self.request.peer:
            entry["connection"] = str(self.request.peer)
        comments = [*self._comments(), *self.notes]
        if comments:
            entry["comment"] = "; ".join(comments)
        yield _dumps(entry)[:-1] + b',"request":'
        yield from self._request(header)
        yield b',"response":'
        yield from self._response()
        if self.switched:
            yield b',"_webSocketMessages":['
            yield from self.messages.raw()
            yield b"]"
        if self.events.size:
            yield b',"_eventSourceMessages":['
            yield from self.events.raw()
            yield b"]"
        yield b"}"

    def close(self) -> None:
        """Release the memory and the files of the bodies."""
        for body in (self.posted, self.content, self.messages, self.events):
            body.close()

    def _kind(self) -> str:
        if self.switched:
            return "websocket"
        streamed = self.response is not None and self.response.framing == "sse"
        return "eventsource" if streamed and (self.request.head or {}).get("method") == "GET" else "fetch"

    def _comments(self) -> Iterator[str]:
        """Yield remarks from the heads and from the ends of the channels."""
        heads = json.dumps([self.request.head, self.response and self.response.head], ensure_ascii=False)
        if _REDACTED in heads or _WITHHELD in heads:
            yield "mcpspy replaced secrets in the heads"
        for channel in (self.request, self.response):
            if channel and channel.sent and channel.by != "host":
                yield f"the {channel.role} was forwarded with other headers or another target ({channel.by})"
        if self.response is None:
            yield "the capture has no response"
        elif self.response.sender == "mcpspy":
            yield "mcpspy sent this response, not the server"
        if self.end and self.end.undecoded:
            yield f"the content coding could not be decoded: {self.end.reason}"

    def _timings(self) -> tuple[Fields, float]:
        """Return the milliseconds of each phase, and the total. A response may begin before the request is complete."""
        began = self.request.t
        answered = self.response.t if self.response else self.ended
        asked = min(began if self.asked is None else self.asked, answered)
        parts = {"send": asked - began, "wait": answered - asked, "receive": max(self.ended - answered, 0)}
        timings: Fields = dict.fromkeys(("blocked", "dns", "connect", "ssl"), -1)
        milliseconds = {name: part / 1e6 for name, part in parts.items()}
        return timings | milliseconds, (max(self.ended, answered) - began) / 1e6

    def _request(self, header: Header) -> Iterator[bytes]:
        head = self.request.head or {}
        url = _url(header, self.request)
        fields: Fields = {
            "method": str(head.get("method", "")),
            "url": url,
            "httpVersion": _version(head),
            "cookies": [],
            "headers": _headers(head),
            "queryString": [{"name": name, "value": value} for name, value in _query(url)],
            "headersSize": -1,
            "bodySize": -1 if self.posted.omitted else self.posted.size,
        }
        body = self.posted
        if not (body.size or body.omitted):
            yield _dumps(fields)
            return
        yield _dumps(fields)[:-1] + b',"postData":'
        post: Fields = {"mimeType": media_type(head) or _UNKNOWN_TYPE}
        if not body.is_text:
            post |= {"encoding": "base64", "comment": "the text is the body in base64, because it is not UTF-8"}
        yield from _with_text(post, body)
        yield b"}"

    def _response(self) -> Iterator[bytes]:
        head = (self.response.head if self.response else None) or {}
        code = status(head)
        body = self.content
        coded = any(field["name"].lower() == "content-encoding" for field in _headers(head))
        content: Fields = {"size": body.size + body.omitted, "mimeType": _content_type(head)}
        if body.size and not body.is_text:
            content["encoding"] = "base64"
        fields: Fields = {
            "status": code,
            "statusText": str(head.get("reason") or ""),
            "httpVersion": _version(self.request.head or {}) if code else "",
            "cookies": [],
            "headers": _headers(head),
            "redirectURL": _location(head) if code in _REDIRECTS else "",
            "headersSize": -1,
            "bodySize": -1 if coded or not code or body.omitted else body.size,
        }
        broken = self._broken(code)
        if broken:
            fields["_error"] = broken
        yield _dumps(fields)[:-1] + b',"content":'
        yield from _with_text(content, body) if body.size else iter([_dumps(content)])
        yield b"}"

    def _broken(self, code: int) -> str:
        """Return why the response is not complete; an empty string if it is."""
        if self.end is None:
            return "" if code else "no response"
        words = {"abort": "the client left", "reset": "the server broke off", "shutdown": "mcpspy was stopped"}
        return words.get(self.end.how, "")


def _with_text(fields: Fields, body: ArchivedBody) -> Iterator[bytes]:
    """Yield an object with the body as its last member."""
    if not body.size:
        yield _dumps(fields)
        return
    yield _dumps(fields)[:-1] + b',"text":'
    yield from body.json()
    yield b"}"


def _add_json(body: ArchivedBody, fields: Fields) -> None:
    body.add((b"," if body.size else b"") + orjson.dumps(fields))


def _dumps(fields: Fields) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()  # a head may contain a surrogate, which orjson refuses


def _epoch(header: Header, t: int) -> float:
    """Return the seconds since the epoch, to the microsecond."""
    return round(datetime.fromisoformat(header.started).timestamp() + t / 1e9, 6)


def _version(head: Head) -> str:
    return f"HTTP/{head.get('version') or '1.1'}"


def _headers(head: Head) -> list[dict[str, str]]:
    fields = head.get("headers")
    pairs = fields if isinstance(fields, list) else []
    return [{"name": str(it[0]), "value": str(it[1])} for it in pairs if isinstance(it, list) and len(it) == 2]


def _content_type(head: Head) -> str:
    values = [field["value"] for field in _headers(head) if field["name"].lower() == "content-type"]
    return values[0] if values else _UNKNOWN_TYPE


def _location(head: Head) -> str:
    values = [field["value"] for field in _headers(head) if field["name"].lower() == "location"]
    return values[0] if values else ""


def _query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True)


def _url(header: Header, opened: Open) -> str:
    """Return the URL of a request: the upstream's origin, and the target that was forwarded."""
    head, sent = opened.head or {}, opened.sent or {}
    target = str(sent.get("target", head.get("target", "/")))
    upstream = urlsplit(header.url or "")
    if "://" in target.partition("?")[0]:
        found = urlsplit(target)
        target = f"{found.path or '/'}{'?' + found.query if found.query else ''}"
    return f"{upstream.scheme or 'http'}://{upstream.netloc or 'unknown.invalid'}/{target.removeprefix('/')}"


_LARGEST = 64 << 20  # maximum size of a joined frame in bytes, as for `replay`
_PORTION = 1 << 20  # bytes that are copied at once
_PAGES = 1000  # sessions that have a page of their own; the others share one
_NAME = 200  # characters


def write(source: ExportSource) -> Iterator[bytes]:
    """Yield the archive of one capture."""
    wanted = _channels(source) if source.wants else None
    with TemporaryFile() as file:
        with closing(_Archive(source, file, wanted)) as archive:
            for record in source.records(_LARGEST):
                archive.add(record)
            archive.end()
        yield b'{"log":' + orjson.dumps(archive.head())[:-1] + b',"entries":['
        separator = b"\n"
        for start, length in archive.places():
            yield separator
            separator = b",\n"
            file.seek(start)
            for place in range(0, length, _PORTION):
                yield file.read(min(_PORTION, length - place))
        yield b"\n]}}\n"


def _channels(source: ExportSource) -> bytearray:
    """Return a byte for each channel: 1 if one of its rows matches the filter."""
    found = bytearray()
    for row in source.rows():
        if row.channel is not None and 0 <= row.channel < 1 << 32 and source.wanted(row):
            found.extend(bytes(max(row.channel + 1 - len(found), 0)))
            found[row.channel] = 1
    return found


class _Archive:
    """Writes entries when their exchanges end."""

    def __init__(self, source: ExportSource, file: IO[bytes], wanted: bytearray | None) -> None:
        self._source = source
        self._header = source.capture.header
        self._file = file
        self._wanted = wanted
        self._conversation = Conversation()
        self._open: dict[int, ArchivedExchange] = {}  # by channel; an exchange has several channels
        self._channels: dict[int, Open] = {}
        self._starts, self._offsets, self._lengths = array("q"), array("q"), array("q")
        self._pages: dict[Session | None, tuple[str, int]] = {}
        self._client = ""
        self._lost = 0

    def add(self, record: Record) -> None:
        """Process the next record."""
        for event in self._conversation.feed(record):
            if isinstance(event, Message):
                self._learn(event)
            if isinstance(event, Message | HttpUnit) and event.ch in self._open:
                self._open[event.ch].session = event.session
        if isinstance(record, Open):
            self._begin(record)
        elif isinstance(record, Frame) and record.ch in self._open:
            self._open[record.ch].add(record, self._channels[record.ch], self._header)
        elif isinstance(record, Close) and record.ch in self._open:
            self._close(record)
        elif isinstance(record, Gap):
            self._lost += record.lost

    def _learn(self, message: Message) -> None:
        if message.side == "client" and message.method in INTRODUCE and not self._client:
            self._client = introduction(message.body.value) if isinstance(message.body, Request) else ""

    def _begin(self, opened: Open) -> None:
        """Begin a channel: an exchange, or its response. In a damaged capture a number may be used twice."""
        before = self._open.get(opened.ch)
        if before:
            before.note("another exchange took the number of its channel")
            self._finish(before)
        if opened.role == "request":
            exchange = ArchivedExchange(opened, [], ended=opened.t)
        elif opened.answers in self._open:
            exchange = self._open[opened.answers]
        else:
            return
        self._open[opened.ch], self._channels[opened.ch] = exchange, opened
        exchange.channels.append(opened.ch)
        exchange.ended = max(exchange.ended, opened.t)
        if opened.role == "ws":
            exchange.sockets += 1
        elif opened.role == "response" and opened.head:
            exchange.response = opened

    def _close(self, close: Close) -> None:
        exchange, opened = self._open[close.ch], self._channels[close.ch]
        exchange.ended = max(exchange.ended, close.t)
        if opened.role == "request":
            exchange.asked = close.t
            if close.how != "eof":
                exchange.note(f"the request ended early ({close.how})")
        elif opened.role == "ws":
            exchange.sockets -= 1
            if close.code is not None:
                reason = f" {printable(close.reason, _NAME)}" if close.reason else ""
                exchange.note(f"the WebSocket was closed with {close.code}{reason}")
        else:
            exchange.end = close
        over = not exchange.sockets if exchange.switched else exchange.end is not None
        if over and exchange.asked is not None and (not exchange.switched or opened.role == "ws"):
            self._finish(exchange)

    def _finish(self, exchange: ArchivedExchange) -> None:
        """Write an entry, and forget the exchange."""
        wanted = self._wanted
        if wanted is None or any(ch < len(wanted) and wanted[ch] for ch in exchange.channels):
            start = self._file.tell()
            self._file.writelines(exchange.json(self._header, self._page(exchange)))
            self._starts.append(exchange.request.t)
            self._offsets.append(start)
            self._lengths.append(self._file.tell() - start)
        for ch in exchange.channels:
            self._open.pop(ch, None)
            self._channels.pop(ch, None)
        exchange.close()

    def _page(self, exchange: ArchivedExchange) -> str:
        """Return the page of the session that an exchange belongs to."""
        session = exchange.session
        if session not in self._pages and len(self._pages) >= _PAGES:
            session = None
        name, since = self._pages.get(session, (f"page_{len(self._pages) + 1}", exchange.request.t))
        self._pages[session] = name, min(since, exchange.request.t)
        return name

    def end(self) -> None:
        """End the archive: open exchanges are written as far as they are known."""
        for exchange in dict.fromkeys(self._open.values()):
            exchange.note("the capture ends before this exchange does")
            self._finish(exchange)

    def close(self) -> None:
        """Close the files of open exchanges, if the export ends early."""
        for exchange in self._open.values():
            exchange.close()

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of each entry in the file, in the order of their starts."""
        for place in sorted(range(len(self._starts)), key=self._starts.__getitem__):
            yield self._offsets[place], self._lengths[place]

    def head(self) -> dict[str, Any]:
        """Return the members of the log before the entries."""
        header = self._header
        title = printable(header.name, _NAME)
        pages = [
            {
                "startedDateTime": wall_time(header, since),
                "id": name,
                "title": f"{title}, session {printable(session.name, _NAME)}" if session and session.name else title,
                "pageTimings": {},
            }
            for session, (name, since) in self._pages.items()
        ]
        found: dict[str, Any] = {
            "version": "1.2",
            "creator": {"name": "mcpspy", "version": __version__},
            "pages": sorted(pages, key=lambda page: page["startedDateTime"]),
        }
        if self._client:
            name, _, version = printable(self._client, _NAME).rpartition(" ")
            found["browser"] = {"name": name or version, "version": version if name else ""}
        if self._lost:
            found["comment"] = f"{self._lost} records of the capture are missing"
        return found
