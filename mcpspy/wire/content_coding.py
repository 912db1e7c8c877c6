"""A message body without delimiters of its own, and its content codings (RFC 9110, 8.4).

This module decodes copies of bytes that were forwarded already. It does not trust the coding of a peer. Decoding stops
at the first fault, at an unknown coding, at a coding whose package is missing, and at a body that expands too much.
`fault` then has the reason. What was decoded before stays valid, and the caller keeps the rest unchanged. Bytes of a
peer never raise. An exception is a bug of ours or of a package, and is not reported as a damaged body (A-12).

Decoded bytes are yielded as soon as the peer has flushed them, in parts of at most `PIECE`. Each part is made on
demand, so a small chunk that decodes to gigabytes takes little memory.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from mcpspy.wire.lines import PIECE, Lines

FREE = 16 << 20
"""Decoded bytes that are allowed for any body."""
RATIO = 100
"""The largest ratio of decoded to received bytes of a longer body; for JSON it is rarely above 30."""


class Whole(Lines):
    """Returns a body as one frame: triples, pieces and `between` are those of `Lines`."""

    __slots__ = ()

    def feed(self, chunk: bytes) -> list[tuple[bytes, bool, bool]]:
        """Accept the next bytes and return the pieces that are complete."""
        frames: list[tuple[bytes, bool, bool]] = []
        if chunk:
            self._add(chunk, frames)
        return frames

    def end(self) -> list[tuple[bytes, bool, bool]]:
        """Return the frame or its last piece; nothing for an empty body."""
        return [(self._take(), False, False)] if self._parts else []


class Decoder:
    """Decodes a body with the codings of a Content-Encoding value; the last one listed was applied last."""

    def __init__(self, encoding: str) -> None:
        self.fault: str | None = None
        """The reason why decoding stopped; None while it has not."""
        self.bounded = False
        """Whether decoding stopped because of the size, and not because of a fault of the peer."""
        self._received = self._decoded = 0
        names = [name.strip().lower() for name in encoding.split(",")]
        self._stages: list[_Stage] = []
        for name in reversed([name for name in names if name not in ("", "identity")]):
            make = CODINGS.get(name)
            if make is None:
                self.fault = f"the content coding {name!r} is not known"
                break
            try:
                self._stages.append(make())
            except ImportError:
                self.fault = f"the package for the content coding {name!r} is not installed"
                break

    @property
    def plain(self) -> bool:
        """Whether there is nothing to decode."""
        return not self._stages and self.fault is None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Accept the next bytes and yield what they decode to; exhaust it before the next call."""
        for start in range(0, len(chunk), PIECE):  # decoders copy the rest of a chunk at each call
            if self.fault is None:
                part = chunk[start : start + PIECE]
                self._received += len(part)
                yield from self._through(0, part)

    def end(self) -> None:
        """End the body: set `fault` if the compressed data is incomplete."""
        for stage in self._stages:
            if self.fault is None and not stage.complete:
                self.fault = "the compressed body ends too early"

    def _through(self, index: int, chunk: bytes) -> Iterator[bytes]:
        if index == len(self._stages):
            self._decoded += len(chunk)
            if self._decoded > FREE and self._decoded > RATIO * self._received:
                self.bounded = True
                self.fault = (
                    f"the compressed body expands to more than {RATIO} times its size and is decoded no further"
                )
            else:
                yield chunk
            return
        parts = self._stages[index].feed(chunk)
        while self.fault is None:
            try:
                part = next(parts)
            except StopIteration:
                return
            except self._stages[index].damage as error:
                self.fault = f"the compressed body is damaged: {error}"
                return
            yield from self._through(index + 1, part)


class _Stage(Protocol):
    """One coding."""

    damage: type[Exception]
    """The exception that the package raises for damaged bytes, and for nothing else."""

    @property
    def complete(self) -> bool:
        """Whether the body may end here."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield parts of at most `PIECE`; raises `damage`."""


