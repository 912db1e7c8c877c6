"""Rules about HTTP+SSE (2024-11-05): the stream, and the endpoint event, which names the URL to which the client posts.

The official SDKs refuse a URL on another origin, because a server could otherwise make the client send its messages
elsewhere. The proxy rewrites a URL on the origin of the server itself (`mcpspy.relay.http.own_gates`), so that
origin is right as well. What a client accepted after all costs nothing, so this is decided at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.context import asks_for_stream
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session, StreamEnd
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import STATELESS
from mcpspy.text import duration_text
from mcpspy.wire.http_head import authority, header, status
from mcpspy.wire.jsonrpc import Error, Result
from mcpspy.wire.sse import parse_event

_PAGE = "https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse"
_MISSING, _REDIRECTION = (404, 405), 300
_SHOWN = 200
_PATIENCE = 10_000_000_000  # nanoseconds


@dataclass(slots=True)
class _BegunStreams:
    """The clients of a capture that got on: a GET for a stream got a head, or `initialize` a result."""

    latest: dict[str, int] = field(default_factory=dict)
    """By client: the line number of the latest one."""
    stateless: dict[str, None] = field(default_factory=dict)
    """The clients that got on without a handshake."""


@rule(
    "http/handshake-without-head",
    "error",
    """The server did not answer the GET with which a client begins HTTP+SSE, not even with a head, and the client gave
    up. A client of this transport sends nothing before it has got the endpoint event, so the handshake failed. Many
    frameworks keep the head until the first byte of the body, and some gateways keep a stream until it ends.""",
    fix="Send the head and the endpoint event at once, and flush them. In a gateway, turn off buffering for this URL.",
    meanwhile="Look whether the URL is right, and whether the server answers without the gateway in front of it.",
    blame="server",
    spec=_PAGE,
    about="listening",
    fails="""
        >> POST /sse 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 405
        >> GET /sse
        @30 <. left
    """,
    passes="""
        >> POST /sse 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 405
        >> GET /sse
        << 200 events
        <- [event: endpoint] | /messages?sessionId=5e
        @30 <. left
    """,
    on=(HttpUnit, StreamEnd),
    explains=("timed-out", "refused"),
    loss="The handshake failed",
)
class HandshakeWithoutHead(StatefulCheck):
    """Report a GET that gets no head before a handshake, unless its client gets on in another way."""

    learns_from: ClassVar = {Result: ("initialize", "server/discover", "tools/list")}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._begun = session.of_capture(_BegunStreams)
        self._asking: dict[int, HttpUnit] = {}  # by channel: the heads of GETs without an answer
        self._left: dict[int, tuple[HttpUnit, int]] = {}  # by line number: those whose client left, and when

    def learn(self, message: Message) -> None:
        """Take an answer with which a client begins."""
        if message.http and message.exchange and message.exchange.method == "initialize":
            keep(self._begun.latest, message.http.client, message.n)
        elif message.http and message.revision in STATELESS:
            keep(self._begun.stateless, message.http.client, None)

    def check(self, event: HttpUnit | StreamEnd) -> Iterator[Fault]:
        """Remember a GET for a stream until its answer begins, or its client leaves."""
        place = event.http
        if place is None or place.summary["method"] != "GET":
            return iter(())
        if isinstance(event, HttpUnit) and place.request is None:
            if event.n == place.first and _is_first(place, self.session):
                keep(self._asking, place.opened.ch, event)
            return iter(())
        asking = self._asking.pop(place.answers or 0, None)
        if place.opened.head is not None:
            if place.streams:
                keep(self._begun.latest, place.client, event.n)
        elif asking and event.sender == "client" and place.opened.sender != "mcpspy":
            waited = event.t - asking.t
            if isinstance(event, StreamEnd) and waited >= _PATIENCE:
                keep(self._left, asking.n, (asking, waited))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report those after which nothing else began. After a gap, that is not known."""
        for asking, waited in self._left.values() if not self.session.gaps else ():
            client = asking.http.client
            if self._begun.latest.get(client, 0) < asking.n and client not in self._begun.stateless:
                how = f"got no head in {duration_text(waited)}; then the client left"
                yield Fault(f"the GET that begins HTTP+SSE {how}", blame="server", at=asking)


def _is_first(request: HttpChannel, session: Session) -> bool:
    """Return whether a GET for a stream comes before any handshake, so that it begins HTTP+SSE."""
    begun = request.named or request.legacy or session.agreed is not None or session.answered
    return not begun and asks_for_stream(request)


