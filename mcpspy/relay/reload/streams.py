"""Lines in and lines out: reading a descriptor line by line, and writing whole lines to one that others write to.

A line is forwarded when it is whole, so that two servers never share one; it takes its size in memory. Its bytes are
those that came.
"""

import os
import time
from collections.abc import Iterator
from threading import Lock

from mcpspy.relay.stdio.pump import CHUNK, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.recording.stream import Channel


class LineSource:
    """Reads lines from a descriptor; `started` is the start of the capture. One thread iterates.

    It has what `relay.stdio.drain` looks at.
    """

    def __init__(self, source: int, started: int) -> None:
        self.source = source
        self.reads = 0
        self.busy = False
        """Something was read that is still to be forwarded."""
        self.stop = False
        """Nothing more is wanted."""
        self.ended = False
        """Nothing more comes, and all of it was forwarded."""
        self.reset = False
        """The end was no orderly one."""
        self._started = started

    def now(self) -> int:
        """Nanoseconds since the capture started."""
        return time.monotonic_ns() - self._started

    def lines(self) -> Iterator[tuple[bytes, bool, int]]:
        """Each line without its newline, whether it had one, and when its last byte was read."""
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
        """The next bytes; none at the end. What was read before is forwarded by now."""
        while not self.stop:
            self.busy = False
            try:
                chunk = os.read(self.source, CHUNK)
            except BlockingIOError:  # somebody who shares the descriptor made it so
                wait_for(self.source, "read")
                continue
            except OSError:
                self.reset = True
                return b""
            self.busy = True
            self.reads += 1
            return b"" if self.stop else chunk
        return b""


class LineSink:
    """A descriptor that several threads write whole lines to, and the channel that they are recorded in."""

    def __init__(self, fd: int, channel: "Channel") -> None:
        self._fd = fd
        self._channel = channel
        self._lock = Lock()

    def forward(self, line: bytes, t: int, *, whole: bool = True) -> bool:
        """Write a line unchanged, and record it as received at `t`; False if nobody takes it."""
        data = line + b"\n" if whole else line
        with self._lock:
            written = self._write(data)
            if written:
                self._channel.feed(data, t)
        return written

    def write(self, frames: "tuple[bytes, ...]") -> bool:
        """Write frames, whose records the caller makes; False if nobody takes them."""
        with self._lock:
            return self._write(b"".join(frame + b"\n" for frame in frames))

    def close(self, seconds: float = -1) -> bool:
        """Close it, unless somebody is still writing after that time; returns whether it is closed."""
        if not self._lock.acquire(timeout=seconds):
            return False
        fd, self._fd = self._fd, -1
        try:
            if fd > 2:
                os.close(fd)
            elif fd >= 0:  # its number must stay taken, lest another file gets it
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
            except BlockingIOError:  # somebody who shares the descriptor made it so
                wait_for(self._fd, "write")
            except OSError:
                return False
        return True
