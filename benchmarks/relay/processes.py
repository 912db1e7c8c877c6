"""Pipelines of processes on raw pipes, with a time limit; all processes are ended in any case.

Nothing is measured here. A pipeline is a list of commands: the first reads what we write, and we read what the last
writes. All of them run in their own process group, so ending the group also ends the processes that a command spawned.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import perf_counter_ns

CHUNK = 65536


class Broken(Exception):
    """A variant failed, took too long, or lost or changed bytes. The text is for the table."""


class Peer:
    """The running pipeline.

    `to` and `back` are our descriptors. `started` is the clock in nanoseconds right before the first spawn.
    """

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.to = self.back = -1
        self.started = 0

    def spawn(self, stages: list[list[str]], environ: dict[str, str], first: bytes) -> None:
        """Start every stage. Each reads what the previous one writes. The first pipe already contains `first`."""
        source, self.to = os.pipe()
        os.write(self.to, first)
        self.started = perf_counter_ns()
        for argv in stages:
            self.back, sink = os.pipe()
            try:
                self.pids.append(self._start(argv, environ, source, sink))
            finally:
                os.close(source)
                os.close(sink)
            source = self.back

    def _start(self, argv: list[str], environ: dict[str, str], source: int, sink: int) -> int:
        return os.posix_spawnp(
            argv[0],
            argv,
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, sink, 1)],
            setpgroup=self.pids[0] if self.pids else 0,
            setsigdef=[signal.SIGPIPE],  # Python ignores it, and processes inherit that
        )

    def read(self) -> bytes:
        """Return the next bytes. The end of the stream is an error, because callers only read expected bytes."""
        chunk = os.read(self.back, CHUNK)
        if not chunk:
            raise Broken("ended before its last byte")
        return chunk

    def finish(self) -> None:
        """Close the pipeline's stdin, and wait until every stage has ended with status 0, without reaping it."""
        os.close(self.to)
        self.to = -1
        for pid in self.pids:
            left = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            if left is None or (left.si_code, left.si_status) != (os.CLD_EXITED, 0):
                raise Broken(f"ended with status {left.si_status if left else '?'}")

    def end(self) -> None:
        """Kill the rest of the group and reap. The leader is not reaped before, so its id is not yet reused."""
        for fd in (self.to, self.back):
            if fd >= 0:
                os.close(fd)
        if self.pids:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pids[0], signal.SIGKILL)
        for pid in self.pids:
            os.waitpid(pid, 0)


@contextmanager
def running(stages: list[list[str]], environ: dict[str, str], seconds: float, first: bytes = b"") -> Iterator[Peer]:
    """Run a pipeline whose stdin already contains `first` at its start. It must end within `seconds`."""
    peer = Peer()
    try:
        with time_limit(seconds):
            peer.spawn(stages, environ, first)
            yield peer
            peer.finish()
    finally:
        peer.end()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Broken(f"not done within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def pinned(wanted: bool = True) -> Iterator[None]:
    """Keep this process, and the processes that it starts, on one core: the last allowed one."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)} if wanted else allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
