"""Notice that a reader of our output has left when it happens, and not at the next write (V-01).

Without us, a server gets EPIPE at its first write after its client has left. Behind a relay that notices only when it
writes itself, that write succeeds, and a server that writes seldom outlives its client.

`watch` waits in a thread of its own until the reader of a sink has left. The pump of that sink may wait in a read of
the server's pipe, which neither `close` nor `dup2` ends; `pump.interrupt` does.

Only anonymous pipes and sockets are watched: a named pipe may get another reader, files and terminals have none. Over
TCP, and if a client only calls `shutdown(SHUT_RD)`, the kernel reports nothing before a write. Linux only: `poll` would
hold the sink open, so that the client would not see its end.

Imported on the `wrap` path: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys
from _thread import start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
