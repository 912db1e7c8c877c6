"""One running variant: its processes, the traffic through it, and the proof that the capture has all of the traffic."""

import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.proxy.plan import DIRECT, Plan
from benchmarks.relay.captures import Log
from benchmarks.relay.processes import Broken, time_limit
from benchmarks.relay.usage import computed, resident

_READY = 30  # seconds until a proxy must listen


class Subject:
    """The port for a client, and the traffic of the client."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid
        """The id of the measured process."""
        self.passed: Counter[bytes] = Counter()
        """Bodies and events in both directions. Each must be in the capture as often as it passed."""
        self.unsure: Counter[bytes] = Counter()
        """Others that may have passed: they were in transit when the client disconnected."""

    def cpu(self) -> float:
        """Return the CPU time so far in seconds, user and system."""
        return computed(self.pid)

    def resident(self) -> float:
        """Return the memory in MB."""
        return resident(self.pid)


@contextmanager
def running(plan: Plan, variant: str, seconds: float | None = None) -> Iterator[Subject]:
    """Start the upstream and the proxy. At the end, check that the capture has all of the traffic."""
    with time_limit(seconds or plan.scale.seconds), _process(plan, plan.upstream, plan.cores[0]) as upstream:
        assert upstream.stdout
        port = int(upstream.stdout.readline())
        if variant == DIRECT:
            yield Subject(port, upstream.pid)
            return
        own = _free_port()
        with _process(plan, plan.command(variant, own, port), plan.cores[1]) as proxy:
            _await_listener(own, proxy, variant)
            subject = Subject(own, proxy.pid)
            yield subject
            proxy.send_signal(signal.SIGTERM)
            proxy.wait()
            log = plan.log(variant)
            if log:
                if proxy.returncode:
                    raise Broken(f"{variant} ended with status {proxy.returncode}")
                _verify(log, subject)
                os.remove(log.path)


@contextmanager
def _process(plan: Plan, command: list[str], core: int) -> Iterator[subprocess.Popen[str]]:
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=plan.environ, cwd=plan.folder, text=True)
    finally:
        os.sched_setaffinity(0, ours)
    with process:
        try:
            yield process
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await_listener(port: int, process: subprocess.Popen[str], variant: str) -> None:
    deadline = time.monotonic() + _READY
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Broken(f"{variant} does not listen") from None
            time.sleep(0.01)
        else:
            return


def _verify(log: Log, subject: Subject) -> None:
    """Check that the recording has each body that passed, byte by byte, and nothing else. Raises Broken."""
    begun: dict[int, list[bytes]] = {}
    found: Counter[bytes] = Counter()
    for ch, raw, more in log.pieces():
        begun.setdefault(ch, []).append(raw)
        if not more:
            found[b"".join(begun.pop(ch))] += 1
    lost, strange = subject.passed - found, found - subject.passed - subject.unsure
    if begun or lost or strange:
        raise Broken(f"the capture lacks {lost.total()} frames that passed, and has {strange.total()} that did not")
