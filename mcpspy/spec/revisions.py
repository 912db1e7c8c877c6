"""The revisions of the Model Context Protocol, in the order of publication, and the traits in which they differ.

The theory. Nothing asks whether a revision is a certain one. Code asks for a trait (`message.revision in STATELESS`);
rules, traits and definitions each have a lifetime, which is written with `since`, `until`, `between`, `only` or
`without`. So a new revision has every rule, trait and definition of the one before it, until something says otherwise.

To add one: a member of `Revision` and its short name here, the traits that begin or end with it, and in `definitions`
what it changes. Pages of the specification that moved stand in `mcpspy.rules.rule`.

Which revision an exchange speaks is decided by the exchange, and nothing compares revisions as strings.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
"""The `_meta` key by which a request of the per-request era states its revision (2026-07-28, basic#_meta)."""

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""The `_meta` key by which a notification names the listen request that it belongs to (2026-07-28)."""


class Era(Enum):
    """How a revision is agreed on."""

    HANDSHAKE = "handshake"
    """By `initialize`, for a session."""
    PER_REQUEST = "per-request"
    """By each request's `_meta`."""


class Revision(Enum):
    """One published revision."""

    R2024_11_05 = "2024-11-05"
    R2025_03_26 = "2025-03-26"
    R2025_06_18 = "2025-06-18"
    R2025_11_25 = "2025-11-25"
    R2026_07_28 = "2026-07-28"

    __hash__ = object.__hash__  # each is one object; the enumeration's own hash takes a microsecond

    @property
    def era(self) -> Era:
        """How this revision is agreed on."""
        return Era.PER_REQUEST if self in STATELESS else Era.HANDSHAKE

    @classmethod
    def of(cls, name: Any) -> "Revision | None":
        """The revision called `name`, whatever type a peer gave it."""
        return _BY_NAME.get(name) if isinstance(name, str) else None


R2024_11_05 = Revision.R2024_11_05
R2025_03_26 = Revision.R2025_03_26
R2025_06_18 = Revision.R2025_06_18
R2025_11_25 = Revision.R2025_11_25
R2026_07_28 = Revision.R2026_07_28

_BY_NAME = {revision.value: revision for revision in Revision}

Lifetime = tuple[Revision, ...]
"""The revisions that have something, in the order of publication."""
_T = TypeVar("_T")


def since(first: Revision) -> Lifetime:
    """`first` and every later revision."""
    published = tuple(Revision)
    return published[published.index(first) :]


def until(last: Revision) -> Lifetime:
    """Every revision up to `last`, which is the last that has it."""
    published = tuple(Revision)
    return published[: published.index(last) + 1]


def between(first: Revision, last: Revision) -> Lifetime:
    """From `first` to `last`, both of which have it."""
    return tuple(revision for revision in since(first) if revision in until(last))


def only(revision: Revision) -> Lifetime:
    """One revision alone."""
    return (revision,)


def without(lifetime: Lifetime) -> Lifetime:
    """Every revision that is not in `lifetime`."""
    return tuple(revision for revision in Revision if revision not in lifetime)


def as_of(changes: Mapping[Revision, _T], revision: Revision) -> _T:
    """What holds in `revision`, of what is given for some revisions and holds from each of them to the next."""
    return changes[[known for known in until(revision) if known in changes][-1]]


HANDSHAKE = until(R2025_11_25)
"""`initialize` begins a session."""

STATELESS = since(R2026_07_28)
"""Each request states its revision and the client's capabilities in `_meta`; to leave its answer cancels it."""

ROUNDS = since(R2026_07_28)
"""A server sends no requests: it answers by `input_required`, and the client repeats its request with the input."""

SUBSCRIPTIONS = since(R2026_07_28)
"""A server tells of changes only in answer to `subscriptions/listen`."""

CACHING = since(R2026_07_28)
"""Results of lists and of resources say for how long and for whom they may be kept."""

BATCHES = only(R2025_03_26)
"""One frame may hold an array of messages."""

TASKS = only(R2025_11_25)
"""A request may be answered by a task, whose result is fetched later, without any extension."""

STREAMABLE_HTTP = since(R2025_03_26)
"""Over HTTP each message is a POST of its own; before, a client got all answers by one stream of SSE."""

HTTP_SESSIONS = between(R2025_03_26, R2025_11_25)
"""Over Streamable HTTP the answer to `initialize` may give the session an id."""

OUTPUT_SCHEMAS = since(R2025_06_18)
"""A tool may have an `outputSchema`, and its results `structuredContent`."""

DEFAULT_DIALECT = since(R2025_11_25)
"""A JSON Schema without `$schema` is one of 2020-12; before, nothing said which dialect it is of."""

NEWEST_HANDSHAKE = HANDSHAKE[-1]
"""What an `initialize` that asks for an unknown revision is judged by."""
