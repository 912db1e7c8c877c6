"""The telemetry to send for a capture that grows."""

import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.writer import create
from mcpspy.telemetry import followed
from mcpspy.telemetry.followed import FollowedTelemetry
from tests.transcript import WALL, begin, finish, record

CALL = '> {"id":%d,"method":"ping"}\n< {"id":%d,"result":{}}'


@pytest.fixture
def follow(tmp_path):
    opened = []

    def start(path):
        opened.append(FollowedTelemetry(str(path), str(tmp_path / "otel"), str, None))
        opened[-1].news = opened[-1].begin()
        return opened[-1]

    yield start
    for it in opened:
        it.close()


def spans(capture):
    """Return the next batch with spans; records that may still be reordered wait for a few looks without news."""
    return next(batch for batch in (capture.take(100) for _ in range(20)) if batch.spans)


def ids(batch):
    return [span.attributes["jsonrpc.request.id"] for span in batch.spans]


def test_new_exchanges_come_once(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    capture = follow(tmp_path / "a.jsonl")
    record(writer, CALL % (1, 1))
    batch = spans(capture)
    assert ids(batch) == ["1"]
    capture.acknowledge(batch)
    assert not any(capture.take(100))
    record(writer, CALL % (2, 2))
    assert ids(spans(capture)) == ["2"]
    finish(writer)
    assert not capture.take(100).spans
    assert capture.ended


def test_after_a_restart_only_what_was_not_taken_comes(tmp_path, follow):
    """T-04: an exchange that was open while others were accepted is not lost."""
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> {"id":0,"method":"tools/call","params":{"name":"slow"}}\n' + CALL % (1, 1))
    first = follow(tmp_path / "a.jsonl")
    batch = spans(first)
    assert ids(batch) == ["1"]
    first.acknowledge(batch)
    record(writer, CALL % (2, 2))
    lost = spans(first)  # sent, but the process was killed before it saved the checkpoint
    assert ids(lost) == ["2"]
    record(writer, '< {"id":0,"result":{}}')
    second = follow(tmp_path / "a.jsonl")
    finish(writer)
    assert sorted(ids(spans(second))) == ["0", "2"]


def test_a_capture_of_which_all_was_taken_is_complete(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, CALL % (1, 1))
    finish(writer)
    capture = follow(tmp_path / "a.jsonl")
    assert capture.news
    while not capture.ended:
        capture.acknowledge(capture.take(1))
    capture.acknowledge(capture.take(1))
    again = follow(tmp_path / "a.jsonl")
    assert not again.news
    assert not any(again.take(100).spans)


def test_a_capture_that_is_deleted_meanwhile_ends(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, CALL % (1, 1))
    capture = follow(tmp_path / "a.jsonl")
    os.unlink(tmp_path / "a.jsonl")
    batch = spans(capture)
    assert (ids(batch), capture.ended) == (["1"], True)
    capture.acknowledge(batch)
    finish(writer)


def test_a_capture_in_several_files_is_one(tmp_path, follow):
    path = str(tmp_path / "a.jsonl")
    header = {"tool": "mcpspy", "transport": "stdio", "name": "weather"}
    writer = create(header, output=path, folder=None, environ={}, wall=WALL, say=print, limit=4096)
    record(writer, "\n".join(CALL % (n, n) for n in range(60)))
    finish(writer)
    capture, found = follow(path), []
    assert len(Capture(path).paths) > 1
    while not capture.ended:
        batch = capture.take(50)
        capture.acknowledge(batch)
        found += ids(batch)
    assert sorted(map(int, found)) == list(range(60))
    assert not follow(path).news


def test_a_batch_has_no_more_than_it_may(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "\n".join(CALL % (n, n) for n in range(50)))
    finish(writer)
    capture, found = follow(tmp_path / "a.jsonl"), []
    while not capture.ended:
        batch = capture.take(7)
        assert sum(map(len, batch)) <= 7
        found += ids(batch)
    assert found == [str(n) for n in range(50)]


def test_the_resource_names_server_client_and_capture(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    params = '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cursor","version":"2"}}'
    record(writer, f'> {{"id":1,"method":"initialize","params":{params}}}')
    finish(writer)
    capture = follow(tmp_path / "a.jsonl")
    capture.take(100)
    header = Capture(str(tmp_path / "a.jsonl")).header
    found = capture.resource()
    assert found["service.instance.id"] == header.id
    assert (found["mcpspy.server"], found["mcpspy.transport"], found["mcpspy.client"]) == (
        header.name,
        "stdio",
        "cursor 2",
    )


def test_a_request_that_stays_open_is_not_forgotten_and_the_checkpoint_stays_small(tmp_path, follow, monkeypatch):
    """T-04: a subscription of 2026-07-28 may be open as long as the capture."""
    monkeypatch.setattr(followed, "OUT_OF_ORDER", 16)
    path, ask = tmp_path / "a.jsonl", '> {"id":"%s","method":"tools/call","params":{"name":"a"}}'
    writer = begin(path)
    record(writer, ask % "long" + "\n" + "\n".join(CALL % (n, n) for n in range(400)))
    capture, found = follow(path), []
    while len(found) < 400:
        batch = capture.take(50)
        capture.acknowledge(batch)
        found += ids(batch)
    assert os.path.getsize(capture.place) < 2000
    record(writer, '< {"id":"long","result":{}}')
    finish(writer)
    again, found = follow(path), []
    while not again.ended:
        batch = again.take(50)
        again.acknowledge(batch)
        found += ids(batch)
    assert found == ["long"]
