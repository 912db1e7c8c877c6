"""Runs of a server at a URL, bare and through a proxy, with a tap right before the server.

    client  <-->  tap  <-->  server                      bare
    client  <-->  proxy  <-->  tap  <-->  server         through

The client uses Streamable HTTP. Each message is a POST on a connection of its own. At the end the client opens the
stream of the session, leaves it, and ends the session. Timed runs have no tap. If the user names another proxy, that
proxy forwards to the server itself, so there is no tap, and what the server receives is not compared.

The tap records what the server receives and sends, byte for byte. It is there in bare runs and behind a proxy, so it
causes no difference between them. Requests are parsed only as far as their framing requires, because `Host` must name
the server. Responses are forwarded as bytes, and parsed at the end. One connection of a client is one connection to the
server.
"""

import http.client
import io
import itertools
import queue
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, Self
from urllib.parse import urlsplit

from mcpspy.contract.verify.launch import Launched
from mcpspy.contract.verify.session import SessionPlan, Talk, Transcript, said
from mcpspy.contract.verify.stdio import latencies
from mcpspy.errors import McpspyError
from mcpspy.network.access import Access
from mcpspy.network.dialer import Dialer, NotReached
from mcpspy.secrets.redactor import shown
from mcpspy.transport.http_client import ClientExchange, Headers, HttpClient

_LINE = 65536  # limit for a line of a head, in bytes
_HEAD = 1000  # limit for the lines of a head
_CONNECT = 10.0  # seconds
_PLAIN = Access()


@dataclass(slots=True)
class TappedRequest:
    """A request as the server received it, except `Host`. `body` is without its transfer coding."""

    order: int
    method: str
    target: str
    headers: Headers
    body: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class TappedResponse:
    """A response as the server sent it. `body` is without its transfer coding."""

    status: int
    reason: str
    headers: Headers
    body: bytes


class Tap:
    """A port that forwards to a server. A context manager."""

    def __init__(self, url: str, access: Access = _PLAIN) -> None:
        """Connect once. Raises NotReached if the server cannot be reached, or its certificate is not trusted."""
        self._there = urlsplit(url)
        self._dialer = Dialer(url, access)
        self._dialer.check(_CONNECT)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        path = (self._there.path or "/") + (f"?{self._there.query}" if self._there.query else "")
        self.url = f"http://127.0.0.1:{port}{path}"
        """The URL at which it listens."""
        self._orders = itertools.count()
        self._requests: list[tuple[int, TappedRequest]] = []  # with their connections
        self._responses: dict[int, bytearray] = {}
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for it in (self._listener, *self._sockets):
            _hang_up(it)

    def taken(self) -> list[tuple[TappedRequest, TappedResponse | None]]:
        """Return the traffic since the last call, in the order of the requests."""
        requests, self._requests = self._requests, []
        responses, self._responses = self._responses, {}
        waiting: dict[int, Iterator[TappedResponse]] = {}
        found = []
        for connection, request in sorted(requests, key=lambda it: it[1].order):
            if connection not in waiting:
                methods = [it.method for place, it in requests if place == connection]
                waiting[connection] = _parsed(bytes(responses.get(connection, b"")), methods)
            found.append((request, next(waiting[connection], None)))
        return found

    def _serve(self) -> None:
        for number in itertools.count():
            try:
                client, _ = self._listener.accept()
            except OSError:  # the tap was closed
                return
            threading.Thread(target=self._relay, args=(number, client), daemon=True).start()

    def _relay(self, number: int, client: socket.socket) -> None:
        self._sockets.append(client)
        try:
            connected = self._connected()
        except OSError:
            _hang_up(client)
            return
        self._sockets.append(connected)
        server = _Shared(connected)
        for end in (client, connected):
            if end.family != getattr(socket, "AF_UNIX", None):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits for the ACK of its head
        self._responses[number] = copy = bytearray()
        threading.Thread(target=self._give_back, args=(server, client, copy), daemon=True).start()
        try:
            with client.makefile("rb") as stream:
                while self._forwarded(number, stream, server):
                    pass
            connected.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            _hang_up(connected)

    def _connected(self) -> socket.socket:
        server = self._dialer.connect(_CONNECT)
        server.settimeout(None)
        return server

    def _give_back(self, server: "_Shared", client: socket.socket, copy: bytearray) -> None:
        try:
            while chunk := server.received():
                copy += chunk
                client.sendall(chunk)
        except OSError:
            pass
        _hang_up(client)

    def _forwarded(self, number: int, stream: BinaryIO, server: "_Shared") -> bool:
        """Forward one request. Return False at the end of the connection."""
        first = stream.readline(_LINE)
        if not first.strip():
            return False
        method, target = first.decode("latin-1").split()[:2]
        lines: list[bytes] = []
        while (line := stream.readline(_LINE)).strip() and len(lines) < _HEAD:
            lines.append(line)
        pairs = [line.decode("latin-1").partition(":")[::2] for line in lines]
        headers = tuple((name, value.strip()) for name, value in pairs)
        request = TappedRequest(next(self._orders), method, target, headers)
        self._requests.append((number, request))
        authority = self._there.netloc.rpartition("@")[2]
        heads = [
            f"Host: {authority}\r\n".encode() if _is(name, "host") else line
            for (name, _), line in zip(headers, lines, strict=True)
        ]
        server.send(self._dialer.head(b"".join([first, *heads, b"\r\n"])))
        if any(_is(name, "transfer-encoding") for name, _ in headers):
            self._chunks(stream, server, request.body)
        else:
            size = next((int(value) for name, value in headers if _is(name, "content-length")), 0)
            while size and (part := stream.read(min(size, 65536))):
                request.body += part
                server.send(part)
                size -= len(part)
        return True

    def _chunks(self, stream: BinaryIO, server: "_Shared", body: bytearray) -> None:
        while line := stream.readline(_LINE):
            size = int(line.split(b";")[0], 16)
            chunk = stream.read(size + 2)
            body += chunk[:size]
            server.send(line + chunk)
            if not size:
                return


