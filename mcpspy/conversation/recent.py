"""A table that keeps what was used last: some entries in full, more of them at rest, and none beyond that.

A capture may hold any number of HTTP sessions. What is known of one is used as long as its frames come; of those that
were idle while many others were used, only what late frames need is kept. Every step takes the same time, however many
entries there are.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

FULL = 256
"""Entries that are kept in full."""
MOST = 4096
"""Entries that are kept at all."""

FORGOTTEN = 1024
"""Entries of a table that are forgotten at once: finding the oldest one takes long in a dict that lost many."""

K = TypeVar("K")
V = TypeVar("V")


def forget(table: dict[Any, Any]) -> None:
    """Make room in a table: its oldest entries are the first to go."""
    for old in list(table)[:FORGOTTEN]:
        del table[old]


class Recent(Generic[K, V]):
    """Entries by when they were used. `rest` is called with one that shrinks, `drop` with one that goes."""

    def __init__(self, rest: Callable[[K, V], None], drop: Callable[[K, V], None]) -> None:
        self._rest, self._drop = rest, drop
        self._active: OrderedDict[K, V] = OrderedDict()
        self._idle: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._active) + len(self._idle)

    def __iter__(self) -> Iterator[K]:
        """The keys; those at rest come first, and then each in the order of its latest use."""
        yield from self._idle
        yield from self._active

    def values(self) -> Iterator[V]:
        """The values, in the same order."""
        yield from self._idle.values()
        yield from self._active.values()

    def get(self, key: K) -> V | None:
        """The value of a key, which is not used by that; None where it is not here."""
        return self._active.get(key) or self._idle.get(key)

    def use(self, key: K) -> V | None:
        """The value of a key, which is now the latest that was used; None where it is not here."""
        found = self._active.get(key)
        if found is not None:
            self._active.move_to_end(key)
            return found
        found = self._idle.pop(key, None)
        if found is not None:
            self.add(key, found)
        return found

    def add(self, key: K, value: V) -> None:
        """Enter something new, or what was at rest."""
        self._active[key] = value
        if len(self._active) > FULL:
            old, shrinks = self._active.popitem(last=False)
            self._rest(old, shrinks)
            self._idle[old] = shrinks
            if len(self) > MOST:
                self._drop(*self._idle.popitem(last=False))

    def finish(self, key: K) -> None:
        """Take it that an entry will not be used much longer: it is the next to rest."""
        if key in self._active:
            self._active.move_to_end(key, last=False)
