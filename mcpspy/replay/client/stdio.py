"""A server that we talk to as its client: started, spoken to line by line, recorded as a relay would.

The main thread starts the server and waits for its end, as `mcpspy.process.child` wants it. One thread writes, so that
a server which does not read stops nobody but that; two read. What passes is recorded afterwards, with the time at which
it was read or was about to be written. A server that dies, stops talking or talks without end is an `Ended` among the
lines that it said; one that does not end by itself is made to, with all that it started. A signal to us is one more
reason to end it.
"""

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcpspy.errors import CaptureError
from mcpspy.recording.recording import Recording
from mcpspy.recording.stream import Channel
from mcpspy.replay.streams import chunks, lines, room, send
from mcpspy.wire.jsonrpc import Id

if sys.platform == "win32":
    from mcpspy.process.child_windows import WindowsChild as Child
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import Child, environment, spawn

PATIENCE = 2.0  # seconds for a server to end by itself, then once more after SIGTERM
CLOSED = 2.0
"""Seconds for a server that has closed its stdout to end, which tells more."""
_DRAIN = 0.25  # seconds to read what a server left in its pipes, should somebody else hold them
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that nothing survives; Windows has but one way."""
FLOODS = "said far more than in the capture"
"""Of a server that talks without end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more is to be expected of the server; why."""

    how: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A request cannot be answered; why."""

    request: Id
    how: str


class Link:
    """A running server and its capture."""

    def __init__(self, argv: list[str], name: str, path: str, say: Callable[[str], None], recorded: int) -> None:
        """Start `argv`, and record in the file at `path`. Raises SpawnError or CaptureError.

        Call it from the main thread, while that is the only one; `say` gets what goes wrong with the recording, and
        `recorded` is how many bytes the server of the capture said.
        """
        environ = environment()
        self.interrupted = False
        """Whether a signal asked us to end."""
        self.heard: queue.SimpleQueue[bytes | Ended | Failed] = queue.SimpleQueue()
        """The lines of the server, and then that it has ended."""
        self._room = room(recorded)  # bytes
        reports: list[str] = []
        self._recording = Recording(reports.append)
        self._now = self._recording.clock.now
        self._server = spawn(argv, environ, apart=True)
        self._server.confirm()
        variables = [os.fsdecode(variable) for variable in environ]
        self._recording.begin("stdio", name, output=path, environ={}, argv=argv, variables=variables)
        if self._recording.path is None:
            end_group(self._server, KILL)
            self._server.wait()
            raise CaptureError(reports[-1].partition(";")[0])
        for sentence in reports:
            say(sentence)
        self._recording.report = say
        self.path = self._recording.path
        roles = (("client", "stdin"), ("server", "stdout"), ("server", "stderr"))
        channels = (Channel(self._recording, 0, sender, role) for sender, role in roles)
        self._stdin, self._stdout, self._stderr = channels
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone = threading.Event()
        self._readers = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_aside)]
        for thread in (*self._readers, threading.Thread(target=self._write, daemon=True)):
            thread.start()

    def send(self, line: bytes) -> None:
        """Have a line sent."""
        self._to_send.put(line)

    def close(self) -> None:
        """Say no more, and see to it that the server ends: by itself, by SIGTERM, by SIGKILL."""
        self._to_send.put(None)
        for number in (signal.SIGTERM, KILL):
            if self._gone.wait(PATIENCE):
                return
            end_group(self._server, number)

    def wait(self) -> None:
        """Wait until the server has ended, in the main thread; what it left is heard before that is."""
        code = self._server.wait(interrupted=self._interrupt)
        self._gone.set()
        for reader in self._readers:
            reader.join(_DRAIN)
        end_group(self._server, KILL)  # what it started and left behind
        self.heard.put(Ended(f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"))
        for channel in (self._stdin, self._stdout, self._stderr):
            channel.end(self._now(), "exit")
        self._recording.end(self._now(), code)

    def _interrupt(self, _: int) -> None:
        if self.interrupted:  # once more: at once
            end_group(self._server, KILL)
        self.interrupted = True
        self.heard.put(Ended("was left"))

    def _write(self) -> None:
        sound = True
        while (line := self._to_send.get()) is not None:
            t = self._now()
            sound = sound and send(self._server.stdin, line)
            if sound:
                self._stdin.feed(line + b"\n", t)
        os.close(self._server.stdin)
        self._stdin.end(self._now(), "eof")

    def _read(self) -> None:
        for line in lines(self._recorded(self._server.stdout, self._stdout)):
            self.heard.put(line)
        if not self._gone.wait(CLOSED):
            self.heard.put(Ended("closed its stdout"))

    def _read_aside(self) -> None:
        for _ in self._recorded(self._server.stderr, self._stderr):
            pass

    def _recorded(self, fd: int, channel: Channel) -> Iterator[bytes]:
        how = "eof"
        for chunk in chunks(fd):
            self._room -= len(chunk)
            if self._room < 0:
                how = "abort"
                self.heard.put(Ended(FLOODS))
                break
            channel.feed(chunk, self._now())
            yield chunk
        channel.end(self._now(), how)
        os.close(fd)


@contextmanager
def signals_restored() -> Iterator[None]:
    """Undo what `Child` does to signals: neither a second server nor our caller is to inherit that."""
    if sys.platform == "win32":
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def end_group(server: Child, number: int) -> None:
    """Send a signal to a server that was started apart, and to all that it has started."""
    try:
        if sys.platform == "win32":
            os.kill(server.pid, number)
        else:
            os.killpg(server.pid, number)
    except (ProcessLookupError, PermissionError):  # it has just ended; so macOS says of zombies
        pass
