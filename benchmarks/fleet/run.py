"""One run of the relays, `otel` and the receiver, which is stopped for a while; then the counts of each of them."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Self

from benchmarks.fleet.taken import Taken
from benchmarks.fleet.wraps import Fleet
from benchmarks.lake import shown
from benchmarks.relay.plan import build
from benchmarks.relay.processes import Broken
from benchmarks.relay.usage import computed, resident

RECEIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "receiver.py")
MCPSPY = [sys.executable, "-m", "mcpspy"]
LOOK = 0.25  # seconds between measurements of otel
SILENCE = 30  # seconds without a span after which no more are expected


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement. Times are in seconds since the first call."""

    wraps: int = 50
    rate: int = 1000
    """Exchanges per second, of all relays together."""
    settled: float = 3
    """When the figures begin to count."""
    away: float = 30
    """When the receiver is stopped."""
    back: float = 45
    """When it is started again."""
    end: float = 75


QUICK = Scale(wraps=5, rate=100, settled=0.2, away=3, back=3.5, end=4)


@dataclass(slots=True)
class Usage:
    """The CPU time of a process at each measurement, and its peak memory."""

    pid: int
    times: list[int] = field(default_factory=list)
    """The times of the measurements, in nanoseconds since the epoch."""
    seconds: list[float] = field(default_factory=list)
    peak: float = 0
    """Peak memory in MB."""

    def look(self) -> None:
        """Measure now."""
        self.times.append(time.time_ns())
        self.seconds.append(computed(self.pid))
        self.peak = resident(self.pid, "VmHWM")

    def between(self, since: int, until: int) -> float:
        """Return the CPU time in seconds between two times."""
        first, last = (min(bisect(self.times, at), len(self.times) - 1) for at in (since, until))
        return self.seconds[last] - self.seconds[first]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run."""

    started: int
    """When the first call was made, in nanoseconds since the epoch."""
    taken: Taken
    usage: Usage
    exchanges: int
    """The number that the callers counted."""
    shown: int
    """The number that `show --json` counts in the captures."""
    sent: int
    """The number of spans that `otel` counted."""
    relays: float
    """CPU time of the relays in seconds."""
    captured: int
    """Size of the captures in bytes."""


def measure(scale: Scale, folder: str) -> Run:
    """Run everything. Only `otel` runs on the last core. All files are written to `folder`."""
    captures, notes = os.path.join(folder, "captures"), os.path.join(folder, "notes.jsonl")
    os.mkdir(captures)
    environ = os.environ | {"HOME": folder}  # otel stores there what was sent
    port, taken = _free_port(), Taken(notes)
    wrap = [*MCPSPY, "wrap", "--capture-dir", captures, "--", *build(folder)[0]]
    otel = [*MCPSPY, "otel", captures, "--follow", "--endpoint", f"http://127.0.0.1:{port}"]
    cores = sorted(os.sched_getaffinity(0))
    with _on(cores[0]), _Receiver(port, notes) as receiver, _otel(otel, environ, cores[-1]) as sender:
        usage = Usage(sender.pid)
        with closing(Fleet(wrap, scale.wraps, environ)) as fleet:
            events = [(scale.away, receiver.stop), (scale.back, receiver.start)]

            def look(now: float) -> None:
                if events and now >= events[0][0]:
                    events.pop(0)[1]()
                if now >= len(usage.times) * LOOK:
                    usage.look()

            started = time.time_ns()
            fleet.drive(scale.rate, scale.end, look)
            relays = sum(map(computed, fleet.pids))
            fleet.finish()
        taken.until(fleet.exchanges, SILENCE, usage.look)
        usage.look()
        sender.send_signal(signal.SIGTERM)
        told = sender.communicate(timeout=SILENCE)[0]
        taken.read()
    sent = re.match(r"sent ([\d,]+) spans", told)
    if sender.returncode or not sent:
        raise Broken(f"otel ended with status {sender.returncode}")
    captured = sum(entry.stat().st_size for entry in os.scandir(captures))
    return Run(
        started,
        taken,
        usage,
        fleet.exchanges,
        shown(captures)["exchanges"],
        int(sent[1].replace(",", "")),
        relays,
        captured,
    )


class _Receiver:
    """The counting collector. It can be stopped, and started again on the same port."""

    def __init__(self, port: int, notes: str) -> None:
        self._command = [sys.executable, RECEIVER, str(port), notes]

    def __enter__(self) -> Self:
        self.start()
        assert self._process.stdout
        if not self._process.stdout.readline():
            raise Broken("the receiver does not listen")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=SILENCE)


@contextmanager
def _otel(command: list[str], environ: dict[str, str], core: int) -> Iterator[subprocess.Popen[str]]:
    with _on(core):
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _on(core: int) -> Iterator[None]:
    """Keep this process, and the processes that it starts meanwhile, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
