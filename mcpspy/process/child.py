"""Start a server as its client would start it, and end together with it.

The rules (S-02, S-05 to S-07, S-12). The child is in our own process group and session, so a client that signals the
group reaches it as it would without us. The child gets descriptors 0 to 2, the environment that we were started with,
and the signal dispositions that we were started with. It never outlives us. Linux kills it when the thread that forked
it ends, so `spawn` must be called in the main thread, before any other thread starts. On other systems a watchdog
process kills it. The child is created by a plain `fork`, because `posix_spawn` cannot set this up.

A signal to our process alone is forwarded at once. A signal to the group is not forwarded, because the child has it
already (C-01, S-06). `process.witness` finds out which of the two it was. If no witness could be forked, every signal
is forwarded at once, and a signal to the group reaches the child twice.

POSIX. `child_windows` has the same interface for Windows.

Imported on the `wrap` path: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import errno
import os
import sys
import time
from _thread import allocate_lock

from mcpspy.errors import SpawnError

if sys.platform == "win32":
    raise ImportError("mcpspy.process.child needs POSIX; child_windows is its counterpart for Windows")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.process.witness import Witness

    Seen = Callable[[int, int, str, bool], None]
    _Forked = tuple[int, tuple[int, int, int], int, int | None]  # pid, our ends of its streams, its error, lifeline

# Only Python ignores these signals (Py_Initialize); other programs do not.
_IGNORED_BY_PYTHON = tuple(
    getattr(_signal, name) for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ") if hasattr(_signal, name)
)
_PR_SET_PDEATHSIG = 1
_MOST_DESCRIPTORS = min(os.sysconf("SC_OPEN_MAX"), 1 << 20)

_ENDING = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT)  # signals that end processes
_PASSED = (_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGWINCH, _signal.SIGCONT)
_LOOK = 1.0  # seconds between two checks: if we run inside another program, one of its threads may consume SIGCHLD
_SETTLING = 0.25  # seconds that a thread waits for signals to be handled if the main thread is delayed


class Child:
    """A running server: its pid and our ends of its standard streams."""

    __slots__ = (
        "_command",
        "_error",
        "_exited",
        "_lifeline",
        "_mask",
        "_path",
        "_settled",
        "_signals",
        "_waiting",
        "_witness",
        "asked_to_end",
        "pid",
        "stderr",
        "stdin",
        "stdout",
    )

    def __init__(
        self, pid: int, streams: tuple[int, int, int], error: int, lifeline: int | None, command: str, path: str
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams
        self.asked_to_end: int | None = None  # the time of the last signal that ends processes; monotonic nanoseconds
        self._error = error
        self._exited = False
        self._lifeline = lifeline
        self._command = command
        self._path = path
        self._mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, [])  # the mask before we block signals
        self._signals = _hold(_PASSED + _ENDING)
        self._witness: Witness | None = None
        self._waiting = False  # whether the main thread receives signals
        self._settled = allocate_lock()
        self._settled.acquire()

    def watch_group(self) -> None:
        """Distinguish signals to the group from signals to us from now on; call in the main thread, before `wait`.

        Without it, every signal is forwarded, and so is a signal that was sent before the call. Such a signal has
        either ended the child while it was starting, or the child did not get it.
        """
        try:
            from mcpspy.process.witness import Witness  # imported while the server starts

            self._witness = Witness(_MOST_DESCRIPTORS)
        except OSError:
            pass

    def confirm(self) -> None:
        """Wait until the command runs in the child. Raises SpawnError if it does not."""
        code = os.read(self._error, 16)
        os.close(self._error)
        if code:
            self._reap(0)
            raise spawn_error(self._command, int(code), self._path)

    def wait(self, seen: "Seen | None" = None, interrupted: "Callable[[int], None] | None" = None) -> int:
        """Wait until the child has exited, and forward signals; return its exit code, negative for a signal.

        `seen` is called with each received signal: its number, its time (monotonic nanoseconds), `group` or `process`
        as its target, and whether it was forwarded. If `interrupted` is given, it is called with signals that end
        processes, and the child does not get them.
        """
        while (code := self.poll()) is None:
            self.handle_signal(None, seen, interrupted)
        return code

    def poll(self) -> int | None:
        """Return the exit code, as `wait` does, if the child has exited and no call has returned it yet; else None.

        The caller must also call `handle_signal`, in the main thread: otherwise signals are not forwarded.
        """
        self._waiting = True
        code = self._reap(os.WNOHANG)
        self._exited = code is not None
        return code

    def restart(self, argv: list[str], environ: dict[bytes, bytes]) -> None:
        """Start a command in place of the one that has exited, as `spawn` does with `apart`; other threads may run."""
        self.pid, streams, self._error, self._lifeline = _fork(argv, environ, apart=True, mask=self._mask)
        self.stdin, self.stdout, self.stderr = streams
        self._signals = _hold(_PASSED + _ENDING)
        self._exited = False

    def handle_signal(
        self, seconds: float | None, seen: "Seen | None" = None, interrupted: "Callable[[int], None] | None" = None
    ) -> None:
        """Wait for a signal to this process, at most `seconds`, and handle it as `wait` does.

        After the child has exited, nothing is forwarded.
        """
        number = self._next_signal(seconds)
        if number == _signal.SIGALRM and self._settled.locked():
            for pending in sorted(_signal.sigpending() & {*_PASSED, *_ENDING}):
                self._take(_signal.sigwait({pending}), seen, interrupted)
            self._settled.release()
        elif number in _PASSED + _ENDING:
            self._take(number, seen, interrupted)

    def kill(self) -> None:
        """Kill the child; any thread may call this."""
        if not self._exited:
            self._send(_signal.SIGKILL)

    def settle(self) -> None:
        """Wait until the signals received so far are handled; for a thread other than the main thread.

        A client that signals us and then closes our stdin expects the server to get the signal first. The main thread
        may be between receiving a signal and forwarding it, so it has to confirm. SIGALRM wakes it; that signal is
        blocked in all our threads and not used otherwise on Linux. Before `wait`, no signal has been received.
        """
        if not _signal.sigpending() & {*_PASSED, *_ENDING} and not self._waiting:
            return
        os.kill(os.getpid(), _signal.SIGALRM)
        self._settled.acquire(timeout=_SETTLING)

    def end_watch(self) -> None:
        """End the witness, so that none of our processes is left."""
        if self._witness:
            self._witness.end()
            self._witness = None

    def _take(self, number: int, seen: "Seen | None", interrupted: "Callable[[int], None] | None") -> None:
        """Handle a signal that was just received."""
        t = time.monotonic_ns()
        if number in _ENDING:
            self.asked_to_end = t
            if interrupted:
                interrupted(number)
                return
        to_group = self._witness is not None and self._witness.has(number)
        forwarded = not (to_group and self._in_our_group()) and self._send(number)
        if seen:
            seen(number, t, "group" if to_group else "process", forwarded)

    def _in_our_group(self) -> bool:
        """Return whether the child is still in our group and gets signals to it; timeout(1) makes a new group."""
        try:
            return self._exited or os.getpgid(self.pid) == os.getpgrp()
        except OSError:  # some systems refuse this for another session
            return False

    def _send(self, number: int) -> bool:
        if self._exited:
            return False
        try:
            os.kill(self.pid, number)  # the child is not reaped yet, so the pid is still its own
        except OSError:  # the child runs as another user
            return False
        return True

    def _next_signal(self, seconds: float | None) -> int:
        """Wait for the next signal to this process and return it; 0 after the time-out."""
        if sys.platform == "linux":
            got = _signal.sigtimedwait(self._signals, _LOOK if seconds is None else seconds)
            return int(got.si_signo) if got else 0
        _signal.setitimer(_signal.ITIMER_REAL, seconds or 0)
        number = int(_signal.sigwait(self._signals))
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        return number

    def _reap(self, options: int) -> int | None:
        pid, status = os.waitpid(self.pid, options)
        if not pid:
            return None
        if self._lifeline is not None:
            try:
                os.write(self._lifeline, b"x")  # the watchdog may exit
            except BrokenPipeError:  # the watchdog has exited
                pass
        return os.waitstatus_to_exitcode(status)


def environment() -> dict[bytes, bytes]:
    """Return the environment that this process was started with, without the additions of the launcher (S-12).

    If there is no locale, Python itself adds LC_CTYPE (PEP 538), so on Linux the environment is read from /proc. `uvx`
    and `uv run` prepend the tool's own directory to PATH and set UV. These are removed, so that the child finds the
    same programs as without us.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    except OSError:
        pairs = [(name, b"=", value) for name, value in os.environb.items()]
    environ: dict[bytes, bytes] = {}
    for name, equals, value in pairs:
        if equals and not name.startswith(b"MCPSPY_"):
            environ.setdefault(name, value)
    own = os.fsencode(os.path.join(sys.prefix, "bin"))
    first, _, rest = environ.get(b"PATH", b"").partition(b":")
    if b"UV" in environ and first == own:
        del environ[b"UV"]
        environ[b"PATH"] = rest
    return environ


