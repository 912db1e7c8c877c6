"""Framing of event streams: every case runs whole, byte by byte and with trailing data (H-10)."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.wire.lines import PIECE
from mcpspy.wire.sse import Event, Events, parse_event
from tests.wire.splitting import bytes_of, decoded_by


def split(*chunks):
    return decoded_by(Events(), *chunks)


def singly(stream):
    return split(*bytes_of(stream))


def whole(raw):
    return (raw, False, False)


CASES = {
    "LF": (b"data: 1\n\ndata: 2\n\n", [b"data: 1\n", b"data: 2\n"]),
    "CR LF": (b"event: message\r\ndata: {}\r\n\r\n", [b"event: message\r\ndata: {}\r\n"]),
    "CR alone": (b"event: message\rdata: {}\r\rdata: 2\r\r", [b"event: message\rdata: {}\r", b"data: 2\r"]),
    "mixed line ends": (b"a: 1\r\nb: 2\rc: 3\n\r\nd: 4\n\n", [b"a: 1\r\nb: 2\rc: 3\n", b"d: 4\n"]),
    "CR LF, then a lone CR": (b"data: 1\r\n\rdata: 2\r\n\r\n", [b"data: 1\r\n", b"data: 2\r\n"]),
    "a byte order mark is kept": (b"\xef\xbb\xbfdata: 1\n\n", [b"\xef\xbb\xbfdata: 1\n"]),
    "a comment is a frame": (b": ping - 2025-03-12 08:16:23\r\n\r\n", [b": ping - 2025-03-12 08:16:23\r\n"]),
    "a priming event": (b"id: X\ndata: \n\n", [b"id: X\ndata: \n"]),
    "blank lines between blocks carry nothing": (b"\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n", [b"data: 1\n", b"data: 2\n"]),
    "the same with CR LF": (b"\r\n\r\ndata: 1\r\n\r\n\r\n\r\n", [b"data: 1\r\n"]),
    "U+2028, U+0085, NUL and form feed end nothing": (
        "data: \u2028\u0085\0\x0c\n\n".encode(),
        ["data: \u2028\u0085\0\x0c\n".encode()],
    ),
    "what is not UTF-8 is kept": (b"data: \xff\x80\n\n", [b"data: \xff\x80\n"]),
    "a blank is no blank line": (b"data: 1\n \n\n", [b"data: 1\n \n"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_frame_is_a_block_up_to_its_last_terminator(name):
    """H-10."""
    stream, blocks = CASES[name]
    expected = [whole(block) for block in blocks]
    assert split(stream) == expected
    assert singly(stream) == expected
    for tail in (b"data: re", b"data: re\r", b"x\n", b"id: 7\r\n"):
        assert split(stream + tail) == [*expected, (tail, False, True)]
        assert split(stream, tail) == [*expected, (tail, False, True)]
        assert singly(stream + tail) == [*expected, (tail, False, True)]


def test_an_empty_stream_holds_no_frame():
    assert split() == split(b"") == split(b"\n\r\n\r") == []


def test_a_chunk_without_bytes_changes_nothing():
    assert split(b"data: 1\r", b"", b"\n", b"", b"\r\n") == [whole(b"data: 1\r\n")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_comes_out_with_the_first_byte_of_its_blank_line(end):
    """H-04: nothing is delayed."""
    decoder = Events()
    assert decoder.feed(b"data: 1" + end) == []
    assert decoder.feed(end[:1]) == [whole(b"data: 1" + end)]
    assert decoder.feed(end[1:] + b"data: 2" + end + end) == [whole(b"data: 2" + end)]


def test_between_tells_whether_a_block_is_under_way():
    decoder = Events()
    states = []
    for byte in b"\ndata:1\r\n\r\n:":
        decoder.feed(bytes([byte]))
        states.append(decoder.between)
    assert states == [True, *[False] * 8, True, True, False]


LINE_ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
FIELDS = st.sampled_from(
    [b"data: {}", b"event: x", b":", b"id: 1", "data: é🌍\u2028".encode(), b"data:" + b"a" * PIECE]
)


@st.composite
def streams(draw):
    """Draw a stream of blocks, and the blocks. No lone LF follows a lone CR: together they are one line end."""
    stream, blocks = b"", []
    for fields in draw(st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=4)):
        block = b"".join(field + draw(LINE_ENDS) for field in fields)
        blank = b"\r" if block.endswith(b"\r") else draw(LINE_ENDS)
        if blank == b"\r":
            blank += b"\r" * draw(st.integers(0, 2))
        blocks.append(block)
        stream += block + blank
    return stream, blocks


@given(streams(), st.lists(st.integers(0, 2 * PIECE), max_size=6))
def test_blocks_come_out_whatever_the_line_ends_and_chunks(case, cuts):
    """H-10."""
    stream, blocks = case
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    for triples in (split(stream), split(*chunks), *([singly(stream)] if len(stream) < PIECE else [])):
        joined, found = b"", []
        for raw, more, cut in triples:
            joined += raw
            assert not cut
            if not more:
                found.append(joined)
                joined = b""
        assert found == blocks
        assert not joined


@given(st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"data: x", b"\xff", b"a" * PIECE]) | st.binary()))
@example([b"\r", b"\n", b"\n"])
@example([b"a\r", b"\n", b"\r", b"\n"])
def test_chunk_boundaries_cannot_matter(chunks):
    """H-10: a stream gives the same frames whole, in chunks and byte by byte; only blank lines are dropped."""
    stream = b"".join(chunks)
    triples = split(stream)
    assert split(*chunks) == triples
    if len(stream) <= 3 * PIECE:
        assert singly(stream) == triples
    kept = b"".join(raw for raw, _, _ in triples)
    assert re.sub(rb"[\r\n]", b"", kept) == re.sub(rb"[\r\n]", b"", stream)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"data: {}\n", Event("message", b"{}", None, None, ())),
        (b"event: endpoint\r\ndata: /m?s=1\r\n", Event("endpoint", b"/m?s=1", None, None, ())),
        (b"data: a\ndata:b\rdata\r\n", Event("message", b"a\nb\n", None, None, ())),
        (b"id: X\ndata: \n", Event("message", b"", "X", None, ())),
        (b"id\n", Event("message", None, "", None, ())),
        (b"id: a\0b\nid: c\nid: \0\n", Event("message", None, "c", None, ())),
        (b"retry: 500\nretry: 5s\nretry: -1\n", Event("message", None, None, 500, ())),
        (b": ping\n:pong\n:\n", Event("message", None, None, None, ("ping", "pong", ""))),
        (b"\xef\xbb\xbfdata: 1\n", Event("message", b"1", None, None, ())),
        (b"event: a\nevent:\ndata:  two\n", Event("message", b" two", None, None, ())),
        (b"datum: 1\ndata : 2\n Data: 3\n", Event("message", None, None, None, ())),
        ("data: \u2028\u0085\n".encode(), Event("message", "\u2028\u0085".encode(), None, None, ())),
        (b"event: \xff\ndata: \xff\n", Event("\ufffd", b"\xff", None, None, ())),
        (b"data: a: b\n", Event("message", b"a: b", None, None, ())),
        (b"", Event("message", None, None, None, ())),
    ],
)
def test_the_fields_of_a_block_are_those_of_the_standard(block, expected):
    """H-10: `id` with NUL is ignored, an empty one resets; data lines are joined with LF; one leading BOM."""
    assert parse_event(block) == expected


@given(st.binary(max_size=100))
def test_no_block_raises(block):
    parse_event(block)
