"""The routes of the relay, their upstreams, and what the parts of one exchange know of the relay and of each other.

aiohttp provides connections to an upstream, and the parser. Requests are written and responses read without its client
session, which would add headers, follow redirects, keep cookies and set time-outs. Only connecting has a time-out: a
stream may be idle for any time (H-06).
"""

import ssl
from dataclasses import dataclass, field
from socket import gaierror
from typing import TYPE_CHECKING, NamedTuple, Protocol

import aiohttp
from aiohttp import web
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError

from mcpspy.network.access import Access
from mcpspy.network.dialer import Dialer
from mcpspy.network.proxies import ProxyRefusal
from mcpspy.recording.http_exchange import Body, Fields, HttpExchange
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import Address, Head, RawHeaders
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.http1 import LARGEST, Connections, HeadTooLarge, ServerConnection
from mcpspy.relay.http.known_heads import KnownHeads, RequestHead, ResponseHead

if TYPE_CHECKING:
    from mcpspy.gate.gate import Reply
    from mcpspy.relay.http.gated_channel import GatedChannel
    from mcpspy.relay.live_gate import LiveGate

TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_read=None, sock_connect=30)

_DIRECT = Access()
_IDLE = 4.0  # seconds that an idle connection is kept; common servers close theirs after 5


class Upstream:
    """Opens connections to one origin; keeps idle ones for the next request."""

    def __init__(self, address: Address, access: Access = _DIRECT) -> None:
        """Raises UsageError if a certificate or the variables for a proxy cannot be used."""
        self.dialer = Dialer(f"{address.origin[0]}://{address.authority}", access)
        self.authority = self.dialer.origin
        self._connections: Connections | None = None

    async def connect(self) -> tuple[Connection, bool]:
        """Return a connection, and whether it was used before. Raises exceptions that `failure` explains."""
        if self._connections is None:
            self._connections = Connections(self.dialer, _IDLE)
        while True:
            connection = await self._connections.open(TIMEOUT)
            protocol = connection.protocol
            assert isinstance(protocol, ServerConnection)
            if not protocol.used or not protocol.should_close:
                return connection, protocol.used
            connection.close()  # it received bytes that belong to no request; they would be read as the next response

    def check(self, message: RawResponseMessage) -> None:
        """Raise ProxyRefusal if a response is that of the proxy, which requires a login."""
        if message.code == 407 and self.dialer.forwards:
            raise ProxyRefusal(message.code, message.reason, message.headers.getall("Proxy-Authenticate", ()))

    async def close(self) -> None:
        """Close the idle connections."""
        if self._connections:
            await self._connections.close()

    def failure(self, error: BaseException) -> tuple[int, str]:
        """Return the status and the explanation for a client whose request failed because of `error`."""
        if isinstance(error, TimeoutError):
            proxy = f" through the proxy {self.dialer.proxy.url}" if self.dialer.proxy else ""
            return 504, f"cannot reach {self.authority}{proxy}: no connection within {TIMEOUT.sock_connect} seconds"
        return 502, f"{self.authority} {self._why(error)}"

    def _why(self, error: BaseException) -> str:
        cause = getattr(error, "os_error", None) or error
        if isinstance(error.__cause__, ssl.SSLError):  # the server has refused the certificate after the handshake
            cause = error.__cause__
        if isinstance(error, aiohttp.ClientHttpProxyError):
            asks = error.headers.getall("Proxy-Authenticate", ()) if error.headers else ()
            return self.dialer.why(ProxyRefusal(error.status, error.message, asks))
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return self.dialer.why(error.certificate_error)
        if isinstance(error, aiohttp.ClientResponseError):
            return self.dialer.why(ProxyRefusal())
        if isinstance(cause, ssl.SSLError | ProxyRefusal):
            return self.dialer.why(cause)
        if isinstance(error, aiohttp.ClientConnectorError):
            return self.dialer.unreachable(gaierror() if isinstance(error, aiohttp.ClientConnectorDNSError) else cause)
        if isinstance(error, HeadTooLarge):
            return f"answers with a head of more than {LARGEST} bytes, which mcpspy does not pass on"
        if isinstance(error, HttpProcessingError):
            fault = error.message.partition(":")[0]
            if fault == "Bad status line":
                return "does not answer in HTTP/1.1: it may want https://, or speak only HTTP/2"
            return f"sends a response that is not valid HTTP/1.1: {fault}"
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "closed the connection without an answer"
        return self.dialer.why(cause)


