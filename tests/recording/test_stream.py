"""Recording a stream between a relay and its capture: a bug in it must not affect the traffic (principle 1)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open, Release
from mcpspy.recording.recording import Channel, Recording
from mcpspy.wire.lines import PIECE, Lines
from tests.recording.recorder import Recorder
from tests.transcript import begin


@pytest.fixture
def said():
    return []


def test_what_a_relay_moves_stands_in_the_capture(tmp_path, said):
    recording = Recording(said.append, sink=begin(tmp_path / "a"))
    client, server = Channel(recording, 0, "client", "stdin"), Channel(recording, 1, "server", "stdout")
    client.feed(b'{"id":1,', 2)
    client.feed(b'"method":"ping"}\n{"id"', 3)
    server.feed(b"\xff\n", 4)
    client.end(5, "eof")
    server.end(6, "exit")
    recording.end(7, 0)
    assert list(Capture(str(tmp_path / "a")).records()) == [
        Open(2, 1, 0, "client", "stdin", "lines"),
        Open(3, 2, 1, "server", "stdout", "lines"),
        Frame(4, 1, 3, b'{"id":1,"method":"ping"}'),
        Frame(5, 2, 4, b"\xff"),
        Frame(6, 1, 5, b'{"id"', cut=True),
        Close(7, 1, 5, "eof"),
        Close(8, 2, 6, "exit"),
        End(9, 7, code=0),
    ]
    assert said == []


def test_a_big_frame_goes_on_from_piece_to_piece(tmp_path, said):
    """F-04."""
    recording = Recording(said.append, sink=begin(tmp_path / "a"))
    channel = Channel(recording, 0, "client", "stdin")
    for t in range(5):
        channel.feed(b"x" * 65536, t)
    channel.feed(b"\n", 5)
    channel.feed(b"after\n", 6)
    _, big, after = Capture(str(tmp_path / "a")).records()
    assert (big.raw, big.t) == (b"x" * 5 * 65536, 5)
    assert after.raw == b"after"


def test_a_line_that_a_gate_decided_on_is_recorded_with_what_was_sent(tmp_path, said):
    """A record has both the received and the sent bytes."""
    recording = Recording(said.append, sink=begin(tmp_path / "a"))
    channel = Channel(recording, 0, "client", "stdin")
    channel.feed(b"as it came\n", 1)
    channel.record(b"changed", 2, {"sent": b"\xff", "by": "gate a"})
    channel.record(b"dropped", 3, {"sent": None, "by": "gate a"})
    channel.record(b"", 4, {"by": "gate a", "held": 1})
    channel.release(5, 1, "edited", {"sent": b"x", "by": "gate a"})
    channel.record(b"{}", 5, {"from": "mcpspy", "by": "gate a"})
    channel.record(b"y" * 200_000, 6, {"undecided": True}, ended=False)
    channel.feed(b"z" * 200_000 + b"\n", 7)
    channel.record(b"w" * 65537, 8, {"by": "gate a", "held": 2}, cut=True)
    channel.end(9, "eof")
    channel.record(b"late", 10, {"by": "gate a"})
    _, *records, close = Capture(str(tmp_path / "a")).records()
    assert records == [
        Frame(3, 1, 1, b"as it came"),
        Frame(4, 1, 2, b"changed", sent=b"\xff", by="gate a"),
        Frame(5, 1, 3, b"dropped", by="gate a", dropped=True),
        Frame(6, 1, 4, b"", by="gate a", held=1),
        Release(7, 5, 1, "edited", b"x", "gate a"),
        Frame(8, 1, 5, b"{}", sender="mcpspy", by="gate a"),
        Frame(records[6].n, 1, 7, b"y" * 200_000 + b"z" * 200_000, undecided=True),
        Frame(records[7].n, 1, 8, b"w" * 65537, cut=True, by="gate a", held=2),
    ]
    assert isinstance(close, Close)
    assert said == []


def test_a_chunk_without_bytes_is_no_frame(said):
    recorder = Recorder()
    channel = Channel(Recording(said.append, sink=recorder), 0, "client", "stdin")
    channel.feed(b"", 1)
    channel.feed(b"{", 2)
    channel.feed(b"", 3)
    channel.feed(b"}\n", 4)
    assert recorder.calls[1:] == [("frame", 1, 4, b"{}", False, False)]


@given(
    st.lists(
        st.sampled_from([b"\n", b"{}\n", b"a", b"\n\n", b"a" * PIECE, b"\xff"]) | st.binary(min_size=1), max_size=8
    )
)
@example([b"a" * PIECE, b"\n"])
@example([b"a" * (PIECE - 1) + b"\n", b"a" * PIECE + b"\n"])
def test_the_frames_are_those_of_the_framing_in_any_chunks(chunks):
    """F-01."""
    recorder = Recorder()
    channel = Channel(Recording([].append, sink=recorder), 0, "client", "stdin")
    for chunk in chunks:
        channel.feed(chunk, 1)
    channel.end(1, "eof")
    lines = Lines()
    expected = lines.feed(b"".join(chunks)) + lines.end()
    assert [call[3:] for call in recorder.calls[1:-1]] == expected


def test_an_end_is_recorded_once(said):
    """A pump and its relay may both notice the end."""
    recorder = Recorder()
    channel = Channel(Recording(said.append, sink=recorder), 0, "client", "stdin")
    channel.feed(b"tail", 1)
    channel.end(2, "eof")
    channel.end(3, "exit")
    channel.feed(b"late\n", 4)
    assert recorder.calls == [
        ("open", 1, 0, "client", "stdin", "lines"),
        ("frame", 1, 2, b"tail", False, True),
        ("close", 1, 2, "eof"),
    ]


def test_channels_are_counted_from_1(said):
    recorder = Recorder()
    recording = Recording(said.append, sink=recorder)
    for _ in range(3):
        Channel(recording, 0, "server", "stdout")
    assert [number for _, number, *_ in recorder.calls] == [1, 2, 3]


def test_what_comes_after_the_end_is_not_recorded(said):
    """A pump may still block in a read when the relay ends."""
    recorder = Recorder()
    recording = Recording(said.append, sink=recorder)
    channel = Channel(recording, 0, "client", "stdin")
    recording.end(1, 0, None)
    recorded = len(recorder.calls)
    channel.feed(b"{}\n", 2)
    channel.end(3, "eof")
    Channel(recording, 4, "server", "stderr")
    recording.end(5, 0, None)
    assert len(recorder.calls) == recorded
    assert said == []


def test_without_a_writer_nothing_is_recorded_and_nothing_said(said):
    recording = Recording(said.append, sink=None)
    channel = Channel(recording, 0, "client", "stdin")
    channel.feed(b"{}\n", 1)
    channel.end(2, "eof")
    recording.end(3, 0, None)
    assert said == []


@pytest.mark.parametrize("call", ["open", "frame", "close", "end"])
def test_a_bug_ends_the_recording_and_is_said_once(said, call):
    """S-01: after a crash in recording, the relay goes on without it."""
    recorder = Recorder(fail=call)
    recording = Recording(said.append, sink=recorder)
    first, second = Channel(recording, 0, "client", "stdin"), Channel(recording, 0, "server", "stdout")
    for channel in (first, second):
        channel.feed(b"{}\n{}\n", 1)
        channel.end(2, "eof")
    recording.end(3, 0, None)
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on, but is not recorded"]
    assert recording.sink is None


def test_what_no_relay_may_catch_is_passed_on(said):
    """An interrupt is not a bug in recording."""
    recorder = Recorder()
    channel = Channel(Recording(said.append, sink=recorder), 0, "client", "stdin")

    def frame(*_):
        raise KeyboardInterrupt

    recorder.frame = frame
    with pytest.raises(KeyboardInterrupt):
        channel.feed(b"{}\n", 1)
    channel.end(2, "abort")  # the lock is free
    assert recorder.calls[-1] == ("close", 1, 2, "abort")
