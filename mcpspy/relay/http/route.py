"""Where the paths of the relay lead, and what the parts of one exchange know of the relay and of each other."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiohttp import web

from mcpspy.recording.http_body import Body, Fields
from mcpspy.recording.http_exchange import HttpExchange
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
    """Where a client has posted to, with what head, and from where."""

    target: str
    headers: RawHeaders
    peer: str | None


class OpenSocket(Protocol):
    """A WebSocket of a client."""

    def send(self, frame: bytes) -> None:
        """Send a text message to the server."""


class ViewerRequests(Protocol):
    """What sends requests of viewers to the server of a route."""

    def note(self, session: str, way: LatestRequest | OpenSocket, /) -> None:
        """A client of that session has sent something this way."""

    def forget(self, way: OpenSocket, /) -> None:
        """The WebSocket has ended."""

    async def end(self) -> None:
        """End what is under way."""


class AnswerStream(Protocol):
    """An event stream of HTTP+SSE on which requests are answered."""

    def add(self, reply: "Reply", /) -> None:
        """Have a frame of our own forwarded."""


@dataclass(slots=True)
class HttpRoute:
    """An upstream, where it stands on our side, and its capture."""

    address: Address
    upstream: Upstream
    recording: Recording
    diagnosed: bool = False
    """Whether the user has been told what OAuth will do here."""
    metadata: set[str] = field(default_factory=set)
    """The paths on our side that challenges of the server name for OAuth metadata."""
    guarded: bool = False
    """Whether the user has been told that requests are refused in the server's place."""
    told: set[str] = field(default_factory=set)
    """What the user has been told of frames that a gate cannot decide on, or not as it wants."""
    gate: "LiveGate | None" = None
    """What decides on frames; None where all pass, for ever."""
    own: "ViewerRequests | None" = None
    """The requests that viewers send; None where they cannot."""
    held: list[tuple[str, "GatedChannel"]] = field(default_factory=list)
    """The sessions and bodies of requests that wait for a gate."""
    streams: dict[str, AnswerStream] = field(default_factory=dict)
    """By session of HTTP+SSE: the event stream on which its requests are answered, where a gate can do that."""
    requests: KnownHeads[RequestHead] = field(default_factory=KnownHeads)
    responses: KnownHeads[ResponseHead] = field(default_factory=KnownHeads)

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return self.recording.clock.now()


class RelayContext(Protocol):
    """What an exchange knows of the relay that it is part of."""

    guard: Guard
    rewrite_oauth: bool
    ending: bool
    """Whether exchanges that are cancelled now end because we do."""

    def say(self, sentence: str, /) -> None:
        """Tell the user."""


class RequestContext(Protocol):
    """What the response of an exchange knows of its request."""

    relay: RelayContext
    route: HttpRoute
    request: web.BaseRequest
    known: RequestHead
    headers: RawHeaders
    metadata: bool
    """Whether it asks for OAuth metadata."""
    recorded: HttpExchange
    """The channels of the exchange in the capture."""
    keep_alive: bool
    """Whether the client's connection may serve another request."""

    legacy_session: str | None
    """Of an event stream of HTTP+SSE: the session that its endpoint event names."""

    @property
    def session(self) -> str:
        """What tells sessions apart for a gate."""

    def say_whether_we_close(self, head: Head) -> None:
        """Our own hop's Connection field (RFC 9112, 9.3)."""

    def record_whole(self, body: bytes) -> None:
        """Record a request that was received whole and forwarded unchanged; its opening is plain."""

    def open_request(self, changes: Fields) -> Body:
        """Begin the channel of the request, unless it is open; `changes` are `sent` and `by`."""

    def open_response(self, sender: str, t: int, headers: RawHeaders, status: int, reason: str, head: Head) -> Body:
        """Begin the channel of the response; `headers` are those that came, `head` is what was sent."""

    def mapped(self, reference: str) -> str | None:
        """A URL that the upstream named, as this client has to see it; None where it needs no change."""

    def endpoint(self, reference: str) -> str | None:
        """The same for the URL of the endpoint event, which names the session."""


def say_once(exchange: RequestContext, sentence: str) -> None:
    """Tell the user something about what passes the gate of a route."""
    if sentence not in exchange.route.told:
        exchange.route.told.add(sentence)
        exchange.relay.say(sentence)
