"""The HTTP exchanges of a session as an HTTP Archive (HAR 1.2), which browsers and other proxies open.

The theory. An archive contains each exchange as a whole, and exchanges overlap: a stream may be open as long as the
session. Entries are in the order of their starts. So open exchanges are kept, with long bodies in temporary files
(`mcpspy.exporters.har_entry`). Finished entries wait in another temporary file, and the archive is assembled at the
end. Only a few bytes per exchange stay in memory. With a filter, only exchanges that contain a matching row are
exported.

Each MCP session is a page, and the client is the browser. An archive has no members for line numbers, channels, acts of
gates and redactions; comments mention them.
"""

from array import array
from collections.abc import Iterator
from contextlib import closing
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from mcpspy import __version__
from mcpspy.capture.records import Close, Frame, Gap, Open, Record
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import HttpUnit, Message, Session
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.exporters.har_entry import ArchivedExchange
from mcpspy.exporters.source import ExportSource
from mcpspy.text import printable
from mcpspy.timeline import wall_time
from mcpspy.wire.jsonrpc import Request

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
