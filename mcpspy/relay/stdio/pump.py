"""One direction of the relay of `wrap`: a blocking thread that reads what is there and writes it on.

Only then does the tap get it. A pump knows nothing of frames, and nothing it does can hold up another: a server that
writes without reading does not stall the rest. No descriptor that others share is ever made non-blocking.

Imported on the `wrap` path: nothing heavy here.
"""

import os
import time
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.stream import Channel

CHUNK = 65536  # bytes; what a pipe holds


class Pump:
    """One direction: from `source` to `sink`, the tap last.

    It forwards at once; recording begins when `begin` has told it the channel.
    """

    __slots__ = (
        "_begun",
        "_channel",
        "_first",
        "_settle",
        "busy",
        "end",
        "ended",
        "reads",
        "sink",
        "source",
        "started",
        "stop",
    )

    def __init__(self, source: int, sink: int, started: int, settle: "Callable[[], None] | None" = None) -> None:
        self.source = source
        self.sink = sink
        self.started = started
        self.reads = 0
        self.busy = False  # between a read and the end of what follows from it
        self.stop = False  # write nothing more
        self.end: tuple[int, str] | None = None  # when this direction ended, and how
        self.ended = False  # and was recorded
        self._channel: Channel | None = None
        self._first: Callable[[], None] | None = None
        self._settle = settle  # called before the end is told: what the client did before must come first
        self._begun = allocate_lock()
        self._begun.acquire()

    def begin(self, channel: "Channel", first: "Callable[[], None] | None") -> None:
        """Record into `channel`, beginning with what has passed already; call `first` when something has."""
        self._channel = channel
        self._first = first
        self._begun.release()

    def run(self) -> None:
        """Pump until one side ends, then tell the other by closing our end."""
        how = "reset"
        try:
            how = self._pump()
            if self._settle:
                self._settle()
        finally:  # whatever happened, both peers learn that this direction has ended
            self.end = self.now(), how  # before that: a server that ends because of it ends later
            self._close(self.source)
            self._close(self.sink)
            self.channel().end(*self.end)
            self.ended = True
            self.busy = False

    def channel(self) -> "Channel":
        """The channel to record into; waits for it."""
        if self._channel is None:
            self._begun.acquire()
        assert self._channel
        return self._channel

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started

    def _pump(self) -> str:
        source, sink, started, feed = self.source, self.sink, self.started, None
        read, write, clock = os.read, os.write, time.monotonic_ns
        while True:
            self.busy = False
            try:
                chunk = read(source, CHUNK)
            except BlockingIOError:  # somebody who shares the descriptor made it so
                wait_for(source, "read")
                continue
            except OSError:
                return "reset"
            t = clock() - started
            if not chunk:
                return "eof"
            self.busy = True
            if self.stop:
                return "exit"
            self.reads += 1
            try:
                written = write(sink, chunk)
            except OSError:
                written = 0  # the slow way finds out why
            if written != len(chunk) and not self._forward(chunk[written:]):
                self.channel().feed(chunk, t)
                return "abort"
            if feed is None:
                feed = self.channel().feed
                if self._first:
                    self._first()
            feed(chunk, t)

    def _forward(self, rest: bytes) -> bool:
        """Write what one call could not; False when the peer takes no more.

        A stderr that cannot take bytes, such as a log on a full disk, loses them, as it would without us.
        """
        view = memoryview(rest)
        while view:
            try:
                view = view[os.write(self.sink, view) :]
            except BlockingIOError:  # somebody who shares the descriptor made it so
                wait_for(self.sink, "write")
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError:
                return self.sink == 2
        return True

    def _close(self, fd: int) -> None:
        """Close our end, so that the peer sees it.

        0 and 1 must stay taken, lest another file gets the number; 2 stays open, since we may have something to say.
        """
        if fd > 2:
            os.close(fd)
        elif fd < 2:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, fd)
            os.close(null)


def wait_for(fd: int, what: str) -> None:
    """Wait until a descriptor that others made non-blocking is ready."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN if what == "read" else select.POLLOUT)
    poll.poll()
