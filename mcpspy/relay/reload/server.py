"""One of the servers that replace one another: its pipes, and the threads that read them."""

import os
import re
from collections import deque
from threading import Event, Lock, Thread

from mcpspy.process.child import Child
from mcpspy.relay.reload.streams import LineSink, LineSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Channel

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
