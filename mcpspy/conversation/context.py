"""What applies to a message: capabilities and extensions of its session, and the request that it belongs to.

In 2026-07-28 a client declares extensions in each request, and a server in its result of `server/discover`. In earlier
revisions both do so in `initialize` and its result. If the declarations of a side are not known, nothing is concluded
from that.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.model import ENDLESS, HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.offers import HANDSHAKES
from mcpspy.json_values import Path, member, walk
from mcpspy.spec.extensions import Dialect, Extension, declared, extension_methods, known_extensions
from mcpspy.spec.revisions import PROTOCOL_VERSION, ROUNDS, STATELESS
from mcpspy.wire.http_head import header
from mcpspy.wire.jsonrpc import Notification, Request, Result

CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""The `_meta` key by which a request declares the capabilities of its client (2026-07-28)."""

ASKED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""By method of a request from the server: the capability that the client must have declared."""


def other(side: str) -> str:
    """Return the other side."""
    return "server" if side == "client" else "client"


def capabilities(side: str, message: Message, session: Session) -> dict[str, Any] | None:
    """Return the capabilities of a side that apply to a message, or None if they are not known."""
    if side == "server":
        return session.server
    request = message.exchange.request if message.exchange else message
    if request.revision in STATELESS:
        found = member(request.body.value, "params", "_meta", CLIENT_CAPABILITIES)
        return found if isinstance(found, dict) else None
    return session.client


def dialect(message: Message, session: Session) -> Dialect:
    """Return the revision of a message, with the extensions of either side that apply to it.

    A notification that a server sends on its own belongs to no request. It may use what any request has declared.
    """
    client, server = declared(capabilities("client", message, session)), declared(session.server)
    unasked = session.extensions if message.sender == "server" and message.exchange is None else ()
    return Dialect(message.revision, client.union(server, unasked))


def is_about(message: Message, request: int) -> bool:
    """Return whether a notification that refers to the request on line `request` can only refer to that one.

    Clients over HTTP that cannot be distinguished may use the same ids and tokens. Then the stream of the notification
    decides.
    """
    return message.http is None or not message.session.partial or is_in_answer(message, request)


def is_in_answer(message: Message, request: int) -> bool:
    """Return whether a message is in the response to the HTTP request that carried the request on line `request`."""
    asked = message.http.request if message.http else None
    return asked is not None and any(carried.n == request for carried in asked.carried)


def subscription(message: Message) -> Any:
    """Return the subscription that a notification belongs to, or None if it names none."""
    return member(message.body.value, "params", "_meta", "io.modelcontextprotocol/subscriptionId")


def stated_revision(message: Message) -> Any:
    """Return the revision that a request states itself, whatever its value."""
    return member(message.body.value, "params", "_meta", PROTOCOL_VERSION)


def missing_meta(message: Message) -> list[str]:
    """Return the required members that the `_meta` of a request of 2026-07-28 lacks; nothing for other messages."""
    if message.revision not in STATELESS or not isinstance(message.body, Request):
        return []
    if message.sender == "server" or message.body.method == "server/discover":
        return []
    meta = member(message.body.params, "_meta")
    return [name for name in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if member(meta, name) is None]


def becomes_round(message: Message) -> bool:
    """Return whether a server sends as a request what 2026-07-28 requests by `input_required`."""
    if message.revision not in ROUNDS or not isinstance(message.body, Request):
        return False
    return message.sender == "server" and message.body.method in ASKED


def annotated(schema: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the properties with `x-mcp-header`, also nested ones, with their paths in the schema."""
    for path, inner in walk(schema):
        of_argument = path and len(path) % 2 == 0 and all(step == "properties" for step in path[::2])
        if of_argument and isinstance(inner, dict) and "x-mcp-header" in inner:
            yield tuple(path), inner