class _Gzip:
    """RFC 1952: one or several members."""

    damage: type[Exception] = zlib.error

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)
        self._fresh = True

    @property
    def complete(self) -> bool:
        return self._fresh or self._member.eof

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self._member.eof:
                chunk = chunk.lstrip(b"\0")  # padding between members
                if not chunk:
                    return
                self._member = zlib.decompressobj(31)
            self._fresh = False
            yield from _inflate(self._member, chunk)
            chunk = self._member.unused_data


class _Deflate:
    """RFC 1950, or without its header and checksum, as many servers send it (RFC 9110, 8.4.1.2)."""

    damage: type[Exception] = zlib.error

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(15)
        self._begun: bytes | None = b""  # the first two bytes show which of the two formats it is

    @property
    def complete(self) -> bool:
        return self._begun == b"" or self._stream.eof

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._begun is not None:
            self._begun = chunk = self._begun + chunk
            if len(chunk) < 2:
                return
            self._begun = None
            if chunk[0] & 0x0F != 8 or (chunk[0] << 8 | chunk[1]) % 31:
                self._stream = zlib.decompressobj(-15)
        yield from _inflate(self._stream, chunk)


def _inflate(stream: "zlib._Decompress", chunk: bytes) -> Iterator[bytes]:
    while not stream.eof:
        part = stream.decompress(chunk, PIECE)
        chunk = stream.unconsumed_tail
        if part:
            yield part
        if not chunk and len(part) < PIECE:  # nothing is held back inside
            return


class _Brotli:
    """RFC 7932."""

    _SLICE = 8
    """The number of bytes passed to version 1.1 at once. That version cannot limit its output; a meta-block of 16 MiB
    takes more bytes than this."""

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self.damage: type[Exception] = brotli.error
        self._decoder = brotli.Decompressor()
        self._limited = hasattr(self._decoder, "can_accept_more_data")  # since 1.2; mitmproxy pins 1.1
        self._fresh = True

    @property
    def complete(self) -> bool:
        return self._fresh or self._decoder.is_finished()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._fresh = self._fresh and not chunk
        return self._limited_parts(chunk) if self._limited else self._sliced_parts(chunk)

    def _limited_parts(self, chunk: bytes) -> Iterator[bytes]:
        while not self._decoder.is_finished():
            part = self._decoder.process(chunk, output_buffer_limit=PIECE)
            chunk = b""
            yield from _parts(part)  # it rounds the limit up
            if not part and self._decoder.can_accept_more_data():
                return

    def _sliced_parts(self, chunk: bytes) -> Iterator[bytes]:
        decoded, size = [], 0
        for start in range(0, len(chunk), self._SLICE):
            part = chunk[start : start + self._SLICE]
            while not self._decoder.is_finished() and (part := self._decoder.process(part)):
                decoded.append(part)
                size += len(part)
                part = b""  # it returns once the input is consumed, even if more output is pending
            if size >= PIECE:
                yield from _parts(b"".join(decoded))
                decoded, size = [], 0
        yield from _parts(b"".join(decoded))


class _Zstd:
    """RFC 8878: one or several frames, each with a window of at most 128 MiB."""

    def __init__(self) -> None:
        if sys.version_info >= (3, 14):
            from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
        else:
            from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

        self.damage: type[Exception] = ZstdError
        self._new: Callable[[], ZstdDecompressor] = lambda: ZstdDecompressor(
            options={DecompressionParameter.window_log_max: 27}
        )
        self._frame = self._new()
        self._fresh = True

    @property
    def complete(self) -> bool:
        return self._fresh or self._frame.eof

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self._frame.eof:
                self._frame = self._new()
            self._fresh = False
            part = self._frame.decompress(chunk, PIECE)
            while part:
                yield part
                part = b"" if self._frame.needs_input or self._frame.eof else self._frame.decompress(b"", PIECE)
            chunk = self._frame.unused_data


def _parts(decoded: bytes) -> Iterator[bytes]:
    for start in range(0, len(decoded), PIECE):
        yield decoded[start : start + PIECE]


CODINGS: dict[str, Callable[[], _Stage]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
"""Decoders, by the name of the content coding."""
