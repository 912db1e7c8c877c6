"""A server on stdio whose client is ours: started, driven line by line, recorded as by a relay.

The main thread starts the server and waits for its end, as `mcpspy.process.child` requires. One thread writes, so that
a server that does not read blocks only that thread. Two threads read. Traffic is recorded afterwards, with the time at
which it was read or just before it was written. A server that exits, closes its stdout or never stops sending appears
as an `Ended` among its lines. A server that does not exit by itself is terminated, with all processes that it started.
A signal to mcpspy also ends it.
"""

import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Open
from mcpspy.errors import CaptureError
from mcpspy.process.ending import KILL, end, signal_group
from mcpspy.recording.recording import Channel, Recording
from mcpspy.transport.streams import chunks, lines, room, send
from mcpspy.wire.jsonrpc import Id

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn

PATIENCE = 2.0  # seconds for a server to exit by itself, and again after SIGTERM
CLOSED = 2.0
"""Seconds to wait for the exit of a server that closed its stdout, because the exit code tells more."""
_DRAIN = 0.25  # seconds to read what a server left in its pipes, if another process holds them open
CLOSES = "closed its stdout"
"""The reason for a server that runs and can send nothing more."""
FLOODS = "said far more than in the capture"
"""The reason for a server that never stops sending."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The server will send nothing more; `how` is the reason."""

    how: str
    code: int | None = field(default=None, compare=False)
    """The exit code, negative for a signal, if it has exited."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request cannot be answered; `how` is the reason."""

    request: Id
    how: str


class Link:
    """A running server and its capture."""

    def __init__(
        self,
        argv: list[str],
        name: str,
        path: str,
        say: Callable[[str], None],
        recorded: int,
        environ: dict[bytes, bytes] | None = None,
        cwd: str | None = None,
        written: Sequence[str] = (),
    ) -> None:
        """Start `argv`, and record in the file at `path`. Raises SpawnError or CaptureError.

        Call it from the main thread, while that is the only thread. `say` receives problems with the recording.
        `recorded` is the number of bytes that the server of the capture sent. `environ` and `cwd` are the variables and
        the directory of the server, if they are not ours. `written` is the command for the capture, if `argv` may have
        secrets that nobody recognises by their form.
        """
        environ = environment() if environ is None else environ
        self.interrupted = False
        """Whether a signal interrupted the replay."""
        self.heard: queue.SimpleQueue[bytes | Ended | Failed] = queue.SimpleQueue()
        """The lines of the server, and finally that it has ended."""
        self._room = room(recorded)  # bytes
        reports: list[str] = []
        self._recording = Recording(reports.append)
        self._now = self._recording.clock.now
        self._server = spawn(argv, environ, apart=True, cwd=cwd)
        self._server.confirm()
        variables = [os.fsdecode(variable) for variable in environ]
        self._recording.begin(
            "stdio", name, output=path, environ={}, argv=[*(written or argv)], variables=variables, cwd=cwd
        )
        if self._recording.path is None:
            signal_group(self._server.pid, KILL)
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
        """Queue a line for sending."""
        self._to_send.put(line)

    def close(self) -> None:
        """Stop sending, and make the server exit: by itself, by SIGTERM, by SIGKILL."""
        self._to_send.put(None)
        end(self._gone.wait, partial(signal_group, self._server.pid), PATIENCE, PATIENCE)

    def wait(self) -> None:
        """Wait in the main thread until the server has exited; its last lines come before that in `heard`."""
        code = self._server.wait(interrupted=self._interrupt)
        self._gone.set()
        for reader in self._readers:
            reader.join(_DRAIN)
        signal_group(self._server.pid, KILL)  # processes that it started and left behind
        self.heard.put(Ended(f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}", code))
        for channel in (self._stdin, self._stdout, self._stderr):
            channel.end(self._now(), "exit")
        self._recording.end(self._now(), code)

    def _interrupt(self, _: int) -> None:
        if self.interrupted:  # the second signal kills at once
            signal_group(self._server.pid, KILL)
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
            self.heard.put(Ended(CLOSES))

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


def stderr_of(path: str, most: int) -> list[str]:
    """Return the last lines that the server of a capture wrote to stderr."""
    stderr, said = set(), deque[bytes](maxlen=most)
    for record in Capture(path).records():
        if isinstance(record, Open) and record.role == "stderr":
            stderr.add(record.ch)
        elif isinstance(record, Frame) and record.ch in stderr and record.raw.strip():
            said.append(record.raw.strip())
    return [line.decode(errors="replace") for line in said]


class _Recorded(Protocol):
    interrupted: bool

    def wait(self) -> None: ...
    def close(self) -> None: ...


_RecordedLink = TypeVar("_RecordedLink", bound=_Recorded)
_Outcome = TypeVar("_Outcome")


def run_session(connect: Callable[[], _RecordedLink], play: Callable[[_RecordedLink], _Outcome]) -> _Outcome:
    """Connect, run a client in a thread of its own until it is done, end the server, and return the client's outcome.

    Call it from the main thread, while that is the only thread. Raises what `connect` and `play` raise, and
    KeyboardInterrupt after the server has ended if a signal interrupted the session.
    """

    def played() -> _Outcome:
        try:
            return play(link)
        finally:
            link.close()

    with signals_restored():
        link = connect()
        with ThreadPoolExecutor(max_workers=1) as pool:
            playing = pool.submit(played)
            link.wait()
        if link.interrupted:
            _discard_signals()
            raise KeyboardInterrupt
    return playing.result()


def _discard_signals() -> None:
    """Take the signals that have arrived since one interrupted the session: nothing more is to be interrupted."""
    if sys.platform != "win32":
        ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
        while pending := signal.sigpending() & ending:
            signal.sigwait(pending)


@contextmanager
def signals_restored() -> Iterator[None]:
    """Undo what `Child` does to signals: neither a second server nor the caller may inherit that."""
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


_ENDING = ("SIGTERM", "SIGINT", "SIGHUP")


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make signals that end this process raise KeyboardInterrupt, so that what it started is ended too.

    A signal that was ignored when this process started, such as SIGINT in the background of a script, would be ignored
    by a server as well, and there would be nothing to compare. A signal with a handler gets its default action in a new
    process.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [number for name in _ENDING if (number := getattr(signal, name, None)) is not None]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # started by nohup
        numbers.remove(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let signals within `signals_interrupt` raise KeyboardInterrupt only at the end of this block."""
    came: list[int] = []
    known = [number for name in _ENDING if (number := getattr(signal, name, None)) is not None]
    raising = [number for number in known if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in raising}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
