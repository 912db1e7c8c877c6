"""`child` for Windows, with `WindowsChild` in place of `Child`; it has never been run on Windows (S-17).

The child is put into a job object that kills it when our handle to the job is closed, however we end. A `.cmd` or
`.bat` (such as `npx`) is found through PATHEXT and run by `cmd.exe`, quoted for it. There are no signals. Ctrl-C and
Ctrl-Break reach the whole console group, including the child.
"""

import ctypes
import errno
import msvcrt
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO

from mcpspy.errors import SpawnError
from mcpspy.process.command_line import command_line

if sys.platform != "win32":  # for the type checker: the rest of this module exists on Windows only
    raise ImportError("child_windows is for Windows")

_JOB_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_KILL_ON_JOB_CLOSE = 0x2000
_EXTENDED_SIZE = 144 if sys.maxsize > 2**32 else 112  # of JOBOBJECT_EXTENDED_LIMIT_INFORMATION
_LIMIT_FLAGS_OFFSET = 16  # of LimitFlags in it, for both sizes

_LOOK = 0.2  # seconds

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = ctypes.c_void_p
_job: int | None = None  # stays open as long as this process runs


class WindowsChild:
    """A running server: its pid and our ends of its standard streams."""

    asked_to_end: int | None = None  # there are no signals

    def __init__(self, process: "subprocess.Popen[bytes] | None", error: SpawnError | None) -> None:
        self._process = process
        self._error = error
        self.pid = process.pid if process else 0
        streams = (process.stdin, process.stdout, process.stderr) if process else ()
        self.stdin, self.stdout, self.stderr = (_take(stream) for stream in streams) if process else (-1, -1, -1)

    def confirm(self) -> None:
        """Raise SpawnError if the command could not be started."""
        if self._error:
            raise self._error

    def wait(
        self,
        _seen: Callable[[int, int, str, bool], None] | None = None,
        interrupted: Callable[[int], None] | None = None,
    ) -> int:
        """Wait until the child has exited; return its exit code. `interrupted` is called at Ctrl-C."""
        while self._process:
            try:
                return self._process.wait(_LOOK)
            except subprocess.TimeoutExpired:  # Python's own signal handlers run only between two waits
                pass
            except KeyboardInterrupt:  # the console has sent it to the child as well
                if interrupted:
                    interrupted(signal.SIGINT)
        return SpawnError.NOT_FOUND

    def watch_group(self) -> None:
        """Do nothing: the console sends signals to the whole group."""

    def handle_signal(self, seconds: float, _seen: Callable[[int, int, str, bool], None] | None = None) -> None:
        """Wait; there are no signals."""
        _kernel.Sleep(max(1, round(seconds * 1000)))

    def kill(self) -> None:
        """Kill the child."""
        if self._process:
            self._process.kill()

    def settle(self) -> None:
        """Do nothing: there are no signals."""

    def end_watch(self) -> None:
        """Do nothing: there is no witness."""


def environment() -> dict[bytes, bytes]:
    """Return the environment for the child, without our own variables."""
    pairs = ((name, value) for name, value in os.environ.items() if not name.startswith("MCPSPY_"))
    return {os.fsencode(name): os.fsencode(value) for name, value in pairs}


def spawn(argv: list[str], environ: dict[bytes, bytes], *, apart: bool = False, cwd: str | None = None) -> WindowsChild:
    """Start `argv` in the directory `cwd`, or ours; with `apart` Ctrl-C in the console does not reach it."""
    global _job  # noqa: PLW0603 (closing it kills the child, so it lives as long as we do)
    for stream in (0, 1, 2):
        msvcrt.setmode(stream, os.O_BINARY)
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    program = shutil.which(argv[0], path=variables.get("PATH"))
    if program is None:
        where = "" if os.path.dirname(argv[0]) else f" on PATH ({variables.get('PATH', '')})"
        return WindowsChild(
            None, SpawnError(f"cannot start {argv[0]!r}: not found{where}", "not found", SpawnError.NOT_FOUND)
        )
    pipe = subprocess.PIPE
    try:
        command = command_line(argv, variables, program)
        flags = subprocess.CREATE_NEW_PROCESS_GROUP if apart else 0
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables, bufsize=0, creationflags=flags, cwd=cwd
        )
    except ValueError as error:
        return WindowsChild(
            None, SpawnError(f"cannot start {argv[0]!r}: {error}", str(error), SpawnError.NOT_EXECUTABLE)
        )
    except OSError as error:
        status = SpawnError.NOT_FOUND if error.errno == errno.ENOENT else SpawnError.NOT_EXECUTABLE
        return WindowsChild(
            None, SpawnError(f"cannot start {argv[0]!r}: {error.strerror}", str(error.strerror), status)
        )
    _job = _kill_with_us(int(getattr(process, "_handle")))  # noqa: B009 (private, and known on Windows only)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # `wrap` has started the server; the server now decides
        signal.signal(signal.SIGINT, lambda *_: None)
    return WindowsChild(process, None)


def waiting(fd: int) -> int:
    """Return the number of unread bytes in a pipe."""
    available = ctypes.c_ulong()
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
    _kernel.PeekNamedPipe(handle, None, 0, None, ctypes.byref(available), None)
    return available.value


def die_by(number: int) -> None:
    """Do nothing: on Windows no process dies by a signal."""


def _take(stream: IO[bytes] | None) -> int:
    """Return our own descriptor for a stream of `Popen`, which must not be closed with the `Popen` object."""
    assert stream
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


def _kill_with_us(process: int) -> int | None:
    job: int | None = _kernel.CreateJobObjectW(None, None)
    if job is None:
        return None
    limits = ctypes.create_string_buffer(_EXTENDED_SIZE)
    ctypes.c_uint32.from_buffer(limits, _LIMIT_FLAGS_OFFSET).value = _KILL_ON_JOB_CLOSE
    _kernel.SetInformationJobObject(ctypes.c_void_p(job), _JOB_EXTENDED_LIMITS, limits, _EXTENDED_SIZE)
    _kernel.AssignProcessToJobObject(ctypes.c_void_p(job), ctypes.c_void_p(process))
    return job
