"""HTTP/1.1 as aiohttp parses it. Only this module uses private names of aiohttp.

Both ends of the relay are here: `ClientConnection` receives requests from clients, and `ServerConnection` forwards them
to an upstream. They differ from aiohttp's own classes in four points:

- The size limit is for the whole of what a peer sends, not for each field: for a head, and for the framing between the
  bytes of a body, which is chunk extensions and trailers (A-01). The unfinished heads of all clients together have a
  limit, and each has a time limit. Connections between two requests, and streams, have no time limit (H-06).
- A body ends where its framing is broken; otherwise its reader would wait for ever.
- A framing fault in a response does not discard what was received before it: neither the head nor the body so far.
- A client that half-closes its connection still gets its response (A-11), if it is on this machine, where
  `is_still_held` can find out that the client still has its socket open. Any other client that ends its sending has
  disconnected, and so has a client that listens to a stream (GET). Their requests are cancelled (H-05).
"""

import asyncio
import functools
from typing import Any, cast

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import _ErrInfo
from yarl import URL

from mcpspy.network.dialer import Dialer
from mcpspy.process.ports import is_still_held

LARGEST = 1 << 18
"""The most bytes of a whole head, and of the framing between two bytes of a body."""
FIELDS = 1000
"""The most fields of a head."""
UNFINISHED = 16 << 20
"""The most bytes of the unfinished heads of all clients together; the parser needs about twice as much memory."""
SMALL = 1 << 14
"""The most bytes of an unfinished head that is accepted although that limit is reached."""
PATIENCE = 30.0
"""The time in seconds in which a client must send a head."""

_READ = 1 << 18  # the most bytes of one read
LOOK_AGAIN = 0.05
"""Seconds between two checks of a client that has half-closed its connection."""
_BLANK_LINE = b"\r\n\r\n"
_LIMITS: dict[str, Any] = {"max_line_size": LARGEST, "max_field_size": LARGEST, "max_headers": FIELDS}


class HeadTooLarge(HttpProcessingError):
    """A head of the upstream is larger than LARGEST."""


