"""One of the servers that replace one another: its pipes, the threads that read them, and whole lines in and out.

A line is forwarded when it is complete, so that two servers never share one. So its size in memory has no limit. Its
bytes are not changed.
"""

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from threading import Event, Lock, Thread, get_ident

from mcpspy.process.child import Child
from mcpspy.process.pipes import waiting
from mcpspy.relay.stdio.pump import CHUNK, interrupt, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Channel


class LineSource:
    """Reads lines from a descriptor, in one thread; `started` is the start of the capture.

    It has the attributes that `relay.stdio.drain` needs.
    """

    def __init__(self, source: int, started: int) -> None:
        self.source = source
        self.reads = 0
        self.busy = False
        """Whether bytes were read that are not forwarded yet."""
        self.stop = False
        """Set to stop reading."""
        self.ended = False
        """Whether the source has ended and everything is forwarded."""
        self.reset = False
        """Whether the source ended with an error."""
        self._started = started
        self._rest: int | None = None  # the bytes to read before the end, if the reader of the lines has left
        self._thread = 0  # the thread that reads
        self._closing = Lock()  # held to close the source, and to interrupt a read of it

    def now(self) -> int:
        """Return the nanoseconds since the capture started."""
        return time.monotonic_ns() - self._started

    def lines(self) -> Iterator[tuple[bytes, bool, int]]:
        """Yield each line without its newline, whether it had one, and when its last byte was read."""
        parts: list[bytes] = []
        while chunk := self.read():
            t = self.now()
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                yield b"".join([*parts, line]), True, t
                parts.clear()
            if rest:
                parts.append(rest)
        if parts:
            yield b"".join(parts), False, self.now()

    def read(self) -> bytes:
        """Return the next bytes; empty at the end. The caller has forwarded the bytes of the last call."""
        self._thread = get_ident()
        while not self.stop and self._rest != 0:
            self.busy = False
            rest = self._rest  # `reader_left` may set it during the read, and then does not count the bytes of the read
            try:
                chunk = os.read(self.source, CHUNK if rest is None else min(rest, CHUNK))
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                if self._rest is not None:
                    return b""
                wait_for(self.source, "read")
                continue
            except OSError:
                self.reset = True
                return b""
            self.busy = True
            self.reads += 1
            if rest is not None:
                self._rest = max(rest - len(chunk), 0)
            return b"" if self.stop else chunk
        return b""

    def reader_left(self) -> None:
        """Yield what is in the pipe, and then end, because nobody reads the lines any more; any thread calls this."""
        with self._closing:
            if self._rest is None and not self.ended:
                self._rest = waiting(self.source)
                interrupt(self.source, lambda: self._thread)

    def close(self) -> None:
        """Close the source; the peer's next write then fails."""
        with self._closing:
            self.busy, self.ended = False, True
            os.close(self.source)


class LineSink:
    """A descriptor that several threads write whole lines to, and the channel to record them in."""

    def __init__(self, fd: int, channel: "Channel") -> None:
        self._fd = fd
        self._channel = channel
        self._lock = Lock()

    def forward(self, line: bytes, t: int, *, whole: bool = True) -> bool:
        """Write a line unchanged, and record it as received at `t`; return False if it cannot be written."""
        data = line + b"\n" if whole else line
        with self._lock:
            written = self._write(data)
            if written:
                self._channel.feed(data, t)
        return written

    def write(self, frames: "tuple[bytes, ...]") -> bool:
        """Write frames, which the caller records; return False if they cannot be written."""
        with self._lock:
            return self._write(b"".join(frame + b"\n" for frame in frames))

    def close(self, seconds: float = -1) -> bool:
        """Close it, unless another thread is still writing after that time; return whether it is closed."""
        if not self._lock.acquire(timeout=seconds):
            return False
        fd, self._fd = self._fd, -1
        try:
            if fd > 2:
                os.close(fd)
            elif fd >= 0:  # the number must stay in use, so that no other file gets it
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, fd)
                os.close(null)
        finally:
            self._lock.release()
        return True

    def _write(self, data: bytes) -> bool:
        if self._fd < 0:
            return False
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                wait_for(self._fd, "write")
            except OSError:
                return False
        return True


