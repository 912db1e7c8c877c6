"""Many `mcpspy wrap` processes, and who calls the servers behind them at a steady pace."""

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
_LIMIT = 30  # seconds until all that was asked must be answered


class Wrap:
    """One relay with its server. `ask` sends a ping, `read` takes the answers that are there."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin
        assert self.process.stdout
        self.to, self.back = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.expected: deque[bytes] = deque()
        self._rest = b""

    def greet(self) -> None:
        """The handshake; its `initialize` is an exchange too."""
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
        """How many answers came; each must be the one that is expected, byte by byte."""
        chunk = os.read(self.back, CHUNK)
        if not chunk:
            raise Broken("a relay ended before its last answer")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line + b"\n" != self.expected.popleft():
                raise Broken("an answer came back changed")
        return len(lines)


class Fleet:
    """Relays that run side by side; `exchanges` counts what was answered."""

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
        """The processes of the relays."""
        return [wrap.process.pid for wrap in self._wraps]

    def drive(self, rate: int, seconds: float, look: Callable[[float], None]) -> None:
        """Ask the servers in turn, so many times a second in all, until each answer is here.

        `look` is called between two questions, with the seconds since the first.
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
        """End the input of each, as clients do, and wait for them."""
        for wrap in self._wraps:
            assert wrap.process.stdin
            wrap.process.stdin.close()
        with time_limit(_LIMIT):
            statuses = [wrap.process.wait() for wrap in self._wraps]
        if any(statuses):
            raise Broken("a relay ended with a failure")

    def close(self) -> None:
        """Leave no process, whatever happened."""
        self._selector.close()
        for wrap in self._wraps:
            wrap.process.send_signal(signal.SIGKILL)  # nothing, where it has ended
            wrap.process.wait()
