"""The servers that clients connect to through `mitm`, and the capture of each."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mcpspy.recording.recording import Clock, Recording

if TYPE_CHECKING:
    from mcpspy.relay.http.gated_channel import GatedChannel
    from mcpspy.relay.live_gate import LiveGate

MOST = 64
"""The most origins at a time: some systems allow a process only 256 open files."""


class Origin:
    """A server, identified by its URL, with its clock; its first MCP exchange opens its capture.

    `begin` creates the recording for a URL and a clock; if that fails, it has reported the reason.
    """

    def __init__(self, url: str, begin: Callable[[str, Clock], Recording], gate: "LiveGate | None" = None) -> None:
        self.url = url
        self.gate = gate
        """Decides on frames; None if all frames pass and that cannot change."""
        self.clock = Clock()
        self._begin = begin
        self._recording: Recording | None = None
        self.held: list[tuple[str, GatedChannel]] = []
        """The sessions and bodies of the requests that wait for a gate."""

    def now(self) -> int:
        """Return the nanoseconds since the origin was first seen."""
        return self.clock.now()

    def recording(self) -> Recording:
        """Return the recording of the capture; the first call creates it."""
        if self._recording is None:
            self._recording = self._begin(self.url, self.clock)
            if self.gate:
                self.gate.begin(self._recording)
        return self._recording

    def end(self) -> None:
        """End the capture, if there is one."""
        if self.gate:
            self.gate.end()
        if self._recording:
            self._recording.end(self.now())


class Origins:
    """The latest origins, by URL; a new one may end the capture of the one that has been idle for longest."""

    def __init__(self, begin: Callable[[str, Clock], Recording], gate: "Callable[[], LiveGate] | None" = None) -> None:
        """`gate` creates the gate of an origin."""
        self._begin = begin
        self._gate = gate
        self._known: dict[str, Origin] = {}  # least recently used first

    def at(self, url: str, busy: Callable[[], Collection[Origin]]) -> Origin | None:
        """Return the origin of that URL; None if there are too many and all are in `busy`, which have flows."""
        origin = self._known.pop(url, None)
        if origin is None:
            if len(self._known) >= MOST:
                working = busy()
                idle = next((it for it in self._known.values() if it not in working), None)
                if idle is None:
                    return None
                self._known.pop(idle.url).end()
            origin = Origin(url, self._begin, self._gate() if self._gate else None)
        self._known[url] = origin
        return origin

    def end(self) -> None:
        """End every capture."""
        for origin in self._known.values():
            origin.end()
