"""From captures to a collector: new telemetry of each capture is sent in batches, and acknowledged.

The loop stops reading until a batch is accepted, and retries after growing pauses. The captures themselves are the
queue: nothing is lost while the collector is away, unless captures are deleted meanwhile.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from mcpspy.errors import CaptureError
from mcpspy.telemetry.followed import Batch, Claims, FollowedTelemetry
from mcpspy.telemetry.spans import Value

AT_ONCE = 512
"""Maximum number of spans, log entries and measures of one capture in a batch."""
_POLL = 0.25  # seconds until the next check of captures that had nothing more
_BUSY = 16
"""The number of captures that are caught up with at the same time; live ones stay open in addition."""
_AGAIN = 120
"""The number of checks after which the captures that another process sends are tried again."""
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before a batch that was not accepted is sent again; the last value repeats."""


class Receiver(Protocol):
    """What receives telemetry."""

    def send(self, batch: Batch, resource: dict[str, Value], started: int) -> str | None:
        """Send the spans and logs of a batch; return why they were not accepted, else None."""

    def measure(self, batch: Batch, resource: dict[str, Value]) -> None:
        """Count the measures of a batch that was accepted."""


class TelemetryService:
    """Sends the telemetry of captures. `wait` pauses for some seconds, and returns whether to end.

    `report` receives a sentence when the collector becomes unreachable, when it becomes reachable again, and for a
    capture that cannot be sent; the other captures continue.
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
        """The number of accepted entries."""
        self.live = 0
        """The number of captures that had not ended at the end of the run."""
        self.failure: str | None = None
        """Why the collector accepted nothing more."""

    def run(
        self, look: Callable[[], Iterable[str]], open_capture: Callable[[str], FollowedTelemetry], *, follow: bool
    ) -> bool:
        """Send the telemetry of captures; with `follow`, until `wait` ends the run. `look` returns new paths.

        Return whether everything was sent.
        """
        waiting: deque[str] = deque()
        busy = looks = 0  # captures that may have more already
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
        """Open a capture; return whether there is something to send."""
        try:
            capture = open_capture(path)
            if not self._claims.take(capture.place):
                if not self._blocked:
                    self._report(f"another mcpspy sends {path}, so this one does not")
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
        """Send a batch of a capture; return the number of its entries, or None if it was not accepted."""
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
        """Send a batch, a `patient` one until it is accepted or `wait` ends the run; return whether it was accepted."""
        resource = capture.resource()
        attempts = 0
        while failure := self._receiver.send(batch, resource, capture.started):
            if not patient:
                self.failure = failure
                return False
            if failure != self.failure:
                self._report(f"{failure}; trying again until the collector accepts telemetry")
                self.failure = failure
            if self._wait(_PAUSES[min(attempts, len(_PAUSES) - 1)]):
                return False
            attempts += 1
        if self.failure:
            self._report("the collector accepts telemetry again")
            self.failure = None
        self._receiver.measure(batch, resource)
        self.spans += len(batch.spans)
        self.logs += len(batch.logs)
        return True
