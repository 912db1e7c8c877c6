"""The records of a capture in the order of their times.

The theory. A relay takes the time of a chunk before it forwards it, and records it after that. So of two channels a
response may stand in the file before its request, though never in time; and what depends on causes coming before their
effects needs records in the order of `t` (R-01). Those that stand near each other are put right in a window. One that
comes later than that, because its forward was blocked for long, is let through where it stands.

The order within a channel is that of the file: it is exact. What has no time of its own, a damaged line, has that of
the record before it, and stays behind it.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter

from mcpspy.capture.records import Close, End, Frame, Open, Record

SPAN = 1_000_000_000
"""Nanoseconds from the first to the last record that wait, at most."""

RECORDS = 1024
"""The most records that wait: with more of them the garbage collector takes longer than all the rest."""

BYTES = 16 << 20
"""The most bytes of frames that wait."""

_AT_ONCE = 256  # records that are let through when there are too many: one at a time takes longer
_SLACK = SPAN // 8  # nanoseconds; the same of the time
_time = itemgetter(0)


class Window:
    """Puts records in the order of their times; `feed` each, and `flush` when no more are to be waited for."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Record]] = deque()  # in the order of the times
        self._bytes = 0
        self._latest = 0  # the highest time so far
        self._newest: dict[int, int] = {}  # by channel: the time of its newest record

    def feed(self, record: Record) -> Iterable[Record]:
        """Take the next record; returns those before which no other is waited for."""
        waiting, t = self._waiting, record.t
        if t < self._latest:
            self._put(record, t)
        else:  # as nearly always
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
        """Put a record of an earlier time where it belongs, but not before what precedes it in its channel."""
        waiting = self._waiting
        if isinstance(record, Frame):
            self._bytes += len(record.raw)
        if isinstance(record, Frame | Open | Close):
            t = self._newest[record.ch] = max(t, self._newest.get(record.ch, 0))
            if isinstance(record, Close):
                del self._newest[record.ch]
        elif isinstance(record, End) and waiting:
            t = max(t, waiting[-1][0])  # whatever else it says, it is the last
        if not waiting or t >= waiting[-1][0]:
            waiting.append((t, record))
        elif t < waiting[0][0]:
            waiting.appendleft((t, record))
        else:
            waiting.insert(bisect_right(waiting, t, key=_time), (t, record))

    def flush(self) -> Iterable[Record]:
        """Return all that waits."""
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
    """Some records, and no more, in the order of their times."""
    window = Window()
    for record in records:
        if ready := window.feed(record):
            yield from ready
    yield from window.flush()
