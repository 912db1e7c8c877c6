"""What all decoders of streams have in common, whatever their framing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.content_coding import Whole
from mcpspy.wire.lines import PIECE, Lines
from mcpspy.wire.sse import Events
from mcpspy.wire.websocket import Messages
from tests.wire.counted import copied_by
from tests.wire.splitting import bytes_of, decoded_by

ENDS = {Lines: (b"", b"\n"), Events: (b"\n", b"\n"), Whole: (b"", b"")}
"""For each decoder, the end of a message that is a part of it, and the end after it."""


@pytest.mark.parametrize("make", [*ENDS, Messages])
def test_an_empty_stream_holds_no_frame(make):
    assert decoded_by(make()) == decoded_by(make(), b"") == decoded_by(make(), b"", b"") == []


@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1, 3 * PIECE + 7])
@pytest.mark.parametrize("make", ENDS)
def test_a_long_message_comes_in_pieces_that_all_but_the_last_go_on(make, length):
    """F-04."""
    inner, end = ENDS[make]
    message = bytes(65 + i % 23 for i in range(length - len(inner))) + inner
    singly = [bytes_of(message + end)] if length <= PIECE + 1 else []
    for chunks in ([message + end], [message, end], [message[:5], message[5:] + end], *singly):
        pieces = decoded_by(make(), *chunks)
        assert b"".join(raw for raw, _, _ in pieces) == message
        assert [more for _, more, _ in pieces] == [True] * (len(pieces) - 1) + [False]
        assert all(len(raw) <= PIECE for raw, _, _ in pieces)
        assert not any(cut for _, _, cut in pieces)


@pytest.mark.parametrize("make", [Lines, Events])
@given(sizes=st.lists(st.integers(0, 3 * PIECE), max_size=8))
def test_what_is_kept_of_an_unfinished_message_is_bounded(make, sizes):
    """F-04: memory stays constant whatever a peer sends."""
    decoder = make()
    kept = 0
    for size in sizes:
        kept += size - sum(len(raw) for raw, _, _ in decoder.feed(b"x" * size))
        assert kept <= PIECE
    assert sum(len(raw) for raw, _, _ in decoder.end()) == kept


@pytest.mark.parametrize("make", [*ENDS, Messages])
def test_a_long_message_that_comes_at_once_is_not_copied_again_for_each_piece(make):
    length = 64 * PIECE
    head = b"\x81\x7f" + (length + 1).to_bytes(8) if make is Messages else b""
    copied, frames = copied_by(make().feed, head + b"a" * length)
    assert b"".join(raw for raw, *_ in frames) == b"a" * (length - PIECE)
    assert copied <= 4 * length
