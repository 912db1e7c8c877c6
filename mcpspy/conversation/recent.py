"""A table of the entries that were used last: some in full, more at rest, the others dropped.

A capture may contain any number of HTTP sessions. What is known of a session is used while its frames come. For
sessions that were idle while many others were active, only what late frames need is kept. Every step takes the same
time, however many entries there are.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mcpspy.conversation import bounds

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
        if len(self._active) > bounds.SESSIONS:
            old, shrinks = self._active.popitem(last=False)
            self._rest(old, shrinks)
            self._idle[old] = shrinks
            if len(self) > bounds.RESTING:
                self._drop(*self._idle.popitem(last=False))

    def finish(self, key: K) -> None:
        """Record that an entry will not be used much longer: it is the next to rest."""
        if key in self._active:
            self._active.move_to_end(key, last=False)
