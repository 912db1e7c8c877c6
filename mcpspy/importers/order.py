"""Many exchanges, each known as a whole, taken apart and put in the order in which things happened.

A file lists exchanges by their beginning or by their end, and they overlap: an event stream is open while requests come
and go. What each has to record is a generator that yields the time of its next step; the steps of all are taken by
time. Two passes keep memory small: the first notes where each exchange lies and when it began, the second reads it
again when its time has come, and holds it until its last step.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, BinaryIO

from mcpspy.errors import CaptureError
from mcpspy.importers.captures import Account

Steps = Iterator[int]
"""What is left to do of an exchange: each item is the time of the next step, which is taken when one more is asked."""
Span = tuple[int, int]
"""Where something lies in a file: offset and size in bytes."""

LARGEST = 1 << 28
"""Bytes of one exchange; a larger one is left out."""
HELD = 1 << 28
"""Bytes of exchanges that are under way at once; beyond, one is finished ahead of its time."""
OBJECTS = 1 << 13
"""Bytes that an exchange takes besides, which is most of a small one."""
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What is raised for values of another shape than those that are read."""


class Torn(Exception):
    """The file breaks off, or cannot be followed from here; its text says where."""


def play(
    file: BinaryIO,
    spans: Iterable[Span],
    parse: Callable[[bytes], Any],
    start: Callable[[Any], Steps | None],
    account: Account,
) -> None:
    """Record the exchanges of a file in the order of their steps.

    `parse` reads one, and whatever it or the first step raises for what is none means that it is damaged; `start`
    gives its steps, None for one that is of no interest. Raises CaptureError where the file changes meanwhile.
    """

    def begin(offset: int, size: int) -> tuple[int, Steps] | None:
        file.seek(offset)
        steps = start(parse(file.read(size)))
        return None if steps is None else (next(steps), steps)

    found: list[tuple[int, int, int]] = []
    try:
        for offset, size in spans:
            account.read += 1
            account.advance(size // 2)  # to find it is half of the work, to record it the other
            try:
                begun = begin(offset, size) if size <= LARGEST else None
                account.lost += size > LARGEST
            except DAMAGED:
                account.lost += 1
                continue
            if begun:
                found.append((begun[0], offset, size))
            else:
                account.advance(size // 2)
    except Torn as torn:
        account.fault = str(torn)

    waiting: list[tuple[int, int, int, Steps]] = []  # by time; of one time, an exchange is not interrupted
    held = 0
    for wall, offset, size in sorted(found):
        while waiting and (waiting[0][0] < wall or held > HELD):
            held -= _step(waiting, to_the_end=held > HELD)
        try:
            begun = begin(offset, size)
        except DAMAGED:
            raise CaptureError("the file was changed while it was read") from None
        account.advance(size // 2)
        if begun:
            weight = size + OBJECTS
            held += weight
            heappush(waiting, (begun[0], offset, weight, begun[1]))
    while waiting:
        _step(waiting, to_the_end=False)


def _step(waiting: list[tuple[int, int, int, Steps]], *, to_the_end: bool) -> int:
    """Take the first step that waits, or all that are left of its exchange; returns the bytes that are free by it."""
    _, offset, weight, steps = heappop(waiting)
    for wall in steps:
        if not to_the_end:
            heappush(waiting, (wall, offset, weight, steps))
            return 0
    return weight
