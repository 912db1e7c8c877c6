"""The real server behind a mock: started on demand, under `mcpspy wrap`, which records it.

So it is recorded, started and ended like any other server, and it shares the mock's stderr. One thread writes, so that
a server that does not read blocks nothing else. One thread reads, and queues a call for each line for the mock. If the
client does not read, the server blocks, as it would without mcpspy.
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
"""Seconds for the server to exit by itself. Clients give a server two seconds in total before they use signals."""
_AFTER_SIGNAL = 0.4  # seconds
_LOOK = 0.1  # seconds between two checks whether it should end
AHEAD = 64
"""The number of lines that may wait for the mock."""


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
        """Start the server; return the function that sends it a line. Its lines go to `missing` by way of `heard`."""
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        for work in (self._write, partial(self._read, missing)):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()
        return self._to_send.put

    def end(self) -> None:
        """Stop sending, and make the server exit; afterwards all of its lines are in `heard`."""
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
