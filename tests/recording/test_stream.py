"""The funnel between a relay and its capture: a bug below must not reach the traffic (DESIGN, principle 1)."""

import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open
from mcpspy.recording import stream as tap_module
from mcpspy.recording.stream import Tap
from mcpspy.wire.lines import PIECE, Lines
from tests.transcript import begin


class Recorder:
    """A writer that keeps its calls; `fail` names the call that has a bug."""

    path = "a.jsonl"

    def __init__(self, fail=None):
        self.calls = []
        self.fail = fail

    def __getattr__(self, name):
        def call(*values):
            if name == self.fail:
                raise RuntimeError("a bug")
            self.calls.append((name, *values))

        return call


@pytest.fixture
def said():
    return []


def test_what_a_relay_moves_stands_in_the_capture(tmp_path, said):
    tap = Tap(begin(tmp_path / "a"), said.append)
    client, server = tap.open(0, "client", "stdin"), tap.open(1, "server", "stdout")
    client.feed(b'{"id":1,', 2)
    client.feed(b'"method":"ping"}\n{"id"', 3)
    server.feed(b"\xff\n", 4)
    client.end(5, "eof")
    server.end(6, "exit")
    tap.end(7, 0, None)
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
    tap = Tap(begin(tmp_path / "a"), said.append)
    channel = tap.open(0, "client", "stdin")
    for t in range(5):
        channel.feed(b"x" * 65536, t)
    channel.feed(b"\n", 5)
    channel.feed(b"after\n", 6)
    _, big, after = Capture(str(tmp_path / "a")).records()
    assert (big.raw, big.t) == (b"x" * 5 * 65536, 5)
    assert after.raw == b"after"


def test_a_chunk_without_bytes_is_no_frame(said):
    recorder = Recorder()
    channel = Tap(recorder, said.append).open(0, "client", "stdin")
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
    channel = Tap(recorder, [].append).open(0, "client", "stdin")
    for chunk in chunks:
        channel.feed(chunk, 1)
    channel.end(1, "eof")
    lines = Lines()
    expected = lines.feed(b"".join(chunks)) + lines.end()
    assert [call[3:] for call in recorder.calls[1:-1]] == expected


def test_an_end_is_recorded_once(said):
    """A pump and its relay may both see it."""
    recorder = Recorder()
    channel = Tap(recorder, said.append).open(0, "client", "stdin")
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
    tap = Tap(recorder, said.append)
    for _ in range(3):
        tap.open(0, "server", "stdout")
    assert [number for _, number, *_ in recorder.calls] == [1, 2, 3]


def test_what_comes_after_the_end_is_not_recorded(said):
    """A pump may still be blocked in a read when the relay ends."""
    recorder = Recorder()
    tap = Tap(recorder, said.append)
    channel = tap.open(0, "client", "stdin")
    tap.end(1, 0, None)
    recorded = len(recorder.calls)
    channel.feed(b"{}\n", 2)
    channel.end(3, "eof")
    tap.open(4, "server", "stderr")
    tap.end(5, 0, None)
    assert len(recorder.calls) == recorded
    assert said == []


def test_without_a_writer_nothing_is_recorded_and_nothing_said(said):
    tap = Tap(None, said.append)
    channel = tap.open(0, "client", "stdin")
    channel.feed(b"{}\n", 1)
    channel.end(2, "eof")
    tap.end(3, 0, None)
    assert said == []


@pytest.mark.parametrize("call", ["open", "frame", "close", "end"])
def test_a_bug_ends_the_recording_and_is_said_once(said, call):
    """S-01: a crash in recording degrades to pure relay."""
    recorder = Recorder(fail=call)
    tap = Tap(recorder, said.append)
    first, second = tap.open(0, "client", "stdin"), tap.open(0, "server", "stdout")
    for channel in (first, second):
        channel.feed(b"{}\n{}\n", 1)
        channel.end(2, "eof")
    tap.end(3, 0, None)
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on unrecorded"]
    assert tap.writer is None


