"""A capture on the disk as telemetry that a collector has not taken yet.

Nothing is kept in memory but what was read last: as long as the collector takes nothing, nothing more is read, so an
absent collector costs no memory (T-05).
"""

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from mcpspy.capture.reader import Capture, FollowedRecords
from mcpspy.conversation.model import Exchange
from mcpspy.telemetry.captured import CapturedTelemetry, Telemetry
from mcpspy.telemetry.checkpoint import Checkpoint, load, save
from mcpspy.telemetry.logs import LogEntry
from mcpspy.telemetry.measures import Measure
from mcpspy.telemetry.resource import resource_attributes, start_of
from mcpspy.telemetry.span import ExchangeSpan, Value

_OUT_OF_ORDER = 4096
"""Lines by which a record may come too late: as many spans are remembered one by one."""


class Batch(NamedTuple):
    """Telemetry that is to be sent together."""

    spans: list[ExchangeSpan]
    logs: list[LogEntry]
    measures: list[Measure]


class FollowedTelemetry:
    """What is to be sent of one capture: `take` a batch, send it, then `acknowledge` it; until it has `ended`.

    `folder` is the directory of the checkpoints. Raises CaptureError where the capture cannot be read.
    """

    def __init__(
        self,
        path: str,
        folder: str,
        redact: Callable[[str], str],
        contents: Callable[[Exchange], dict[str, Value]],
    ) -> None:
        self.path = path
        self.header = Capture(path).header
        self.started = start_of(self.header)
        """Nanoseconds since the epoch."""
        self.ended = False
        self._place = os.path.join(folder, f"{self.header.id}.json")
        self._checkpoint: Checkpoint = load(self._place)
        self._telemetry = CapturedTelemetry(self.header, redact, contents)
        self._records = FollowedRecords(path)
        self._stream: Iterator[Telemetry] = iter(())
        self._highest = self._logs = 0

    @property
    def complete(self) -> bool:
        """Whether all of the capture was taken before, and it has not grown since."""
        return self._checkpoint.size == os.path.getsize(self.path)

    def resource(self) -> dict[str, Value]:
        """The attributes of whoever the telemetry is about."""
        return resource_attributes(self.header, self._telemetry.client)

    def take(self, most: int) -> Batch:
        """At most so many items that were not taken before; none if the capture has nothing more by now."""
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
        """The collector has taken a batch. Raises UsageError where that cannot be noted."""
        places = [(span.n, span.part) for span in batch.spans]
        oldest = self._telemetry.oldest
        below = self._highest - _OUT_OF_ORDER
        self._checkpoint.take(places, below if oldest is None else min(oldest, below))
        self._checkpoint.logs += len(batch.logs)
        if self.ended:
            self._checkpoint.size = os.path.getsize(self.path)
        save(self._place, self._checkpoint)

    def close(self) -> None:
        """Read no more."""
        self._records.close()

    def _new(self) -> Iterator[Telemetry]:
        """What the capture has by now and the collector has not."""
        while not self.ended:
            item = next(self._stream, None)
            if item is None:
                if self._records.ended:
                    self.ended = True
                    return
                self._stream = self._read()
                item = next(self._stream, None)
                if item is None and not self._records.ended:
                    return
            if item is not None and self._is_new(item):
                yield item

    def _read(self) -> Iterator[Telemetry]:
        yield from self._telemetry.feed(self._records.poll())
        if self._records.ended:
            yield from self._telemetry.end()

    def _is_new(self, item: Telemetry) -> bool:
        if isinstance(item, ExchangeSpan):
            self._highest = max(self._highest, item.n)
            return not self._checkpoint.has(item.n, item.part)
        if isinstance(item, LogEntry):
            self._logs += 1
            return self._logs > self._checkpoint.logs
        return True