_TAIL = 15  # the last lines of stderr, which show why a server exited
_LONGEST = 500  # the most characters of such a line
_SETTLES = 1_000_000_000  # nanoseconds after a server is ready in which it may write files because of its start
_TICK = 10_000_000  # nanoseconds by which the time of a file may lag behind the clock
_ERROR = re.compile(r"\s*[\w.]*(Error|Exception|error)\b")


class ReloadableServer:
    """A started server; `stdin` and `stderr` are the channels to record in, `number` counts from 1.

    `begin` starts to read its pipes. It calls `line` with the server, each line of its stdout, whether the line has a
    newline, and its time.
    """

    def __init__(self, child: Child, number: int, stdin: "Channel", stderr: "Channel", started: int) -> None:
        self.number = number
        self.pid = child.pid
        self.stdin = LineSink(child.stdin, stdin)
        self.stdout, self.stderr = LineSource(child.stdout, started), LineSource(child.stderr, started)
        self.over = False
        """Whether another server has replaced it: nothing of it reaches the client any more."""
        self.exited = Event()
        """Set when it has exited, or will be ended for its `fault`."""
        self.answered = Event()
        """Set when it has sent something; cleared by the code that waits for that."""
        self.leaving = False
        """Whether the client's lines wait for its successor."""
        self.fault = ""
        """Why it cannot be used; empty if it can."""
        self.ready = False
        self.began: int | None = None
        """When it answered the handshake with us, or needed none."""
        self._used: int | None = None  # when it first answered the client, or exited
        self._read, self._read_errors = Event(), Event()
        self._channel = stderr
        self._tail: deque[str] = deque(maxlen=_TAIL)

    def begin(self, line: "Callable[[ReloadableServer, bytes, bool, int], None]") -> None:
        """Read stdout and stderr, each in a thread."""

        def read() -> None:
            try:
                for raw, whole, t in self.stdout.lines():
                    line(self, raw, whole, t)
            finally:
                self._end(self.stdout, self._read)

        Thread(target=read, daemon=True).start()
        Thread(target=self._forward_errors, daemon=True).start()

    def settle(self, t: int) -> None:
        """Note that it has answered the client, or has exited: later changes of files are not caused by its start."""
        if self._used is None:
            self._used = t

    def is_starting(self, t: int) -> bool:
        """Return whether its start may be the cause of a change of a file at `t`.

        That is before it is ready, or in the second after that and before the client has used it.
        """
        if self.began is None:
            return self._used is None or t < self._used
        last = self.began + _SETTLES
        return t < max(self.began, last if self._used is None else min(last, self._used - _TICK))

    def wait_for_rest(self, seconds: float) -> None:
        """Wait until the rest in its pipes is forwarded, but no longer than this: other processes may hold them."""
        self._read.wait(seconds)
        self._read_errors.wait(seconds)
        self.stdout.stop = self.stderr.stop = True

    @property
    def last_words(self) -> str:
        """The last lines of stderr."""
        return "\n".join(self._tail)

    @property
    def last_word(self) -> str:
        """The last of these lines that names an error, else the last line."""
        lines = [line.strip() for line in self._tail]
        return next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")

    def _forward_errors(self) -> None:
        rest = b""
        try:
            while chunk := self.stderr.read():
                t = self.stderr.now()
                with STDERR:
                    write_errors(chunk)
                    self._channel.feed(chunk, t)
                *lines, rest = (rest + chunk)[-65536:].split(b"\n")
                self._tail += [_shown(line) for line in lines if line.strip()]
        finally:
            if rest.strip():
                self._tail.append(_shown(rest))
            self._channel.cut(self.stderr.now())
            self._end(self.stderr, self._read_errors)

    def _end(self, source: LineSource, told: Event) -> None:
        source.close()
        told.set()


STDERR = Lock()
"""Hold it to write to stderr and to record that."""


def write_errors(data: bytes) -> None:
    """Write to stderr; bytes that cannot be written, as on a full disk, are lost, as they would be without us."""
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        pass


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip()[:_LONGEST]
