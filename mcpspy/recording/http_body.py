"""One channel of HTTP: a body, an event stream, or one direction of a WebSocket, decoded.

If a body cannot be decoded, the bytes from the fault on are recorded as received, and the close record has the reason.
A body that may contain secrets is recorded as one frame without them, or redacted as a whole. On every path, a body of
at most 64 KiB that is a form, or JSON that is not a JSON-RPC message, is searched for secrets (A-08), because logins
are also found at unusual paths.
"""

from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.capture.format import written
from mcpspy.secrets.redactor import LARGEST_BODY, withheld
from mcpspy.wire.content_coding import Decoder, Whole
from mcpspy.wire.sse import Events
from mcpspy.wire.websocket import Messages

if TYPE_CHECKING:
    from mcpspy.recording.opening import Opening
    from mcpspy.recording.recording import Recording, Sink

Fields = dict[str, Any]

_BEGINNING = b'{"jsonrpc":"2.0"'  # the beginning of most messages
_KEPT = 1 << 18  # bytes after which every coding has returned its first decoded bytes


class Body:
    """Records the frames of one channel.

    `framing` is body, sse or message; `encoding` is the value of its Content-Encoding. `secret` is set if every part of
    the body may contain secrets: a login, a form or a page.
    """

    def __init__(self, recording: "Recording", framing: str, encoding: str = "", *, secret: bool = False) -> None:
        self.number = recording.number()
        self.coded = False
        """Whether the fed bytes are compressed, so that they may decode to many times their size."""
        self._recording = recording
        self._framing = framing
        self._encoding = encoding
        self._secret = secret
        self._decoder: Decoder | None = None
        self._frames: Any = None
        self._received = b""  # the received bytes, while nothing is decoded yet
        self._undecided = False  # whether the next frame is too long for a gate
        self._begun = False  # whether a piece of the current frame is written
        self.ended: str | None = None
        """How the channel ended (`close.how`); None until that is recorded."""
        self.dropped = False
        """Whether a gate dropped a frame."""

    @property
    def between(self) -> bool:
        """Whether no frame is incomplete; False if the stream is compressed, ended or not recorded."""
        split = self._recording.sink is not None and not self.ended and not self.coded
        return split and getattr(self._frames, "between", False)

    def open(self, t: int, sender: str, role: str, fields: Fields) -> None:
        """Record that the channel opened at `t`; `fields` may have peer, answers, head, sent, by."""
        self._recording.record(self._open, t, sender, role, fields)

    def whole(self, t: int, sender: str, role: str, opening: "Opening", fields: Fields, raw: bytes) -> None:
        """Record, with one write, a channel that opened at `t`, had `raw` as its body and ended normally.

        `opening` must be plain, and `raw` at most one piece long; `fields` may have peer or answers.
        """
        self.ended = "eof"
        self._recording.record(self._whole, t, sender, role, opening, fields, raw)

    def undecided(self) -> None:
        """Announce that the next frame is too long for a gate; it is fed like all others."""
        self._undecided = True

    def decoded(self) -> None:
        """Announce that the bytes fed from now on are decoded already."""
        self._decoder, self.coded = None, False

    def feed(self, chunk: bytes, t: int) -> None:
        """Record bytes that were read at `t` and are forwarded already."""
        self._recording.record(self._feed, chunk, t)

    def frame(
        self, raw: bytes, t: int, *, cut: bool = False, op: str | None = None, gated: Fields | None = None
    ) -> None:
        """Record one whole frame that was read at `t`, decoded and split already.

        `op` is the kind of a WebSocket message, None for text. `gated` has what a gate did with the frame: `sent`
        (bytes, or None), `by`, `held`, or `from` for a frame of our own.
        """
        self._recording.record(self._whole_frame, t, raw, cut, op, gated)

    def end(self, t: int, how: str, code: int | None = None, reason: str | None = None) -> None:
        """Record that the stream ended; a second call has no effect.

        `code` and `reason` are those of a WebSocket's close frame, for a channel that is recorded by whole messages.
        """
        if not self.ended:
            self._recording.record(self._end, t, how, code, reason)

    def _open(self, sink: "Sink", t: int, sender: str, role: str, fields: Fields) -> None:
        redact = self._recording.redactor.head
        for key in ("head", "sent"):
            if key in fields:
                fields = fields | {key: redact(fields[key])}
        self._decoder = Decoder(self._encoding) if self._encoding else None
        self.coded = self._decoder is not None and not self._decoder.plain
        self._frames = _Guarded(self._recording, withheld=self._framing != "body") if self._secret else self._splitter()
        sink.open(self.number, t, sender, role, "body" if self._secret else self._framing, fields)

    def _whole(
        self, sink: "Sink", t: int, sender: str, role: str, opening: "Opening", fields: Fields, raw: bytes
    ) -> None:
        rest = fields | opening.recorded(self._recording.redactor)
        sink.whole(self.number, t, sender, role, rest, self._redacted(raw) if raw else raw)

    def _splitter(self) -> Any:
        return Events() if self._framing == "sse" else Messages() if self._framing == "message" else Whole()

    def _feed(self, sink: "Sink", chunk: bytes, t: int) -> None:
        if self.ended:
            return
        if not (self.coded and self._decoder):
            self._write(sink, t, self._frames.feed(chunk))
            return
        before = self._received
        self._received = before + chunk if len(before) < _KEPT else before
        for part in self._decoder.feed(chunk):
            self._received = b""
            self._write(sink, t, self._frames.feed(part))
        if self._decoder.fault:
            self.coded = False
            self._write(sink, t, self._frames.end(), cut=True)
            if self._decoder.bounded:
                self._frames = _Discarded()
                return
            self._frames = _Guarded(self._recording, withheld=True) if self._secret else Whole()
            self._write(sink, t, self._frames.feed(self._received or chunk))

    def _whole_frame(self, sink: "Sink", t: int, raw: bytes, cut: bool, op: str | None, gated: Fields | None) -> None:
        if self.ended:
            return
        if self._secret and self._framing != "body":
            self._frames.feed(raw)  # its size is recorded at the end
            return
        gated = dict(gated) if gated else {}
        self.dropped = self.dropped or gated.get("sent", raw) is None
        if gated.get("sent") is not None:
            gated["sent"] = self._redacted(gated["sent"])
        whole = Whole()
        frames = whole.feed(self._redacted(raw)) + whole.end() or [(b"", False, False)]
        rest = ({"op": op} if op else {}) | written(gated)
        for piece, more, _ in frames:
            sink.frame(self.number, t, piece, more, cut and not more, rest or None)
            rest = {"op": op} if op else {}  # the other members are on the first piece

    def _redacted(self, raw: bytes) -> bytes:
        """Return a whole frame with its secrets replaced."""
        if self._framing != "body":
            return raw
        if self._secret:
            redactor = self._recording.redactor
            if len(raw) <= LARGEST_BODY:
                return redactor.body(raw)
            return withheld(len(raw), redactor.title(raw[:LARGEST_BODY]))
        return raw if _is_message(raw) else self._recording.redactor.body_elsewhere(raw)

    def _end(self, sink: "Sink", t: int, how: str, code: int | None, reason: str | None) -> None:
        self.ended = how
        if how == "eof" and self._decoder:
            self._decoder.end()
        fault = self._decoder.fault if self._decoder else None
        self._write(sink, t, self._frames.end(), cut=how != "eof" or (self.coded and fault is not None))
        closing = getattr(self._frames, "closing", None) or (code, reason)
        rest: Fields = {}
        if closing[0]:
            rest["code"] = closing[0]
            if closing[1]:
                rest["reason"] = self._recording.redactor.url(closing[1])
        elif fault:
            rest["reason"] = fault
        sink.close(self.number, t, how, rest)

    def _write(self, sink: "Sink", t: int, frames: list[Any], *, cut: bool = False) -> None:
        for raw, more, ended, *op in frames:
            rest: Fields | None = {"op": op[0]} if op and op[0] else None
            if self._undecided:
                rest, self._undecided = (rest or {}) | {"undecided": True}, False
            if not (self._secret or self._begun or more):
                raw = self._redacted(raw)  # noqa: PLW2901 (what is written in its place)
            self._begun = more
            sink.frame(self.number, t, raw, more, ended or (cut and not more), rest)


