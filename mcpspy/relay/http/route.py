"""The routes of the relay, and what the parts of one exchange know of the relay and of each other."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiohttp import web

from mcpspy.recording.http_exchange import Body, Fields, HttpExchange
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import Address, Head, RawHeaders
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.known_heads import KnownHeads, RequestHead, ResponseHead
from mcpspy.relay.http.upstream import Upstream

if TYPE_CHECKING:
    from mcpspy.gate.verdicts import Reply
    from mcpspy.relay.http.gated_channel import GatedChannel
    from mcpspy.relay.live_gate import LiveGate


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
