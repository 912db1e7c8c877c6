"""What the server left in its pipes, relayed after its exit (S-04).

Imported on the `wrap` path: nothing heavy here.
"""

import sys
import time

from mcpspy.relay.stdio.pump import CHUNK

if sys.platform == "win32":
    from mcpspy.process.child_windows import WindowsChild as Child
    from mcpspy.process.child_windows import waiting
else:
    from mcpspy.process.child import Child
    from mcpspy.process.pipes import waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeVar

    from mcpspy.process.child import Seen

    class Drained(Protocol):
        """What reads a pipe of the server, such as `Pump`."""

        source: int
        reads: int
        stop: bool
        ended: bool

        @property
        def busy(self) -> bool:
            """Whether something that was read is still to be forwarded."""

        def now(self) -> int:
            """Nanoseconds since the capture started."""

    Reader = TypeVar("Reader", bound=Drained)

_IDLE = 100_000_000  # nanoseconds without a byte after which reading stops,
_TOTAL = 250_000_000  # or in all, should something that inherited the pipe go on writing
_RECENT = 10_000_000_000  # nanoseconds before the exit in which a signal to end is taken for its reason
_STEP = 0.001  # seconds between two looks


def drain(server: Child, pumps: "Sequence[Reader]", seen: "Seen") -> "list[Reader]":
    """Relay what the server left in its pipes, without waiting for others who hold them; returns the pumps stopped.

    A pump is stopped when its pipe has been empty and itself at rest for `_IDLE`. Who inherited the pipe may go on
    writing: then after `_TOTAL`, when so much has been read that nothing of the server's can be left. (Two reads more
    than the length needs: one may have been under way, not counted yet.) Nothing is decided by a single look, for
    between a read and its mark in `busy` a chunk is nowhere to be seen.

    A write to the client is waited for, however long it takes. But a client that has sent a signal to end, shortly
    before the exit or since, may be waiting for ours without reading: then all of this ends after `_TOTAL` (A-05).
    """
    exited = pumps[0].now()
    since = time.monotonic_ns() - _RECENT
    owed = {pump: pump.reads + waiting(pump.source) // CHUNK + 2 for pump in pumps}
    rest = {pump: (pump.reads, exited) for pump in pumps}  # how many reads, and since when at rest
    left = list(pumps)
    while left := [pump for pump in left if not pump.ended]:
        for pump in left:
            now = pump.now()
            if pump.busy or pump.reads != rest[pump][0] or waiting(pump.source):
                rest[pump] = pump.reads, now
            idle = now - rest[pump][1] >= _IDLE
            over = now - exited >= _TOTAL and pump.reads >= owed[pump]
            pump.stop = pump.stop or idle or over
        if all(pump.stop and not pump.busy for pump in left):
            break
        if pumps[0].now() - exited >= _TOTAL and server.asked_to_end is not None and server.asked_to_end > since:
            break
        server.handle_signal(_STEP, seen)
    return left
