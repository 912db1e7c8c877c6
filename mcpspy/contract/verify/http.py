"""Runs of a server at a URL, bare and through a proxy, with a tap before it (`mcpspy.contract.verify.tap`).

    client  <-->  tap  <-->  server                      bare
    client  <-->  proxy  <-->  tap  <-->  server         through

The client uses Streamable HTTP. Each message is a POST on a connection of its own. At the end the client opens the
stream of the session, leaves it, and ends the session. Timed runs have no tap. If the user names another proxy, that
proxy forwards to the server itself, so there is no tap, and what the server receives is not compared.
"""

import http.client
import json
import queue
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from mcpspy.contract.verify.launch import Launched
from mcpspy.contract.verify.session import SessionPlan, Talk, Transcript, said
from mcpspy.contract.verify.stdio import latencies
from mcpspy.contract.verify.tap import Headers, Tap, TappedRequest, TappedResponse
from mcpspy.errors import McpspyError
from mcpspy.json_values import member
from mcpspy.replay.http_link import hang_up, heads_of, shut, target
from mcpspy.secrets.redactor import shown
from mcpspy.wire.jsonrpc import Error, Request, Result, parse
from mcpspy.wire.sse import Events, parse_event

_READY = 30.0  # seconds until the proxy listens
_AFTER = 1.0  # seconds that a stream may go on after its answer
_BROKEN = (OSError, http.client.HTTPException, ValueError)
_ROOM = 256 << 20  # bytes of a response


@dataclass(slots=True)
class ClientExchange:
    """A request and its response, as the client saw them. Bodies are without their transfer coding."""

    method: str
    sent: bytes
    status: int = 0
    reason: str = ""
    headers: Headers = ()
    body: bytes = b""
    open: bool = False
    """Whether the response had not ended when the client left it."""
    trouble: str | None = None
    """Why there is no response."""


@dataclass(frozen=True, slots=True)
class HttpRun:
    """What client and server saw in one run."""

    exchanges: Sequence[ClientExchange]
    tapped: Sequence[tuple[TappedRequest, TappedResponse | None]] | None
    """None: there was no tap."""
    transcript: Transcript


