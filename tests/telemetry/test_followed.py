"""Captures that are found, followed, and noted as sent."""

import os
import stat
import sys
from subprocess import PIPE, run

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.writer import create
from mcpspy.errors import UsageError
from mcpspy.telemetry import followed
from mcpspy.telemetry.followed import (
    Checkpoint,
    Claims,
    FollowedTelemetry,
    WatchedCaptures,
    file_of,
    folder,
    load,
    save,
)
from tests.transcript import WALL, begin, capture, finish, record

CALL = '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}'


@pytest.fixture
def watch(tmp_path):
    refused = []
    return WatchedCaptures([str(tmp_path)], refused.append, follow=True), refused


def test_a_capture_is_found_once_and_a_new_one_later(tmp_path, watch):
    folder, _ = watch
    first = capture(tmp_path / "a.jsonl", CALL)
    assert folder.look() == [first]
    assert folder.look() == []
    second = capture(tmp_path / "b.jsonl", CALL)
    assert folder.look() == [second]


def test_a_capture_that_replaces_another_is_a_new_one(tmp_path, watch):
    folder, _ = watch
    path = capture(tmp_path / "a.jsonl", CALL)
    assert folder.look() == [path]
    os.replace(capture(tmp_path / "new", CALL), path)
    assert folder.look() == [path]
    assert folder.look() == []


@pytest.mark.parametrize("named", [False, True])
def test_a_capture_that_is_written_into_the_file_of_another_is_a_new_one(tmp_path, monkeypatch, named):
    monkeypatch.setattr(followed, "EVERY", 1)
    path = capture(tmp_path / "a.jsonl", CALL)
    look = WatchedCaptures([path if named else str(tmp_path)], print, follow=True).look
    assert look() == [path]
    inode = os.stat(path).st_ino
    assert look() == []
    capture(tmp_path / "a.jsonl", f"{CALL}\n{CALL}")
    assert os.stat(path).st_ino == inode
    assert look() == [path]
    assert look() == []


@pytest.mark.parametrize("named", [False, True])
def test_a_file_without_its_header_is_found_once_it_has_it(tmp_path, named):
    path, refused = str(tmp_path / "a.jsonl"), []
    with open(path, "w"):
        pass
    look = WatchedCaptures([path if named else str(tmp_path)], refused.append, follow=True).look
    assert look() == []
    assert not refused
    with open(capture(tmp_path / "whole", CALL), "rb") as whole, open(path, "wb") as file:
        file.write(whole.read())
    assert look() == [path]
    assert not refused


@pytest.mark.parametrize("named", [False, True])
def test_what_is_no_capture_is_reported_once(tmp_path, named):
    path, refused = tmp_path / "a.jsonl", []
    path.write_text("hello\n")
    look = WatchedCaptures([str(path if named else tmp_path)], refused.append, follow=True).look
    for _ in range(4):
        assert look() == []
    assert len(refused) == 1


def test_a_folder_may_come_later(tmp_path):
    folder = tmp_path / "later"
    folder.mkdir()
    look = WatchedCaptures([str(folder)], print, follow=True).look
    folder.rmdir()
    assert look() == []
    folder.mkdir()
    path = capture(folder / "a.jsonl", CALL)
    assert look() == [path]


def test_a_look_reads_no_capture_where_nothing_is_new(tmp_path, watch, monkeypatch):
    folder, _ = watch
    capture(tmp_path / "a.jsonl", CALL)
    folder.look()
    monkeypatch.setattr(followed, "captures", None)
    monkeypatch.setattr(followed, "Capture", None)
    assert folder.look() == []


CALLS = '> {"id":%d,"method":"ping"}\n< {"id":%d,"result":{}}'


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
    record(writer, CALLS % (1, 1))
    batch = spans(capture)
    assert ids(batch) == ["1"]
    capture.acknowledge(batch)
    assert not any(capture.take(100))
    record(writer, CALLS % (2, 2))
    assert ids(spans(capture)) == ["2"]
    finish(writer)
    assert not capture.take(100).spans
    assert capture.ended