def spawn(argv: list[str], environ: dict[bytes, bytes], *, apart: bool = False, cwd: str | None = None) -> Child:
    """Start `argv` with pipes for its standard streams; call in the main thread while it is the only thread.

    Returns at once; `Child.confirm` reports whether the command could be executed. With `apart`, the child leads its
    own group, so that we can end it with everything that it starts. `cwd` is its directory, if that is not ours.
    """
    pid, streams, error, lifeline = _fork(argv, environ, apart=apart, mask=None, cwd=cwd)
    path = os.fsdecode(environ.get(b"PATH", os.defpath.encode()))
    return Child(pid, streams, error, lifeline, argv[0], path)


def _fork(
    argv: list[str], environ: dict[bytes, bytes], *, apart: bool, mask: "set[int] | None", cwd: str | None = None
) -> "_Forked":
    """Fork a process that executes `argv`; `mask` is its signal mask, if ours has changed since our start."""
    _fill_standard_descriptors()
    death_signal = _death_signal()
    parent = os.getpid()
    try:
        stdin, stdout, stderr, error = os.pipe(), os.pipe(), os.pipe(), os.pipe()
        lifeline = None if death_signal else os.pipe()
    except OSError as failure:
        raise spawn_error(argv[0], failure.errno or errno.EMFILE, "") from failure
    child_signal = _signal.getsignal(_signal.SIGCHLD)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # if it is ignored, the kernel discards the exit status
    try:
        pid = os.fork()
    except OSError as failure:
        raise spawn_error(argv[0], failure.errno or errno.EAGAIN, "") from failure
    if pid == 0:
        try:
            for source, target in ((stdin[0], 0), (stdout[1], 1), (stderr[1], 2)):
                os.dup2(source, target)
            for number in _IGNORED_BY_PYTHON:
                _signal.signal(number, _signal.SIG_DFL)
            _signal.signal(_signal.SIGCHLD, child_signal)
            if mask is not None:
                _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
            if apart:
                os.setsid()
            if death_signal:
                death_signal()
            if os.getppid() != parent:  # we were killed before the child requested the death signal
                os._exit(1)
            os.dup2(error[1], 3, inheritable=False)
            os.closerange(4, _MOST_DESCRIPTORS)
            if cwd:
                os.chdir(cwd)
            _execute([os.fsencode(word) for word in argv], environ)
        except OSError as failure:
            os.write(3, b"%d" % (failure.errno or errno.EIO))
        finally:
            os._exit(SpawnError.NOT_FOUND)
    for fd in (stdin[0], stdout[1], stderr[1], error[1]):
        os.close(fd)
    if lifeline:
        _watchdog(pid, lifeline)
    return pid, (stdin[1], stdout[0], stderr[0]), error[0], lifeline[1] if lifeline else None


