"""Framing of WebSockets: every case runs whole, byte by byte and with trailing data."""

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpspy.wire.lines import PIECE
from mcpspy.wire.websocket import BINARY, Messages, encode, parse_head
from tests import NIGHTLY
from tests.wire.counted import copied_by
from tests.wire.splitting import bytes_of, decoded_by

OPCODES = {"continuation": 0, None: 1, "binary": 2, "close": 8, "ping": 9, "pong": 10}


def frame(payload, op=None, final=True, mask=b""):
    """One WebSocket frame as a peer sends it."""
    length = len(payload)
    if length > 125:
        wide = length > 65535
        size = (b"\x7f" if wide else b"\x7e") + length.to_bytes(8 if wide else 2, "big")
    else:
        size = bytes([length])
    if mask:
        size = bytes([size[0] | 0x80]) + size[1:]
        payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return bytes([OPCODES[op] | (0x80 if final else 0)]) + size + mask + payload


def split(*chunks):
    return decoded_by(Messages(), *chunks)


def singly(stream):
    return split(*bytes_of(stream))


def whole(raw, op=None):
    return (raw, False, False, op)


CASES = {
    "text": ([(b'{"id":1}', None)], [whole(b'{"id":1}')]),
    "an empty message": ([(b"", None), (b"", "binary")], [whole(b""), whole(b"", "binary")]),
    "binary": ([(b"\0\xff", "binary")], [whole(b"\0\xff", "binary")]),
    "ping and pong": ([(b"", "ping"), (b"x", "pong")], [whole(b"", "ping"), whole(b"x", "pong")]),
    "126 bytes": ([(b"a" * 126, None)], [whole(b"a" * 126)]),
    "fragments": (
        [(b"ab", None, False), (b"", "continuation", False), (b"c", "continuation")],
        [whole(b"abc")],
    ),
    "a ping between fragments": (
        [(b"a", None, False), (b"!", "ping"), (b"b", "continuation")],
        [whole(b"!", "ping"), whole(b"ab")],
    ),
}


@pytest.mark.parametrize("mask", [b"", b"\x01\x80\xfe\x37"])
@pytest.mark.parametrize("name", CASES)
def test_messages_come_out_in_any_chunks(name, mask):
    frames, expected = CASES[name]
    stream = b"".join(frame(*args, mask=mask) for args in frames)
    assert split(stream) == expected
    assert singly(stream) == expected
    tail = frame(b"rest", mask=mask)[:-1]
    assert split(stream, tail) == singly(stream + tail) == [*expected, (b"res", False, True, None)]
    assert split(stream + b"\x81") == expected


@pytest.mark.parametrize("mask", [b"", b"\x01\x80\xfe\x37"])
def test_a_long_message_comes_in_pieces_that_no_ping_divides(mask):
    """F-04: the reader joins the pieces of one channel, so no other frame may come between them."""
    text = os.urandom(PIECE) + b"a" * 2 * PIECE
    stream = frame(text[:-5], "binary", False, mask) + frame(b"!", "ping", mask=mask)
    stream += frame(text[-5:], "continuation", mask=mask)
    for found in (split(stream), split(*(stream[i : i + 1000] for i in range(0, len(stream), 1000)))):
        *pieces, ping = found
        assert ping == whole(b"!", "ping")
        assert b"".join(raw for raw, *_ in pieces) == text
        assert [more for _, more, _, _ in pieces] == [True] * (len(pieces) - 1) + [False]
        assert {op for *_, op in pieces} == {"binary"}
        assert all(len(raw) <= PIECE for raw, *_ in pieces)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(b"", (None, "")), (b"\x0f\xa1bye \xc3\xa9", (4001, "bye é")), (b"\x03\xe8\xff", (1000, "\ufffd"))],
)
def test_a_close_frame_is_told_apart(payload, expected):
    decoder = Messages()
    assert decoder.closing is None
    assert decoder.feed(frame(b"x", mask=b"abcd") + frame(payload, "close", mask=b"abcd")) == [whole(b"x")]
    assert decoder.closing == expected


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
@pytest.mark.parametrize("mask", [b"", b"\x01\x80\xfe\x37"])
def test_a_message_is_encoded_in_one_frame(size, mask):
    """RFC 6455, 5.2 and 5.3: the shortest form of the length."""
    assert encode(b"a" * size, BINARY, mask) == frame(b"a" * size, "binary", mask=mask)
    assert split(encode(b"a" * size, BINARY, mask))[-1][3] == "binary"


@pytest.mark.parametrize(("bits", "expected"), [(0x80, False), (0xC0, True), (0xA0, True), (0x90, True)])
def test_the_bits_of_extensions_are_told(bits, expected):
    assert parse_head(bytes([bits | 1, 0])).reserved is expected


def test_many_messages_in_a_chunk_are_not_copied_again_for_each():
    stream = frame(b"x" * 10) * 2000
    copied, messages = copied_by(Messages().feed, stream)
    assert messages == [whole(b"x" * 10)] * 2000
    assert copied <= 4 * len(stream)


@given(
    st.lists(st.tuples(st.binary(max_size=300) | st.just(66000), st.sampled_from(sorted(OPCODES, key=str)))),
    st.lists(st.integers(1, 5000), min_size=1),
    st.binary(min_size=4, max_size=4) | st.just(b""),
)
@example([(b"a", None), (66000, "binary"), (b"", "ping")], [1, 3, 4999], b"mask")
@settings(max_examples=100 if NIGHTLY else 12)
def test_chunk_boundaries_cannot_matter(frames, sizes, mask):
    stream = b"".join(frame(bytes(payload), op, mask=mask) for payload, op in frames)
    chunks, start = [], 0
    while start < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[start : start + size])
        start += size
    assert split(*chunks) == split(stream)


@given(st.lists(st.binary()))
def test_whatever_a_peer_sends_nothing_raises(chunks):
    split(*chunks)
