"""Read a descriptor line by line, and write whole lines to a descriptor that several threads write to.

A line is forwarded when it is complete, so that two servers never share one. So its size in memory has no limit. Its
bytes are not changed.
"""

import os
import time
from collections.abc import Iterator
from threading import Lock, get_ident

from mcpspy.process.pipes import waiting
from mcpspy.relay.stdio.pump import CHUNK, interrupt, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
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
