"""Relay what the server left in its pipes after it exited (S-04).

Imported on the `wrap` path: no heavy imports here.
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
        """A reader of a pipe of the server, such as `Pump`."""

        source: int
        reads: int
        stop: bool
        ended: bool

        @property
        def busy(self) -> bool:
            """Whether bytes were read that are not forwarded yet."""

        def now(self) -> int:
            """Return the nanoseconds since the capture started."""

    Reader = TypeVar("Reader", bound=Drained)

_IDLE = 100_000_000  # nanoseconds without a byte after which reading stops
_TOTAL = 250_000_000  # nanoseconds after which it stops if a process that inherited the pipe goes on writing
_RECENT = 10_000_000_000  # nanoseconds before the exit; a signal to end within them counts as the cause of the exit
_STEP = 0.001  # seconds between two checks


def drain(server: Child, pumps: "Sequence[Reader]", seen: "Seen") -> "list[Reader]":
    """Relay what the server left in its pipes, without waiting for other processes that hold them.

    Returns the pumps that were stopped.

    A pump is stopped when its pipe has been empty, and the pump itself idle, for `_IDLE`. A process that inherited the
    pipe may go on writing. Then the pump is stopped after `_TOTAL`, once so much has been read that nothing from the
    server can be left. (Two more reads than the length needs are required, because one may have been in progress and
    not been counted.) No decision depends on a single check, because between a read and the change of `busy` a chunk
    is not visible anywhere.

    A write to the client is waited for, however long it takes. But a client that has sent a signal to end, shortly
    before the exit or after it, may be waiting for our end without reading. Then draining ends after `_TOTAL` (A-05).
    """
    exited = pumps[0].now()
    since = time.monotonic_ns() - _RECENT
    owed = {pump: pump.reads + waiting(pump.source) // CHUNK + 2 for pump in pumps}
    rest = {pump: (pump.reads, exited) for pump in pumps}  # the number of reads, and since when the pump is idle
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
