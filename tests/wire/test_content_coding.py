"""Bodies and content codings on copies (H-11): every case runs whole, byte by byte and with trailing data."""

import base64
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
import zlib
from functools import partial

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import content_coding as body
from mcpspy.wire.content_coding import Decoder, Whole
from mcpspy.wire.lines import PIECE
from tests.peers import prepare
from tests.relay.interception import needs_mitmproxy
from tests.wire.counted import copied_by
from tests.wire.splitting import bytes_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD = zstd.__name__

TEXT = json.dumps([{"name": f"tool {number}", "description": "é🌍" * 20} for number in range(300)]).encode()


def raw_deflate(text):
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(text) + coder.flush()


ENCODE = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": partial(brotli.compress, quality=5),
    "zstd": zstd.compress,
}
CASES = {
    **{name: (name, encode(TEXT)) for name, encode in ENCODE.items()},
    "raw deflate": ("deflate", raw_deflate(TEXT)),
    "several gzip members": ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(b"") + gzip.compress(TEXT[100:])),
    "gzip members with padding": ("gzip", gzip.compress(TEXT[:100]) + b"\0" * 9 + gzip.compress(TEXT[100:]) + b"\0"),
    "several zstd frames": ("zstd", zstd.compress(TEXT[:100]) + zstd.compress(TEXT[100:])),
    "identity": ("identity", TEXT),
    "no coding": ("", TEXT),
    "a stack": ("gzip, br", brotli.compress(gzip.compress(TEXT))),
    "another": ("deflate , identity,ZSTD", zstd.compress(zlib.compress(TEXT))),
    "the case does not matter": ("GZip", gzip.compress(TEXT)),
}


def decode(encoding, *chunks):
    """Decode the chunks; return the text and the fault."""
    decoder = Decoder(encoding)
    parts = [part for chunk in chunks for part in decoder.feed(chunk)]
    decoder.end()
    assert all(0 < len(part) <= PIECE for part in parts) or decoder.plain
    return b"".join(parts), decoder.fault


@pytest.mark.parametrize("name", CASES)
def test_a_coded_body_is_decoded_in_any_chunks(name):
    """H-11."""
    encoding, coded = CASES[name]
    for chunks in ([coded], bytes_of(coded), [coded[:7], b"", coded[7:]]):
        assert decode(encoding, *chunks) == (TEXT, None)


def test_plain_tells_whether_there_is_anything_to_decode():
    for encoding, expected in (("", True), ("identity", True), ("gzip", False), ("identity, br", False), ("x", False)):
        assert Decoder(encoding).plain is expected


def flushed(name, events):
    """Return the bytes of each event, as a server sends them that flushes after each event."""
    if name == "br":
        coder = brotli.Compressor()
        return [coder.process(event) + coder.flush() for event in events]
    if name == "zstd":
        coder = zstd.ZstdCompressor()
        return [coder.compress(event, coder.FLUSH_BLOCK) for event in events]
    coder = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "raw": -15}[name])
    return [coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH) for event in events]


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw", "br", "zstd"])
@pytest.mark.parametrize("size", [10, 70_000])
def test_what_the_peer_has_flushed_comes_out_at_once(name, size):
    """H-04, H-11: an event of a compressed stream does not wait for the next one."""
    events = [b"data: " + str(number).encode() * size + b"\n\n" for number in range(5)]
    decoder = Decoder("deflate" if name == "raw" else name)
    for event, coded in zip(events, flushed(name, events), strict=True):
        assert b"".join(decoder.feed(coded)) == event
    assert decoder.fault is None


@pytest.mark.parametrize("name", ENCODE)
def test_a_long_coded_body_is_not_copied_again_for_each_part(name):
    text = bytes(65 + i * i % 23 for i in range(PIECE))
    coded = ENCODE[name](os.urandom(8 * PIECE) + text)
    decoder = Decoder(name)
    copied, decoded = copied_by(lambda chunk: b"".join(decoder.feed(chunk)), coded)
    assert decoded.endswith(text)
    assert copied <= 4 * len(coded)


@pytest.mark.parametrize("name", ENCODE)
def test_a_coding_is_given_parts_however_much_comes_at_once(name, monkeypatch):
    """For each part of the output, zlib copies the rest of the input."""
    sizes = []

    class Stage(body.CODINGS[name]):
        def feed(self, chunk):
            sizes.append(len(chunk))
            return super().feed(chunk)

    monkeypatch.setitem(body.CODINGS, name, Stage)
    coded = ENCODE[name](os.urandom(3 * PIECE))
    assert decode(name, coded)[1] is None
    assert sum(sizes) == len(coded)
    assert max(sizes) <= PIECE


@pytest.mark.parametrize("name", ENCODE)
def test_a_body_that_ends_too_early_is_a_fault_and_what_came_stands(name):
    coded = ENCODE[name](TEXT)
    text, fault = decode(name, coded[:-20])
    assert fault == "the compressed body ends too early"
    assert TEXT.startswith(text)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_complete(name):
    """A HEAD or a 204 keeps its Content-Encoding."""
    assert decode(name) == decode(name, b"") == (b"", None)


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "deflate"])
@pytest.mark.parametrize("damage", [b"not coded at all, but text", b'{"jsonrpc":"2.0"}', b"\xff" * 100])
def test_what_is_not_coded_as_it_says_is_a_fault(name, damage):
    text, fault = decode(name, damage)
    assert text == b"" or name in ("br", "deflate")  # these two formats have no signature
    assert fault


def test_damage_in_the_middle_leaves_what_came_before():
    coded = flushed("gzip", [b"data: 1\n\n", b"data: 2\n\n"])
    assert decode("gzip", coded[0], b"\xff" * 30, coded[1])[0] == b"data: 1\n\n"