def _hold(numbers: tuple[int, ...]) -> set[int]:
    """Block these signals, and those that `_next_signal` needs, for `sigwait`, in this thread and all it starts.

    A signal that was ignored when we were started stays ignored. A handler is installed because some systems drop a
    blocked signal whose default action is to be ignored.
    """
    held = {number for number in numbers if _signal.getsignal(number) != _signal.SIG_IGN}
    held |= {_signal.SIGCHLD, _signal.SIGALRM}
    for number in held:
        _signal.signal(number, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, held)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGURG])  # it interrupts the read of a pump
    return held


def _fill_standard_descriptors() -> None:
    """Open /dev/null for each of 0 to 2 that is closed, so that no pipe of ours gets that number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def spawn_error(command: str, error: int, path: str) -> SpawnError:
    """Return the error for a `command` that failed with the error number of `execve`; `path` is the searched PATH."""
    if error not in (errno.ENOENT, errno.ENOTDIR):
        why = os.strerror(error)
        return SpawnError(f"cannot start {command!r}: {why}", why, SpawnError.NOT_EXECUTABLE)
    where = "" if "/" in command else f" on PATH ({path})"
    return SpawnError(f"cannot start {command!r}: not found{where}", "not found", SpawnError.NOT_FOUND)


def die_by(number: int) -> None:
    """End this process by the signal that ended the child, without a core dump; return if that is impossible."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)


def _execute(argv: list[bytes], environ: dict[bytes, bytes]) -> None:
    """Replace this process as `execvp` does: search PATH, skip files that cannot be run, run a bare script with sh."""
    command = argv[0]
    folders = [b""] if b"/" in command else environ.get(b"PATH", os.defpath.encode()).split(b":")
    result = OSError(errno.ENOENT, "")
    for folder in folders:
        path = command if b"/" in command else (folder or b".") + b"/" + command
        try:
            os.execve(path, argv, environ)
        except OSError as failure:
            if failure.errno == errno.ENOEXEC:
                os.execve(b"/bin/sh", [b"sh", path, *argv[1:]], environ)
            if result.errno == errno.ENOENT and failure.errno != errno.ENOTDIR:
                result = failure
    raise result


def _death_signal() -> "Callable[[], None] | None":
    """Return a function that makes the kernel kill the calling process when its parent thread ends; Linux only."""
    if sys.platform != "linux":
        return None
    try:
        import _ctypes

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None: this program
    except (ImportError, OSError):
        return None

    def ask() -> None:
        _ctypes.call_function(prctl, (_PR_SET_PDEATHSIG, int(_signal.SIGKILL), 0, 0, 0))

    return ask


def _watchdog(pid: int, lifeline: tuple[int, int]) -> None:
    """Fork a process that kills `pid` when this process is gone.

    This process is the only writer of the pipe, so the watchdog notices its end, whatever the cause is.
    """
    watched, _ = lifeline
    if os.fork() == 0:
        os.dup2(watched, 3, inheritable=False)
        os.closerange(4, _MOST_DESCRIPTORS)
        for fd in range(3):
            os.close(fd)
        for number in _ENDING:
            _signal.signal(number, _signal.SIG_IGN)  # a signal to the group must not end the watchdog
        if not os.read(3, 1):
            os.kill(pid, _signal.SIGKILL)  # the parent ended without a message, so `pid` is not reaped
        os._exit(0)
    os.close(watched)
