"""What is known of a session before a message: what was agreed on, announced and begun.

The theory. A rule sees a message together with the history of its session before the message; then the message is added
to that (`mcpspy.conversation.learning`). What a peer announced counts until it says otherwise. What one rule alone
remembers is an object of its own class (`SessionHistory.of`). After a gap nothing is called missing.

Memory is bounded: what is over is forgotten after `REMEMBERED` others. Of a session that was idle while many others
were not, no more is kept than what late frames need (`SessionHistory.rest`).
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
_FORGOTTEN = 256  # at once: the oldest entry of a dict is found quickly only after it has been written anew

CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""The `_meta` key by which a request says what its client can do (2026-07-28)."""

ASKED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""By method that a server asks something of a client by: the capability that the client has to have declared."""


class SessionMemory:
    """What one rule, or a few of one module, remember of a session; it begins to when it is first asked."""

    def __init__(self, history: "SessionHistory") -> None:
        self.history = history

    def lose(self) -> None:
        """Take it that records were lost: what was begun may be complete."""


_Kept = TypeVar("_Kept", bound=SessionMemory)


@dataclass(slots=True)
class Operations:
    """What operational findings of one capture need: opinions about a run, which somebody has asked for."""

    slow: int = 10_000_000_000
    """Nanoseconds from which on a call of a tool is slow."""
    used: bool = False
    """A tool was called, in any session."""


@dataclass(slots=True)
class Progress:
    """A request that may be reported on."""

    request: int
    """Its line number."""
    last: float | None = None
    """The value of the latest report."""
    t: int | None = None
    """When that came."""
    ended: int | None = None
    """When it was answered."""
    cancelled: bool = False
    task: bool = False
    """It was answered by a task, which goes on."""
    before: "Progress | None" = None
    """The request that had the same token and was not answered when this one was recorded."""


@dataclass(slots=True)
class Tool:
    """A tool as it was listed last."""

    definition: dict[str, Any]
    listed: int
    """The line number of the listing."""
    schemas: dict[str, Foreign] = field(default_factory=dict)
    """Those that were needed: by the name of the member."""


@dataclass(slots=True)
class ToolListing:
    """The tools of a server, page by page."""

    tools: dict[str, Tool] = field(default_factory=dict)
    complete: bool = False
    """All pages were seen, and the list has not changed since."""
    begun: int = 0
    """The line number of the latest first page."""
    t: int = 0
    """When the latest page came."""
    changed: int | None = None
    """The line number of the notification that it has, until all pages were seen again."""

    def now(self, name: Any, t: int) -> Tool | None:
        """The tool as its callers knew it at `t`, None where that is uncertain."""
        if not isinstance(name, str) or self.changed is not None or self.t > t:
            return None
        return self.tools.get(name)


@dataclass(slots=True, eq=False)
class SessionHistory:
    """One session, before the message that is looked at."""

    lossy: bool = False
    """Records are missing."""
    gaps: int = 0
    """Those that are known of."""
    initialize: int | None = None
    """The line number of the first `initialize` request."""
    agreed: int | None = None
    """When `initialize` was answered."""
    initialized: bool = False
    discovered: bool = False
    """By the answer to `server/discover` the server speaks a revision without a handshake."""
    client: dict[str, Any] | None = None
    """The capabilities that the client declared for the session."""
    server: dict[str, Any] | None = None
    malformed: dict[tuple[str, Id], int] = field(default_factory=dict)
    """By sender and id: the line number of what has an id and is no message. An answer under that id may be to it."""
    explained: dict[int, None] = field(default_factory=dict)
    """The line numbers of requests of which a finding tells already why they have no answer."""
    extensions: set[str] = field(default_factory=set)
    """Of the per-request era: the extensions that the client declared in any request."""
    said: set[str] = field(default_factory=set)
    """What is to be said once a session, and was."""
    listing: ToolListing = field(default_factory=ToolListing)
    called: dict[tuple[int, int], Tool] = field(default_factory=dict)
    """By the line number and part of a call that is not answered: the tool as it was listed then, if it has an
    `outputSchema`."""
    budget: Budget = field(default_factory=Budget)
    """What judging by schemas may still cost, of all sessions of the capture."""
    clients: frozenset[str] = frozenset()
    """Those whose limits count (`mcpspy.spec.client_limits`)."""
    answered: int = 0
    """When the latest answer came."""
    progress: dict[tuple[str, Id], Progress] = field(default_factory=dict)
    """By the side that asked, and token."""
    progress_forgotten: bool = False
    """There were so many that some are not known any more."""
    tasks: dict["Id | str", "CreatedTask"] = field(default_factory=dict)
    """By the id of the request, and by the id of the task: calls of tools that were answered by a task."""
    listens: dict[Id, "Listen"] = field(default_factory=dict)
    acknowledged: dict[Id, None] = field(default_factory=dict)
    """Acknowledgements of subscriptions that are not recorded yet."""
    given: "Given | None" = None
    """Over HTTP: how the session got its id."""
    over: "Over | None" = None
    """Over HTTP: how the session ended."""
    operations: Operations | None = None
    """None where nobody has asked for operational findings."""
    memories: dict[type[SessionMemory], SessionMemory] = field(default_factory=dict)
    """By class: what single rules remember."""

    def of(self, kind: type[_Kept]) -> _Kept:
        """The object of a class of memory that belongs to the session."""
        found = self.memories.get(kind)
        if not isinstance(found, kind):
            found = self.memories[kind] = kind(self)
        return found

    def once(self, what: str) -> bool:
        """Whether this is said for the first time in the session; peers can make up only so much that is."""
        if what in self.said or len(self.said) >= REMEMBERED:
            return False
        self.said.add(what)
        return True

    def lose(self, gaps: int) -> None:
        """Take it that records were lost before the next message: nothing that was begun is complete."""
        if gaps != self.gaps:
            self.gaps, self.lossy = gaps, True
            self.listing.complete = False
            for memory in self.memories.values():
                memory.lose()

    def is_unsure(self, revision: Revision | None) -> bool:
        """Whether something may be missing that requests depend on; those of 2026-07-28 need no session."""
        return self.gaps > 0 if revision in STATELESS else self.lossy

    def rest(self) -> None:
        """Forget what only the next messages of a busy session are judged by; how it began, went on and ended stays."""
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
    """The answer to `initialize` that gave a session its id."""

    n: int
    t: int
    peer: str | None
    """The address that the client asked from."""


@dataclass(slots=True)
class Over:
    """The answer by which a session ended."""

    n: int
    t: int
    by_client: bool
    """To a DELETE; else 404 to something else."""


@dataclass(slots=True)
class CreatedTask:
    """A task as it was created: of 2025-11-25, or of the extension of that name."""

    n: int
    """The line number of the answer."""
    t: int
    task: str


@dataclass(slots=True)
class Listen:
    """A subscription (2026-07-28); one with the id of another that has not ended stands for both."""

    request: int
    """Its line number."""
    asked: frozenset[str]
    """The members of its filter that ask for something."""
    acknowledged: bool = False
    ended: bool = False
    """It was answered."""


def keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Enter something new at the end of a table that forgets its oldest."""
    table.pop(key, None)
    table[key] = value
    if len(table) > REMEMBERED:
        for old in list(table)[:_FORGOTTEN]:
            del table[old]