def protocol_of(connection: Connection) -> ServerConnection:
    """Return the protocol of an open connection. Raises ServerDisconnectedError if it has just closed."""
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    assert isinstance(protocol, ServerConnection)
    return protocol


class LatestRequest(NamedTuple):
    """The target, the headers and the client's address of the latest request in a session."""

    target: str
    headers: RawHeaders
    peer: str | None


class OpenSocket(Protocol):
    """An open WebSocket of a client."""

    def send(self, frame: bytes) -> None:
        """Send a text message to the server."""


class ViewerRequests(Protocol):
    """Sends requests of viewers to the server of a route."""

    def note(self, session: str, way: LatestRequest | OpenSocket, /) -> None:
        """Note that a client of that session has sent a request in this way."""

    def forget(self, way: OpenSocket, /) -> None:
        """Forget a WebSocket that has ended."""

    async def end(self) -> None:
        """Cancel all running requests."""


class AnswerStream(Protocol):
    """An event stream of HTTP+SSE on which requests are answered."""

    def add(self, reply: "Reply", /) -> None:
        """Forward a frame of our own."""


@dataclass(slots=True)
class HttpRoute:
    """An upstream, its address on our side, and its capture."""

    address: Address
    upstream: Upstream
    recording: Recording
    diagnosed: bool = False
    """Whether the user has had a notice about OAuth on this route."""
    metadata: set[str] = field(default_factory=set)
    """The paths on our side that challenges of the server name for OAuth metadata."""
    guarded: bool = False
    """Whether the user has had a notice that requests are refused in the server's place."""
    told: set[str] = field(default_factory=set)
    """The notices that the user has had about frames that a gate cannot act on."""
    gate: "LiveGate | None" = None
    """Decides on frames; None if all frames pass and that cannot change."""
    own: "ViewerRequests | None" = None
    """Sends the requests of viewers; None if they cannot send any."""
    held: list[tuple[str, "GatedChannel"]] = field(default_factory=list)
    """The sessions and bodies of the requests that wait for a gate."""
    streams: dict[str, AnswerStream] = field(default_factory=dict)
    """By session of HTTP+SSE: the event stream for answers of the gate, if it can have them."""
    requests: KnownHeads[RequestHead] = field(default_factory=KnownHeads)
    responses: KnownHeads[ResponseHead] = field(default_factory=KnownHeads)

    def now(self) -> int:
        """Return the nanoseconds since the capture started."""
        return self.recording.clock.now()


class RelayContext(Protocol):
    """The part of the relay that an exchange uses."""

    guard: Guard
    rewrite_oauth: bool
    ending: bool
    """Whether the relay is ending, so that cancelled exchanges end because of us."""

    def say(self, sentence: str, /) -> None:
        """Tell the user."""


class RequestContext(Protocol):
    """The part of an exchange that its response uses."""

    relay: RelayContext
    route: HttpRoute
    request: web.BaseRequest
    known: RequestHead
    headers: RawHeaders
    metadata: bool
    """Whether the request is for OAuth metadata."""
    recorded: HttpExchange
    """The channels of the exchange in the capture."""
    keep_alive: bool
    """Whether the client's connection can be used for another request."""

    legacy_session: str | None
    """The session that the endpoint event of an HTTP+SSE stream names; None for other responses."""

    @property
    def session(self) -> str:
        """Identifies the session for a gate."""

    def say_whether_we_close(self, head: Head) -> None:
        """Add the Connection field of our own hop (RFC 9112, 9.3)."""

    def record_whole(self, body: bytes) -> None:
        """Record a request that arrived as a whole and was forwarded unchanged; its `opening` must be `plain`."""

    def open_request(self, changes: Fields) -> Body:
        """Open the channel of the request, unless it is open; `changes` are `sent` and `by`."""

    def open_response(self, sender: str, t: int, headers: RawHeaders, status: int, reason: str, head: Head) -> Body:
        """Open the channel of the response; `headers` are as received, `head` is as forwarded."""

    def mapped(self, reference: str) -> str | None:
        """Map a URL that the upstream named to the URL that this client needs; None if it needs no change."""

    def endpoint(self, reference: str) -> str | None:
        """Map the URL of the endpoint event, as `mapped` does, and store the session that it names."""


def say_once(exchange: RequestContext, sentence: str) -> None:
    """Give the user a notice about the gate of a route, unless the same notice was given before."""
    if sentence not in exchange.route.told:
        exchange.route.told.add(sentence)
        exchange.relay.say(sentence)
