"""Many `mcpspy wrap` processes, and calls to the servers behind them at a steady rate."""

import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from time import perf_counter

from benchmarks.relay.processes import CHUNK, Broken, time_limit
from benchmarks.relay.server import WELCOME
from benchmarks.relay.traffic import HANDSHAKE, ping, prose

_BODY = prose(200)
_LIMIT = 30  # seconds until all requests must be answered


class Wrap:
    """One relay with its server. `ask` sends a ping, `read` reads the available answers."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin
        assert self.process.stdout
        self.to, self.back = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.expected: deque[bytes] = deque()
        self._rest = b""

    def greet(self) -> None:
        """Do the handshake. Its `initialize` counts as an exchange."""
        os.write(self.to, b"".join(request for request, _, _ in HANDSHAKE))
        self.expected.append(WELCOME)
        while self.expected:
            self.read()

    def ask(self, number: int) -> None:
        """Send the ping with this number."""
        request, reply = ping(number, _BODY)
        self.expected.append(reply)
        os.write(self.to, request)

    def read(self) -> int:
        """Read answers, compare each with the expected one byte by byte, and return how many there were."""
        chunk = os.read(self.back, CHUNK)
        if not chunk:
            raise Broken("a relay ended before its last answer")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line + b"\n" != self.expected.popleft():
                raise Broken("an answer came back changed")
        return len(lines)


class Fleet:
    """Relays that run in parallel. `exchanges` counts the answered requests."""

    def __init__(self, command: list[str], count: int, environ: dict[str, str]) -> None:
        self._wraps = [Wrap(command, environ) for _ in range(count)]
        self._selector = selectors.DefaultSelector()
        self.exchanges = 0
        for wrap in self._wraps:
            wrap.greet()
            self.exchanges += 1
            self._selector.register(wrap.back, selectors.EVENT_READ, wrap)

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the relays."""
        return [wrap.process.pid for wrap in self._wraps]

    def drive(self, rate: int, seconds: float, look: Callable[[float], None]) -> None:
        """Send `rate` requests per second in all to the servers in turn, and wait for all answers.

        `look` is called between two requests, with the seconds since the first.
        """
        start, asked, all_of_them = perf_counter(), 0, round(rate * seconds)
        while asked < all_of_them or any(wrap.expected for wrap in self._wraps):
            now = perf_counter() - start
            if now > seconds + _LIMIT:
                raise Broken(f"the relays do not keep up with {rate:,} exchanges a second")
            while asked < min(all_of_them, int(now * rate)):
                self._wraps[asked % len(self._wraps)].ask(asked)
                asked += 1
            look(now)
            due = (asked + 1) / rate - (perf_counter() - start)
            for key, _ in self._selector.select(max(due, 0.0)):
                self.exchanges += key.data.read()

    def finish(self) -> None:
        """Close the stdin of each relay, as clients do, and wait for the processes."""
        for wrap in self._wraps:
            assert wrap.process.stdin
            wrap.process.stdin.close()
        with time_limit(_LIMIT):
            statuses = [wrap.process.wait() for wrap in self._wraps]
        if any(statuses):
            raise Broken("a relay ended with a failure")

    def close(self) -> None:
        """Kill all processes that are still running."""
        self._selector.close()
        for wrap in self._wraps:
            wrap.process.send_signal(signal.SIGKILL)  # has no effect if it has ended
            wrap.process.wait()
