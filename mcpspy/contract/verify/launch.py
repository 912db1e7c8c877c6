"""A process that we talk to on its standard streams, with all processes that it starts.

The theory. The process leads a session of its own, so a signal to its group ends all processes that stayed in it, and
Ctrl-C in a terminal reaches only mcpspy. A process that left the group is recognized by its parent: while
`orphans_adopted` is open, Linux makes each process whose parent has ended a child of ours. Every wait has a limit, and
a process that writes without end is cut off.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

if sys.platform == "win32":
    raise ImportError("mcpspy.contract.verify.launch needs POSIX: `mcpspy verify` does not run on Windows")

from mcpspy.process.child import spawn_error
from mcpspy.process.ending import KILL, signal_group
from mcpspy.transport.link import Ended, Failed

ROOM = 64 << 20
"""Bytes that a process may write to a stream in one run."""
_LINE = 64  # bytes of memory that a line needs in addition
_PR_SET_CHILD_SUBREAPER = 36
_SOON = 5.0  # seconds for work of the kernel alone


class Launched:
    """A running process. A context manager: at its end, no process of it is left."""

    def __init__(self, argv: Sequence[str], environ: Mapping[bytes, bytes]) -> None:
        """Start the process. Raises SpawnError."""
        self.begun = time.perf_counter_ns()
        self.sent, self.read, self.logged = bytearray(), bytearray(), bytearray()
        """All that we wrote to it, and that it wrote to stdout and to stderr."""
        self.flooded = False
        """Whether it wrote more than the limit."""
        self.heard: queue.SimpleQueue[bytes | Ended | Failed] = queue.SimpleQueue()
        """The lines of its stdout without their newlines, then that it has ended."""
        try:
            self._process = subprocess.Popen(
                argv,
                env=environ,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            path = os.fsdecode(environ.get(b"PATH", os.defpath.encode()))
            raise spawn_error(argv[0], error.errno or 0, path) from error
        self.pid = self._process.pid
        _own.add(self.pid)
        self._to_send: queue.SimpleQueue[bytes | int | None] = queue.SimpleQueue()  # lines, signals, the end
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._write, self._read, self._read_aside)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def send(self, line: bytes) -> None:
        """Queue a line for its stdin."""
        self._to_send.put(line + b"\n")

    def close(self) -> None:
        """Close its stdin after the queued lines."""
        self._to_send.put(None)

    def signal(self, number: int) -> None:
        """Send a signal to the process alone, after the queued lines."""
        self._to_send.put(number)

    def ended(self, seconds: float) -> int | None:
        """Return its exit status, negative for a signal, once its streams are read. None if it still runs."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        for thread in self._threads[1:]:
            thread.join(1)  # another process may hold them open
        return code

    def kill(self) -> None:
        """End it, and all processes that it started."""
        self._to_send.put(None)
        signal_group(self.pid, KILL)
        self._process.wait(_SOON)
        _own.discard(self.pid)
        end_orphans()
        for thread in self._threads:
            thread.join(1)

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream
        with stream:
            while (line_or_signal := self._to_send.get()) is not None:
                if isinstance(line_or_signal, int):
                    self._process.send_signal(line_or_signal)
                    continue
                rest = memoryview(line_or_signal)
                try:
                    while rest:
                        written = stream.write(rest) or 0
                        self.sent += rest[:written]
                        rest = rest[written:]
                except (OSError, ValueError):
                    pass  # it no longer reads, but can still receive a signal

    def _read(self) -> None:
        rest, room = bytearray(), ROOM
        for chunk in self._chunks(self._process.stdout, self.read):
            *lines, tail = chunk.split(b"\n")
            room -= _LINE * len(lines)
            if room < 0:
                self.flooded = True
                break
            for line in lines:
                self.heard.put(bytes(rest + line))
                rest.clear()
            rest += tail
        if rest:
            self.heard.put(bytes(rest))
        self.heard.put(Ended("ended"))

    def _read_aside(self) -> None:
        for _ in self._chunks(self._process.stderr, self.logged):
            pass

    def _chunks(self, stream: object, kept: bytearray) -> Iterator[bytes]:
        assert hasattr(stream, "read")
        with stream:  # type: ignore[attr-defined]  # a raw file
            while chunk := stream.read(65536):
                kept += chunk
                if len(kept) > ROOM:
                    self.flooded = True
                    return
                yield chunk


def end_text(code: int | None, seconds: float) -> str:
    """Return how a process ended, in words. None means that it did not end within so many seconds."""
    if code is None:
        return f"still running after {seconds:g} s"
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def past(end: str) -> str:
    """Return an end as the rest of a sentence about the process."""
    return f"was {end}" if end.split(" ", 1)[0] in ("killed", "still", "not") else end


_own: set[int] = set()  # children of this process that are not orphans
_adopting = False


@contextmanager
def orphans_adopted() -> Iterator[None]:
    """Let processes whose parents have ended become children of this one, while it is open (Linux)."""
    global _adopting  # noqa: PLW0603 (it is the state of this process)
    prctl = _prctl()
    before = {*_strangers()} if prctl else set()  # `exec` may have left children of another program
    _own.update(before)
    _adopting = prctl is not None and prctl(1) == 0
    try:
        yield
    finally:
        if _adopting and prctl:
            _own.intersection_update(before)  # a signal may have arrived while a process was being started
            end_orphans()
            prctl(0)
        _adopting = False
        _own.difference_update(before)


def end_orphans() -> None:
    """Kill the adopted processes, and those that they started."""
    until = time.monotonic() + _SOON
    while _adopting and time.monotonic() < until and (found := _strangers()):
        for pid in found:
            try:
                os.kill(pid, KILL)
                os.waitpid(pid, 0)
            except OSError:
                continue


def _strangers() -> list[int]:
    """Return the children of this process that we did not start ourselves."""
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == own and int(name) not in _own:
                found.append(int(name))
    return found


def _prctl() -> Callable[[int], int] | None:
    """Return a function that sets whether this process adopts orphans, or None if the system cannot."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    return lambda value: int(library.prctl(_PR_SET_CHILD_SUBREAPER, value, 0, 0, 0))