def _is_message(raw: bytes) -> bool:
    """Test quickly whether a body is a JSON-RPC message; a body that fails the test is searched for secrets."""
    if raw.startswith(_BEGINNING):
        return True
    try:
        value = orjson.loads(raw) if b'"jsonrpc"' in raw else None
        return isinstance(value, dict) and isinstance(value.get("jsonrpc"), str)
    except (ValueError, TypeError):  # a number, or null
        return False


class _Discarded:
    """Discards the rest of a body that expands too much; the close record has the reason."""

    def feed(self, _: bytes) -> list[Any]:
        return []

    def end(self) -> list[Any]:
        return []


class _Guarded:
    """Records a body that may contain secrets as one frame without them.

    If it cannot be parsed, only its size is recorded, and the title of a page.
    """

    def __init__(self, recording: "Recording", *, withheld: bool = False) -> None:
        self._recording = recording
        self._raw = b""
        self._size = 0
        self._withheld = withheld
        self._title = ""

    def feed(self, chunk: bytes) -> list[Any]:
        self._size += len(chunk)
        if self._withheld:
            return []
        self._raw += chunk[: LARGEST_BODY + 1]
        if self._size > LARGEST_BODY:
            self._title = self._recording.redactor.title(self._raw[:LARGEST_BODY])
            self._withheld, self._raw = True, b""
        return []

    def end(self) -> list[Any]:
        if self._withheld and self._size:
            return [(withheld(self._size, self._title), False, False)]
        return [(self._recording.redactor.body(self._raw), False, False)] if self._raw else []