@rule(
    "http/endpoint-origin",
    "error",
    """The endpoint event of HTTP+SSE names a URL on another origin than that of the stream. The SDKs refuse it, so the
    client sends nothing. Usually the server builds the URL from its internal address. Reported only if the client did
    not post.""",
    fix="Send a path in the endpoint event, such as `/messages?sessionId=…`, or build the URL from the public address.",
    meanwhile="Connect to the origin that the event names, if you can reach it.",
    blame="server",
    spec=_PAGE,
    about="login",
    fails="""
        >> GET /sse
        << 200 events
        <- [event: endpoint] | http://10.0.0.7:9000/messages?sessionId=5e
    """,
    passes="""
        >> GET /sse
        << 200 events
        <- [event: endpoint] | /messages?sessionId=5e
    """,
    on=(HttpUnit,),
    loss="The client got an address that it does not accept, and sent no request",
)
class EndpointOrigin(StatefulCheck):
    """Report an endpoint on another origin, unless the client posted a message after all."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._elsewhere: tuple[HttpUnit, str, str] | None = None  # the event, its origin, that of the client

    def check(self, unit: HttpUnit) -> Iterator[Fault]:
        """Take the endpoint event."""
        url, request = _endpoint(unit), unit.http.request
        if url is not None and request:
            there, dialled = authority(url), _hosts(request)
            wrong = there and dialled and there not in dialled and not (unit.frame and unit.frame.by)
            self._elsewhere = (unit, there, dialled[0]) if wrong else None
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report it if the client did not post. After a gap, that is not known."""
        if self._elsewhere and not self.session.gaps and self.session.requested is None:
            event, there, dialled = self._elsewhere
            yield Fault(
                f"the endpoint event names {there[:_SHOWN]}; expected a path, or {dialled[:_SHOWN]}, where the client "
                "connects",
                blame="server",
                at=event,
            )


@rule(
    "http/endpoint-missing",
    "error",
    """The URL of the endpoint event of HTTP+SSE is answered with 404 or 405, so the client cannot send anything.
    Usually a prefix of the path is missing behind a proxy, or another replica, which does not know the session, gets
    the POST. Reported only if no POST of the session succeeded before.""",
    fix="""Build the URL with the prefix under which clients reach the server (`root_path`), and send a session to the
    replica that has its stream.""",
    meanwhile="Connect to the server without the proxy, or use its Streamable HTTP endpoint.",
    blame="server",
    spec=_PAGE,
    about="login",
    fails="""
        >> GET /sse
        << 200 events
        <- [event: endpoint] | /messages?sessionId=5e
        >> POST /messages?sessionId=5e 0 initialize {"protocolVersion":"2024-11-05","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 404
    """,
    passes="""
        >> GET /sse
        << 200 events
        <- [event: endpoint] | /messages?sessionId=5e
        >> POST /messages?sessionId=5e 0 initialize {"protocolVersion":"2024-11-05","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 202
        <- 0 = {"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    on=(HttpUnit, Error),
    explains=("refused", "error"),
)
class EndpointMissing(StatefulCheck):
    """Report an endpoint that does not exist for the client."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._endpoint: HttpUnit | None = None
        self._refused: Message | HttpUnit | None = None

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Take the endpoint event, or the answer to a POST."""
        if isinstance(message, HttpUnit) and _endpoint(message) is not None:
            self._endpoint, self._refused = message, None
        elif self._endpoint and message.http and _answers_post(message):
            code = status(message.http.opened.head)
            if code in _MISSING and self.session.agreed is None:
                self._refused = self._refused or message
                for carried in message.http.request.carried if message.http.request else ():
                    keep(self.session.explained, carried.n, None)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the first POST that was refused, if none succeeded. After a gap, that is not known."""
        place = self._refused.http if self._refused else None
        if self._endpoint and place and place.request and not self.session.gaps and self.session.agreed is None:
            code, target = status(place.opened.head), str(place.summary["target"]).partition("?")[0]
            yield Fault(
                f"the endpoint event names {target[:_SHOWN]}, which is answered with status {code}",
                related=(self._endpoint.n, *(it.n for it in place.request.carried)),
                blame="server",
                at=self._refused,
            )


def _endpoint(unit: HttpUnit) -> str | None:
    """Return the URL in an endpoint event; None for any other unit."""
    if unit.kind != "event" or unit.frame is None or not unit.http.legacy or unit.sender != "server":
        return None
    event = parse_event(unit.raw)
    return (event.data or b"").decode(errors="replace") if event.name == "endpoint" else None


def _answers_post(event: Message | HttpUnit) -> bool:
    """Return whether an event is the first one of the answer of the server to a POST of HTTP+SSE."""
    place = event.http
    return (
        place is not None
        and place.legacy
        and place.request is not None
        and place.summary["method"] == "POST"
        and place.first in (event.n, None)
        and place.opened.sender == "server"
    )


def _hosts(request: HttpChannel) -> list[str]:
    """Return the host and port to which the client connects, and those to which the relay connects for it."""
    heads = request.opened.head, request.opened.sent
    return [host for host in (authority(f"//{header(head, 'host') or ''}") for head in heads) if host]
