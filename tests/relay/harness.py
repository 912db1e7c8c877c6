"""Start `mcpspy wrap` as a client does, and inspect its processes and its capture."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from tests import limits
from tests.limits import LIMIT

PYTHON = (sys.executable, "-I", "-S", "-c")  # starts a Python server quickly


class Wrapped(limits.Popen):
    """A running `mcpspy wrap`."""

    def __init__(self, capture: Path, command: tuple[str, ...], options: tuple[str, ...] | None, **popen):
        self.path = capture
        where = ("-o", str(capture)) if options is None else options
        for stream in ("stdin", "stdout", "stderr"):
            popen.setdefault(stream, subprocess.PIPE)
        popen.setdefault("bufsize", 0)
        program = popen.pop("program", ("-m", "mcpspy"))
        super().__init__([sys.executable, *program, "wrap", *where, "--", *command], **popen)

    def ask(self, line: bytes) -> bytes:
        """Send one line and return the next one."""
        self.stdin.write(line + b"\n")
        return self.readline()

    def readline(self) -> bytes:
        return self.stdout.readline().removesuffix(b"\n")

    def finish(self, sent: bytes | None = b"") -> tuple[bytes, bytes, int]:
        """Close stdin after `sent`, and return stdout, stderr and the exit status."""
        out, err = self.communicate(sent, timeout=LIMIT)
        return out, err, self.returncode

    @property
    def capture(self) -> Capture:
        return Capture(str(self.path))

    def recording(self) -> bool:
        """Return whether the capture has content; bytes are forwarded a few milliseconds earlier."""
        return self.path.exists() and self.path.stat().st_size > 0

    def frames(self, ch: int) -> list[bytes]:
        """Return the frames of a channel (1 stdin, 2 stdout, 3 stderr)."""
        return [record.raw for record in self.capture.records(1 << 62) if isinstance(record, Frame) and record.ch == ch]

    def stream(self, ch: int) -> bytes:
        """Return the bytes of a channel, as recorded in the capture."""
        parts = [
            r.raw + (b"" if r.cut else b"\n")
            for r in self.capture.records(1 << 62)
            if isinstance(r, Frame) and r.ch == ch
        ]
        return b"".join(parts)

    def child(self) -> int:
        """Return the pid of the server."""
        return self._children(1)[0]

    def witness(self) -> int:
        """Wait for the witness, which detects signals to the group, and return its pid."""
        return self._children(2)[1]

    def _children(self, count: int) -> list[int]:
        task = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        until(lambda: len(task.read_text().split()) >= count, f"child {count}")
        return [int(pid) for pid in task.read_text().split()]


def python(source: str) -> tuple[str, ...]:
    """Return the command of a server written in Python."""
    return (*PYTHON, source)


def until(condition: Callable[[], object], what: str = "the condition") -> object:
    """Poll until a condition of another process is true and return its value; fail after LIMIT seconds."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.002)
    raise AssertionError(f"{what} did not come about in {LIMIT} s")


def running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def to_us(number: int) -> None:
    """Send a signal to the main thread: another thread of the test runner could receive a signal to the process."""
    signal.pthread_kill(threading.main_thread().ident, number)


def status(pid: int, key: str) -> str:
    """Return the value of a key in /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(key + ":"))


def end_group(process: subprocess.Popen) -> None:
    """Kill a process and its group, in any state, and close the pipes."""
    for send in (lambda: os.killpg(process.pid, signal.SIGKILL), process.kill):
        try:
            send()
        except (ProcessLookupError, PermissionError):
            continue
    process.wait(LIMIT)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


PROBE = """
import json, os, resource, signal
def fd(n):
    return os.readlink(f"/proc/self/fd/{n}").split(":")[0]
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(json.dumps({
    "environ": open("/proc/self/environ", "rb").read().decode("latin-1").split("\\0"),
    "cwd": os.getcwd(), "umask": status["Umask"].strip(), "nice": os.nice(0),
    "blocked": status["SigBlk"].strip(), "ignored": status["SigIgn"].strip(), "caught": status["SigCgt"].strip(),
    "fds": sorted(os.listdir("/proc/self/fd"), key=int)[:-1], "group": os.getpgrp(), "session": os.getsid(0),
    "limits": [resource.getrlimit(n) for n in range(10)],
}))
"""


def probe(lines: bytes) -> dict:
    """Parse the output of PROBE."""
    return json.loads(lines)
