"""Bodies that pass a gate: split the received bytes into frames for the gate, and return the bytes to forward.

What no verdict changes is forwarded with exactly the received bytes; `EventBlocks` loses none of them. An event or a
body that is too long passes undecided, and so does an event without its blank line. `FirstEvent` and `HeldDocument` are
for the two bodies that the proxy itself has to change; their verdicts need no waiting. Encoders apply the content
coding of a body again after a gate has changed it (RFC 9110, 8.4). If this module fails, the body passes unchanged, and
the user gets a notice.

Nothing here reads, writes or waits. The caller records what `recorded` returns, after it has forwarded the bytes.
"""

import sys
import zlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from mcpspy.gate.gate import Gate, Send
from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.sse import Events, parse_event


class Encoder(Protocol):
    """One coding."""

    def encode(self, plain: bytes) -> bytes:
        """Encode the next bytes and flush, so that the receiver can decode all of them."""

    def finish(self) -> bytes:
        """Return the encoded end of the body."""


class _Flushing:
    """A compressor that flushes after each call."""

    def __init__(
        self, compress: Callable[[bytes], bytes], flush: Callable[[], bytes], finish: Callable[[], bytes]
    ) -> None:
        self._compress = compress
        self._flush = flush
        self.finish = finish

    def encode(self, plain: bytes) -> bytes:
        return self._compress(plain) + self._flush()


class _Stacked:
    """Several codings, in the order in which they are applied."""

    def __init__(self, encoders: list[Encoder]) -> None:
        self._encoders = encoders

    def encode(self, plain: bytes) -> bytes:
        for coder in self._encoders:
            plain = coder.encode(plain)
        return plain

    def finish(self) -> bytes:
        rest = b""
        for coder in self._encoders:
            rest = (coder.encode(rest) if rest else b"") + coder.finish()
        return rest


def encoder(encoding: str) -> Encoder | None:
    """Return an encoder for a Content-Encoding value, which may list several codings.

    None if a coding is unknown, or if there is none.
    """
    if "," in encoding:
        each = [encoder(coding) for coding in encoding.split(",") if coding.strip().lower() not in ("", "identity")]
        known = [it for it in each if it]
        return _Stacked(known) if known and len(known) == len(each) else None
    coding = encoding.strip().lower()
    if coding in ("gzip", "x-gzip", "deflate"):
        zipper = zlib.compressobj(wbits=15 if coding == "deflate" else 31)
        return _Flushing(zipper.compress, lambda: zipper.flush(zlib.Z_SYNC_FLUSH), zipper.flush)
    if coding == "br":
        import brotli  # type: ignore[import-untyped]

        brotlier = brotli.Compressor()
        return _Flushing(brotlier.process, brotlier.flush, brotlier.finish)
    if coding == "zstd":
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdCompressor
        else:
            from backports.zstd import ZstdCompressor

        stream = ZstdCompressor()
        return _Flushing(stream.compress, lambda: stream.flush(stream.FLUSH_BLOCK), stream.flush)
    return None


def coded(frame: bytes, encoding: str) -> bytes:
    """Return a whole body, encoded with that Content-Encoding value; unchanged if there is no encoder for it."""
    coder = encoder(encoding)
    return coder.encode(frame) + coder.finish() if coder else frame


HELD = 65536
"""The most bytes of a body that are held for a gate of the proxy itself; a longer body is neither an endpoint event nor
metadata."""


class Piece(NamedTuple):
    """A decoded part of a body, or a part of one direction of a WebSocket."""

    passes: bytes
    """The bytes to forward if nothing is changed."""
    frame: bytes | None = None
    """The frame that the gate decides on; None if it decides on nothing."""
    delimiter: bytes = b""
    """The bytes that follow each frame that is forwarded."""
    undecided: bool = False
    """Whether the piece begins a frame that is too long for a decision."""
    op: str | None = None
    """The `op` of the WebSocket message."""
    more: bool = False
    """Whether the frame continues in the next piece; nothing else may be forwarded between the two."""
    control: bool = False
    """Whether the frame is a WebSocket control frame: no gate decides on it, and it is forwarded before held frames."""