class Http1Server(web.Server):
    """aiohttp's server, with our own connections; a request is cancelled if its client disconnects."""

    def __init__(self, handler: Any, **options: Any) -> None:
        super().__init__(handler, handler_cancellation=True, access_log=None, **_LIMITS, **options)
        self.unfinished = 0
        """Bytes of the heads that clients have begun and not finished."""

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of a new connection."""
        return ClientConnection(self, loop=self._loop, **self._kwargs)


class ClientConnection(web.RequestHandler):
    """A connection of a client."""

    def __init__(self, server: Http1Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server
        self._body: StreamReader = EMPTY_PAYLOAD  # of the last parsed request
        self._silent = 0  # bytes that the parser has read without a result: of a head, or of framing
        self._charged = 0  # how many of them count for `Http1Server.unfinished`
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._refused = False

    def data_received(self, data: bytes) -> None:
        """Called with the received bytes."""
        if self._refused:
            return
        if self._upgraded or self._payload_parser is not None:  # a tunnel, or a connection that becomes one
            super().data_received(data)
            return
        count, body, size = self._request_count, self._body, self._body.total_bytes
        super().data_received(data)
        new = self._request_count - count
        if new:
            last, self._body = self._messages[-1]
            if new == 1 and not self._silent and self._body.is_eof() and _is_one(last, data, self._body.total_bytes):
                return  # the case of almost every read
            self._judge(new, len(data))
        grown = self._body.total_bytes - (0 if new else size)
        progress = bool(new or grown or body.is_eof() is not self._body.is_eof())
        if self._refused:
            return
        if not self._body.is_eof():
            self._count(0 if progress else self._silent + len(data), head=False)
        elif progress:
            self._count(0, head=True)
            self._count(self._left_over(data, new, grown), head=True)
        else:
            self._count(self._silent + len(data), head=True)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Called when the client has half-closed; return True to keep the connection for its response."""
        if self._is_idle() or not self._body.is_eof() or self._payload_parser is not None or not self._waits():
            return None
        self._watch = self._loop.call_later(LOOK_AGAIN, self._look_again)
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        """Called when the connection is closed."""
        self._count(0, head=False)
        if self._watch:
            self._watch.cancel()
        super().connection_lost(exc)

    def _judge(self, new: int, size: int) -> None:
        """Refuse those of the newly parsed messages that are too large or malformed."""
        last = self._messages[-1][0]
        if isinstance(last, _ErrInfo):
            if isinstance(last.exc, LineTooLong) or last.message == "Too many headers received":
                self._messages[-1] = _refusal(431, last.message)
            self._end_bodies(last.message)
        elif self._silent + size > LARGEST:
            for place in range(-new, 0):
                message, body = self._messages[place]
                if _head_size(message) > LARGEST:
                    body.set_exception(web.RequestPayloadError("its head is too large"))
                    for _ in range(-place):
                        self._messages.pop()
                    self._refuse(431, f"the request's head takes more than {LARGEST} bytes")
                    return

    def _left_over(self, data: bytes, new: int, grown: int) -> int:
        """Return about how many bytes of the next head are in `data`, which ended a request.

        This is only an estimate. Before a client is refused for it, `_is_within_a_head` is called.
        """
        if data.endswith(_BLANK_LINE):
            return 0
        if new > 1:
            return max(0, len(data) - data.rfind(_BLANK_LINE) - 4)
        return max(0, len(data) - grown - (data.find(_BLANK_LINE) + 4 if new else 0))

    def _count(self, silent: int, *, head: bool) -> None:
        """Note how many bytes the parser has read without a result; refuse if they are too many."""
        self._silent = silent
        charged = silent if head else 0
        self._server.unfinished += charged - self._charged
        self._charged = charged
        if not charged and self._timer:
            self._timer.cancel()
            self._timer = None
        if silent > LARGEST + _READ:  # `_left_over` may be too high by one read
            what = "head" if head else "chunk extensions or trailers"
            self._refuse(431, f"the request's {what} take more than {LARGEST} bytes".replace("head take", "head takes"))
        elif charged > SMALL and self._server.unfinished > UNFINISHED:
            self._refuse(503, "there are too many unfinished requests")
        elif charged and not self._timer:
            self._timer = self._loop.call_later(PATIENCE, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if self._is_within_a_head():
            self._refuse(408, f"the request's head did not arrive within {PATIENCE:.0f} seconds")
        else:
            self._count(0, head=True)

    def _is_within_a_head(self) -> bool:
        """Return whether the parser has begun a head; if so, the parser cannot be used any more."""
        assert self._parser is not None
        try:
            return self._parser.feed_eof() is not None
        except Exception:  # the parser treats the part as a whole head, and finds a fault
            return True

    def _refuse(self, status: int, why: str) -> None:
        """Answer after all earlier requests are answered, and read nothing more."""
        self._refused = True
        self._parser = None  # frees its memory before the garbage collector runs
        self._count(0, head=False)
        self._end_bodies(why)
        self._messages.append(_refusal(status, why))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end_bodies(self, why: str) -> None:
        """Raise an error in every reader of a body that has not ended."""
        fault = web.RequestPayloadError(why.partition(":")[0])
        bodies = [body for _, body in self._messages]
        if self._current_request is not None:
            bodies.append(self._current_request.content)
        for body in bodies:
            if not body.is_eof() and body.exception() is None:
                body.set_exception(fault)

    def _is_idle(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _waits(self) -> bool:
        """Return whether a client that has half-closed waits for a response; for an event stream, return False."""
        if self.transport is None:
            return False
        request = self._current_request
        if request and request.method == "GET" and "text/event-stream" in request.headers.get("Accept", ""):
            return False
        return is_still_held(self.transport.get_extra_info("peername"), self.transport.get_extra_info("sockname"))

    def _look_again(self) -> None:
        """Close the connection if everything is answered; abort it if the client has disconnected."""
        if self.transport is None:
            return
        if self._is_idle():
            self.transport.close()
        elif not self._waits():
            self.transport.abort()
        else:
            self._watch = self._loop.call_later(LOOK_AGAIN, self._look_again)


class ServerConnection(ResponseHandler):
    """A connection to an upstream."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._silent = 0  # bytes of a head, or of framing, that the parser has read without a result
        self._last = b""  # the last bytes of earlier reads, which a blank line may begin with
        self.used = False
        """Whether it was prepared for a response before."""

    def data_received(self, data: bytes) -> None:
        """Called with the received bytes."""
        if self._upgraded or self._payload_parser is not None:
            super().data_received(data)
            return
        if self._payload is None or self._payload.is_eof():
            head, data = self._head_and_rest(data)
            if self._silent > LARGEST:
                self._give_up(HeadTooLarge(message=f"a head of more than {LARGEST} bytes"))
                return
            self._received(head)
            if not data:
                return
        payload = self._payload
        size = payload.total_bytes if payload else 0
        self._received(data)  # also if empty, so that aiohttp resumes a parser that it had paused
        if payload is None or payload.is_eof() or payload.total_bytes > size:
            self._silent = 0
            return
        self._silent += len(data)
        if self._silent > LARGEST + _READ and payload.exception() is None:
            fault = HttpProcessingError(message=f"chunk extensions or trailers of more than {LARGEST} bytes")
            self._give_up(fault)
            payload.set_exception(fault)

    def _head_and_rest(self, data: bytes) -> tuple[bytes, bytes]:
        """Split `data` into the part that belongs to a head and the part after it; add to the size of the head."""
        if not self._silent:  # the usual case
            end = data.find(_BLANK_LINE) + len(_BLANK_LINE)
            if len(_BLANK_LINE) <= end <= LARGEST:
                return data[:end], data[end:]
        end = after_blank_line(self._last, data)
        head = data[:end]
        self._last = (self._last + head[-3:])[-3:]
        self._silent += len(head)
        if self._last.endswith(b"\n\r\n") and self._silent <= LARGEST:
            self._silent, self._last = 0, b""
        return head, data[end:]

    def _received(self, data: bytes) -> None:
        super().data_received(data)
        fault, payload = self.exception(), self._payload
        if fault is not None and payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(fault)  # otherwise a reader of the body would wait for ever

    def _give_up(self, fault: HttpProcessingError) -> None:
        if self.transport is not None:
            self.transport.close()
        self.set_exception(fault)

    def expect_response(self, method: str) -> None:
        """Prepare for a response: without decoding, without a time-out, and with our size limits."""
        self._silent, self._last, self.used = 0, b"", True
        self.set_response_params(
            skip_payload=method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=None,
            **_LIMITS,
        )


class Connections:
    """Connections to one server, with no limit on their number; idle ones are kept for `idle` seconds.

    Connections to a proxy that reads our requests are not kept. Needs a running loop.
    """

    def __init__(self, dialer: Dialer, idle: float) -> None:
        loop = asyncio.get_running_loop()
        self._connector: aiohttp.BaseConnector
        if dialer.unix:
            self._connector = aiohttp.UnixConnector(dialer.unix, limit=0, keepalive_timeout=idle)
        elif dialer.forwards:  # a proxy may close an idle connection unannounced (tinyproxy does), and a POST be lost
            self._connector = aiohttp.TCPConnector(limit=0, force_close=True)
        else:
            self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=idle)
        make: Any = functools.partial(ServerConnection, loop=loop)
        self._connector._factory = make
        # The connector only reads from the request where to connect, and how. This request is never sent. Through a
        # proxy it sends CONNECT for https.
        proxy = dialer.proxy
        login = None
        if proxy and proxy.login is not None:
            user, _, password = proxy.login.partition(":")
            login = aiohttp.BasicAuth(user, password, "utf-8")
        self._request = ClientRequest(
            "GET",
            URL(dialer.origin, encoded=True),
            loop=loop,
            session=cast("Any", None),
            ssl=dialer.tls or True,
            proxy=URL(proxy.url, encoded=True) if proxy else None,
            proxy_auth=login,
        )

    async def open(self, limits: aiohttp.ClientTimeout) -> Connection:
        """Return an idle connection or open a new one."""
        return await self._connector.connect(self._request, traces=[], timeout=limits)

    async def close(self) -> None:
        """Close the idle connections."""
        await self._connector.close()


def is_chunked(request: web.BaseRequest) -> bool:
    """Return whether a request's body is chunked, as the parser has decided."""
    return request._message.chunked


def is_upgrade(request: web.BaseRequest) -> bool:
    """Return whether a request asks for another protocol, as the parser has decided."""
    return request._message.upgrade


def arrived(body: StreamReader) -> bytes:
    """Return a body that has ended, all at once; the public methods would resume a connection that is not paused."""
    fault = body.exception()
    if fault is not None:
        raise fault
    if body is EMPTY_PAYLOAD:
        return b""
    came = b"".join(body._buffer)
    body._buffer.clear()
    return came


def unread(body: StreamReader) -> bytes:
    """Return the received part of a body that broke off; the public methods raise the error instead."""
    return body._read_nowait(-1)


def _refusal(status: int, why: str) -> tuple[_ErrInfo, StreamReader]:
    """Return what aiohttp puts in place of a request that it answers itself."""
    return _ErrInfo(status, HttpProcessingError(code=status, message=why), f"mcpspy: {why}\n"), EMPTY_PAYLOAD


def _is_one(message: Any, data: bytes, size: int) -> bool:
    """Return whether a read has exactly one whole request, with a body of `size` bytes."""
    if len(data) > LARGEST or isinstance(message, _ErrInfo):
        return False
    return data.find(_BLANK_LINE) + len(_BLANK_LINE) + size == len(data)


def _head_size(message: Any) -> int:
    """Return the size of a request's head in bytes."""
    line = len(message.method) + len(message.path.encode("utf-8", "surrogateescape")) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in message.raw_headers)


def after_blank_line(before: bytes, data: bytes) -> int:
    """Return the index in `data` after the first blank line, which may have begun in `before`.

    If there is none, return the length of `data`.
    """
    across = (before + data[:3]).find(_BLANK_LINE)
    if across >= 0:
        return across + len(_BLANK_LINE) - len(before)
    found = data.find(_BLANK_LINE)
    return found + len(_BLANK_LINE) if found >= 0 else len(data)