def test_after_a_restart_only_what_was_not_taken_comes(tmp_path, follow):
    """T-04: an exchange that was open while others were accepted is not lost."""
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> {"id":0,"method":"tools/call","params":{"name":"slow"}}\n' + CALLS % (1, 1))
    first = follow(tmp_path / "a.jsonl")
    batch = spans(first)
    assert ids(batch) == ["1"]
    first.acknowledge(batch)
    record(writer, CALLS % (2, 2))
    lost = spans(first)  # sent, but the process was killed before it saved the checkpoint
    assert ids(lost) == ["2"]
    record(writer, '< {"id":0,"result":{}}')
    second = follow(tmp_path / "a.jsonl")
    finish(writer)
    assert sorted(ids(spans(second))) == ["0", "2"]


def test_a_capture_of_which_all_was_taken_is_complete(tmp_path, follow):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, CALLS % (1, 1))
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
    record(writer, CALLS % (1, 1))
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
    record(writer, "\n".join(CALLS % (n, n) for n in range(60)))
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
    record(writer, "\n".join(CALLS % (n, n) for n in range(50)))
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
    record(writer, ask % "long" + "\n" + "\n".join(CALLS % (n, n) for n in range(400)))
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


FUTURE = '{"below":1e300,"open":{},"taken":[[1,2,3]],"logs":[0],"size":1,"new":1}'


def test_what_is_saved_is_loaded(tmp_path):
    path = str(tmp_path / "otel" / "a.json")
    kept = Checkpoint(7, {(2, 0)}, {(9, 0), (9, 1)}, 3, 1000)
    save(path, kept)
    assert load(path) == kept
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(tmp_path / "otel") == ["a.json"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"below":"x","open":[],"taken":[],"logs":0,"size":null}', "\0", FUTURE]
)
def test_a_damaged_file_is_as_none(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert load(str(path)) == load(str(tmp_path / "missing")) == Checkpoint()


def test_spans_above_the_bound_are_known_one_by_one():
    checkpoint = Checkpoint()
    checkpoint.take([(5, 0), (9, 1)], [], 6)
    assert [checkpoint.has(place) for place in ((5, 1), (6, 0), (9, 0), (9, 1))] == [True, False, False, True]
    assert checkpoint.taken == {(9, 1)}
    checkpoint.take([], [(2, 0)], 3)  # a bound never decreases, and a request that is read again is not open again
    assert checkpoint.has((5, 0))
    assert checkpoint.has((2, 0))


def test_a_request_that_stays_open_costs_one_entry():
    checkpoint = Checkpoint()
    for n in range(2, 20_000, 100):
        checkpoint.take([(it, 0) for it in range(n, n + 100)], [(1, 0)], n - 50)
    assert checkpoint.open == {(1, 0)}
    assert len(checkpoint.taken) <= 150
    assert not checkpoint.has((1, 0))
    checkpoint.take([(1, 0)], [], 19_000)
    assert checkpoint.has((1, 0))
    assert not checkpoint.open


@pytest.mark.parametrize("capture", ["../../../x", "a/b", "x" * 5000, "a\0b", "", "\ud800"])
def test_the_id_of_a_capture_may_be_any_text(tmp_path, capture):
    path = file_of(str(tmp_path), capture)
    save(path, Checkpoint(7))
    assert load(path) == Checkpoint(7)
    assert [str(tmp_path / name) for name in os.listdir(tmp_path)] == [path]


def test_one_process_sends_a_capture(tmp_path):
    """T-04."""
    claims, path = Claims(str(tmp_path)), file_of(str(tmp_path), "a")
    assert claims.take(path)
    other = f"from mcpspy.telemetry.followed import Claims; print(Claims({str(tmp_path)!r}).take({path!r}))"
    assert run([sys.executable, "-c", other], stdout=PIPE, check=True).stdout == b"False\n"
    claims.release(path)
    assert run([sys.executable, "-c", other], stdout=PIPE, check=True).stdout == b"True\n"
    claims.close()


def test_where_it_cannot_be_written_that_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the checkpoint"):
        save(str(tmp_path / "file" / "a.json"), Checkpoint())
    with pytest.raises(UsageError, match="cannot write the checkpoints"):
        Claims(str(tmp_path / "file" / "otel"))


def test_each_endpoint_has_checkpoints_of_its_own():
    assert folder("http://a:4318") == folder("http://a:4318") != folder("http://b:4318")
