"""The funnel between a relay and its capture: bytes that were forwarded already come in, records go out.

A bug in here or below must not reach the traffic (DESIGN, principle 1): the first exception ends the recording, is said
once, and the relay goes on alone.

Imported on the `wrap` path: nothing heavy here (DESIGN section 2).
"""

from _thread import allocate_lock

from mcpspy.wire.lines import PIECE, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.capture.writer import Writer


class Tap:
    """Records the channels of one relay into one capture; without a writer it records nothing.

    One lock lets one thread at a time record. It is never held while bytes are forwarded, so a blocked peer holds up
    nobody's recording.
    """

    def __init__(self, writer: "Writer | None", say: "Callable[[str], None]") -> None:
        self.writer = writer
        self.lock = allocate_lock()
        self._say = say
        self._channels = 0

    def open(self, t: int, sender: str, role: str) -> "Channel":
        """Begin a channel of lines at `t`."""
        self._channels += 1
        number = self._channels
        self.record(lambda writer: writer.open(number, t, sender, role, "lines"))
        return Channel(self, number)

    def end(self, t: int, code: int, why: str | None) -> None:
        """End the capture with the server's exit code, negative for a signal; what comes later is not recorded."""
        self.record(lambda writer: writer.end(t, code, why))
        self.writer = None

    def record(self, write: "Callable[[Writer], None]") -> None:
        """Let `write` use the writer, if there is one; whatever it raises ends the recording."""
        with self.lock:
            if self.writer:
                try:
                    write(self.writer)
                except Exception as error:
                    self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop recording after a bug of ours; with the lock held, once threads use it."""
        where = f" to {self.writer.path}" if self.writer else ""
        self.writer = None
        self._say(f"recording{where} stopped by a bug ({type(error).__name__}: {error}); traffic goes on unrecorded")


class Channel:
    """One one-way byte stream, split into frames."""

    __slots__ = ("_ended", "_lines", "_lock", "_number", "_tap")

    def __init__(self, tap: Tap, number: int) -> None:
        self._tap = tap
        self._lock = tap.lock
        self._number = number
        self._lines = Lines()
        self._ended = False

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and have been forwarded; never raises."""
        with self._lock:
            writer = self._tap.writer
            if writer is None or self._ended:
                return
            try:
                if chunk and self._lines.between and chunk.find(b"\n") == len(chunk) - 1 < PIECE:
                    writer.frame(self._number, t, chunk[:-1], False, False)  # what almost every read is
                else:
                    for raw, more, cut in self._lines.feed(chunk):
                        writer.frame(self._number, t, raw, more, cut)
            except Exception as error:
                self._tap.fail(error)

    def end(self, t: int, how: str) -> None:
        """Record that the stream ended; a second call is void, since a pump and its relay may both see the end."""
        self._tap.record(lambda writer: self._end(writer, t, how))

    def _end(self, writer: "Writer", t: int, how: str) -> None:
        if not self._ended:
            self._ended = True
            for raw, more, cut in self._lines.end():
                writer.frame(self._number, t, raw, more, cut)
            writer.close(self._number, t, how)