class _Shared:
    """A socket that one thread reads and another one writes: two calls at once into OpenSSL damage a TLS connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, raw: bytes) -> None:
        with self._lock:
            self._sock.sendall(raw)

    def received(self) -> bytes:
        """Return the next bytes; wait for them without the lock."""
        while isinstance(self._sock, ssl.SSLSocket):
            if not self._sock.pending():
                select.select([self._sock], [], [])
            with self._lock:
                self._sock.settimeout(0)
                try:
                    return self._sock.recv(65536)
                except (ssl.SSLWantReadError, BlockingIOError):  # a part of a record, or a message of TLS itself
                    continue
                finally:
                    self._sock.settimeout(None)
        return self._sock.recv(65536)


def _parsed(raw: bytes, methods: list[str]) -> Iterator[TappedResponse]:
    """Parse the responses of one connection."""
    stream = io.BytesIO(raw)
    for method in methods:
        response = http.client.HTTPResponse(_Recorded(stream), method=method)  # type: ignore[arg-type]  # it is read only
        try:
            response.begin()
            headers = tuple(response.getheaders())
            body = _whole(response)
        except (http.client.HTTPException, ValueError, OSError):
            return
        yield TappedResponse(response.status, response.reason, headers, body)


def _whole(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read()
    except http.client.IncompleteRead as error:
        return error.partial


class _Recorded:
    """A stand-in for the socket of `http.client`: bytes that have already arrived."""

    def __init__(self, stream: io.BytesIO) -> None:
        self._stream = stream

    def makefile(self, _: str) -> "_Kept":
        return _Kept(self._stream)


class _Kept:
    """A stream that stays open when one of several responses is closed."""

    def __init__(self, stream: io.BytesIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Keep it open for the next response."""


def _is(name: str, wanted: str) -> bool:
    return name.strip().lower() == wanted


def _hang_up(it: socket.socket) -> None:
    try:
        it.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    it.close()


_READY = 30.0  # seconds until the proxy listens
_AFTER = 1.0  # seconds for a stream to end that was left
_ROOM = 256 << 20  # bytes of all responses of a run


@dataclass(frozen=True, slots=True)
class HttpRun:
    """What client and server saw in one run."""

    exchanges: Sequence[ClientExchange]
    tapped: Sequence[tuple[TappedRequest, TappedResponse | None]] | None
    """None: there was no tap."""
    transcript: Transcript