def other(side: str) -> str:
    """The other side."""
    return "server" if side == "client" else "client"


def capabilities(side: str, message: Message, history: SessionHistory) -> dict[str, Any] | None:
    """What a side declared that it can do, as far as it concerns a message; None where that is not known."""
    if side == "server":
        return history.server
    request = message.exchange.request if message.exchange else message
    if request.revision in STATELESS:
        found = member(request.body.value, "params", "_meta", CLIENT_CAPABILITIES)
        return found if isinstance(found, dict) else None
    return history.client


def dialect(message: Message, history: SessionHistory) -> Dialect:
    """The revision of a message, with the extensions that either side declared as far as they concern it.

    What a server notifies of unasked belongs to no request; it may use what any request has declared.
    """
    client, server = declared(capabilities("client", message, history)), declared(history.server)
    unasked = history.extensions if message.sender == "server" and message.exchange is None else ()
    return Dialect(message.revision, client.union(server, unasked))


def is_about(message: Message, request: int) -> bool:
    """Whether a notification that names what the request on line `request` has named can only be about that one.

    Clients that nothing tells apart over HTTP may use the same names; then the stream that it comes on decides.
    """
    return message.http is None or not message.session.partial or is_in_answer(message, request)


def is_in_answer(message: Message, request: int) -> bool:
    """Whether a message comes in the answer to the HTTP request that carried the request on line `request`."""
    asked = message.http.request if message.http else None
    return asked is not None and any(carried.n == request for carried in asked.carried)


def subscription(message: Message) -> Any:
    """The subscription that a notification belongs to, None where it names none."""
    return member(message.body.value, "params", "_meta", "io.modelcontextprotocol/subscriptionId")


def stated_revision(message: Message) -> Any:
    """The revision that a request states itself, whatever it is."""
    return member(message.body.value, "params", "_meta", PROTOCOL_VERSION)


def missing_meta(message: Message) -> list[str]:
    """The members that the `_meta` of a request of 2026-07-28 must have and has not; of anything else none."""
    if message.revision not in STATELESS or not isinstance(message.body, Request):
        return []
    if message.sender == "server" or message.body.method == "server/discover":
        return []
    meta = member(message.body.params, "_meta")
    return [name for name in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if member(meta, name) is None]


def becomes_round(message: Message) -> bool:
    """Whether a server sends a request for what it asks by `input_required` in 2026-07-28."""
    if message.revision not in ROUNDS or not isinstance(message.body, Request):
        return False
    return message.sender == "server" and message.body.method in ASKED


def annotated(schema: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The properties with `x-mcp-header`, those inside of properties too, with their paths in the schema."""
    for path, inner in walk(schema):
        of_argument = path and len(path) % 2 == 0 and all(step == "properties" for step in path[::2])
        if of_argument and isinstance(inner, dict) and "x-mcp-header" in inner:
            yield tuple(path), inner
