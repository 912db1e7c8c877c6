"""An HTTP channel in a capture: framing, content codings, secrets, and bugs that must not affect the traffic."""

import gzip

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame
from mcpspy.recording import http_exchange as module
from mcpspy.recording.http_exchange import Body
from mcpspy.recording.recording import Recording
from mcpspy.wire import content_coding
from tests.recording.recorder import Recorder
from tests.transcript import begin


@pytest.fixture
def said():
    return []


def opened(recording, framing="body", encoding="", *, secret=False, sender="server", role="response", **fields):
    body = Body(recording, framing, encoding, secret=secret)
    body.open(0, sender, role, fields)
    return body


def recorded(framing="body", encoding="", *, secret=False):
    """Return an open body, and the recorder that gets its records."""
    recorder = Recorder()
    return opened(Recording([].append, sink=recorder), framing, encoding, secret=secret, answers=1), recorder


def test_a_channel_of_http_has_its_head_without_secrets(tmp_path, said, monkeypatch):
    """docs/capture-format.md; O-02."""
    monkeypatch.setenv("HOME", str(tmp_path))
    recording = Recording(said.append, sink=begin(tmp_path / "a"))
    head = {"method": "POST", "target": "/mcp?token=hunter2", "version": "1.1", "headers": [["Cookie", "hunter2"]]}
    sent = {"target": "/?token=hunter2", "headers": [["Host", "h"]]}
    body = Body(recording, "body")
    body.open(3, "client", "request", {"peer": "h:1", "head": head, "sent": sent, "by": "host"})
    body.feed(b'{"id":', 4)
    body.feed(b"1}", 5)
    body.end(6, "eof")
    body.end(7, "reset")
    body.feed(b"late", 8)
    recording.end(9)
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
    body, recorder = recorded()
    body.feed(b"part", 1)
    body.end(2, how)
    assert recorder.calls[1:] == [("frame", 1, 2, b"part", False, cut, None), ("close", 1, 2, how, {})]


def test_an_event_that_was_changed_says_what_was_sent():
    """H-08."""
    body, recorder = recorded("sse")
    body.feed(b"data: 1\n\n", 1)
    body.frame(b"data: 2\n", 1, gated={"sent": b"data: II\n", "by": "endpoint"})
    body.feed(b"\ndata: 2\n\n", 1)
    assert [call[3:] for call in recorder.calls[1:]] == [
        (b"data: 1\n", False, False, None),
        (b"data: 2\n", False, False, {"sent": "data: II\n", "by": "endpoint"}),
        (b"data: 2\n", False, False, None),
    ]


def test_a_long_frame_says_on_its_first_piece_what_a_gate_did(tmp_path, said):
    """Readers look for it there: docs/capture-format.md, `release`."""
    recording = Recording(said.append, sink=begin(tmp_path / "a"))
    body = opened(recording, "message", role="ws", answers=1)
    body.frame(b"x" * 200_000, 1, op="binary", gated={"sent": None, "by": "gate g", "held": 3})
    recording.end(2)
    (frame,) = [it for it in Capture(str(tmp_path / "a")).records() if isinstance(it, Frame)]
    assert (len(frame.raw), frame.op, frame.dropped, frame.by, frame.held) == (200_000, "binary", True, "gate g", 3)
    assert said == []


def test_a_frame_that_a_gate_decided_on_keeps_no_secret(tmp_path):
    """A-08: neither in the received nor in the sent bytes."""
    body, recorder = recorded()
    login = b'{"grant_type":"password","password":"hunter2"}'
    body.frame(login, 1, gated={"sent": login + b" ", "by": "gate g"})
    assert "hunter2" not in repr(recorder.calls)


def test_a_frame_that_is_too_long_for_a_gate_is_marked_at_its_start():
    body, recorder = recorded("sse")
    body.undecided()
    body.feed(b"data: 1\n\ndata: 2\n\n", 1)
    assert [call[6] for call in recorder.calls[1:]] == [{"undecided": True}, None]


def test_a_coded_body_that_was_decoded_for_a_gate_is_not_decoded_again():
    body, recorder = recorded(encoding="gzip")
    body.decoded()
    body.feed(b"{}", 1)
    body.end(2, "eof")
    assert recorder.calls[1:] == [("frame", 1, 2, b"{}", False, False, None), ("close", 1, 2, "eof", {})]


def test_a_coded_body_is_recorded_decoded():
    """H-11."""
    body, recorder = recorded(encoding="gzip")
    for byte in gzip.compress(b"{}"):
        body.feed(bytes([byte]), 1)
    body.end(2, "eof")
    assert recorder.calls[1:] == [("frame", 1, 2, b"{}", False, False, None), ("close", 1, 2, "eof", {})]


def test_what_cannot_be_decoded_stands_as_it_came_from_its_first_byte():
    """H-11: also the bytes that were accepted before the fault was found."""
    body, recorder = recorded(encoding="gzip")
    for byte in b"no gzip":
        body.feed(bytes([byte]), 1)
    body.end(2, "eof")
    (_, *frame), (_, *close) = recorder.calls[1:]
    assert frame == [1, 2, b"no gzip", False, False, None]
    assert close[3]["reason"].startswith("the compressed body is damaged")


