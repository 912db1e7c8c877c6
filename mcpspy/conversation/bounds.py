"""How much is remembered of a capture, so that memory does not grow with its length.

A capture may hold a session that runs for weeks, and any number of HTTP sessions. What is over is needed only by frames
that come late. So each table forgets its oldest entries after a number that no orderly session reaches. Of a session
that was idle while many others were active, only what late frames need is kept (`Recent`).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

SESSIONS = 256
"""The sessions of a capture that are known in full; on stdio, those of the last processes."""
RESTING = 4096
"""The sessions that are known at all, apart from requests without a response."""
EXCHANGES = 8192
"""The answered or refused exchanges of a session, its progress tokens, subscriptions, tasks, and events with an id.

4096 for each direction, if both sides send as many.
"""
FACTS = 4096
"""The entries of each table of facts that rules use: tools, requests with progress, subscriptions, tasks, …"""
REMEMBERED = 4096
"""The bytes of a frame that a rule may keep until the end of its session."""
ROUNDS = 1024
"""The methods and names whose `input_required` responses are known (2026-07-28)."""
SAME_ROUNDS = 32
"""The `input_required` responses with the same method and name."""
UNANSWERED = 4096
"""The complete HTTP requests without a response."""
NAMES = 16
"""The names by which one HTTP session is found; a server may invent any number."""
ENDPOINTS = 64
"""The paths of HTTP+SSE for POST."""
REPEATED_EVENTS = 100
"""The events of a stream that reuse an id."""
HELD = 8192
"""The held frames whose release may still come."""
WAITS = 64
"""The requests, `input_required` responses and held frames for which the time of waiting is measured at once."""
STALE = 1000
"""The messages after which a request without a response no longer counts as waited for."""
ASKED_CALLS = 100_000
"""The calls for which the time of asking a person is known."""
CALLED_TOOLS = 1000
"""The tools whose calls are counted in a summary."""
SPELLS = 1000
"""The times between pauses of a capture that are distinguished."""
EXTENSIONS = 100
"""The extensions of a capture that are distinguished."""
EARLY = 100
"""The requests before the handshake that are judged when it is known."""
ASKED_SPANS = 64
"""The times of asking a person that are left out of the duration of calls."""
ACTS = 1 << 16
"""The frames that a gate acted on, for findings that this explains."""
GATES = 4096
"""The gates whose actions are known."""

FORGOTTEN = 1024
"""The entries of a table that are forgotten at once: finding the oldest one is slow in a dict that lost many."""
FORGOTTEN_FACTS = 256
"""The same for a table of facts."""


def forget(table: dict[Any, Any], entries: int = 0) -> None:
    """Make room in a table: remove its oldest entries, `FORGOTTEN` unless `entries` is another number."""
    for old in list(table)[: entries or FORGOTTEN]:
        del table[old]


def keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry at the end of a table of facts that forgets its oldest entries."""
    table.pop(key, None)
    table[key] = value
    if len(table) > FACTS:
        forget(table, FORGOTTEN_FACTS)


K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Entries by their last use. `rest` is called with an entry that is reduced, `drop` with one that is removed."""

    def __init__(self, rest: Callable[[K, V], None], drop: Callable[[K, V], None]) -> None:
        self._rest, self._drop = rest, drop
        self._active: OrderedDict[K, V] = OrderedDict()
        self._idle: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._active) + len(self._idle)

    def __iter__(self) -> Iterator[K]:
        """Yield the keys: first those at rest, then the active ones, each group in the order of the latest use."""
        yield from self._idle
        yield from self._active

    def values(self) -> Iterator[V]:
        """Yield the values, in the same order."""
        yield from self._idle.values()
        yield from self._active.values()

    def use(self, key: K) -> V | None:
        """Return the value of a key and mark it as the latest that was used; None if the key is unknown."""
        found = self._active.get(key)
        if found is not None:
            self._active.move_to_end(key)
            return found
        found = self._idle.pop(key, None)
        if found is not None:
            self.add(key, found)
        return found

    def add(self, key: K, value: V) -> None:
        """Add a new entry, or one that was at rest."""
        self._active[key] = value
        if len(self._active) > SESSIONS:
            old, shrinks = self._active.popitem(last=False)
            self._rest(old, shrinks)
            self._idle[old] = shrinks
            if len(self) > RESTING:
                self._drop(*self._idle.popitem(last=False))

    def finish(self, key: K) -> None:
        """Record that an entry will not be used much longer: it is the next to rest."""
        if key in self._active:
            self._active.move_to_end(key, last=False)
