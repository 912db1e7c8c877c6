"""A capture on the disk as telemetry that a collector has not accepted yet.

Only what was read last is in memory. While the collector accepts nothing, nothing more is read, so an absent collector
costs no memory (T-05).
"""

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from mcpspy.capture.reader import Capture, FollowedRecords
from mcpspy.conversation.model import Exchange
from mcpspy.errors import CaptureError
from mcpspy.telemetry.captured import CapturedTelemetry, LogEntry, Measure, Telemetry
from mcpspy.telemetry.checkpoint import Checkpoint, file_of, load, save
from mcpspy.telemetry.spans import ExchangeSpan, Value, start_of

_CHUNK = 1 << 16  # bytes of each capture that are in memory while others have their turn
OUT_OF_ORDER = 4096
"""Lines by which a record may be late: so many spans are remembered one by one."""


class Batch(NamedTuple):
    """Telemetry that is sent together."""

    spans: list[ExchangeSpan]
    logs: list[LogEntry]
    measures: list[Measure]

    @property
    def size(self) -> int:
        """The total number of entries."""
        return len(self.spans) + len(self.logs) + len(self.measures)


class FollowedTelemetry:
    """The telemetry of one capture that is not sent yet.

    Call `begin`, then `take` a batch, send it and `acknowledge` it, until the capture has `ended`. `folder` is the
    directory of the checkpoints. Raises CaptureError if the capture cannot be read.
    """

    def __init__(
        self,
        path: str,
        folder: str,
        redact: Callable[[str], str],
        contents: Callable[[Exchange], dict[str, Value]] | None,
    ) -> None:
        self.path = path
        self.header = Capture(path).header
        self.started = start_of(self.header)
        """Nanoseconds since the epoch."""
        self.ended = False
        self.place = file_of(folder, self.header.id)
        """The file of its checkpoint."""
        self._checkpoint = Checkpoint()
        self._telemetry = CapturedTelemetry(self.header, redact, contents)
        self._records: FollowedRecords | None = None
        self._stream: Iterator[Telemetry] = iter(())
        self._highest = self._logs = 0

    def begin(self) -> bool:
        """Open the capture and its checkpoint; return False if all of it was accepted and it has not grown since."""
        self._checkpoint = load(self.place)
        if self._checkpoint.size is not None and self._checkpoint.size == _size(self.path):
            return False
        self._records = FollowedRecords(self.path, _CHUNK)
        return True

    def resource(self) -> dict[str, Value]:
        """Return the attributes of the resource that the telemetry is about."""
        return self._telemetry.resource()

    def take(self, most: int) -> Batch:
        """Return at most `most` entries that were not taken before; an empty batch if there is nothing new."""
        batch = Batch([], [], [])
        for item in islice(self._new(), most):
            if isinstance(item, ExchangeSpan):
                batch.spans.append(item)
            elif isinstance(item, LogEntry):
                batch.logs.append(item)
            else:
                batch.measures.append(item)
        return batch

    def acknowledge(self, batch: Batch) -> None:
        """Record that the collector has accepted a batch. Raises UsageError if that cannot be stored."""
        places = [(span.n, span.part) for span in batch.spans]
        waiting = self._telemetry.waiting(self._checkpoint.below - OUT_OF_ORDER)
        self._checkpoint.take(places, waiting, self._highest - OUT_OF_ORDER)
        self._checkpoint.logs += len(batch.logs)
        if self.ended:
            self._checkpoint.size = _size(self.path)
        save(self.place, self._checkpoint)

    def close(self) -> None:
        """Stop reading."""
        if self._records:
            self._records.close()

    def _new(self) -> Iterator[Telemetry]:
        """Yield what is in the capture by now and was not accepted yet."""
        records = self._records
        while records and not self.ended:
            item = next(self._stream, None)
            if item is None:
                if records.ended:
                    self.ended = True
                    return
                self._stream = self._read(records)
                item = next(self._stream, None)
                if item is None and not records.ended:
                    return
            if item is not None and self._is_new(item):
                yield item

    def _read(self, records: FollowedRecords) -> Iterator[Telemetry]:
        yield from self._telemetry.feed(records.poll())
        if records.ended:
            yield from self._telemetry.end()

    def _is_new(self, item: Telemetry) -> bool:
        if isinstance(item, ExchangeSpan):
            self._highest = max(self._highest, item.n)
            return not self._checkpoint.has((item.n, item.part))
        if isinstance(item, LogEntry):
            self._logs += 1
            return self._logs > self._checkpoint.logs
        return True


def _size(path: str) -> int | None:
    """Return the size of all files of a capture in bytes; None if it was deleted."""
    try:
        return sum(map(os.path.getsize, Capture(path).paths))
    except (OSError, CaptureError):
        return None
