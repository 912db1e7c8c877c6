"""Runs: which captures belong to one client process.

The theory. A client starts one relay for each of its servers, so what it did is in several captures. A process is known
by its number and by when it began; where a capture does not have the latter, the number alone joins only captures that
overlap or follow each other at once, because containers and systems use numbers again.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from mcpspy.capture.records import Header

_GAP = 60  # seconds from the end of a capture to the start of the next of a process of which only the number is known
_APART = 86_400  # the same between their starts: the time of a file that was copied is later than its end


class Timed(Protocol):
    """A capture as far as this module looks at it."""

    @property
    def header(self) -> Header:
        """Its header."""

    @property
    def started(self) -> float:
        """Seconds since the epoch."""

    @property
    def ended(self) -> float:
        """When it was written last, in seconds since the epoch; infinite while it is live."""


Item = TypeVar("Item", bound=Timed)


def client_process(header: Header) -> int | None:
    """The process that started the relay of a stdio server: its client, or what that starts its servers by."""
    known = header.transport == "stdio" and header.imported is None and type(header.ppid) is int and header.ppid > 1
    return header.ppid if known else None


def runs(captures: Iterable[Item]) -> list[list[Item]]:
    """The captures by client process: each run is where its first capture is; without such a process it is alone."""
    items = list(captures)
    by_process: dict[tuple[int, int | None], list[int]] = {}
    for place, item in enumerate(items):
        if process := client_process(item.header):
            by_process.setdefault((process, item.header.client_start), []).append(place)
    run_of = list(range(len(items)))
    for (_, began), places in by_process.items():
        divided = [places] if began is not None or len(places) == 1 else _divided(items, places)
        for together in divided:
            for place in together:
                run_of[place] = together[0]
    found: dict[int, list[Item]] = {}
    for place, item in enumerate(items):
        found.setdefault(run_of[place], []).append(item)
    return list(found.values())


def _divided(items: Sequence[Timed], places: list[int]) -> list[list[int]]:
    """Captures of processes with one number, divided where the times tell that it was another process."""
    found: list[list[int]] = []
    latest = started = 0.0
    for place in sorted(places, key=lambda place: items[place].started):
        item = items[place]
        if not found or item.started > latest + _GAP or item.started > started + _APART:
            found.append([])
            latest = 0.0
        found[-1].append(place)
        latest, started = max(latest, item.ended), item.started
    return found
