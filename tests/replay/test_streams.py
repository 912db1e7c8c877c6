import os

import pytest

from mcpspy.replay.streams import chunks, lines, send


@pytest.mark.parametrize(
    ("stream", "whole"),
    [
        ([], []),
        ([b"a\n"], [b"a"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"a\n\nb"], [b"a", b"", b"b"]),
        ([b"a\r\n"], [b"a\r"]),
        ([b"x" * 70_000, b"y" * 70_000 + b"\nz\n"], [b"x" * 70_000 + b"y" * 70_000, b"z"]),
        ([b"x" * 200_000], [b"x" * 200_000]),
    ],
)
def test_lines_come_out_whole_however_they_came_in(stream, whole):
    assert list(lines(stream)) == whole


def test_a_descriptor_is_read_to_its_end():
    source, sink = os.pipe()
    assert send(sink, b"one")
    assert send(sink, b"two")
    os.close(sink)
    assert b"".join(chunks(source)) == b"one\ntwo\n"
    os.close(source)
    assert list(chunks(source)) == [], "what breaks has ended"


def test_a_peer_that_has_gone_takes_no_more():
    source, sink = os.pipe()
    os.close(source)
    assert not send(sink, b"one")
    os.close(sink)
