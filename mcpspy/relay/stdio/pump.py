"""One direction of the relay of `wrap`: a blocking thread that reads what is there and writes it on.

Only then does the tap get it. A pump knows nothing of frames, and nothing it does can hold up another: a server that
writes without reading does not stall the rest. No descriptor that others share is ever made non-blocking.

A gate may come into force at any moment: another thread sets `gated`, while this one waits in a read or a write, or has
written half a line. Three rules keep every byte in its place:

- `reading` is true from the return of a read until what was read is written and recorded. The pump looks at `gated` in
  between, before the write; it hands over that chunk, and reads no more itself. So whoever has set `gated`, and then
  sees that `reading` is false, knows that the pump writes nothing more itself.
- Then `lock` is for all who write: who holds it writes to the sink, and records what was written before the lock is
  given back. So what others write is between two lines, on the wire as in the capture.
- `inside` says whether what was written ends within a line. Then nobody else writes. What is left of a line that has
  begun passes without a decision.

Imported on the `wrap` path: nothing heavy here.
"""

import os
import sys
import time
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mcpspy.recording.stream import Channel

    class LineGate(Protocol):
        """What takes the place of the plain loop when a gate is in force, such as `GatedLines`."""

        @property
        def busy(self) -> bool:
            """Whether something is still to be forwarded."""

        def run(self, chunk: bytes, t: int) -> str:
            """Forward the chunk that was read at `t`, if it has bytes, and all that comes; returns how that ended."""

        def end(self, how: str) -> str:
            """The source has ended: forward what is held; returns how the direction ended."""

        def hasten(self) -> None:
            """Let all go that is held, and hold nothing more."""

        def abandon(self) -> None:
            """Record that what is held will not be forwarded."""


CHUNK = 65536  # bytes; what a pipe holds
NEVER = 1 << 62
"""A time that does not come."""
_NEWLINE = 10


class Pump:
    """One direction: from `source` to `sink`, the tap last.

    It forwards at once; recording begins when `begin` has set the channel.
    """

    __slots__ = (
        "_begun",
        "_channel",
        "_first",
        "_settle",
        "due",
        "end",
        "ended",
        "gated",
        "inside",
        "lock",
        "look",
        "reading",
        "reads",
        "sink",
        "source",
        "started",
        "stop",
    )

    def __init__(self, source: int, sink: int, started: int, settle: "Callable[[], None] | None" = None) -> None:
        self.source = source
        self.sink = sink  # -1 once it is closed
        self.started = started
        self.reads = 0
        self.reading = False  # between a read and the end of what follows from it: see above
        self.stop = False  # write nothing more
        self.end: tuple[int, str] | None = None  # when this direction ended, and how
        self.ended = False  # and was recorded
        self.lock = allocate_lock()  # who holds it writes and records, once there is a gate
        self.inside = False  # what was written ends within a line
        self.gated: LineGate | None = None  # what decides on lines, from the next one on
        self.due = NEVER  # when `look` is to be called
        self.look: Callable[[int], None] = _nothing  # whether a gate comes into force
        self._channel: Channel | None = None
        self._first: Callable[[], None] | None = None
        self._settle = settle  # called before the end is reported: what the client did before must come first
        self._begun = allocate_lock()
        self._begun.acquire()

    @property
    def busy(self) -> bool:
        """Whether something that was read is still to be forwarded."""
        return self.reading or (self.gated is not None and self.gated.busy)

    def begin(self, channel: "Channel", first: "Callable[[], None] | None") -> None:
        """Record into `channel`, beginning with what has passed already; call `first` when something has."""
        self._channel = channel
        self._first = first
        self._begun.release()

    def run(self) -> None:
        """Pump until one side ends, then tell the other by closing our end."""
        how = "reset"
        try:
            try:
                how = self._pump() if self.gated is None else self.gated.run(b"", 0)
            finally:
                if self.gated:
                    how = self.gated.end(how)
            if self._settle:
                self._settle()
        finally:  # whatever happened, both peers learn that this direction has ended
            self.end = self.now(), how  # before that: a server that ends because of it ends later
            self._close(self.source)
            with self.lock:
                self.close_sink()
            self.channel().end(*self.end)
            self.ended = True
            self.reading = False

    def channel(self) -> "Channel":
        """The channel to record into; waits for it."""
        if self._channel is None:
            with self._begun:
                pass
        assert self._channel
        return self._channel

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started

    def passed(self) -> None:
        """Something has passed: wake the code that waits for the first frame."""
        if self._first:
            self._first()
            self._first = None

    def _pump(self) -> str:
        source, sink, started, feed = self.source, self.sink, self.started, None
        read, write, clock = os.read, os.write, time.monotonic_ns
        while True:
            self.reading = False
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
            self.reading = True
            if self.stop:
                return "exit"
            self.reads += 1
            if t >= self.due:
                self.look(t)
            if self.gated is not None:
                return self.gated.run(chunk, t)
            try:
                written = write(sink, chunk)
            except OSError:
                written = 0  # the slow way finds out why
            if written != len(chunk) and not self.forward(chunk[written:]):
                self.channel().feed(chunk, t)
                return "abort"
            self.inside = chunk[-1] != _NEWLINE
            if feed is None:
                feed = self.channel().feed
                self.passed()
            feed(chunk, t)

    def forward(self, rest: bytes) -> bool:
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

    def close_sink(self) -> None:
        """Close our end of the sink, if that has not been done; only with the lock held."""
        sink, self.sink = self.sink, -1
        if sink >= 0:
            self._close(sink)

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


def _nothing(_: int) -> None:
    """Look for nothing."""


def wait_for(fd: int, what: str) -> None:
    """Wait until a descriptor that others made non-blocking is ready."""
    import select

    if sys.platform != "win32":  # where no pipe is ever non-blocking
        poll = select.poll()
        poll.register(fd, select.POLLIN if what == "read" else select.POLLOUT)
        poll.poll()