def test_what_no_relay_may_catch_is_passed_on(said):
    """An interrupt is no bug of the recording."""
    recorder = Recorder()
    channel = Tap(recorder, said.append).open(0, "client", "stdin")

    def frame(*_):
        raise KeyboardInterrupt

    recorder.frame = frame
    with pytest.raises(KeyboardInterrupt):
        channel.feed(b"{}\n", 1)
    channel.end(2, "abort")  # the lock is free
    assert recorder.calls[-1] == ("close", 1, 2, "abort")


# HTTP.


def body_of(recorder, framing="body", **options):
    return Tap(recorder, [].append).open_body(0, "server", "response", framing, {"answers": 1}, **options)


def test_a_channel_of_http_has_its_head_without_secrets(tmp_path, said, monkeypatch):
    """DESIGN section 3; O-02."""
    monkeypatch.setenv("HOME", str(tmp_path))
    tap = Tap(begin(tmp_path / "a"), said.append)
    head = {"method": "POST", "target": "/mcp?token=hunter2", "version": "1.1", "headers": [["Cookie", "hunter2"]]}
    sent = {"target": "/?token=hunter2", "headers": [["Host", "h"]]}
    body = tap.open_body(3, "client", "request", "body", {"peer": "h:1", "head": head, "sent": sent, "by": "host"})
    body.feed(b'{"id":', 4)
    body.feed(b"1}", 5)
    body.end(6, "eof")
    body.end(7, "reset")
    body.feed(b"late", 8)
    tap.end(9, None, None)
    opened, frame, close, end = Capture(str(tmp_path / "a")).records()
    assert (opened.peer, opened.by, opened.framing, opened.t) == ("h:1", "host", "body", 3)
    assert (frame, close, end) == (
        Frame(3, 1, 6, b'{"id":1}'),
        Close(4, 1, 6, "eof"),
        End(5, 9),
    )
    assert b"hunter2" not in (tmp_path / "a").read_bytes()
    assert said == []


@pytest.mark.parametrize(("how", "cut"), [("eof", False), ("reset", True), ("abort", True)])
def test_a_body_that_did_not_end_in_order_is_cut(how, cut):
    recorder = Recorder()
    body = body_of(recorder)
    body.feed(b"part", 1)
    body.end(2, how)
    assert recorder.calls[1:] == [("frame", 1, 2, b"part", False, cut, None), ("close", 1, 2, how, {})]


def test_an_event_that_was_changed_says_what_was_sent():
    """H-08."""
    recorder = Recorder()
    body = body_of(recorder, "sse")
    body.changed(b"data: 2\n", b"data: II\n", "endpoint")
    body.feed(b"data: 1\n\ndata: 2\n\ndata: 2\n\n", 1)
    assert [call[3:] for call in recorder.calls[1:]] == [
        (b"data: 1\n", False, False, None),
        (b"data: 2\n", False, False, {"sent": "data: II\n", "by": "endpoint"}),
        (b"data: 2\n", False, False, None),
    ]


def test_a_coded_body_is_recorded_decoded():
    """H-11."""
    recorder = Recorder()
    body = body_of(recorder, encoding="gzip")
    for byte in gzip.compress(b"{}"):
        body.feed(bytes([byte]), 1)
    body.end(2, "eof")
    assert recorder.calls[1:] == [("frame", 1, 2, b"{}", False, False, None), ("close", 1, 2, "eof", {})]


def test_what_cannot_be_decoded_stands_as_it_came_from_its_first_byte():
    """H-11: also what was taken before it was clear."""
    recorder = Recorder()
    body = body_of(recorder, encoding="gzip")
    for byte in b"no gzip":
        body.feed(bytes([byte]), 1)
    body.end(2, "eof")
    (_, *frame), (_, *close) = recorder.calls[1:]
    assert frame == [1, 2, b"no gzip", False, False, None]
    assert close[3]["reason"].startswith("the coded body is damaged")