class HttpPeer:
    """A server at a URL that receives and sends messages. A context manager."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float) -> None:
        self.begun = time.perf_counter_ns()
        self.exchanges: list[ClientExchange] = []
        """All exchanges, in the order of the requests."""
        self._url, self._there = url, urlsplit(url)
        self._headers = dict(headers)
        self._seconds = seconds
        self._session: dict[str, str] = {}
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._sockets: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._sockets:
            shut(connection)  # its thread closes it, and may still be reading
        for thread in self._threads:
            thread.join(_AFTER)

    def send(self, line: bytes) -> None:
        """Send a message. For a notification, wait until it is answered."""
        exchange = ClientExchange("POST", line)
        self.exchanges.append(exchange)
        body = next(iter(parse(line)))
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= self._headers | self._session | heads_of(body)
        thread = threading.Thread(target=self._post, args=(exchange, headers, body), daemon=True)
        self._threads.append(thread)
        thread.start()
        if not isinstance(body, Request):
            thread.join(self._seconds)

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message. Raises TimeoutError."""
        try:
            return self._heard.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise TimeoutError from None

    def leave(self) -> None:
        """Open the stream of the session and leave it, then end the session."""
        if "Mcp-Session-Id" in self._session:
            for method in ("GET", "DELETE"):
                exchange = ClientExchange(method, b"")
                self.exchanges.append(exchange)
                headers = {"Accept": "text/event-stream"} if method == "GET" else {}
                self._exchange(exchange, headers | self._headers | self._session, None)

    def _post(self, exchange: ClientExchange, headers: Mapping[str, str], body: object) -> None:
        self._exchange(exchange, headers, body)
        if isinstance(body, Request) and not _answered(_messages(exchange), body):
            why = exchange.trouble or f"HTTP {exchange.status} {exchange.reason}"
            refusal = {"jsonrpc": "2.0", "id": body.value["id"], "error": {"code": -32000, "message": why}}
            self._heard.put(json.dumps(refusal).encode())

    def _exchange(self, exchange: ClientExchange, headers: Mapping[str, str], body: object) -> None:
        connection = self._connection()
        self._sockets.append(connection)
        try:
            connection.request(exchange.method, target(self._url), exchange.sent or None, dict(headers))
            response = connection.getresponse()
            exchange.status, exchange.reason = response.status, response.reason
            exchange.headers = tuple(response.getheaders())
            if exchange.method == "GET" and response.status == 200:
                exchange.open = True
            else:
                self._read(exchange, connection, response, body)
        except _BROKEN as error:
            exchange.trouble = f"the connection broke: {error or type(error).__name__}"
        finally:
            hang_up(connection)

    def _read(
        self,
        exchange: ClientExchange,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        body: object,
    ) -> None:
        """Read a response, and pass on its messages as they arrive."""
        streamed = _is_stream(exchange.headers)
        events, block = Events(), bytearray()
        due = time.monotonic() + self._seconds
        while len(exchange.body) < _ROOM:
            if connection.sock:
                connection.sock.settimeout(max(due - time.monotonic(), 0.01))
            try:
                chunk = response.read1(65536)
            except TimeoutError:
                exchange.open = True
                break
            if not chunk:
                break
            exchange.body += chunk
            for raw, more, _ in events.feed(chunk) if streamed else ():
                block += raw
                if not more:
                    data = parse_event(bytes(block)).data
                    block.clear()
                    if data:
                        self._hear(data, response, body)
                        if _answered([data], body):
                            due = time.monotonic() + _AFTER
        if not streamed and exchange.body:
            self._hear(exchange.body, response, body)

    def _hear(self, data: bytes, response: http.client.HTTPResponse, body: object) -> None:
        if isinstance(body, Request) and body.method == "initialize":
            for answer in parse(data):
                revision = member(answer.value, "result", "protocolVersion") if isinstance(answer, Result) else None
                if isinstance(revision, str):
                    session = response.getheader("Mcp-Session-Id")
                    self._session = {"MCP-Protocol-Version": revision}
                    self._session |= {"Mcp-Session-Id": session} if session else {}
        self._heard.put(data)

    def _connection(self) -> http.client.HTTPConnection:
        host = self._there.hostname or ""
        if self._there.scheme == "https":
            return http.client.HTTPSConnection(
                host, self._there.port, timeout=self._seconds, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(host, self._there.port, timeout=self._seconds)


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
        try:
            self._tap = None if through else Tap(url)
        except OSError as error:
            raise McpspyError(f"cannot reach {shown(url)}: {error.strerror or error}") from None
        self._near = self._tap.url if self._tap else url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tap:
            self._tap.__exit__()

    def connect(self) -> HttpPeer:
        """Connect to the server, bare."""
        return HttpPeer(self._near, self._headers, self._seconds)

    @contextmanager
    def _peer(self, url: str, *, wrapped: bool) -> Iterator[HttpPeer]:
        """Connect to a URL, bare or through a proxy that ends with the context. Raises McpspyError."""
        if not wrapped:
            with HttpPeer(url, self._headers, self._seconds) as peer:
                yield peer
        elif self._through:
            with HttpPeer(self._through, self._headers, self._seconds) as peer:
                yield peer
        else:
            with self._proxy(url) as proxy, HttpPeer(_url_of(proxy), self._headers, self._seconds) as peer:
                yield peer

    def _proxy(self, url: str) -> Launched:
        command = [sys.executable, "-P", "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0"]
        return Launched([*command, "--capture-dir", self._folder, url], self._environ)

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
        line = proxy.receive(_READY)
    except TimeoutError:
        line = None
    if not line:
        proxy.kill()
        lines = bytes(proxy.logged).decode(errors="replace").strip().splitlines()
        raise McpspyError((lines or ["the proxy did not start"])[-1].removeprefix("mcpspy: "))
    return line.decode()


def _messages(exchange: ClientExchange) -> list[bytes]:
    """Return the messages in a response."""
    if not _is_stream(exchange.headers):
        return [exchange.body]
    return [data for block in exchange.body.replace(b"\r\n", b"\n").split(b"\n\n") if (data := parse_event(block).data)]


def _answered(messages: Sequence[bytes], body: object) -> bool:
    """Return whether one of the messages answers a request."""
    if not isinstance(body, Request):
        return False
    bodies = [it for raw in messages for it in parse(raw)]
    return any(isinstance(it, Result | Error) and it.id == body.id for it in bodies)


def _is_stream(headers: Headers) -> bool:
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    return kind.partition(";")[0].strip() == "text/event-stream"
