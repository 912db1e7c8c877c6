"""What is known of a session before a message: what was negotiated, announced and begun.

The theory. A rule receives a message together with the history of its session before that message. Afterwards the
message is added to the history (`mcpspy.conversation.learning`). What a peer announces is valid until the peer
announces something else. What only one rule remembers is an object of a class of its own (`SessionHistory.of`). After a
gap nothing is reported as missing.

Memory is bounded: what is over is forgotten after `REMEMBERED` others. For a session that was idle while many others
were active, only what late frames need is kept (`SessionHistory.rest`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcpspy.conversation.model import Message
from mcpspy.json_values import Path, member, walk
from mcpspy.spec.dialect import Dialect
from mcpspy.spec.extensions.extension import declared
from mcpspy.spec.peer_schemas import Budget, Foreign
from mcpspy.spec.revisions import PROTOCOL_VERSION, ROUNDS, STATELESS, Revision
from mcpspy.wire.jsonrpc import Id, Request

REMEMBERED = 4096
_FORGOTTEN = 256  # entries at once: finding the oldest entry of a dict is slow until the dict is rebuilt

CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""The `_meta` key by which a request declares the capabilities of its client (2026-07-28)."""

ASKED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""By method of a request from the server: the capability that the client must have declared."""


class SessionMemory:
    """What one rule, or a few rules of one module, remember of a session; it is created on first use."""

    def __init__(self, session: "SessionHistory") -> None:
        self.session = session

    def lose(self) -> None:
        """React to lost records: what was begun may be complete."""


_Kept = TypeVar("_Kept", bound=SessionMemory)


@dataclass(slots=True)
class Operations:
    """What the operational findings of one capture need.

    These are judgements on a run, and the user has to request them.
    """

    slow: int = 10_000_000_000
    """Nanoseconds from which a call of a tool counts as slow."""
    used: bool = False
    """A tool was called, in any session."""


@dataclass(slots=True)
class Progress:
    """A request whose progress may be reported."""

    request: int
    """Its line number."""
    last: float | None = None
    """The value of the latest report."""
    t: int | None = None
    """The time of the latest report."""
    ended: int | None = None
    """The time of the response."""
    cancelled: bool = False
    task: bool = False
    """The response is a task, which goes on."""
    before: "Progress | None" = None
    """The earlier request with the same token that had no response when this one was recorded."""


@dataclass(slots=True)
class Tool:
    """A tool as it was listed last."""

    definition: dict[str, Any]
    listed: int
    """The line number of the listing."""
    schemas: dict[str, Foreign] = field(default_factory=dict)
    """The schemas that were needed, by the name of the member."""


@dataclass(slots=True)
class ToolListing:
    """The tools of a server, page by page."""

    tools: dict[str, Tool] = field(default_factory=dict)
    complete: bool = False
    """All pages were seen, and the list has not changed since."""
    begun: int = 0
    """The line number of the latest first page."""
    t: int = 0
    """The time of the latest page."""
    changed: int | None = None
    """The line number of the notification that the list changed, until all pages were seen again."""

    def now(self, name: Any, t: int) -> Tool | None:
        """Return the tool as its callers knew it at `t`, or None if that is uncertain."""
        if not isinstance(name, str) or self.changed is not None or self.t > t:
            return None
        return self.tools.get(name)


@dataclass(slots=True, eq=False)
class SessionHistory:
    """One session, before the message that is examined."""

    lossy: bool = False
    """Records are missing."""
    gaps: int = 0
    """The number of gaps that are known."""
    initialize: int | None = None
    """The line number of the first `initialize` request."""
    agreed: int | None = None
    """The time of the response to `initialize`."""
    initialized: bool = False
    discovered: bool = False
    """The result of `server/discover` lists a revision without a handshake."""
    client: dict[str, Any] | None = None
    """The capabilities that the client declared for the session."""
    server: dict[str, Any] | None = None
    malformed: dict[tuple[str, Id], int] = field(default_factory=dict)
    """By sender and id: the line number of an invalid message that has an id. A response with that id may answer it."""
    explained: dict[int, None] = field(default_factory=dict)
    """The line numbers of requests without a response that another finding already explains."""
    extensions: set[str] = field(default_factory=set)
    """In the per-request era: the extensions that the client declared in any request."""
    said: set[str] = field(default_factory=set)
    """Keys of findings that are reported once per session and were reported."""
    listing: ToolListing = field(default_factory=ToolListing)
    called: dict[tuple[int, int], Tool] = field(default_factory=dict)
    """By the line number and part of an unanswered call: the tool as listed then, if it has an `outputSchema`."""
    budget: Budget = field(default_factory=Budget)
    """The remaining cost of validation by schemas, for all sessions of the capture."""
    clients: frozenset[str] = frozenset()
    """The clients whose limits are checked (`mcpspy.spec.client_limits`)."""
    answered: int = 0
    """The time of the latest response."""
    progress: dict[tuple[str, Id], Progress] = field(default_factory=dict)
    """By the side that sent the request, and the token."""
    progress_forgotten: bool = False
    """There were so many that some are no longer known."""
    tasks: dict["Id | str", "CreatedTask"] = field(default_factory=dict)
    """Calls of tools that were answered by a task, by the id of the request and by the id of the task."""
    listens: dict[Id, "Listen"] = field(default_factory=dict)
    acknowledged: dict[Id, None] = field(default_factory=dict)
    """Acknowledgements of subscriptions whose request is not recorded yet."""
    given: "Given | None" = None
    """Over HTTP: how the session got its id."""
    over: "Over | None" = None
    """Over HTTP: how the session ended."""
    operations: Operations | None = None
    """None if operational findings were not requested."""
    memories: dict[type[SessionMemory], SessionMemory] = field(default_factory=dict)
    """By class: what single rules remember."""

    def of(self, kind: type[_Kept]) -> _Kept:
        """Return the session's object of a class of memory."""
        found = self.memories.get(kind)
        if not isinstance(found, kind):
            found = self.memories[kind] = kind(self)
        return found

    def once(self, what: str) -> bool:
        """Return whether this is reported for the first time in the session; the number of keys is limited."""
        if what in self.said or len(self.said) >= REMEMBERED:
            return False
        self.said.add(what)
        return True

    def lose(self, gaps: int) -> None:
        """Record that records were lost before the next message: nothing that was begun counts as complete."""
        if gaps != self.gaps:
            self.gaps, self.lossy = gaps, True
            self.listing.complete = False
            for memory in self.memories.values():
                memory.lose()

    def is_unsure(self, revision: Revision | None) -> bool:
        """Return whether something that requests depend on may be missing; requests of 2026-07-28 need no session."""
        return self.gaps > 0 if revision in STATELESS else self.lossy

    def rest(self) -> None:
        """Forget what only an active session needs; keep how it began, went on and ended."""
        self.listing = ToolListing()
        tables: tuple[dict[Any, Any], ...] = (
            self.called,
            self.progress,
            self.tasks,
            self.listens,
            self.acknowledged,
            self.malformed,
        )
        for table in tables:
            table.clear()
        self.memories.clear()


