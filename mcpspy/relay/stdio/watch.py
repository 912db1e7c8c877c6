"""Check for viewers that want to control a session that `wrap` relays.

A session without viewers costs one `stat` at intervals: before a write, at most every 100 ms, and every second while
nothing passes, so that a viewer's request does not wait for other traffic. When the live directory exists, a gate comes
into force in both directions (`gated.gate_lines`), and `relay.control` applies the changes of viewers.

Imported on the `wrap` path after the pumps have started: no heavy imports here. The imports in functions are of modules
that `relay` has imported before the session, so that a pump that finds a viewer imports nothing.
"""

import os
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.relay.stdio.pump import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Recording
    from mcpspy.relay.control import Control
    from mcpspy.relay.stdio.gated import GatedLines
    from mcpspy.relay.stdio.pump import Pump
    from mcpspy.relay.stdio.session import GatedSession

    Gated = tuple[GatedSession, GatedLines]
    """A gate in force, and its direction from client to server."""

INTERVAL = 100_000_000  # nanoseconds between two checks for the directory, as in `relay.control`
IDLE, CONTROLLED = 1.0, 0.1  # seconds between two checks while nothing passes: without and with a viewer


class Watch:
    """Watches the live directory at `path` for a relay with these pumps; `gated` returns its gate."""

    def __init__(
        self, path: str, recording: "Recording", pumps: "tuple[Pump, Pump]", gated: "Callable[[], Gated]"
    ) -> None:
        self._path = path
        self._recording = recording
        self._pumps = pumps
        self._gated = gated
        self._session: GatedSession | None = None
        self._control: Control | None = None
        self._looking = allocate_lock()
        self._due = 0
        self._ended = False

    def start(self) -> None:
        """Begin to check."""
        for pump in self._pumps:
            pump.look, pump.due = self.look, 0
        try:
            start_new_thread(self._look_when_idle, ())
        except RuntimeError:  # no thread can be started: then checks are made only before writes
            pass

    def look(self, t: int) -> None:
        """Apply changes of viewers if a check is due; `t` is the current time. Never raises or waits for a peer."""
        with self._looking:
            try:
                if self._control is None and self._due <= t < NEVER:
                    self._due = t + INTERVAL
                    if os.path.lexists(self._path):
                        self._begin()
                if self._control and self._session:
                    with self._session.deciding:
                        self._control.look(t)
                    self._due = self._control.due
            except Exception as error:
                self._due = NEVER
                self._recording.report(
                    f"this session cannot be controlled ({type(error).__name__}: {error}); traffic goes on"
                )
            for pump in self._pumps:
                pump.due = NEVER if self._ended else self._due

    def end(self) -> None:
        """Stop checking."""
        with self._looking:
            self._ended = True
            self._control, self._due = None, NEVER
            for pump in self._pumps:
                pump.due = NEVER

    def remove(self) -> None:
        """Remove the live directory at the end of the session."""
        if os.path.lexists(self._path):
            from mcpspy.capture.live import LiveFolder

            LiveFolder(self._path).remove()

    def _begin(self) -> None:
        from mcpspy.capture.format import VIEWER
        from mcpspy.capture.live import LiveFolder
        from mcpspy.relay.control import Control

        recording = self._recording
        self._session, there = self._gated()

        def send(frame: bytes, _: str | None) -> None:
            assert self._session
            request = self._session.asks(frame)
            if request is not None:
                there.reply(request, VIEWER)

        self._control = Control(
            LiveFolder(self._path),
            self._session.gate,
            recording.report,
            lambda gates: recording.gates(recording.clock.now(), gates, "viewer"),
            send,
        )

    def _look_when_idle(self) -> None:
        while not self._ended:
            time.sleep(CONTROLLED if self._control else IDLE)
            self.look(self._recording.clock.now())
