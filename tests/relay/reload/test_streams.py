"""Lines are read as a whole, with unchanged bytes, and lines of several writers do not mix."""

import os
import threading

import pytest

from mcpspy.relay.reload.server import LineSink, LineSource
from tests import limits


class Channel:
    def __init__(self):
        self.fed = []

    def feed(self, data, t):
        self.fed.append((data, t))


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            continue


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_chunks_do_not_matter(pipe, size):
    data = b'\xff\r\n\n{"a":1}\nrest'
    source = LineSource(pipe[0], 0)
    found = []
    reader = threading.Thread(target=lambda: found.extend(source.lines()), daemon=True)
    reader.start()
    for at in range(0, len(data), size):
        os.write(pipe[1], data[at : at + size])
    os.close(pipe[1])
    reader.join(limits.LIMIT)
    assert [line[:2] for line in found] == [(b"\xff\r", True), (b"", True), (b'{"a":1}', True), (b"rest", False)]
    assert source.reads >= 1


def test_a_source_that_is_told_to_stop_gives_no_more(pipe):
    os.write(pipe[1], b"one\n")
    source = LineSource(pipe[0], 0)
    source.stop = True
    assert list(source.lines()) == []


def test_a_source_without_a_reader_gives_what_is_in_the_pipe_and_ends(pipe):
    """V-01: what its writer goes on to write is left, so that the writer is not read for ever."""
    os.write(pipe[1], b"one\ntwo\n")
    source = LineSource(pipe[0], 0)
    lines = source.lines()
    source.reader_left()
    os.write(pipe[1], b"three\n")
    assert [line[:2] for line in lines] == [(b"one", True), (b"two", True)]
    source.close()
    source.reader_left()
    assert source.ended


def test_a_reader_that_leaves_during_a_read_costs_no_bytes(pipe, monkeypatch):
    """V-01: the read has taken its bytes from the pipe when those that are left are counted."""
    os.write(pipe[1], b"one\n")
    source, read = LineSource(pipe[0], 0), os.read

    def leave(fd, size):
        monkeypatch.undo()
        chunk = read(fd, size)
        os.write(pipe[1], b"two\nthree\n")
        source.reader_left()
        return chunk

    monkeypatch.setattr(os, "read", leave)
    assert [line[:2] for line in source.lines()] == [(b"one", True), (b"two", True), (b"three", True)]


def test_what_is_forwarded_is_recorded_and_what_is_not_is_told(pipe):
    channel = Channel()
    sink = LineSink(pipe[1], channel)
    assert sink.forward(b"a\r", 7)
    assert sink.write((b"b", b"c"))
    assert sink.forward(b"d", 8, whole=False)
    assert limits.read(pipe[0], 100) == b"a\r\nb\nc\nd"
    assert channel.fed == [(b"a\r\n", 7), (b"d", 8)]
    os.close(pipe[0])
    assert not sink.forward(b"e", 9)
    assert sink.close()
    assert not sink.write((b"f",))
    assert sink.close()
    assert len(channel.fed) == 2


def test_a_sink_in_use_is_closed_when_that_is_over(pipe):
    sink = LineSink(pipe[1], Channel())
    big = b"x" * 300_000
    writer = threading.Thread(target=sink.forward, args=(big, 0), daemon=True)
    writer.start()
    first = limits.read(pipe[0], 1)
    assert not sink.close(0.01)
    left = len(big)
    while left:
        left -= len(limits.read(pipe[0], 65536))
    writer.join(limits.LIMIT)
    assert first == b"x"
    assert sink.close()
