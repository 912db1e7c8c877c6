"""The funnel between a relay and its capture: bytes that were forwarded already come in, records go out.

A bug in here or below must not reach the traffic (DESIGN, principle 1): the first exception ends the recording, is said
once, and the relay goes on alone.

Imported on the `wrap` path: nothing heavy here (DESIGN section 2).
"""

from _thread import allocate_lock

from mcpspy.wire.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.capture.writer import Writer


class Tap:
    """Records the channels of one relay into one capture; without a writer it records nothing."""

    def __init__(self, writer: "Writer | None", say: "Callable[[str], None]") -> None:
        self.writer = writer
        self._say = say
        self._channels = 0

    def open(self, t: int, sender: str, role: str) -> "Channel":
        """Begin a channel of lines at `t`."""
        self._channels += 1
        channel = Channel(self, self._channels)
        self.record(lambda writer: writer.open(channel.number, t, sender, role, "lines"))
        return channel

    def end(self, t: int, code: int | None = None, signal: int | None = None, why: str | None = None) -> None:
        """End the capture."""
        self.record(lambda writer: writer.end(t, code, signal, why))

    def record(self, write: "Callable[[Writer], None]") -> None:
        """Let `write` use the writer, if there is one; whatever it raises ends the recording."""
        if self.writer:
            try:
                write(self.writer)
            except Exception as error:
                self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop recording after a bug of ours."""
        writer, self.writer = self.writer, None
        if writer:  # two pumps may meet the same bug
            bug = f"{type(error).__name__}: {error}"
            self._say(f"recording to {writer.path} stopped by a bug ({bug}); traffic goes on unrecorded")


class Channel:
    """One one-way byte stream, split into frames."""

    __slots__ = ("_ended", "_lines", "_lock", "_tap", "number")

    def __init__(self, tap: Tap, number: int) -> None:
        self.number = number
        self._tap = tap
        self._lines = Lines()
        self._lock = allocate_lock()
        self._ended = False

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and have been forwarded; never raises."""
        writer = self._tap.writer
        if writer is None:
            return
        with self._lock:
            if self._ended:
                return
            try:
                for raw, more, cut in self._lines.feed(chunk):
                    writer.frame(self.number, t, raw, more, cut)
            except Exception as error:
                self._tap.fail(error)

    def end(self, t: int, how: str) -> None:
        """Record that the stream ended; a second call is void, since a pump and its relay may both see the end."""
        writer = self._tap.writer
        with self._lock:
            if self._ended or writer is None:
                return
            self._ended = True
            try:
                for raw, more, cut in self._lines.end():
                    writer.frame(self.number, t, raw, more, cut)
                writer.close(self.number, t, how)
            except Exception as error:
                self._tap.fail(error)
