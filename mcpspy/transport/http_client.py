"""A client of a server over HTTP: it takes lines, sends each as a POST, and queues what the server sends.

A thread of its own reads each response, a body or an event stream; another one reads the session's own stream. Requests
begin in the order of their lines. The response to a notification or to a response has begun before the next line is
sent. Later requests have the session id and the revision from `initialize` in their head. A request that states its
revision itself has that, its method and its name in the head (2026-07-28). A server that accepts no POST is tried as
HTTP+SSE (2024-11-05).
"""

import http.client
import queue
import re
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from mcpspy.errors import UsageError
from mcpspy.json_values import member
from mcpspy.network.access import REFUSES_CERTIFICATE, Access, certificate_hint
from mcpspy.network.dialer import Dialer, NotReached
from mcpspy.secrets.redactor import shown
from mcpspy.spec.revisions import PROTOCOL_VERSION
from mcpspy.transport.link import FLOODS, Ended, Failed
from mcpspy.wire.http_head import PORTS
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, parse
from mcpspy.wire.sse import Events, parse_event
from mcpspy.wire.subject import subject

Headers = tuple[tuple[str, str], ...]

_BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)  # AttributeError: already closed
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_PLAIN = Access()
_REACH = 10.0  # seconds to connect
_AFTER = 1.0  # seconds that a stream may go on after its answer, if time is limited
_NAMED = ("tools/call", "prompts/get", "resources/read")  # the requests with `Mcp-Name` in their head (2026-07-28)
HEADERS = {
    "POST": {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    "GET": {"Accept": "text/event-stream"},
    "DELETE": {},
}
"""By method: the headers of each request of a client."""
_HINTS = {
    200: " without the answer",
    407: ": the proxy in http_proxy requires a user and a password, or others than it has",
}
_TAKES_NO_POST = (400, 404, 405)  # then it may be a server of HTTP+SSE (2025-03-26, basic/transports)


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
    """Why there is no response, or not all of it."""
    meaning: str | None = None
    """What the page of a web server in front of the server means, if it has answered by one."""
    answered: bool = False
    """Whether the response had the answer to the request."""
    begun: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    """Set when the head of the response is there, or will not come."""
    settled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    """Set when the answer is there, or the response has ended, or another transport is to be used."""
    tcp: socket.socket | None = field(default=None, compare=False, repr=False)
    """The connection; `http.client` forgets it when a response ends with its connection."""

    def hang_up(self) -> None:
        """End a read of the response; its thread closes the connection."""
        try:
            if self.tcp:
                self.tcp.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @property
    def why(self) -> str:
        """Why the request has no answer."""
        if not self.status and self.trouble:
            return self.trouble
        meaning = f": the server {self.meaning}" if self.meaning else _HINTS.get(self.status, "")
        return f"HTTP {self.status} {self.reason}{meaning}"


class HttpClient:
    """The client of one session."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        room: int,
        seconds: float | None = None,
        exchanges: list[ClientExchange] | None = None,
        *,
        listens: bool = True,
        access: Access = _PLAIN,
    ) -> None:
        """`room` is the number of bytes that the server may send, `seconds` the time for each response.

        `exchanges` receives all exchanges, with their bodies. `listens` says whether the client opens the stream of the
        session after the handshake. Raises UsageError if `access` or a variable for a proxy cannot be used.
        """
        self._dialer = Dialer(url, access)
        self.heard: queue.SimpleQueue[bytes | Ended | Failed] = queue.SimpleQueue()
        """The messages of the server, and which requests cannot be answered."""
        self._url = url
        self._headers = dict(headers)
        self._room = room
        self._seconds = seconds
        self._exchanges = exchanges
        self._listens = listens
        self._session: dict[str, str] = {}  # the headers of the session
        self._endpoint: str | None = None  # the endpoint of HTTP+SSE
        self._told = threading.Event()  # set when the endpoint is known
        self._asked: dict[Id, ClientExchange] = {}
        self._open: list[ClientExchange] = []
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._begin(self._write)

    def send(self, line: bytes) -> None:
        """Queue a line for sending."""
        self._to_send.put(line)

    def finish(self, seconds: float) -> None:
        """Send what is queued, and nothing more; wait so many seconds for that."""
        self._to_send.put(None)
        self._threads[0].join(seconds)

    def leave(self) -> None:
        """Open the stream of the session and leave it, then end the session, if it has an id."""
        if "Mcp-Session-Id" in self._session:
            for method in ("GET", "DELETE"):
                self._respond(*self._request(method), leaves=True)

    def hang_up(self) -> None:
        """End what is still read."""
        for exchange in [*self._open]:
            exchange.hang_up()

    def join(self, seconds: float) -> None:
        """Wait until all streams have ended, so many seconds for each."""
        for thread in [*self._threads]:
            thread.join(seconds)

    def _begin(self, work: Callable[..., object], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _write(self) -> None:
        while (line := self._to_send.get()) is not None:
            for body in parse(line):
                self._post(line, body)

    def _post(self, line: bytes, body: Body) -> None:
        if isinstance(body, Notification) and body.method == "notifications/cancelled":
            asked = self._asked.get(Id.of(member(body.params, "requestId")))
            if asked and not self._session and not self._endpoint:
                asked.hang_up()  # in 2026-07-28 a client cancels a request by closing its response
                return
        by_events = self._endpoint is not None
        connection, exchange = self._request("POST", line, body)
        if isinstance(body, Request):
            self._asked[body.id] = exchange
        self._begin(self._respond, connection, exchange, body)
        if isinstance(body, Request) and body.method == "initialize":
            exchange.settled.wait()
            if not exchange.answered and not by_events:
                self._try_events(exchange, line, body)
        elif not isinstance(body, Request):
            exchange.begun.wait()
            initialized = isinstance(body, Notification) and body.method == "notifications/initialized"
            if initialized and self._listens and not self._endpoint:
                self._listen()

    def _try_events(self, exchange: ClientExchange, line: bytes, body: Request) -> None:
        """Send `initialize` to the endpoint of HTTP+SSE, if the server has that transport; else the request failed.

        The event that names the endpoint may also have come as the response to the POST.
        """
        if not self._endpoint and exchange.status in _TAKES_NO_POST and self._listen().status == 200:
            self._told.wait(_REACH)
        if self._endpoint:
            self._post(line, body)
        else:
            self.heard.put(Failed(body.id, exchange.why))

    def _listen(self) -> ClientExchange:
        """Open the session's own stream; return when its head is there."""
        connection, exchange = self._request("GET")
        self._begin(self._respond, connection, exchange)
        exchange.begun.wait()
        return exchange

    def _request(
        self, method: str, line: bytes = b"", body: Body | None = None
    ) -> tuple[http.client.HTTPConnection, ClientExchange]:
        """Send a request. The exchange tells why that is impossible."""
        exchange = ClientExchange(method, line)
        if self._exchanges is not None:
            self._exchanges.append(exchange)
        headers = HEADERS[method] | self._headers | self._session | (heads_of(body) if body else {})
        connection = DialedConnection(self._dialer, self._seconds)
        self._open.append(exchange)
        try:
            url = self._endpoint or self._url if method == "POST" else self._url
            target, headers = self._dialer.target(request_target(url)), headers | self._dialer.headers()
            connection.request(method, target, line or None, headers)
            exchange.tcp = connection.sock
        except _BROKEN as error:
            exchange.trouble = _broken(error)
        return connection, exchange

    def _respond(
        self,
        connection: http.client.HTTPConnection,
        exchange: ClientExchange,
        body: Body | None = None,
        *,
        leaves: bool = False,
    ) -> None:
        """Read the response to a request. With `leaves`, only the head of an open stream is read."""
        try:
            if exchange.trouble is None:
                response = connection.getresponse()
                exchange.status, exchange.reason = response.status, response.reason
                exchange.headers = tuple(response.getheaders())
                exchange.begun.set()
                with response:
                    exchange.open = leaves and exchange.method == "GET" and response.status == 200
                    if not exchange.open:
                        self._read(response, exchange, body)
        except _BROKEN as error:  # or another thread has hung up
            exchange.trouble = _broken(error)
        finally:
            connection.close()
            self._open.remove(exchange)
            exchange.begun.set()
            exchange.settled.set()
        if isinstance(body, Request) and body.method != "initialize" and not exchange.answered and not self._endpoint:
            self.heard.put(Failed(body.id, exchange.why))

    def _read(self, response: http.client.HTTPResponse, exchange: ClientExchange, body: Body | None) -> None:
        """Read the body of a response, and queue its messages as they arrive."""
        chunks = self._chunks(response, exchange)
        kind = (response.getheader("Content-Type") or "").partition(";")[0].strip()
        if kind == "text/event-stream":
            messages = self._events(chunks, exchange)
        else:
            raw = b"".join(chunks)
            if response.status in REFUSES_CERTIFICATE:
                exchange.meaning = certificate_hint(raw, None)
            messages = iter([raw] if kind == "application/json" else [])
        for raw in messages:
            answers = [it for it in parse(raw) if isinstance(it, Result | Error)] if isinstance(body, Request) else []
            answer = next((it for it in answers if isinstance(body, Request) and it.id == body.id), None)
            if answer and isinstance(body, Request) and body.method == "initialize":
                self._begin_session(answer, response)
            exchange.answered = exchange.answered or answer is not None
            if exchange.method == "POST" or response.status == 200:
                self.heard.put(raw)
            if answer:
                exchange.settled.set()

    def _begin_session(self, answer: Result | Error, response: http.client.HTTPResponse) -> None:
        """Store what the response to `initialize` has for all later requests."""
        revision = member(answer.value, "result", "protocolVersion")
        session = response.getheader("Mcp-Session-Id")
        self._session = {"MCP-Protocol-Version": revision} if isinstance(revision, str) else {}
        self._session |= {"Mcp-Session-Id": session} if session else {}

    def _chunks(self, response: http.client.HTTPResponse, exchange: ClientExchange) -> Iterator[bytes]:
        """Yield the body of a response, up to the limits of bytes and time."""
        begun = time.monotonic()
        due = None
        while True:
            if self._seconds is not None and exchange.tcp:
                if exchange.answered and due is None:
                    due = time.monotonic() + _AFTER
                exchange.tcp.settimeout(max((due or begun + self._seconds) - time.monotonic(), 0.01))
            try:
                chunk = response.read1(65536)
            except TimeoutError:
                exchange.open = True
                return
            if not chunk:
                return
            if self._exchanges is not None:
                exchange.body += chunk
            self._room -= len(chunk)
            if self._room < 0:
                self.heard.put(Ended(FLOODS))
                return
            yield chunk

    def _events(self, chunks: Iterator[bytes], exchange: ClientExchange) -> Iterator[bytes]:
        """Yield the messages of an event stream; the event that names the endpoint settles the exchange."""
        events = Events()
        block: list[bytes] = []
        for chunk in chunks:
            for raw, more, _ in events.feed(chunk):
                block.append(raw)
                if more:
                    continue
                event = parse_event(b"".join(block))
                block.clear()
                if event.name == "endpoint" and event.data:
                    self._endpoint = urljoin(self._url, event.data.decode())
                    self._told.set()
                    exchange.settled.set()
                elif event.name == "message" and event.data:
                    yield event.data


class DialedConnection(http.client.HTTPConnection):
    """A connection that a dialer opens."""

    def __init__(self, dialer: Dialer, seconds: float | None) -> None:
        super().__init__(dialer.host, dialer.port, timeout=seconds)
        self._dialer = dialer
        if dialer.tls:
            self.default_port = PORTS["https"]  # the Host does not name it

    def connect(self) -> None:
        """Open it. Raises NotReached."""
        self.sock = self._dialer.connect(self.timeout)


def _broken(error: Exception) -> str:
    if isinstance(error, NotReached):
        return f"it {error}"
    return f"the connection broke: {error or type(error).__name__}"


def heads_of(body: Body) -> dict[str, str]:
    """Return the headers of a request that states its revision (2026-07-28, basic/transports)."""
    params = body.value.get("params") if isinstance(body.value, dict) else None
    revision = member(params, "_meta", PROTOCOL_VERSION)
    if not isinstance(revision, str) or not isinstance(body, Request | Notification):
        return {}
    name = subject(body.method, params) if body.method in _NAMED else None
    heads = {"MCP-Protocol-Version": revision, "Mcp-Method": body.method}
    return heads | ({"Mcp-Name": _header_text(name)} if name else {})


def _header_text(text: str) -> str:
    """Return a value for a header: unchanged if possible, else in base64 (2026-07-28, basic/transports)."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def parsed_header(text: str) -> tuple[str, str]:
    """Return the name and the value of a `--header` option. Raises UsageError."""
    name, colon, value = text.partition(":")
    if not colon or not _TOKEN.fullmatch(name.strip()):
        raise UsageError(f"--header takes 'Name: value', not {text!r}")
    if not (value.isascii() and value.strip().isprintable()):
        raise UsageError(f"--header {name.strip()!r} has a value that no header can have: it takes printable ASCII")
    return name.strip(), value.strip()


def reach(url: str, access: Access = _PLAIN) -> None:
    """Check that a server can be connected to. Raises UsageError."""
    try:
        Dialer(url, access).check(_REACH)
    except NotReached as error:
        raise UsageError(f"{shown(url)} {error}") from error


def request_target(url: str) -> str:
    """Return the request target for a URL: its path and query."""
    there = urlsplit(url)
    return (there.path or "/") + (f"?{there.query}" if there.query else "")