def test_a_coding_that_fails_later_leaves_what_was_decoded_as_a_cut_frame():
    recorder = Recorder()
    body = body_of(recorder, encoding="gzip")
    coded = gzip.compress(b"a" * 1000)
    body.feed(coded[:-8], 1)
    body.feed(b"\xff" * 8, 2)
    body.feed(b"rest", 3)
    body.end(4, "eof")
    frames = [call[3:6] for call in recorder.calls if call[0] == "frame"]
    assert frames == [(b"a" * 1000, False, True), (b"\xff" * 8 + b"rest", False, False)]


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_secret_body_of_any_size_holds_no_secret(tmp_path, monkeypatch, encoding):
    """O-02."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for text in (b'{"access_token":"hunter2"}', b'{"access_token":"hunter2","x":"%b"}' % (b"x" * 70_000)):
        recorder = Recorder()
        body = body_of(recorder, encoding=encoding, secret=True)
        body.feed(gzip.compress(text) if encoding else text, 1)
        body.end(2, "eof")
        (_, _, _, raw, *_) = recorder.calls[1]
        assert b"hunter2" not in raw
        assert "«".encode() in raw


def test_a_secret_body_that_cannot_be_decoded_is_withheld():
    recorder = Recorder()
    body = body_of(recorder, encoding="gzip", secret=True)
    body.feed(b"access_token=hunter2", 1)
    body.end(2, "eof")
    assert [call[3] for call in recorder.calls if call[0] == "frame"] == ["«withheld: 20 bytes»".encode()]


def test_a_secret_event_stream_is_withheld():
    """Of an OAuth endpoint, which has no reason to send one."""
    recorder = Recorder()
    body = body_of(recorder, framing="sse", secret=True)
    body.feed(b'data: {"access_token":"hunter2"}\n\n', 1)
    body.end(2, "reset")
    opened, frame, _ = recorder.calls
    assert opened[5] == "body"
    assert frame[3:6] == ("«withheld: 34 bytes»".encode(), False, True)


def test_a_secret_body_that_is_nested_deeper_than_the_stack_is_no_bug(said):
    tap = Tap(Recorder(), said.append)
    body = tap.open_body(0, "server", "response", "body", {}, secret=True)
    body.feed(b"[" * 600 + b"]" * 600, 1)
    body.end(2, "eof")
    assert tap.writer.calls[1][3] == "«withheld: 1200 bytes»".encode()
    assert said == []


def test_the_reason_of_a_close_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    recorder = Recorder()
    body = body_of(recorder, "message")
    body.feed(b"\x88\x0f\x0f\xa1token=hunter2", 1)
    body.end(2, "eof")
    ((*_, closing),) = recorder.calls[1:]
    assert closing["code"] == 4001
    assert closing["reason"].startswith("token=«redacted:")


def test_a_socket_says_what_each_message_is_and_how_it_closed():
    recorder = Recorder()
    body = body_of(recorder, "message")
    body.feed(b"\x81\x02{}\x89\x00\x88\x05\x0f\xa1bye", 1)
    body.end(2, "eof")
    assert recorder.calls[1:] == [
        ("frame", 1, 1, b"{}", False, False, None),
        ("frame", 1, 1, b"", False, False, {"op": "ping"}),
        ("close", 1, 2, "eof", {"code": 4001, "reason": "bye"}),
    ]


@pytest.mark.parametrize("call", ["open", "frame", "close"])
def test_a_bug_in_recording_http_ends_it_and_is_said_once(said, call):
    """M-03 for the proxy: a recorder's exception never breaks a flow."""
    tap = Tap(Recorder(fail=call), said.append)
    for _ in range(2):
        body = tap.open_body(0, "server", "response", "body", {})
        body.feed(b"a" * 70_000, 1)
        body.end(2, "eof")
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on unrecorded"]


@pytest.mark.parametrize("part", ["_decoder", "_splitter"])
def test_a_bug_in_what_takes_a_body_apart_ends_the_recording_and_not_the_exchange(said, monkeypatch, part):
    def broken(_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(tap_module, part, broken)
    tap = Tap(Recorder(), said.append)
    body = tap.open_body(0, "server", "response", "body", {}, encoding="gzip")
    body.feed(b"a", 1)
    body.end(2, "eof")
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on unrecorded"]
