"""How a session of `wrap` ends: the client stops reading, or the server exits.

**A reader of our output has left.** It is noticed when it happens, and not at the next write (V-01). Without us, a
server gets EPIPE at its first write after its client has left. Behind a relay that notices only when it writes itself,
that write succeeds, and a server that writes seldom outlives its client. `watch` waits in a thread of its own until the
reader of a sink has left. The pump of that sink may wait in a read of the server's pipe, which neither `close` nor
`dup2` ends; `pump.interrupt` does. Only anonymous pipes and sockets are watched: a named pipe may get another reader,
files and terminals have none. Over TCP, and if a client only calls `shutdown(SHUT_RD)`, the kernel reports nothing
before a write. Linux only: `poll` would hold the sink open, so that the client would not see its end.

**The server has exited.** `drain` relays what it left in its pipes (S-04).

Imported on the `wrap` path: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys
import time
from _thread import start_new_thread

from mcpspy.relay.stdio.pump import CHUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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

if sys.platform == "win32":
    from mcpspy.process.child_windows import WindowsChild as Child
    from mcpspy.process.child_windows import waiting
else:
    from mcpspy.process.child import Child
    from mcpspy.process.pipes import waiting


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


def watch(sinks: "dict[int, Callable[[], None]]") -> None:
    """Call a function of `sinks` in another thread, once, when the reader of that descriptor has left.

    Call it in the main thread. If no descriptor is free, or no thread can be started, nothing is watched.
    """
    if sys.platform != "linux":
        return
    import select

    try:
        watched = [fd for fd in sinks if _has_reader(fd)]
        if not watched:
            return
        poll = select.epoll()
        for fd in watched:
            poll.register(fd, select.EPOLLONESHOT)  # no events: errors and hang-ups are always reported

        def run() -> None:
            for _ in watched:
                [(fd, _)] = poll.poll(maxevents=1)
                sinks[fd]()

        _signal.signal(_signal.SIGURG, lambda *_: None)
        start_new_thread(run, ())
    except (OSError, RuntimeError):
        pass


def _has_reader(fd: int) -> bool:
    """Return whether a descriptor is an anonymous pipe or a socket."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith(("pipe:", "socket:"))
    except OSError:  # it is closed, or there is no /proc
        return False
