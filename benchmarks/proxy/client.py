"""A small HTTP/1.1 client that compares every received byte, outside of the measured time."""

import re
import socket
from time import perf_counter_ns

from benchmarks.proxy.subject import Subject
from benchmarks.relay.processes import CHUNK, Broken

_FIELDS = (
    b"Host: 127.0.0.1:%d\r\nAccept: application/json, text/event-stream\r\nAccept-Encoding: gzip\r\n"
    b"User-Agent: bench/1\r\nContent-Type: application/json\r\n"
    b"MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: 9f2c\r\n"
)
_EVENT = (
    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":'
    b'{"progressToken":1,"progress":%d,"message":"%b"}}\n'
)
_HEAD = re.compile(rb"HTTP/1\.1 200 [^\0]*?\r\n\r\n")
_STAMP = re.compile(rb'"message":"(\d{20})"')
_PATIENCE = 60  # time-out of a read, in seconds


class Connection:
    """One persistent connection."""

    def __init__(self, subject: Subject, patience: float = _PATIENCE) -> None:
        self.socket = socket.create_connection(("127.0.0.1", subject.port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._subject = subject

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def post(self, body: bytes) -> bytes:
        """Return the whole request with `body`."""
        return self._head(b"POST /mcp", b"Content-Length: %d\r\n" % len(body)) + body

    def exchange(self, body: bytes, reply: bytes) -> int:
        """Send a request, and return the nanoseconds until the last byte of the reply arrived."""
        request = self.post(body)
        start = perf_counter_ns()
        self.socket.sendall(request)
        came = self.more(b"")
        while not came.endswith(reply):
            came = self.more(came)
        spent = perf_counter_ns() - start
        whole(came, reply)
        self._subject.passed.update((body, reply))
        return spent

    def body(self, target: bytes, coded: bytes) -> bytes:
        """Fetch a body that ends like `coded`. Return the whole response, which is not compared yet."""
        self.socket.sendall(self._head(b"GET " + target))
        came = bytearray()
        while len(came) < len(coded) or not came.endswith(coded):
            came += self.more(b"")
        return bytes(came)

    def events(self, count: int, gap: int, until: int | None = None) -> list[int]:
        """Request `count` events, `gap` µs apart, and wait for `until` of them, or for the end of the stream.

        Returns nanoseconds: from the request to the first event, and from the write of each other event to its arrival.
        """
        request = self._head(b"GET /events/%d/%d" % (count, gap))
        stamps, came = [perf_counter_ns()], b""
        self.socket.sendall(request)
        arrivals: list[int] = []
        while len(arrivals) < until if until else not came.endswith(b"\r\n0\r\n\r\n"):
            came = self.more(came)
            now = perf_counter_ns()
            arrivals += [now] * (came.count(b"\n\n") - len(arrivals))
        head = _HEAD.match(came)
        body = _dechunked(came[head.end() :]) if head else b""
        written = _STAMP.findall(body)
        events = [_EVENT % event for event in enumerate(written)]
        if body != b"".join(event + b"\n" for event in events) or len(events) != (until or count):
            raise Broken("an event stream came back changed")
        self._subject.passed.update(events)
        stamps += map(int, written[1:])
        return [now - then for now, then in zip(arrivals, stamps, strict=True)]

    def _head(self, line: bytes, last: bytes = b"") -> bytes:
        return b"%b HTTP/1.1\r\n%b%b\r\n" % (line, fields(self._subject.port), last)

    def more(self, came: bytes) -> bytes:
        """Return `came` with the next received bytes appended. Raises Broken if the connection is closed."""
        chunk = self.socket.recv(CHUNK)
        if not chunk:
            raise Broken("a connection was closed")
        return came + chunk


def fields(port: int) -> bytes:
    """Return the header of every request, as an SDK's client writes it, without the length of the body."""
    return _FIELDS % port


def whole(came: bytes, reply: bytes) -> None:
    """Raise Broken unless `came` is one response with this body."""
    head = _HEAD.match(came)
    if not head or came[head.end() :] != reply:
        raise Broken("a reply came back changed")


def _dechunked(raw: bytes) -> bytes:
    body = b""
    while raw:
        digits, _, raw = raw.partition(b"\r\n")
        size = int(digits, 16)
        body, raw = body + raw[:size], raw[size + 2 :]
    return body
