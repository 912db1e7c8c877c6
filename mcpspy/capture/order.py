"""Sort the records of a capture by time.

A relay reads the clock for a chunk before it forwards the chunk, and records it afterwards. So with two channels a
response may precede its request in the file, although its time is later. Code that expects causes before their effects
needs records in the order of `t` (R-01). Records that are close to each other are sorted in a window. A record that
comes too late for the window, because forwarding was blocked for long, is returned at its place in the file.

Within a channel the order of the file is exact and kept. A damaged line has no time of its own. It gets the time of the
record before it, and stays after that record.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter

from mcpspy.capture.records import Close, End, Frame, Open, Record

SPAN = 1_000_000_000
"""Maximum time between the first and the last waiting record, in nanoseconds."""

RECORDS = 1024
"""Maximum number of waiting records: with more, the garbage collector takes longer than everything else."""

BYTES = 16 << 20
"""Maximum size of waiting frames, in bytes."""

_AT_ONCE = 256  # records returned together when too many wait: one at a time takes longer
_SLACK = SPAN // 8  # nanoseconds; the same for the time span
_time = itemgetter(0)


class Window:
    """Sorts records by time. Pass each record to `feed`, and call `flush` after the last one."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Record]] = deque()  # sorted by time
        self._bytes = 0
        self._latest = 0  # the latest time so far
        self._newest: dict[int, int] = {}  # channel -> time of its newest record

    def feed(self, record: Record) -> Iterable[Record]:
        """Add the next record. Return the records that no longer have to wait."""
        waiting, t = self._waiting, record.t
        if t < self._latest:
            self._put(record, t)
        else:  # the usual case
            self._latest = t
            waiting.append((t, record))
            if type(record) is Frame:
                self._bytes += len(record.raw)
                self._newest[record.ch] = t
            elif type(record) is Open:
                self._newest[record.ch] = t
            elif type(record) is Close:
                self._newest.pop(record.ch, None)
        if len(waiting) <= RECORDS and self._latest - waiting[0][0] <= SPAN and self._bytes <= BYTES:
            return ()
        return self._ready()

    def _put(self, record: Record, t: int) -> None:
        """Insert a record with an earlier time at its place, but not before earlier records of its channel."""
        waiting = self._waiting
        if isinstance(record, Frame):
            self._bytes += len(record.raw)
        if isinstance(record, Frame | Open | Close):
            t = self._newest[record.ch] = max(t, self._newest.get(record.ch, 0))
            if isinstance(record, Close):
                del self._newest[record.ch]
        elif isinstance(record, End) and waiting:
            t = max(t, waiting[-1][0])  # the end is always the last record
        if not waiting or t >= waiting[-1][0]:
            waiting.append((t, record))
        elif t < waiting[0][0]:
            waiting.appendleft((t, record))
        else:
            waiting.insert(bisect_right(waiting, t, key=_time), (t, record))

    def flush(self) -> Iterable[Record]:
        """Return all waiting records."""
        found = [record for _, record in self._waiting]
        self._waiting.clear()
        self._bytes = 0
        return found

    def _ready(self) -> list[Record]:
        waiting = self._waiting
        oldest = waiting[-1][0] - SPAN + _SLACK
        surplus = len(waiting) - RECORDS + _AT_ONCE if len(waiting) > RECORDS else 0
        found = [waiting.popleft()[1] for _ in range(surplus)]
        self._bytes -= sum([len(record.raw) for record in found if type(record) is Frame])
        while waiting and (waiting[0][0] < oldest or self._bytes > BYTES):
            record = waiting.popleft()[1]
            if type(record) is Frame:
                self._bytes -= len(record.raw)
            found.append(record)
        return found


def ordered(records: Iterable[Record]) -> Iterator[Record]:
    """Yield a complete set of records, sorted by time."""
    window = Window()
    for record in records:
        if ready := window.feed(record):
            yield from ready
    yield from window.flush()