class HttpPeer(HttpClient):
    """A server at a URL, and all exchanges with it. A context manager."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float, access: Access = _PLAIN) -> None:
        self.begun = time.perf_counter_ns()
        self.exchanges: list[ClientExchange] = []
        """All exchanges, in the order of the requests."""
        self._patience = seconds
        super().__init__(url, headers, _ROOM, seconds, self.exchanges, listens=False, access=access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish(0)
        self.hang_up()
        self.join(_AFTER)

    def leave(self) -> None:
        """Let the last messages be sent, then leave the session."""
        self.finish(self._patience)
        super().leave()


class HttpBench:
    """Runs sessions with one server again and again. A context manager."""

    def __init__(
        self,
        url: str,
        through: str | None,
        headers: Mapping[str, str],
        environ: Mapping[bytes, bytes],
        folder: str,
        seconds: float,
        access: Access = _PLAIN,
    ) -> None:
        """`through` is the URL of an existing proxy. None: start a new `mcpspy proxy` for each run.

        Raises McpspyError if the server cannot be reached.
        """
        self._url = url
        self._through = through
        self._headers = headers
        self._environ = environ
        self._folder = folder
        self._seconds = seconds
        self._access = access
        try:
            self._tap = None if through else Tap(url, access)
        except NotReached as error:
            raise McpspyError(f"{shown(url)} {error}") from None
        self._near = self._tap.url if self._tap else url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tap:
            self._tap.__exit__()

    def connect(self) -> HttpPeer:
        """Connect to the server, bare."""
        return HttpPeer(self._near, self._headers, self._seconds, self._access_to(self._near))

    def _access_to(self, url: str) -> Access:
        """Return the access for the server; the tap before it needs none."""
        return self._access if url == self._url else _PLAIN

    @contextmanager
    def _peer(self, url: str, *, wrapped: bool) -> Iterator[HttpPeer]:
        """Connect to a URL, bare or through a proxy that ends with the context. Raises McpspyError."""
        if not wrapped:
            with HttpPeer(url, self._headers, self._seconds, self._access_to(url)) as peer:
                yield peer
        elif self._through:
            with HttpPeer(self._through, self._headers, self._seconds) as peer:
                yield peer
        else:
            with self._proxy(url) as proxy, HttpPeer(_url_of(proxy), self._headers, self._seconds) as peer:
                yield peer

    def _proxy(self, url: str) -> Launched:
        command = [sys.executable, "-P", "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0"]
        access = self._access_to(url)
        command += ["--capture-dir", self._folder, *access.words(), url]
        return Launched(command, {**self._environ, **access.variables()})

    def run(self, plan: SessionPlan, *, wrapped: bool) -> HttpRun:
        """Run a whole plan."""
        if self._tap:
            self._tap.taken()  # discarded: earlier traffic is not part of this run
        with self._peer(self._near, wrapped=wrapped) as peer:
            transcript = said(plan, peer, self._seconds)
            peer.leave()
        return HttpRun(peer.exchanges, self._tap.taken() if self._tap else None, transcript)

    def timed(self, plan: SessionPlan, *, wrapped: bool, pings: int = 0) -> tuple[int | None, list[int]]:
        """Return the time until the first answer, and the latencies of `pings` requests, in nanoseconds."""
        with self._peer(self._url, wrapped=wrapped) as peer:
            transcript = said(SessionPlan(plan.greeting, replies=plan.replies), peer, self._seconds)
            took = transcript.first - peer.begun if transcript.first else None
            found = latencies(plan, Talk(peer, self._seconds, plan.replies), pings) if took else []
            peer.leave()
        return took, found


def _url_of(proxy: Launched) -> str:
    """Return the URL that a proxy prints when it listens. Raises McpspyError."""
    try:
        line = proxy.heard.get(timeout=_READY)
    except queue.Empty:
        line = b""
    if not isinstance(line, bytes) or not line:
        proxy.kill()
        lines = bytes(proxy.logged).decode(errors="replace").strip().splitlines()
        raise McpspyError((lines or ["the proxy did not start"])[-1].removeprefix("mcpspy: "))
    return line.decode()