def test_a_coding_that_is_not_known_is_a_fault():
    assert decode("compress", b"x") == (b"", "the content coding 'compress' is not known")
    assert decode("gzip, exi", b"x")[1] == "the content coding 'exi' is not known"


@pytest.mark.parametrize(("name", "package"), [("br", "brotli"), ("zstd", ZSTD)])
def test_a_coding_without_its_package_is_a_fault(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert decode(name, b"x") == (b"", f"the package for the content coding {name!r} is not installed")


BOMBS = {
    "gzip": gzip.compress,
    "br": lambda zeros: brotli.compress(zeros, quality=5),
    "zstd": zstd.compress,
    "gzip, gzip": lambda zeros: gzip.compress(gzip.compress(zeros)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_that_expands_without_end_is_stopped(name, monkeypatch):
    """H-11: memory is bounded."""
    monkeypatch.setattr(body, "FREE", 2 << 20)
    coded = BOMBS[name](bytes(20 << 20))
    decoder = Decoder(name)
    tracemalloc.start()
    size = sum(
        len(part) for start in range(0, len(coded), 65536) for part in decoder.feed(coded[start : start + 65536])
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 << 20 <= size <= 4 << 20
    assert decoder.fault == "the compressed body expands to more than 100 times its size and is decoded no further"
    assert list(decoder.feed(coded)) == []
    assert peak < 8 << 20


def test_a_zstd_window_without_bounds_is_a_fault():
    """RFC 8878, 3.1.1.1.2: a frame may require 3.75 TB of memory to decode."""
    options = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.content_size_flag: 0}
    coder = zstd.ZstdCompressor(options=options)
    text, fault = decode("zstd", coder.compress(b"{}") + coder.flush())
    assert text == b""
    assert "requires too much memory" in fault


@pytest.mark.parametrize("name", ENCODE)
@pytest.mark.parametrize("bug", [TypeError("no such argument"), AttributeError("None has no such thing")])
def test_a_bug_is_not_reported_as_damage_of_the_body(name, bug, monkeypatch):
    """A-12: a wrong call of a package is a bug of ours, and the guard of the caller reports it as one."""

    class Stage(body.CODINGS[name]):
        def feed(self, chunk):
            raise bug
            yield

    monkeypatch.setitem(body.CODINGS, name, Stage)
    decoder = Decoder(name)
    with pytest.raises(type(bug)):
        list(decoder.feed(ENCODE[name](TEXT)))
    assert decoder.fault is None


OLD_BROTLI = r"""
import base64, importlib.metadata, sys, tracemalloc
from mcpspy.wire import content_coding
from mcpspy.wire.lines import PIECE

assert importlib.metadata.version("brotli") == "1.1.0"

def decode(*chunks):
    decoder = content_coding.Decoder("br")
    parts = [part for chunk in chunks for part in decoder.feed(chunk)]
    decoder.end()
    assert all(0 < len(part) <= PIECE for part in parts)
    return b"".join(parts), decoder.fault

text, whole, bomb, *events = [base64.b64decode(line) for line in sys.stdin.read().split()]
assert decode(whole) == decode(*(whole[i:i + 1] for i in range(len(whole)))) == (text, None)
assert decode(whole[:-20])[1] == "the compressed body ends too early"
assert decode(b"\xff" * 100)[1].startswith("the compressed body is damaged")
flushed = content_coding.Decoder("br")
for number, event in enumerate(events):
    assert b"".join(flushed.feed(event)) == b"data: " + b"%d" % number * 70000 + b"\n\n"
content_coding.FREE = 8 << 20
stopped = content_coding.Decoder("br")
tracemalloc.start()
size = sum(len(part) for part in stopped.feed(bomb))
assert size <= 9 << 20, size
assert tracemalloc.get_traced_memory()[1] < 64 << 20, tracemalloc.get_traced_memory()
assert stopped.fault == "the compressed body expands to more than 100 times its size and is decoded no further"
print("decoded")
"""


@needs_mitmproxy
def test_brotli_1_1_decodes_as_later_versions_do():
    """H-11, A-12: mitmproxy pins version 1.1, whose `process` has no argument to limit the output."""
    inputs = [TEXT, brotli.compress(TEXT), brotli.compress(bytes(40 << 20), quality=5)]
    inputs += flushed("br", [b"data: " + b"%d" % number * 70_000 + b"\n\n" for number in range(3)])
    run = subprocess.run(
        [prepare.python("mitm"), "-c", OLD_BROTLI],
        input="\n".join(base64.b64encode(each).decode() for each in inputs),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout == "decoded\n", run.stderr


@given(st.sampled_from(sorted(ENCODE)), st.lists(st.binary(max_size=200)))
def test_whatever_a_peer_sends_nothing_raises(name, chunks):
    decode(name, *chunks)
    coded = ENCODE[name](TEXT)
    decode(name, coded[:40], *chunks)


@given(st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd"]), max_size=3), st.binary(), st.integers(1, 50))
def test_any_stack_of_codings_comes_undone(names, text, size):
    coded = text
    for name in names:
        coded = ENCODE[name](coded)
    assert decode(", ".join(names), *(coded[i : i + size] for i in range(0, len(coded), size))) == (text, None)


def pieces(*chunks):
    decoder = Whole()
    return [triple for chunk in chunks for triple in decoder.feed(chunk)] + decoder.end()


def test_a_body_is_one_frame():
    assert pieces(b'{"a":', b"1}\n\n") == [(b'{"a":1}\n\n', False, False)]
    assert pieces() == pieces(b"") == []
