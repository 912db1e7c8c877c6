"""Many exchanges, each known as a whole, split into steps and recorded in the order of time.

A file lists exchanges by their beginning or by their end, and they overlap: an event stream is open while other
requests run. Each exchange is a generator that yields the time of its next step; the steps of all exchanges are taken
by time. Two passes keep memory small. The first pass notes the position and the start of each exchange. The second pass
reads an exchange again at its start time, and keeps it until its last step.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, BinaryIO

from mcpspy.errors import CaptureError
from mcpspy.importers.captures import Account
from mcpspy.text import plural

Steps = Iterator[int]
"""The remaining steps of an exchange: each value is the time of the next step, taken by the next call."""
Span = tuple[int, int]
"""A position in a file: offset and size in bytes."""

LARGEST = 1 << 28
"""Maximum size of one exchange in bytes; a larger one is left out."""
HELD = 1 << 28
"""Bytes of exchanges in progress at once; beyond that, one is finished early."""
OBJECTS = 1 << 13
"""Overhead of an exchange in bytes, which is most of the memory of a small one."""
VALUES = 1 << 20
"""The most values of one exchange or line: `{}` takes 3 bytes of a file, but 100 in memory."""
LOST = 100_000
"""The most damaged exchanges or lines of a file: it may consist of millions of `{}`."""
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What is raised for values whose shape differs from the expected one."""


class TooManyValues(ValueError):
    """A text of JSON or a flow has more values than are parsed; the text says so."""


class Torn(Exception):
    """The file ends early, or cannot be parsed from here on; the text says where."""


def lose(account: Account, error: Exception) -> None:
    """Count the exchange or line that was just read as damaged. Raises Torn if the file has too many of them."""
    account.lost += 1
    if isinstance(error, TooManyValues):
        account.left_out = account.left_out or f"{account.unit} {account.read} {error}"
    if account.lost > LOST:
        raise Torn(f"{plural(account.lost, 'damaged ' + account.unit)}, so the rest is not read")


def play(
    file: BinaryIO,
    spans: Iterable[Span],
    parse: Callable[[bytes], Any],
    start: Callable[[Any], Steps | None],
    account: Account,
) -> None:
    """Record the exchanges of a file in the order of their steps.

    `parse` parses one exchange. An exception from it or from the first step means that the exchange is damaged. `start`
    returns its steps, or None if it is ignored. Raises CaptureError if the file changes meanwhile.
    """

    def begin(offset: int, size: int) -> tuple[int, Steps] | None:
        file.seek(offset)
        steps = start(parse(file.read(size)))
        return None if steps is None else (next(steps), steps)

    found: list[tuple[int, int, int]] = []
    try:
        for offset, size in spans:
            account.read += 1
            account.advance(size // 2)  # finding it is half of the work, recording it the other half
            try:
                begun = begin(offset, size) if size <= LARGEST else None
                account.lost += size > LARGEST
            except DAMAGED as error:
                lose(account, error)
                continue
            if begun:
                found.append((begun[0], offset, size))
            else:
                account.advance(size // 2)
    except Torn as torn:
        account.fault = str(torn)

    waiting: list[tuple[int, int, int, Steps]] = []  # by time; at the same time, an exchange is not interrupted
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
    """Take the first step that waits, or all remaining ones of its exchange; return the number of bytes released."""
    _, offset, weight, steps = heappop(waiting)
    for wall in steps:
        if not to_the_end:
            heappush(waiting, (wall, offset, weight, steps))
            return 0
    return weight
