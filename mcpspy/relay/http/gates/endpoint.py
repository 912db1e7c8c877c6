"""The event stream of legacy HTTP+SSE, the only body that is ever changed (H-08; specification 2024-11-05).

Its first event, `endpoint`, names the URL that the client shall post to. An absolute URL at the upstream's own origin
would lead past us, and the client would refuse it; a path would miss the prefix of a route. So events are held until
they are whole, up to the first that has data; comments, which keep a stream alive, pass as they end. If it needs no
change, its bytes go out as they came, and so does all that follows; else the one line is changed and every other
byte stays. A server that compresses although it was asked not to is held from the first byte, and gets its stream
compressed again in the same coding, flushed after each chunk.
"""

import re
import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.sse import Events, parse_event

_HELD = 65536  # bytes; a first event that is longer is no endpoint
_DATA = re.compile(rb"(?m)(?<![^\r\n])(data: ?)([^\r\n]*)")


class EndpointGate:
    """Stands between the chunks of one stream as they come and as they go; `mapped` as `heads.mapped_reference`."""

    by = "endpoint"

    def __init__(self, encoding: str, mapped: Callable[[str], str | None]) -> None:
        self._mapped = mapped
        self._decoder = Decoder(encoding)
        self._coding = encoding.strip().lower()
        self._encoder: _Encoder | None = None
        self._events = Events()
        self._held = b""  # as it came
        self._plain = b""  # the same, decoded
        self.open = False
        """Whether what comes next passes as it is: `feed` need not be called."""
        self.rewritten: tuple[bytes, bytes] | None = None
        """The event as it came and as it was sent, where they differ."""

    def feed(self, chunk: bytes) -> bytes:
        """What is to be forwarded now."""
        if self._encoder:
            return self._encode(b"".join(self._decoder.feed(chunk)))
        plain = b"".join(self._decoder.feed(chunk))
        self._held += chunk
        self._plain += plain
        blocks = [raw for raw, more, _ in self._events.feed(plain) if not more]
        event = next((block for block in blocks if parse_event(block).data is not None), None)
        if event is None:
            if len(self._held) >= _HELD or self._decoder.fault:
                return self._release()
            return self._pass_whole() if self._decoder.plain else b""
        sent = self._rewrite(event)
        if sent is None:
            return self._release()
        self.rewritten = event, sent
        plain = self._plain.replace(event, sent, 1)
        if self._decoder.plain:
            self.open = True
            return plain
        self._encoder = _encoder(self._coding)
        return self._encode(plain) if self._encoder else self._release()

    def end(self) -> bytes:
        """What was held when the stream ended."""
        if self._encoder:
            return self._encoder.finish()
        return self._release()

    def _pass_whole(self) -> bytes:
        """Let go what no event can begin in any more."""
        if not self._events.between:
            return b""
        held, self._held, self._plain = self._held, b"", b""
        return held

    def _release(self) -> bytes:
        held, self._held, self._plain = self._held, b"", b""
        self.open = True
        return held

    def _encode(self, plain: bytes) -> bytes:
        assert self._encoder
        return self._encoder.encode(plain) if plain else b""

    def _rewrite(self, block: bytes) -> bytes | None:
        """The block of an `endpoint` event with the URL that the client needs; None where it has that."""
        event = parse_event(block)
        if event.name != "endpoint" or event.data is None:
            return None
        mapped = self._mapped(event.data.decode("utf-8", "surrogateescape"))
        if mapped is None:
            return None
        url = mapped.encode("utf-8", "surrogateescape")
        return _DATA.sub(lambda line: line[1] + url, block, count=1)


class _Encoder(Protocol):
    def encode(self, plain: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class _Flushing:
    """A compressor that holds nothing back."""

    def __init__(
        self, compress: Callable[[bytes], bytes], flush: Callable[[], bytes], finish: Callable[[], bytes]
    ) -> None:
        self._compress = compress
        self._flush = flush
        self.finish = finish

    def encode(self, plain: bytes) -> bytes:
        return self._compress(plain) + self._flush()


def _encoder(coding: str) -> _Encoder | None:
    """An encoder for the coding, None for one that is not to be had (a stack, for one)."""
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