def test_a_coding_that_fails_later_leaves_what_was_decoded_as_a_cut_frame():
    body, recorder = recorded(encoding="gzip")
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
        body, recorder = recorded(encoding=encoding, secret=True)
        body.feed(gzip.compress(text) if encoding else text, 1)
        body.end(2, "eof")
        (_, _, _, raw, *_) = recorder.calls[1]
        assert b"hunter2" not in raw
        assert "«".encode() in raw


def test_a_secret_body_that_cannot_be_decoded_is_withheld():
    body, recorder = recorded(encoding="gzip", secret=True)
    body.feed(b"access_token=hunter2", 1)
    body.end(2, "eof")
    assert [call[3] for call in recorder.calls if call[0] == "frame"] == ["«withheld: 20 bytes»".encode()]


@pytest.mark.parametrize("chunk", [7, 4096, 1 << 20])
def test_the_title_of_a_page_is_recorded_however_it_arrives_and_however_long_the_page_is(chunk):
    page = b"<html><title>Bad gateway</title>" + b"x" * 100_000
    for size in (500, len(page)):
        body, recorder = recorded(secret=True)
        for start in range(0, size, chunk):
            body.feed(page[start : min(start + chunk, size)], 1)
        body.end(2, "eof")
        assert recorder.calls[1][3] == f'«withheld: {size} bytes, title "Bad gateway"»'.encode()


def test_a_secret_event_stream_is_withheld():
    """An OAuth endpoint has no reason to send an event stream."""
    body, recorder = recorded(framing="sse", secret=True)
    body.feed(b'data: {"access_token":"hunter2"}\n\n', 1)
    body.end(2, "reset")
    opened, frame, _ = recorder.calls
    assert opened[5] == "body"
    assert frame[3:6] == ("«withheld: 34 bytes»".encode(), False, True)


def test_a_secret_body_that_is_nested_deeper_than_the_stack_is_no_bug(said):
    recording = Recording(said.append, sink=Recorder())
    body = opened(recording, secret=True)
    body.feed(b"[" * 600 + b"]" * 600, 1)
    body.end(2, "eof")
    assert recording.sink.calls[1][3] == "«withheld: 1200 bytes»".encode()
    assert said == []


def test_the_reason_of_a_close_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    body, recorder = recorded("message")
    body.feed(b"\x88\x0f\x0f\xa1token=hunter2", 1)
    body.end(2, "eof")
    ((*_, closing),) = recorder.calls[1:]
    assert closing["code"] == 4001
    assert closing["reason"].startswith("token=«redacted:")


def test_a_socket_says_what_each_message_is_and_how_it_closed():
    body, recorder = recorded("message")
    body.feed(b"\x81\x02{}\x89\x00\x88\x05\x0f\xa1bye", 1)
    body.end(2, "eof")
    assert recorder.calls[1:] == [
        ("frame", 1, 1, b"{}", False, False, None),
        ("frame", 1, 1, b"", False, False, {"op": "ping"}),
        ("close", 1, 2, "eof", {"code": 4001, "reason": "bye"}),
    ]


@pytest.mark.parametrize("call", ["open", "frame", "close"])
def test_a_bug_in_recording_http_ends_it_and_is_said_once(said, call):
    """M-03 for `proxy`: an exception in recording never interrupts the traffic."""
    recording = Recording(said.append, sink=Recorder(fail=call))
    for _ in range(2):
        body = opened(recording)
        body.feed(b"a" * 70_000, 1)
        body.end(2, "eof")
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on, but is not recorded"]


@pytest.mark.parametrize("part", ["Decoder", "Whole"])
def test_a_bug_in_what_takes_a_body_apart_ends_the_recording_and_not_the_exchange(said, monkeypatch, part):
    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, part, broken)
    recording = Recording(said.append, sink=Recorder())
    body = opened(recording, encoding="gzip")
    body.feed(b"a", 1)
    body.end(2, "eof")
    assert said == ["recording to a.jsonl stopped by a bug (RuntimeError: a bug); traffic goes on, but is not recorded"]


def test_a_body_that_expands_without_end_is_recorded_up_to_a_bound(monkeypatch):
    """A-04, A-12: the rest is omitted rather than recorded undecoded, because the peer has made no mistake."""
    monkeypatch.setattr(content_coding, "FREE", 1 << 20)
    body, recorder = recorded(encoding="gzip")
    body.feed(gzip.compress(bytes(8 << 20)), 1)
    body.feed(b"more", 2)
    body.end(3, "eof")
    frames = [call for call in recorder.calls if call[0] == "frame"]
    assert sum(len(call[3]) for call in frames) <= 1 << 20
    assert (frames[-1][4], frames[-1][5]) == (False, True), "cut"
    assert recorder.calls[-1][4]["reason"].endswith("is decoded no further")