@dataclass(slots=True)
class Given:
    """The response to `initialize` that gave a session its id."""

    n: int
    t: int
    peer: str | None
    """The address of the client that sent the request."""


@dataclass(slots=True)
class Over:
    """The response by which a session ended."""

    n: int
    t: int
    by_client: bool
    """True for the response to a DELETE; False for a 404 to another request."""


@dataclass(slots=True)
class CreatedTask:
    """A task as it was created: a task of 2025-11-25, or of the extension of that name."""

    n: int
    """The line number of the response."""
    t: int
    task: str


@dataclass(slots=True)
class Listen:
    """A subscription (2026-07-28).

    One entry stands for two subscriptions with the same id if the first has not ended.
    """

    request: int
    """The line number of its request."""
    asked: frozenset[str]
    """The members of its filter that are set."""
    acknowledged: bool = False
    ended: bool = False
    """Its request was answered."""


def keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry at the end of a table that forgets its oldest entries."""
    table.pop(key, None)
    table[key] = value
    if len(table) > REMEMBERED:
        for old in list(table)[:_FORGOTTEN]:
            del table[old]


def other(side: str) -> str:
    """Return the other side."""
    return "server" if side == "client" else "client"


def capabilities(side: str, message: Message, session: SessionHistory) -> dict[str, Any] | None:
    """Return the capabilities of a side that apply to a message, or None if they are not known."""
    if side == "server":
        return session.server
    request = message.exchange.request if message.exchange else message
    if request.revision in STATELESS:
        found = member(request.body.value, "params", "_meta", CLIENT_CAPABILITIES)
        return found if isinstance(found, dict) else None
    return session.client


def dialect(message: Message, session: SessionHistory) -> Dialect:
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