class EventBlocks:
    """Splits an event stream like `wire.sse.Events`, and keeps every byte, also those between two events."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begin()

    def _begin(self) -> None:
        """Reset the state: the next byte is the first of a stream."""
        self._events = Events()
        self._pending = bytearray()
        self._size = 0  # bytes of the current event that `Events` has returned
        self._gone = 0  # bytes of the current event that have passed because it is too long

    def feed(self, plain: bytes) -> list[Piece]:
        """Accept the next bytes and return the pieces that are complete."""
        pieces: list[Piece] = []
        self._pending += plain
        for raw, more, _ in self._events.feed(plain):
            self._size += len(raw)
            if not more:
                self._complete(pieces)
        if not self._gone:
            self._skip(pieces)
        if self._pending and (self._gone or len(self._pending) > self._limit):
            pieces.append(self._take(len(self._pending), undecided=not self._gone))
            self._gone += len(pieces[-1].passes)
        return pieces

    def end(self) -> list[Piece]:
        """Return the event that has no blank line, and reset: the next byte begins a stream."""
        pieces = [self._take(len(self._pending))] if self._pending else []
        self._begin()
        return pieces

    def _complete(self, pieces: list[Piece]) -> None:
        if not self._gone:
            self._skip(pieces)
        size = self._size - self._gone
        delimiter = bytes(self._pending[size : size + 2])
        delimiter = delimiter if delimiter == b"\r\n" else delimiter[:1]
        if self._gone or size > self._limit:
            pieces.append(self._take(size + len(delimiter), undecided=not self._gone))
        else:
            frame = bytes(self._pending[:size])
            pieces.append(self._take(size + len(delimiter))._replace(frame=frame, delimiter=delimiter))
        self._size = self._gone = 0

    def _skip(self, pieces: list[Piece]) -> None:
        """Add a piece for the line ends between two events."""
        blank = 0
        while blank < len(self._pending) and self._pending[blank] in b"\r\n":
            blank += 1
        if blank:
            pieces.append(self._take(blank))

    def _take(self, size: int, *, undecided: bool = False) -> Piece:
        piece = Piece(bytes(self._pending[:size]), undecided=undecided)
        del self._pending[:size]
        return piece


class BodyRecord(NamedTuple):
    """One entry to record: a whole frame, or bytes for the channel's decoder."""

    raw: bytes
    whole: bool = False
    gated: dict[str, object] | None = None
    decoded: bool = False
    """Whether everything after this entry is recorded without its content coding."""


class HeldBody(Protocol):
    """A body whose beginning is held until a gate has decided on it."""

    open: bool
    """Whether all following bytes pass."""

    def feed(self, chunk: bytes, t: int) -> bytes:
        """Return the bytes to forward now, for a chunk that was read at `t`."""

    def end(self, t: int) -> bytes:
        """Return the held bytes at the end of the body."""

    def recorded(self) -> list[BodyRecord]:
        """Return the entries to record for the forwarded bytes."""


