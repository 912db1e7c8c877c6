"""The facts that are remembered about a session, each as plain data; `Session` in `conversation/model.py` has them."""

from dataclasses import dataclass, field
from typing import Any

from mcpspy.spec.peer_schemas import Foreign
from mcpspy.wire.jsonrpc import Id


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
    called: Any = None
    """For a tool with `_meta`: the first `Exchange` in which it was called with success, or else the latest one."""


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


@dataclass(slots=True)
class Given:
    """The response to `initialize` that gave a session its id."""

    n: int
    t: int
    peer: str | None
    """The address of the client that sent the request."""
    hidden: bool = False
    """The client is in a browser, and the response does not let it read the id."""


@dataclass(slots=True)
class Over:
    """The response by which a session ended."""

    n: int
    t: int
    by_client: bool
    """True for the response to a DELETE; False for a 404 to a request."""
    peer: str | None
    """The address of the client."""


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


@dataclass(slots=True)
class Round:
    """A response by which a server requests input before it continues (2026-07-28)."""

    answer: int
    """The line number of the result."""
    t: int
    id: Id
    """The id of the request."""
    key: int
    """The hash of its params."""
    state: int | None
    """The hash of its `requestState`."""
    asked: frozenset[str]
    """The keys of its `inputRequests`."""
    continued: bool = False
    """A request continued it."""


@dataclass(slots=True)
class Delivery:
    """An SSE event that has an id."""

    n: int
    data: int
    """A hash of its data."""
    stream: int
    """The channel of the request that the stream belongs to, resumed or not."""
