"""Split the bytes of one stream of lines into the frames of a channel.

On the `wrap` path: only light modules of this package are imported.
"""

from mcpspy.capture.encode import written
from mcpspy.wire.lines import PIECE, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpspy.recording.recording import Recording, Sink

    Fields = dict[str, Any]


class Channel:
    """A one-way byte stream, split into lines; the channel opens at `t`."""

    __slots__ = ("_ended", "_lines", "_lock", "_number", "_recording")

    def __init__(self, recording: "Recording", t: int, sender: str, role: str) -> None:
        self._recording = recording
        self._lock = recording.lock
        self._number = number = recording.number()
        self._lines = Lines()
        self._ended = False
        recording.record(lambda sink: sink.open(number, t, sender, role, "lines"))

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and are forwarded already; never raises."""
        with self._lock:
            sink = self._recording.sink
            if sink is None or self._ended:
                return
            try:
                if chunk and self._lines.between and chunk.find(b"\n") == len(chunk) - 1 < PIECE:
                    sink.frame(self._number, t, chunk[:-1], False, False)  # the case of almost every read
                else:
                    for raw, more, cut in self._lines.feed(chunk):
                        sink.frame(self._number, t, raw, more, cut)
            except Exception as error:
                self._recording.fail(error)

    def record(self, raw: bytes, t: int, rest: "Fields", *, ended: bool = True, cut: bool = False) -> None:
        """Record one line that a gate has passed, changed, dropped or held.

        `raw` is the line that was read at `t`, without its newline. If `ended` is false, it is only the beginning of a
        line, and the rest is fed. With `cut`, the line has no newline. `rest` has optional members: sent (bytes, or
        None), by, from, held, undecided.
        """
        self._recording.record(self._record, raw, t, rest, ended, cut)

    def _record(self, sink: "Sink", raw: bytes, t: int, rest: "Fields", ended: bool, cut: bool) -> None:
        if not self._ended:
            rest = written(rest)
            frames = self._lines.feed(raw + b"\n" if ended and not cut else raw)
            for piece, more, without in frames + self._lines.end() if cut else frames:
                sink.frame(self._number, t, piece, more, without, rest)
                rest = {}  # the members are on the first piece

    def release(self, t: int, held: int, how: str, rest: "Fields") -> None:
        """Record the decision on a held frame; `rest` has optional members: sent (bytes, or None), by."""
        self._recording.release(t, held, how, rest)

    def cut(self, t: int) -> None:
        """Record that the writer of this stream stopped within a line at `t`; another writer begins a new line."""
        self._recording.record(self._cut, t)

    def _cut(self, sink: "Sink", t: int) -> None:
        if not self._ended:
            for raw, more, cut in self._lines.end():
                sink.frame(self._number, t, raw, more, cut)

    def end(self, t: int, how: str) -> None:
        """Record that the stream ended; a second call has no effect: both a pump and its relay may report the end."""
        self._recording.record(self._end, t, how)

    def _end(self, sink: "Sink", t: int, how: str) -> None:
        if not self._ended:
            self._cut(sink, t)
            self._ended = True
            sink.close(self._number, t, how)
