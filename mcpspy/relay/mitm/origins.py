"""The servers that clients dial through `mitm`, and the capture of each."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mcpspy.recording.recording import Clock, Recording

if TYPE_CHECKING:
    from mcpspy.relay.http.gated_channel import GatedChannel
    from mcpspy.relay.live_gate import LiveGate

MOST = 64
"""Origins that are kept at a time: a process may have open no more than 256 files on some systems."""


class Origin:
    """A server, by its URL, with its clock; its first MCP exchange opens its capture.

    `begin` makes the recording of a capture for a URL and a clock; where that fails it has said why.
    """

    def __init__(self, url: str, begin: Callable[[str, Clock], Recording], gate: "LiveGate | None" = None) -> None:
        self.url = url
        self.gate = gate
        """What decides on frames; None where all pass, for ever."""
        self.clock = Clock()
        self._begin = begin
        self._recording: Recording | None = None
        self.held: list[tuple[str, GatedChannel]] = []
        """The sessions and bodies of requests that wait for a gate."""

    def now(self) -> int:
        """Nanoseconds since the origin was first seen."""
        return self.clock.now()

    def recording(self) -> Recording:
        """The recording of its capture, which the first call begins."""
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
    """The origins seen last, by URL; a new one may end the capture of the one that has been idle for longest."""

    def __init__(self, begin: Callable[[str, Clock], Recording], gate: "Callable[[], LiveGate] | None" = None) -> None:
        """`gate` makes the gate of an origin."""
        self._begin = begin
        self._gate = gate
        self._known: dict[str, Origin] = {}  # in the order of their last use

    def at(self, url: str, busy: Callable[[], Collection[Origin]]) -> Origin | None:
        """The origin of that URL; None if there are too many and none is idle. `busy` are those with a flow."""
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
