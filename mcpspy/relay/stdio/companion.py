"""Start the companion that checks while a relay runs (`mcpspy.report.companion`), and end it in time.

The rule: whatever happens to the companion, it does not affect the traffic. It is started in a thread of its own after
the first frame is recorded. At the end it has a moment to report the rest, and then it is killed, because clients wait
for every process that holds stderr.

Imported on the `wrap` path with `--check` only: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys
from _thread import allocate_lock, start_new_thread

if sys.platform == "win32":
    raise ImportError("mcpspy.relay.stdio.companion needs POSIX: `wrap --check` does not run on Windows")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The companion must not hold other descriptors that we inherited, and must run this package, not an installed one.
PROGRAM = """\
import os, sys
os.closerange(3, 4096)
sys.path.insert(0, sys.argv.pop())
from mcpspy.report.companion import main
main()
"""
_ROOT = os.path.abspath(__file__).rsplit(os.sep, 4)[0]
# A signal to the group is for the server; we end the companion ourselves, so it blocks these signals.
_BLOCKED = [getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(_signal, name)]
LOWEST = 19
"""The lowest priority, for the companion (nice(1))."""
_MOMENT = 0.05  # the longest time in seconds to start a process, or for a killed one to exit


class Companion:
    """A checker of the capture at `path`, started by `wake`; `say` gets one line for the user."""

    __slots__ = ("_awake", "_ended", "_path", "_pid", "_say", "_spawned", "_woken")

    def __init__(self, path: str, say: "Callable[[str], None]") -> None:
        self._path = path
        self._say = say
        self._pid: int | None = None
        self._awake = False
        self._woken, self._spawned, self._ended = allocate_lock(), allocate_lock(), allocate_lock()
        for lock in (self._woken, self._spawned, self._ended):
            lock.acquire()
        start_new_thread(self._live, ())

    def wake(self) -> None:
        """Start it at the first frame; a second call has no effect."""
        self._awake = True
        try:
            self._woken.release()
        except RuntimeError:
            pass

    def end(self, seconds: float) -> None:
        """Give it this much time to finish the complete capture, then kill it."""
        if self._awake:
            self._spawned.acquire(timeout=_MOMENT)
        if self._pid is not None and not self._ended.acquire(timeout=max(seconds, 0)):
            try:
                os.kill(self._pid, _signal.SIGKILL)  # it is not reaped, so the pid is still its own (but see `_await`)
            except ProcessLookupError:
                return
            self._ended.acquire(timeout=_MOMENT)

    def _live(self) -> None:
        """Start the process and wait for its end, in a thread of its own."""
        self._woken.acquire()
        try:
            self._pid = _spawn(self._path)
            self._spawned.release()
            _await(self._pid)
            self._ended.release()
        except Exception as error:  # any fault affects only the check
            self._say(f"cannot check the traffic ({type(error).__name__}: {error}); traffic goes on")


def _await(pid: int) -> None:
    """Wait until a process has ended; do not reap it if the system allows that (macOS since Python 3.13)."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    else:
        os.waitpid(pid, 0)


def _spawn(path: str) -> int:
    argv = [sys.executable, "-P", "-c", PROGRAM, path, str(os.getpid()), _ROOT]
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsigmask=_BLOCKED)
    os.setpriority(os.PRIO_PROCESS, pid, LOWEST)
    return pid
