"""Runs: which captures belong to one client process.

A client starts one relay per server, so its activity is spread over several captures. A process is identified by its id
and its start time. If a capture has no start time, the id alone joins only captures that overlap or follow each other
immediately, because containers and systems reuse process ids.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from mcpspy.capture.records import Header

_GAP = 60  # maximum seconds from the end of a capture to the start of the next, if only the process id is known
_APART = 86_400  # maximum seconds between their starts: the time of a copied file is later than its end


class Timed(Protocol):
    """The attributes of a capture that this module needs."""

    @property
    def header(self) -> Header:
        """Its header."""

    @property
    def started(self) -> float:
        """Seconds since the epoch."""

    @property
    def ended(self) -> float:
        """When it was last written, in seconds since the epoch; infinite while it is live."""


Item = TypeVar("Item", bound=Timed)


def client_process(header: Header) -> int | None:
    """Return the process that started the relay of a stdio server: the client, or a launcher of it."""
    known = header.transport == "stdio" and header.imported is None and type(header.ppid) is int and header.ppid > 1
    return header.ppid if known else None


def runs(captures: Iterable[Item]) -> list[list[Item]]:
    """Group captures by client process.

    A run is at the place of its first capture; a capture without process is alone.
    """
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
    """Divide the captures of one process id where their times show that it was another process."""
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
