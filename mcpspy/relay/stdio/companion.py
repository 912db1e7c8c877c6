"""Starting the companion that checks while a relay runs (`mcpspy.report.companion`), and ending it in time.

The rule kept here: whatever becomes of the companion, traffic does not notice. It is started by a thread of its own
once a first frame is recorded; it gets a moment at the end to say what is left, and then it is killed, because clients
wait for every holder of stderr.

Imported on the `wrap` path, with `--check` only: nothing heavy here.
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

# Whatever else we inherited is not for the companion to hold. Ours is the package to run, whatever else is installed.
PROGRAM = """\
import os, sys
os.closerange(3, 4096)
sys.path.insert(0, sys.argv.pop())
from mcpspy.report.companion import main
main()
"""
_ROOT = os.path.abspath(__file__).rsplit(os.sep, 4)[0]
# A signal to the group is for the server; we end the companion ourselves.
_BLOCKED = [getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(_signal, name)]
LOWEST = 19
"""The priority of the companion (nice(1))."""
_MOMENT = 0.05  # seconds that a process may take to be started, or to be gone when it was killed


class Companion:
    """A checker of the capture at `path`, started by `wake`; `say` takes one line for the user."""

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
        """Start it, at the first frame; a second call is void."""
        self._awake = True
        try:
            self._woken.release()
        except RuntimeError:
            pass

    def end(self, seconds: float) -> None:
        """Give it so long to finish, the capture being complete, then end it."""
        if self._awake:
            self._spawned.acquire(timeout=_MOMENT)
        if self._pid is not None and not self._ended.acquire(timeout=max(seconds, 0)):
            try:
                os.kill(self._pid, _signal.SIGKILL)  # not reaped, so the pid is still its own (but see `_await`)
            except ProcessLookupError:
                return
            self._ended.acquire(timeout=_MOMENT)

    def _live(self) -> None:
        """Start the process and wait for its end, in the thread that it ends with."""
        self._woken.acquire()
        try:
            self._pid = _spawn(self._path)
            self._spawned.release()
            _await(self._pid)
            self._ended.release()
        except Exception as error:  # whatever it is, it concerns the check alone
            self._say(f"cannot check what passes ({type(error).__name__}: {error}); traffic goes on")


def _await(pid: int) -> None:
    """Wait until a process has ended, and leave its pid its own where the system can: macOS since Python 3.13."""
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
