"""The revisions of the Model Context Protocol, in the order of publication, and the traits in which they differ.

The theory. No code asks for a particular revision. Code asks for a trait (`message.revision in STATELESS`). Rules,
traits and definitions each have a lifetime, which is written with `since`, `until`, `between`, `only` or `without`. So
a new revision has every rule, trait and definition of the one before it, unless something ends there.

To add a revision: add a member of `Revision` and its short name here, the traits that begin or end with it, and its
changes in `definitions`. `mcpspy.rules.rule` lists the pages of the specification that moved.

Each exchange decides which revision it uses, and no code compares revisions as strings.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
"""The `_meta` key with which a request of the per-request era names its revision (2026-07-28, basic#_meta)."""

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""The `_meta` key with which a notification names its `subscriptions/listen` request (2026-07-28)."""


class Era(Enum):
    """How peers agree on a revision."""

    HANDSHAKE = "handshake"
    """With `initialize`, for a session."""
    PER_REQUEST = "per-request"
    """With the `_meta` of each request."""


class Revision(Enum):
    """One published revision."""

    R2024_11_05 = "2024-11-05"
    R2025_03_26 = "2025-03-26"
    R2025_06_18 = "2025-06-18"
    R2025_11_25 = "2025-11-25"
    R2026_07_28 = "2026-07-28"

    __hash__ = object.__hash__  # each is one object; the hash of `Enum` takes a microsecond

    @property
    def era(self) -> Era:
        """How peers agree on this revision."""
        return Era.PER_REQUEST if self in STATELESS else Era.HANDSHAKE

    @classmethod
    def of(cls, name: Any) -> "Revision | None":
        """Return the revision called `name`. A peer may send any type."""
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
    """Return `first` and every later revision."""
    published = tuple(Revision)
    return published[published.index(first) :]


def until(last: Revision) -> Lifetime:
    """Return every revision up to and including `last`."""
    published = tuple(Revision)
    return published[: published.index(last) + 1]


def between(first: Revision, last: Revision) -> Lifetime:
    """Return the revisions from `first` to `last`, both included."""
    return tuple(revision for revision in since(first) if revision in until(last))


def only(revision: Revision) -> Lifetime:
    """Return one revision alone."""
    return (revision,)


def without(lifetime: Lifetime) -> Lifetime:
    """Return every revision that is not in `lifetime`."""
    return tuple(revision for revision in Revision if revision not in lifetime)


def as_of(changes: Mapping[Revision, _T], revision: Revision) -> _T:
    """Return the value for `revision`. Each value in `changes` is valid until the next revision there."""
    return changes[[known for known in until(revision) if known in changes][-1]]


HANDSHAKE = until(R2025_11_25)
"""`initialize` begins a session."""

STATELESS = since(R2026_07_28)
"""Each request names its revision and the client's capabilities in `_meta`. Closing the answer's stream cancels it."""

ROUNDS = since(R2026_07_28)
"""A server sends no requests: it answers with `input_required`, and the client repeats its request with the input."""

SUBSCRIPTIONS = since(R2026_07_28)
"""A server announces changes only in answer to `subscriptions/listen`."""

CACHING = since(R2026_07_28)
"""Results of lists and resources name how long and for whom they may be kept."""

BATCHES = only(R2025_03_26)
"""One frame may contain an array of messages."""

TASKS = only(R2025_11_25)
"""A request may be answered with a task, whose result is fetched later, without any extension."""

STREAMABLE_HTTP = since(R2025_03_26)
"""Over HTTP each message is a POST of its own. Before, a client received all answers on one SSE stream."""

HTTP_SESSIONS = between(R2025_03_26, R2025_11_25)
"""Over Streamable HTTP the answer to `initialize` may give the session an id."""

OUTPUT_SCHEMAS = since(R2025_06_18)
"""A tool may have an `outputSchema`, and its results `structuredContent`."""

DEFAULT_DIALECT = since(R2025_11_25)
"""A JSON Schema without `$schema` is in 2020-12. Before, its dialect was undefined."""

NEWEST_HANDSHAKE = HANDSHAKE[-1]
"""The revision by which an `initialize` with an unknown revision is judged."""
