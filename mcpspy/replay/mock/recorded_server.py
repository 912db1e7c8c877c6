"""The real server behind a mock: started when it is needed, behind `mcpspy wrap`, which records it.

So what is recorded of it, and how it is started and ended, is as for any server, and its stderr is the mock's. One
thread writes, so that a server that does not read stops nobody; one reads, and puts what is to be done with each line
where the mock takes it. A client that does not read stops the server, as it would without us.
"""

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

from mcpspy.replay.mock.missing import Missing
from mcpspy.replay.mock.stdio import Heard
from mcpspy.replay.streams import chunks, lines, send

PATIENCE = 1.2
"""Seconds for the server to end by itself. Clients give a server two seconds in all before they use signals."""
_AFTER_SIGNAL = 0.4  # seconds
_LOOK = 0.1  # seconds between two looks whether it is to end
AHEAD = 64
"""Lines that it may say before the mock takes the first of them."""


class RecordedServer:
    """A server that is not running yet; its session is recorded in the file `capture`, under a `name`."""

    def __init__(self, command: Sequence[str], capture: str, name: str | None, heard: Heard) -> None:
        named = ["--name", name] if name else []
        self._argv = [sys.executable, "-m", "mcpspy", "wrap", "--no-control", *named, "-o", capture, "--", *command]
        self._heard = heard
        self._ahead = threading.Semaphore(AHEAD)
        self._ending = False
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, missing: Missing) -> Callable[[bytes], None]:
        """Start it; returns what has a line sent. What it says `missing` gets, by way of `heard`."""
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        for work in (self._write, partial(self._read, missing)):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()
        return self._to_send.put

    def end(self) -> None:
        """Say no more to it, and see to it that it ends; then all that it said is in `heard`."""
        if self._process is None:
            return
        self._to_send.put(None)
        self._ending = True
        for stop, seconds in ((self._process.terminate, PATIENCE), (self._process.kill, _AFTER_SIGNAL)):
            try:
                self._process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                stop()
        self._process.wait()
        self._threads[1].join(_AFTER_SIGNAL)

    def _write(self) -> None:
        assert self._process
        assert self._process.stdin
        sound = True
        while (line := self._to_send.get()) is not None:
            sound = sound and send(self._process.stdin.fileno(), line)
        self._process.stdin.close()

    def _read(self, missing: Missing) -> None:
        assert self._process
        assert self._process.stdout
        with self._process.stdout as stdout:
            for line in lines(chunks(stdout.fileno())):
                while not self._ahead.acquire(timeout=_LOOK) and not self._ending:
                    pass
                self._heard.put(partial(self._say, missing, line))
        code = self._process.wait()
        how = f"ended with the exit code {code}" if code >= 0 else f"was ended by the signal {-code}"
        self._heard.put(partial(missing.ended, how))

    def _say(self, missing: Missing, line: bytes) -> None:
        self._ahead.release()
        missing.said(line)
