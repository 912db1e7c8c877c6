"""What messages state about the two sides and about what a server offers: statements and listings.

Up to 2025-11-25 both sides introduce themselves in `initialize` and its result. Since 2026-07-28 a server does so in
the result of `server/discover`, and the `_meta` of any request or result may name its sender. A listing comes in pages:
a request without a cursor begins a new one, and the last page has no next cursor. Peers send anything: a value whose
shape differs from the specification is passed on unchanged, or left out.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from mcpspy.conversation.model import Message
from mcpspy.json_values import member
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Request, Result

HANDSHAKES = ("initialize", "server/discover")
"""The methods whose results introduce a server."""
LISTED = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""By method of a listing: the member of its results that contains the entries."""
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Statement:
    """What a message states about one side, unchanged; None for what it does not state."""

    n: int
    side: Literal["client", "server"]
    """The side that it is about: a request states facts about the client, a result about the server."""
    identity: Any
    """`clientInfo` or `serverInfo`."""
    capabilities: Any
    revision: Any
    """The revision that it requests, or agrees to."""
    instructions: Any = None
    complete: bool = True
    """It is an introduction, which replaces what was known. If False, it is only the `_meta` of a message."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing."""

    kind: str
    """tools, resources, resourceTemplates or prompts."""
    entries: list[Any] | None
    """None if the result has no array of them."""
    first: bool
    last: bool


@dataclass(slots=True)
class PagedListing:
    """The newest listing of one kind, with all of its pages so far."""

    first: int
    """The line of its first page."""
    n: int
    """The line of its last page."""
    count: int = 0
    size: int = 0
    """The size of the definitions, in bytes of compact JSON."""
    names: list[str] = field(default_factory=list, compare=False)
    """The first of their names, or their URIs if they have no names."""


def statement(message: Message) -> Statement | None:
    """Return what a message states about one side, or None if it states nothing."""
    body, method = message.body, message.method
    if method == "initialize" and isinstance(body, Request):
        return _introduction(message.n, "client", body.params)
    if method == "initialize" and isinstance(body, Result):
        return _introduction(message.n, "server", body.result)
    if message.revision not in STATELESS:
        return None
    if isinstance(body, Request):
        meta = member(body.params, "_meta")
        identity, capabilities = member(meta, f"{_META}clientInfo"), member(meta, f"{_META}clientCapabilities")
        return Statement(message.n, "client", identity, capabilities, message.revision.value, complete=False)
    if not isinstance(body, Result):
        return None
    identity, revision = member(body.result, "_meta", f"{_META}serverInfo"), message.revision.value
    if method != "server/discover":
        return Statement(message.n, "server", identity, None, revision, complete=False)
    capabilities, instructions = member(body.result, "capabilities"), member(body.result, "instructions")
    return Statement(message.n, "server", identity, capabilities, revision, instructions)


def page(message: Message) -> Page | None:
    """Return the page of a listing that a result contains; None for any other message."""
    exchange = message.exchange
    kind = LISTED.get(exchange.method) if exchange else None
    if exchange is None or kind is None or not isinstance(message.body, Result):
        return None
    request, result = exchange.request.body, message.body.result
    entries = member(result, kind)
    first = member(request.params, "cursor") is None if isinstance(request, Request) else True
    last = member(result, "nextCursor") is None
    return Page(kind, entries if isinstance(entries, list) else None, first, last)


def _introduction(n: int, side: Literal["client", "server"], told: Any) -> Statement:
    """Return what the params or the result of `initialize` state."""
    identity, capabilities = member(told, f"{side}Info"), member(told, "capabilities")
    return Statement(n, side, identity, capabilities, member(told, "protocolVersion"), member(told, "instructions"))
