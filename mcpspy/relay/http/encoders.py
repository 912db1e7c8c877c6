"""Encoders that apply the content coding of a body again after a gate has changed it (RFC 9110, 8.4)."""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol


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
