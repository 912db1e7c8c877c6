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
    from typing import Any

    from mcpspy.capture.writer import Writer
    from mcpspy.secrets.redactor import Redactor
    from mcpspy.wire.content_coding import Decoder

    Fields = dict[str, Any]


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
        self._redactor: Redactor | None = None

    def open(self, t: int, sender: str, role: str) -> "Channel":
        """Begin a channel of lines at `t`."""
        self._channels += 1
        number = self._channels
        self.record(lambda writer: writer.open(number, t, sender, role, "lines"))
        return Channel(self, number)

    def open_body(
        self,
        t: int,
        sender: str,
        role: str,
        framing: str,
        fields: "Fields",
        *,
        encoding: str = "",
        secret: bool = False,
    ) -> "Body":
        """Begin a channel of HTTP at `t`: `framing` is `body`, `sse` or `message`.

        `fields` are those of DESIGN section 3: `head`, `peer`, `answers`, `sent`, `by`. A body in the content codings
        of `encoding` is recorded decoded; a `secret` one, that of an OAuth endpoint, a form or a page, in one frame
        without its secrets.
        """
        self._channels += 1
        body = Body(self, self._channels)

        def write(writer: "Writer") -> None:
            body.begin(framing, encoding, secret=secret)
            heads = {key: self.redactor.head(fields[key]) for key in ("head", "sent") if key in fields}
            writer.open(body.number, t, sender, role, "body" if secret else framing, fields | heads)

        self.record(write)
        return body

    def end(self, t: int, code: int | None, why: str | None) -> None:
        """End the capture; what comes later is not recorded.

        `code` is the server's exit code, negative for a signal; None where the server is no process of ours.
        """
        self.record(lambda writer: writer.end(t, code, why))
        self.writer = None

    @property
    def redactor(self) -> "Redactor":
        """What takes the secrets out of heads and bodies."""
        if self._redactor is None:
            from mcpspy.secrets.redactor import Redactor

            self._redactor = Redactor()
        return self._redactor

    def record(self, write: "Callable[..., None]", *arguments: object) -> None:
        """Call `write` with the writer, if there is one, and the arguments; whatever it raises ends the recording."""
        with self.lock:
            if self.writer:
                try:
                    write(self.writer, *arguments)
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
        self._tap.record(self._end, t, how)

    def _end(self, writer: "Writer", t: int, how: str) -> None:
        if not self._ended:
            self._ended = True
            for raw, more, cut in self._lines.end():
                writer.frame(self._number, t, raw, more, cut)
            writer.close(self._number, t, how)


_KEPT = 1 << 18  # bytes that no coding holds back before it gives out the first of what they stand for


class Body:
    """One channel of HTTP: a body, an event stream, or a direction of a WebSocket, its content coding undone.

    Where a coding cannot be undone, the bytes from there on are recorded as they came, and the close says why.
    """

    def __init__(self, tap: Tap, number: int) -> None:
        self.number = number
        self.coded = False
        """Whether what is fed may stand for many times as much."""
        self._tap = tap
        self._decoder: Decoder | None = None
        self._frames: Any = None
        self._received = b""  # while nothing of it has been decoded
        self._change: tuple[bytes, Fields] | None = None
        self._ended = False

    def begin(self, framing: str, encoding: str, *, secret: bool) -> None:
        """Make what takes the body apart; while the tap records, for a bug in it must not reach the traffic."""
        self._decoder = _decoder(encoding) if encoding else None
        self.coded = self._decoder is not None and not self._decoder.plain
        self._frames = _Secret(self._tap, withheld=framing != "body") if secret else _splitter(framing)

    def changed(self, raw: bytes, sent: bytes, by: str) -> None:
        """Announce that of the next frame that reads `raw` it was `sent` that was forwarded."""
        self._change = raw, {"sent": sent.decode("utf-8", "replace"), "by": by}

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and have been forwarded."""
        self._tap.record(self._feed, chunk, t)

    def end(self, t: int, how: str) -> None:
        """Record that the stream ended; a second call is void."""
        if not self._ended:
            self._tap.record(self._end, t, how)

    def _feed(self, writer: "Writer", chunk: bytes, t: int) -> None:
        if self._ended:
            return
        if not (self.coded and self._decoder):
            self._write(writer, t, self._frames.feed(chunk))
            return
        before = self._received
        self._received = before + chunk if len(before) < _KEPT else before
        for part in self._decoder.feed(chunk):
            self._received = b""
            self._write(writer, t, self._frames.feed(part))
        if self._decoder.fault:
            self.coded = False
            secret = isinstance(self._frames, _Secret)
            self._write(writer, t, self._frames.end(), cut=True)
            self._frames = _Secret(self._tap, withheld=True) if secret else _splitter("body")
            self._write(writer, t, self._frames.feed(self._received or chunk))

    def _end(self, writer: "Writer", t: int, how: str) -> None:
        self._ended = True
        if how == "eof" and self._decoder:
            self._decoder.end()
        fault = self._decoder.fault if self._decoder else None
        self._write(writer, t, self._frames.end(), cut=how != "eof" or (self.coded and fault is not None))
        code, reason = getattr(self._frames, "closing", None) or (None, fault)
        if code and reason:
            reason = self._tap.redactor.url(reason)
        writer.close(self.number, t, how, {key: it for key, it in (("code", code), ("reason", reason)) if it})

    def _write(self, writer: "Writer", t: int, frames: "list[Any]", *, cut: bool = False) -> None:
        for raw, more, ended, *op in frames:
            rest = {"op": op[0]} if op and op[0] else None
            if self._change and raw == self._change[0]:
                rest, self._change = self._change[1], None
            writer.frame(self.number, t, raw, more, ended or (cut and not more), rest)


class _Secret:
    """A body that may hold secrets: one frame without them; of one that cannot be taken apart, its size alone."""

    def __init__(self, tap: Tap, *, withheld: bool = False) -> None:
        self._tap = tap
        self._raw = b""
        self._size = 0
        self._withheld = withheld

    def feed(self, chunk: bytes) -> "list[Any]":
        from mcpspy.secrets.redactor import LARGEST_BODY

        self._size += len(chunk)
        self._withheld = self._withheld or self._size > LARGEST_BODY
        self._raw = b"" if self._withheld else self._raw + chunk
        return []

    def end(self) -> "list[Any]":
        if self._withheld and self._size:
            from mcpspy.secrets.redactor import withheld

            return [(withheld(self._size), False, False)]
        return [(self._tap.redactor.body(self._raw), False, False)] if self._raw else []


def _decoder(encoding: str) -> "Decoder":
    from mcpspy.wire.content_coding import Decoder

    return Decoder(encoding)


def _splitter(framing: str) -> "Any":
    if framing == "sse":
        from mcpspy.wire.sse import Events

        return Events()
    if framing == "message":
        from mcpspy.wire.websocket import Messages

        return Messages()
    from mcpspy.wire.content_coding import Whole

    return Whole()
