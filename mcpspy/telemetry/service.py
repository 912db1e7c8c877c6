"""From captures to a collector: what is new is taken of each, sent in batches, and acknowledged.

The loop reads no more while a batch is not taken, and tries again after pauses that grow. The captures themselves are
the queue: nothing is lost while the collector is away, unless captures are deleted meanwhile.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from mcpspy.errors import CaptureError
from mcpspy.telemetry.checkpoint import Claims
from mcpspy.telemetry.followed import Batch, FollowedTelemetry
from mcpspy.telemetry.span import Value

AT_ONCE = 512
"""Spans, log entries and measures of one capture in a batch."""
_POLL = 0.25  # seconds until the next look at captures that gave all that they had
_BUSY = 16
"""Captures that are caught up with at the same time; live ones stay open besides."""
_AGAIN = 120
"""Looks after which the captures are tried again that another process sends."""
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before a batch that was not taken is sent again; the last goes on."""


class Receiver(Protocol):
    """What takes telemetry."""

    def send(self, batch: Batch, resource: dict[str, Value], started: int) -> str | None:
        """Send the spans and logs of a batch; returns why they were not taken, None if they were."""

    def measure(self, batch: Batch, resource: dict[str, Value]) -> None:
        """Count what was measured in a batch that was taken."""


class TelemetryService:
    """Sends the telemetry of captures. `wait` pauses for some seconds, and tells whether it is time to end.

    `report` gets a sentence when the collector cannot be reached, when it can be again, and for a capture that cannot
    be sent; the others go on.
    """

    def __init__(
        self, receiver: Receiver, claims: Claims, wait: Callable[[float], bool], report: Callable[[str], None]
    ) -> None:
        self._receiver = receiver
        self._claims = claims
        self._wait = wait
        self._report = report
        self._active: list[FollowedTelemetry] = []
        self._blocked: list[str] = []  # captures that another process sends
        self.spans = self.logs = 0
        """How many were taken."""
        self.live = 0
        """How many captures had not ended when it did."""
        self.failure: str | None = None
        """Why the collector took nothing more."""

    def run(
        self, look: Callable[[], Iterable[str]], open_capture: Callable[[str], FollowedTelemetry], *, follow: bool
    ) -> bool:
        """Send what captures have; with `follow` until it is time to end. `look` gives the paths that are new.

        Returns whether all was sent.
        """
        waiting: deque[str] = deque()
        busy = looks = 0  # captures that may have more at once
        try:
            while True:
                waiting.extend(look())
                while waiting and busy < _BUSY:
                    busy += self._open(waiting.popleft(), open_capture)
                moved = busy = 0
                for capture in list(self._active):
                    sent = self._advance(capture, patient=follow)
                    if sent is None or self._wait(0):
                        return False
                    moved += bool(sent)
                    busy += sent == AT_ONCE
                idle = not waiting and not (busy if follow else moved)
                if idle and (not follow or self._wait(_POLL)):
                    return True
                looks += 1
                if looks % _AGAIN == 0:
                    waiting.extend(self._blocked)
        finally:
            self.live = len(self._active)
            for capture in list(self._active):
                self._close(capture)

    def _open(self, path: str, open_capture: Callable[[str], FollowedTelemetry]) -> bool:
        """Begin with a capture; returns whether there is something to send."""
        try:
            capture = open_capture(path)
            if not self._claims.take(capture.place):
                if not self._blocked:
                    self._report(f"another mcpspy sends {path}; what it sends is left to it")
                if path not in self._blocked:
                    self._blocked.append(path)
                return False
            if path in self._blocked:
                self._blocked.remove(path)
            if capture.begin():
                self._active.append(capture)
                return True
            self._claims.release(capture.place)
        except CaptureError as error:
            self._report(str(error))
        return False

    def _advance(self, capture: FollowedTelemetry, *, patient: bool) -> int | None:
        """Send a batch of a capture; returns how many items were in it, None where it was not taken."""
        try:
            batch = capture.take(AT_ONCE)
        except CaptureError as error:
            self._report(str(error))
            self._close(capture)
            return 0
        if batch.size and not self._deliver(capture, batch, patient=patient):
            return None
        if batch.size or capture.ended:
            capture.acknowledge(batch)
        if capture.ended:
            self._close(capture)
        return 0 if capture.ended else batch.size

    def _close(self, capture: FollowedTelemetry) -> None:
        capture.close()
        self._claims.release(capture.place)
        self._active.remove(capture)

    def _deliver(self, capture: FollowedTelemetry, batch: Batch, *, patient: bool) -> bool:
        """Send a batch; a `patient` one until it is taken, or it is time to end. Returns whether it was taken."""
        resource = capture.resource()
        attempts = 0
        while failure := self._receiver.send(batch, resource, capture.started):
            if not patient:
                self.failure = failure
                return False
            if failure != self.failure:
                self._report(f"{failure}; trying again until the collector takes telemetry")
                self.failure = failure
            if self._wait(_PAUSES[min(attempts, len(_PAUSES) - 1)]):
                return False
            attempts += 1
        if self.failure:
            self._report("the collector takes telemetry again")
            self.failure = None
        self._receiver.measure(batch, resource)
        self.spans += len(batch.spans)
        self.logs += len(batch.logs)
        return True
