"""One direction of the relay of `wrap`: a thread with blocking reads and writes that forwards bytes, then records them.

A pump knows nothing of frames, and it cannot delay another pump: a server that writes without reading does not block
the rest. A descriptor that other processes share is never made non-blocking.

A gate may come into force at any moment: another thread sets `gated`, while the pump waits in a read or a write, or has
written half a line. Three rules keep every byte in its place:

- `reading` is true from the return of a read until the bytes are written and recorded. The pump checks `gated` in
  between, before the write; if it is set, the pump hands over the chunk and reads no more itself. So a thread that has
  set `gated`, and then finds `reading` false, knows that the pump writes nothing more itself.
- From then on, every writer uses `lock`: a thread that holds it writes to the sink, and records what it wrote before it
  releases the lock. So other threads write only between two lines, on the wire as in the capture.
- `inside` is true if the written bytes end within a line. Then no other thread writes. The rest of a line that has
  begun passes without a decision.

A pump without a gate forwards before there is a capture, and keeps the chunks of this time, up to a size, so that the
imports of the recording delay no frame.

Imported on the `wrap` path: no heavy imports here.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import select
import sys
import time
from _thread import allocate_lock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mcpspy.recording.recording import Channel

    class LineGate(Protocol):
        """Replaces the plain loop when a gate is in force; `GatedLines` implements it."""

        @property
        def busy(self) -> bool:
            """Whether something is not forwarded yet."""

        def run(self, chunk: bytes, t: int) -> str:
            """Forward the chunk that was read at `t`, if it is not empty, and all that follows; return how it ended."""

        def take(self, chunk: bytes, t: int) -> None:
            """Decide on the chunk that was read at `t`."""

        def end(self, how: str) -> str:
            """Forward held frames, because the source has ended; return how the direction ended."""

        def hasten(self) -> None:
            """Release all held frames, and hold no more."""

        def abandon(self) -> None:
            """Forward nothing more, and record the release of each held frame."""

        def reader_left(self) -> None:
            """Forward nothing more, because nobody reads it; return at once."""


CHUNK = 65536  # bytes; the capacity of a pipe
_EARLY, _MANY = 1 << 20, 4096  # the most bytes and chunks that are kept until there is a capture
NEVER = 1 << 62
"""A time in the far future."""
_NEWLINE = 10


class Pump:
    """One direction, from `source` to `sink`.

    It forwards at once; it records as soon as `begin` has set the channel.
    """

    __slots__ = (
        "_begun",
        "_channel",
        "_closing",
        "_early",
        "_early_size",
        "_first",
        "_keeping",
        "_settle",
        "_thread",
        "due",
        "end",
        "ended",
        "gated",
        "inside",
        "lock",
        "look",
        "reader_gone",
        "reading",
        "reads",
        "sink",
        "source",
        "started",
        "stop",
    )

    def __init__(self, source: int, sink: int, started: int, settle: "Callable[[], None] | None" = None) -> None:
        self.source = source
        self.sink = sink  # -1 after it is closed
        self.started = started
        self.reads = 0
        self.reading = False  # see the rules above
        self.stop = False  # set to write nothing more
        self.reader_gone = False  # whether the reader of the sink is known to have left
        self.end: tuple[int, str] | None = None  # when this direction ended, and how
        self.ended = False  # whether that was recorded
        self.lock = allocate_lock()  # held to write and record, once there is a gate
        self.inside = False  # whether the written bytes end within a line
        self.gated: LineGate | None = None  # decides on lines, from the next one on
        self.due = NEVER  # the time at which to call `look`
        self.look: Callable[[int], None] = _nothing  # checks whether a gate comes into force
        self._channel: Channel | None = None
        self._early: list[tuple[bytes, int]] = []  # forwarded chunks that are not recorded yet
        self._early_size = 0  # their bytes
        self._keeping = allocate_lock()  # guards these three
        self._first: Callable[[], None] | None = None
        self._settle = settle  # called before the end is reported, so that earlier signals of the client come first
        self._closing = allocate_lock()  # held to close the source, and to interrupt a read of it
        self._thread = 0  # the thread that runs
        self._begun = allocate_lock()
        self._begun.acquire()

    @property
    def _ours(self) -> bool:
        """Whether the source is a pipe of ours, and not a descriptor that other processes share."""
        return self.source > 2

    @property
    def busy(self) -> bool:
        """Whether bytes were read that are not forwarded yet."""
        return self.reading or (self.gated is not None and self.gated.busy)

    def begin(self, channel: "Channel", first: "Callable[[], None] | None") -> None:
        """Record into `channel`, beginning with the bytes forwarded so far; call `first` after the first bytes."""
        self._first = first
        while True:
            with self._keeping:  # not while they are recorded: the pump goes on and keeps more
                early, self._early, self._early_size = self._early, [], 0
                if not early:
                    self._channel = channel
                    break
            for chunk, t in early:
                channel.feed(chunk, t)
            self.passed()
        self._begun.release()

    def run(self) -> None:
        """Forward until one side ends, then close our end of both descriptors."""
        how = "reset"
        self._thread = get_ident()
        try:
            try:
                how = self._pump() if self.gated is None else self.gated.run(b"", 0)
                if how == "abort":
                    self._take_rest()
            finally:
                if self.gated:
                    how = self.gated.end(how)
            if self._settle:
                self._settle()
        finally:  # in any case, both peers must see that this direction has ended
            self.end = self.now(), how  # before closing: a server that exits because of that exits later
            with self._closing:
                self._close(self.source)
            with self.lock:
                self.close_sink()
            self.channel().end(*self.end)
            self.ended = True
            self.reading = False

    def reader_left(self) -> None:
        """End this direction, because the reader of the sink has left; another thread calls this (`ending.watch`)."""
        self.reader_gone = True
        if self.gated:
            self.gated.reader_left()
        with self._closing:
            if self.end is None and self._ours:
                interrupt(self.source, lambda: self._thread)

    def channel(self) -> "Channel":
        """Return the channel to record into; wait until it is set."""
        if self._channel is None:
            with self._begun:
                pass
        assert self._channel
        return self._channel

    def now(self) -> int:
        """Return the nanoseconds since the capture started."""
        return time.monotonic_ns() - self.started

    def passed(self) -> None:
        """Wake the code that waits for the first frame."""
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
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                if self.reader_gone:
                    return "abort"
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
                written = 0  # `forward` finds the reason
            if written != len(chunk) and not self.forward(chunk[written:]):
                self.channel().feed(chunk, t)
                return "abort"
            self.inside = chunk[-1] != _NEWLINE
            if feed is None:
                feed = self._record_first(chunk, t)
            else:
                feed(chunk, t)

    def _record_first(self, chunk: bytes, t: int) -> "Callable[[bytes, int], None] | None":
        """Record a chunk, or keep it until there is a capture; return what records the next one, if there is.

        After `_EARLY` bytes or `_MANY` chunks the pump waits for the capture.
        """
        with self._keeping:
            channel = self._channel
            if channel is None:
                self._early.append((chunk, t))
                self._early_size += len(chunk)
                if self._early_size < _EARLY and len(self._early) < _MANY:
                    return None
        if channel is None:
            return self.channel().feed
        channel.feed(chunk, t)
        self.passed()
        return channel.feed

    def _take_rest(self) -> None:
        """Record what the peer has written so far and nobody will read, before it learns that the reader has left.

        What it goes on to write meanwhile is lost, as it is without us: then that write fails.
        """
        if not self._ours:
            return
        if sys.platform == "win32":
            from mcpspy.process.child_windows import waiting
        else:
            from mcpspy.process.pipes import waiting

        take = self.channel().feed if self.gated is None else self.gated.take
        unread = waiting(self.source)
        while unread > 0 and (chunk := os.read(self.source, min(unread, CHUNK))):
            unread -= len(chunk)
            take(chunk, self.now())

    def forward(self, rest: bytes) -> bool:
        """Write the bytes that one call did not write; return False if the peer reads no more.

        If stderr cannot be written, as a log on a full disk, the bytes are lost, as they would be without us.
        """
        view = memoryview(rest)
        while view:
            try:
                view = view[os.write(self.sink, view) :]
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                wait_for(self.sink, "write")
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError:
                return self.sink == 2
        return True

    def close_sink(self) -> None:
        """Close our end of the sink, unless it is closed; call it with the lock held."""
        sink, self.sink = self.sink, -1
        if sink >= 0:
            self._close(sink)

    def _close(self, fd: int) -> None:
        """Close our end, so that the peer sees it.

        The numbers 0 and 1 must stay in use, so that no other file gets them; 2 stays open for our own messages.
        """
        if fd > 2:
            os.close(fd)
        elif fd < 2:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, fd)
            os.close(null)


def _nothing(_: int) -> None:
    """Do nothing: there is nothing to check."""


def wait_for(fd: int, what: str) -> None:
    """Wait until a descriptor that another process made non-blocking is ready."""
    if sys.platform != "win32":  # on Windows no pipe is non-blocking
        poll = select.poll()
        poll.register(fd, select.POLLIN if what == "read" else select.POLLOUT)
        poll.poll()


def interrupt(source: int, reader: "Callable[[], int]") -> None:
    """Let a thread read what is in the pipe `source`, and then not wait for more: its reads fail instead.

    `reader` returns the thread that reads it, or 0 if none has begun to.

    The handler of the signal does nothing (`ending.watch`): a read that waits fails with EINTR and is repeated. The
    read end of the pipe must be ours alone, because every process that shares it gets it non-blocking.
    """
    os.set_blocking(source, False)
    thread = reader()  # a thread that begins to read after this finds the pipe as it is now
    if thread and sys.platform != "win32":
        _signal.pthread_kill(thread, _signal.SIGURG)