def posted(message: Message) -> HttpChannel | None:
    """Return the POST of Streamable HTTP that carried a message of the client; None for any other message."""
    place = message.http
    if place is None or place.opened.role != "request" or place.legacy or place.summary["method"] != "POST":
        return None
    return place


def asks_for_stream(request: HttpChannel) -> bool:
    """Return whether an HTTP request is a GET for a stream of events."""
    accepted = header(request.opened.head, "accept") or ""
    return request.summary["method"] == "GET" and "text/event-stream" in accepted.lower()


def asked(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the request, if an event is the first one of its response over Streamable HTTP; else None."""
    request = asked_over_http(event)
    return request if request and event.http and not event.http.legacy else None


def asked_over_http(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the same, also for HTTP+SSE."""
    place = event.http
    if place is None or place.request is None or place.opened.role != "response":
        return None
    return place.request if (event.n, event.part, place.opened.sender) == (place.first, 0, "server") else None


def asks(remark: HttpUnit) -> HttpChannel | None:
    """Return the request of Streamable HTTP with a session id that a unit is the head of; None for any other unit."""
    place = remark.http
    is_head = place.opened.role == "request" and place.first == remark.n and remark.frame is None
    return place if is_head and place.named and not place.legacy else None


class Declarations:
    """The extensions that were declared so far, and by which side. `add` the declarations of each message."""

    def __init__(self) -> None:
        self.sides: dict[str, dict[str, int]] = {}
        """By extension: the first line on which each side declared it."""

    def add(self, n: int, side: str, names: Iterable[str]) -> None:
        """Add the names that a message of a side declares."""
        for name in names:
            if name in self.sides or len(self.sides) < bounds.EXTENSIONS:
                self.sides.setdefault(name, {}).setdefault(side, n)

    def told(self) -> list[str]:
        """Return each extension with the sides that declared it: `io.modelcontextprotocol/tasks (client, server)`."""
        return [f"{name} ({', '.join(sorted(sides))})" for name, sides in sorted(self.sides.items())]


def declares(message: Message) -> tuple[str, ...]:
    """Return the names of the extensions and experiments that a message declares for its sender, sorted."""
    body, found = message.body, None
    if isinstance(body, Request):
        if body.method == "initialize":
            found = member(body.params, "capabilities")
        elif message.revision in STATELESS:
            found = member(body.params, "_meta", CLIENT_CAPABILITIES)
    elif isinstance(body, Result) and message.exchange and message.exchange.method in HANDSHAKES:
        found = member(body.result, "capabilities")
    return tuple(sorted(declared(found))) if found else ()


def used_extension(message: Message) -> Extension | None:
    """Return the known extension that a message uses: by its method, its `resultType`, or what it subscribes to.

    None if the extension does not exist in the revision, whether or not a peer declared it.
    """
    body = message.body
    if message.revision is None:
        return None
    known = known_extensions(message.revision)
    if isinstance(body, Request | Notification):
        if body.method == ENDLESS:
            wanted = member(body.params, "notifications")
            asks = wanted if isinstance(wanted, dict) else {}
            return next((it for it in known.values() if any(asks.get(name) for name in it.filters)), None)
        return extension_methods(message.revision).get(body.method, (None,))[0]
    if isinstance(body, Result) and message.exchange:
        result_type, method = member(body.result, "resultType"), message.exchange.method
        if isinstance(result_type, str):
            return next((it for it in known.values() if method in it.result_types.get(result_type, ())), None)
    return None


def undeclared_by(extension: Extension, message: Message, session: Session) -> list[str]:
    """Return the sides that have to declare the extension of a message and are known not to have done so."""
    return [side for side in extension.needs if _lacks(side, extension.id, message, session)]


def _lacks(side: str, name: str, message: Message, session: Session) -> bool:
    known = capabilities(side, message, session)
    in_session = known is session.client or known is session.server  # not in the request itself
    return known is not None and not (in_session and session.lossy) and name not in declared(known)
