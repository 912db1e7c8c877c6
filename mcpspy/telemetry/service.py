"""From captures to a collector: what is new is taken of each, sent in batches, and acknowledged.

The loop reads no more while a batch is not taken, and tries again after pauses that grow. The captures themselves are
the queue: nothing is lost while the collector is away, unless captures are deleted meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from mcpspy.errors import CaptureError
from mcpspy.telemetry.followed import Batch, FollowedTelemetry
from mcpspy.telemetry.span import Value

AT_ONCE = 512
"""Spans, log entries and measures of one capture in a batch."""
_POLL = 0.25  # seconds between looks at captures that had nothing new
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before a batch that was not taken is sent again; the last goes on."""


class Receiver(Protocol):
    """What takes telemetry."""

    def send(self, batch: Batch, resource: dict[str, Value], started: int) -> bool:
        """Send the spans and logs of a batch; returns whether all of them were taken."""

    def measure(self, batch: Batch, resource: dict[str, Value]) -> None:
        """Count what was measured in a batch that was taken."""


class TelemetryService:
    """Sends the telemetry of captures. `wait` pauses for some seconds, and tells whether it is time to end.

    `report` gets one sentence when the collector cannot be reached, and one when it can be again.
    """

    def __init__(self, receiver: Receiver, wait: Callable[[float], bool], report: Callable[[str], None]) -> None:
        self._receiver = receiver
        self._wait = wait
        self._report = report
        self.spans = self.logs = 0
        """How many were taken."""

    def run(self, found: Callable[[], Iterable[FollowedTelemetry]], *, follow: bool) -> bool:
        """Send what captures have. `found` gives those that are new each time; with `follow` until it is time to end.

        Returns whether all was sent.
        """
        captures: list[FollowedTelemetry] = []
        try:
            while True:
                captures += found()
                moved = False
                for capture in list(captures):
                    batch = capture.take(AT_ONCE)
                    if any(batch) and not self._deliver(capture, batch, patient=follow):
                        return False
                    if any(batch) or capture.ended:
                        capture.acknowledge(batch)
                        moved = True
                    if capture.ended:
                        capture.close()
                        captures.remove(capture)
                if not moved and (not follow or self._wait(_POLL)):
                    return True
        finally:
            for capture in captures:
                capture.close()

    def _deliver(self, capture: FollowedTelemetry, batch: Batch, *, patient: bool) -> bool:
        """Send a batch; a `patient` one until it is taken, or it is time to end. Returns whether it was taken."""
        resource = capture.resource()
        attempts = 0
        while not self._receiver.send(batch, resource, capture.started):
            if not patient:
                return False
            if not attempts:
                self._report("the collector takes no telemetry; trying again until it does")
            if self._wait(_PAUSES[min(attempts, len(_PAUSES) - 1)]):
                return False
            attempts += 1
        if attempts:
            self._report("the collector takes telemetry again")
        self._receiver.measure(batch, resource)
        self.spans += len(batch.spans)
        self.logs += len(batch.logs)
        return True


def followed(
    paths: Iterable[str], open_capture: Callable[[str], FollowedTelemetry], known: set[str]
) -> Iterator[FollowedTelemetry]:
    """Captures at `paths` that are not `known` yet; those of which all was sent before are left out."""
    for path in paths:
        if path in known:
            continue
        known.add(path)
        with suppress(CaptureError):  # a file that is no capture yet, or was deleted
            capture = open_capture(path)
            if capture.complete:
                capture.close()
            else:
                yield capture