class FirstEvent:
    """An event stream up to its first event with data; the gate decides on that event only.

    Comments, which keep a stream alive, pass when they are complete. If the event needs no change, its bytes and all
    following ones are forwarded unchanged. A compressed stream is held from its first byte. If the event is changed,
    the rest of the stream is encoded again with the same coding, and flushed after each chunk.
    """

    def __init__(self, gate: Gate, encoding: str, say: Callable[[str], None]) -> None:
        self._gate = gate
        self._facts = gate.facts("server", "sse")
        self._encoding = encoding
        self._say = say
        self._decoder = Decoder(encoding)
        self._blocks = EventBlocks(HELD)
        self._received = b""  # bytes of a compressed stream while it is held
        self._pieces: list[Piece] = []  # the same bytes, decoded
        self._encoder: Encoder | None = None
        self._entries: list[BodyRecord] = []
        self.open = False

    def feed(self, chunk: bytes, t: int) -> bytes:
        """Return the bytes to forward now."""
        if self.open:
            return self._pass(chunk)
        if self._encoder:
            return self._encode(b"".join(self._decoder.feed(chunk)))
        coded = not self._decoder.plain
        try:
            pieces = self._blocks.feed(b"".join(self._decoder.feed(chunk)))
        except Exception as error:
            self._say(
                f"a content coding cannot be decoded ({type(error).__name__}: {error}); the body passes unchanged"
            )
            return self._release(self._received + chunk)
        if coded:
            self._received += chunk
            self._pieces += pieces
            pieces = self._pieces
        place = next((at for at, piece in enumerate(pieces) if _has_data(piece)), None)
        if place is None:
            given_up = self._decoder.fault or any(piece.undecided for piece in pieces)
            if coded:
                return self._release(self._received) if given_up or len(self._received) >= HELD else b""
            self.open = bool(given_up)
            return self._through(pieces)
        verdict = self._gate.decide(pieces[place].frame or b"", self._facts, t)
        if not isinstance(verdict, Send):
            return self._release(self._received) if coded else self._go_on(pieces)
        self._encoder = encoder(self._encoding) if coded else None
        if coded and self._encoder is None:
            return self._release(self._received)
        return self._go_on(pieces, place, verdict)

    def end(self, t: int) -> bytes:  # noqa: ARG002 (as every held body has it)
        """Return the held bytes at the end of the stream."""
        if self.open:
            return b""
        if self._encoder:
            return self._encoder.finish()
        if not self._decoder.plain:
            return self._release(self._received)
        return self._go_on([])

    def recorded(self) -> list[BodyRecord]:
        """Return the entries to record for the forwarded bytes."""
        entries, self._entries = self._entries, []
        return entries

    def _go_on(self, pieces: list[Piece], place: int = -1, verdict: Send | None = None) -> bytes:
        """Forward the pieces, with the verdict applied to the one at `place`; no decision follows."""
        pieces = pieces + self._blocks.end()
        if self._encoder:
            self._entries.append(BodyRecord(b"", decoded=True))
        else:
            self.open = True
        if verdict is None:
            return self._through(pieces)
        raw, delimiter = pieces[place].frame or b"", pieces[place].delimiter
        plain = self._through(pieces[:place]) + b"".join(frame + delimiter for frame in verdict.frames)
        self._entries.append(BodyRecord(raw, whole=True, gated={"sent": verdict.frames[0], "by": verdict.by}))
        plain += self._through(pieces[place + 1 :])
        return self._encoder.encode(plain) if self._encoder else plain

    def _through(self, pieces: list[Piece]) -> bytes:
        return self._pass(b"".join(piece.passes for piece in pieces))

    def _release(self, came: bytes) -> bytes:
        self.open = True
        self._received, self._pieces = b"", []
        return self._pass(came)

    def _pass(self, came: bytes) -> bytes:
        if came:
            self._entries.append(BodyRecord(came))
        return came

    def _encode(self, plain: bytes) -> bytes:
        return self._encoder.encode(self._pass(plain)) if self._encoder and plain else b""


class HeldDocument:
    """A body that is held until it is complete and then decided on; without `hold` it passes and is only inspected."""

    def __init__(self, gate: Gate, encoding: str, *, hold: bool) -> None:
        self._gate = gate
        self._facts = gate.facts("server", "body")
        self._decoder = Decoder(encoding)
        self._hold = hold
        self._document = b""
        self._entries: list[BodyRecord] = []
        self.open = False

    def feed(self, chunk: bytes, t: int) -> bytes:  # noqa: ARG002 (as every held body has it)
        """Return the bytes to forward now."""
        if self.open:
            return self._pass(chunk)
        self._document += chunk
        self.open = len(self._document) > HELD
        if not self._hold:
            return self._pass(chunk)
        return self._pass(self._document) if self.open else b""

    def end(self, t: int) -> bytes:
        """Return the held bytes at the end of the document."""
        if self.open:
            return b""
        plain = b"".join(self._decoder.feed(self._document))
        verdict = self._gate.decide(plain, self._facts, t)
        if not self._hold:
            return b""
        if not isinstance(verdict, Send) or not self._decoder.plain:
            return self._pass(self._document)
        self._entries.append(BodyRecord(plain, whole=True, gated={"sent": verdict.frames[0], "by": verdict.by}))
        return b"".join(verdict.frames)

    def recorded(self) -> list[BodyRecord]:
        """Return the entries to record for the forwarded bytes."""
        entries, self._entries = self._entries, []
        return entries

    def _pass(self, came: bytes) -> bytes:
        self._entries.append(BodyRecord(came))
        return came


def _has_data(piece: Piece) -> bool:
    return piece.frame is not None and parse_event(piece.frame).data is not None
