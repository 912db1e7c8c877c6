"""A WebSocket stream is split into the messages that a gate decides on, and no byte is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.relay.http.tunnel import MessagePieces
from tests.wire.test_websocket import OPCODES, frame

MASK = b"\x12\x34\x56\x78"
LIMIT = 1000


def split(*chunks, limit=LIMIT):
    pieces = MessagePieces(limit)
    return [piece for chunk in chunks for piece in pieces.feed(chunk)] + pieces.end()


def singly(stream, limit=LIMIT):
    return split(*(stream[i : i + 1] for i in range(len(stream))), limit=limit)


@pytest.mark.parametrize("mask", [b"", MASK])
def test_fragments_are_one_message_and_a_ping_between_them_comes_first(mask):
    parts = [
        frame(b"ab", None, False, mask),
        frame(b"!", "ping", mask=mask),
        frame(b"", "continuation", False, mask),
        frame(b"c", "continuation", mask=mask),
        frame(b"\xff", "binary", mask=mask),
    ]
    first, ping, *rest, second = parts
    for found in (split(b"".join(parts)), singly(b"".join(parts))):
        assert [(it.passes, it.frame, it.op, it.more) for it in found] == [
            (ping, b"!", "ping", False),
            (first + b"".join(rest), b"abc", None, False),
            (second, b"\xff", "binary", False),
        ]


@pytest.mark.parametrize("mask", [b"", MASK])
def test_a_message_that_is_too_long_passes_as_it_arrives(mask):
    long = [
        frame(b"a" * LIMIT, None, False, mask),
        frame(b"b", "continuation", False, mask),
        frame(b"!", "ping", mask=mask),
        frame(b"", "continuation", mask=mask),
    ]
    stream = b"".join(long) + frame(b"next", mask=mask)
    for found in (split(stream), singly(stream)):
        *pieces, last = found
        assert b"".join(it.passes for it in pieces) == b"".join(long)
        assert [it.undecided for it in pieces] == [True] + [False] * (len(pieces) - 1)
        assert [it.more for it in pieces] == [True] * (len(pieces) - 1) + [False]
        assert not any(it.frame for it in pieces)
        assert (last.frame, last.more) == (b"next", False)
    pieces = MessagePieces(LIMIT)
    assert list(pieces.feed(long[0])) == []
    (begun,) = pieces.feed(long[1][:-1])  # the head of the second fragment
    assert begun.undecided
    assert begun.more


def test_a_length_announced_as_too_long_is_not_waited_for():
    (piece,) = MessagePieces(LIMIT).feed(frame(b"x" * (LIMIT + 1))[:5])
    assert (piece.undecided, piece.more, len(piece.passes)) == (True, True, 5)


def test_fragments_without_end_are_not_kept():
    """Even an empty fragment takes two bytes, for its head."""
    pieces = MessagePieces(LIMIT)
    found = list(pieces.feed(frame(b"", None, False) + frame(b"", "continuation", False) * (2 * LIMIT)))
    assert sum(len(it.passes) for it in found) >= 2 * LIMIT
    assert found[0].undecided


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_the_limit_is_that_of_the_payload(size):
    assert [it.undecided for it in split(frame(b"x" * size))] == [size > LIMIT]


def test_an_extension_that_was_not_negotiated_is_left_alone():
    """RFC 7692, 6: a compressed message has RSV1 set."""
    coded = bytearray(frame(b"coded", None, False) + frame(b"more", "continuation"))
    coded[0] |= 0x40
    pieces = MessagePieces(LIMIT)
    found = list(pieces.feed(bytes(coded) + frame(b"plain")))
    assert [(it.passes, it.frame, it.undecided) for it in found] == [
        (bytes(coded), None, True),
        (frame(b"plain"), b"plain", False),
    ]
    assert "extension" in pieces.fault


@pytest.mark.parametrize("before", [b"", frame(b"cut", None, False)])
def test_a_close_frame_comes_out_last_and_what_follows_is_left_alone(before):
    close = frame(b"\x03\xe8bye", "close")
    found = split(before + close + b"\x81\x01x")
    assert [(it.passes, it.frame, it.op) for it in found] == [
        (before + close, None, "close"),
        (b"\x81\x01x", None, None),
    ]


def test_what_the_end_cuts_off_passes():
    cut = frame(b"ab", None, False) + frame(b"cd", "continuation")[:3]
    assert [(it.passes, it.frame) for it in split(cut)] == [(cut, None)]


def test_a_control_frame_that_is_none_is_not_collected():
    """RFC 6455, 5.5: a control frame has at most 125 bytes; this one announces 2 to the power of 62."""
    pieces = MessagePieces(LIMIT)
    bad = b"\x89\x7f\x40" + b"\0" * 7
    assert [it.passes for it in [*pieces.feed(bad), *pieces.feed(b"x")]] == [bad, b"x"]
    assert "too long" in pieces.fault


@given(
    st.lists(
        st.tuples(st.binary(max_size=100) | st.just(700), st.sampled_from(sorted(OPCODES, key=str)), st.booleans())
    ),
    st.lists(st.integers(1, 900), min_size=1),
    st.sampled_from([b"", MASK]),
)
@settings(max_examples=50)
def test_chunk_boundaries_change_nothing_and_no_byte_is_lost(frames, sizes, mask):
    stream = b"".join(frame(bytes(payload), op, final, mask) for payload, op, final in frames)
    chunks, start = [], 0
    while start < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[start : start + size])
        start += size
    whole, parts = split(stream), split(*chunks)
    assert sorted(b"".join(it.passes for it in whole)) == sorted(stream)
    assert b"".join(it.passes for it in whole) == b"".join(it.passes for it in parts)
    assert [it for it in whole if it.frame is not None] == [it for it in parts if it.frame is not None]


@given(st.lists(st.binary()))
def test_whatever_a_peer_sends_nothing_raises(chunks):
    assert sorted(b"".join(it.passes for it in split(*chunks))) == sorted(b"".join(chunks))
