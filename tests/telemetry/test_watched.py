"""Captures that are found at the start and later."""

import os

import pytest

from mcpspy.telemetry import watched
from mcpspy.telemetry.watched import WatchedCaptures
from tests.transcript import capture

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
    monkeypatch.setattr(watched, "EVERY", 1)
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
    monkeypatch.setattr(watched, "captures", None)
    monkeypatch.setattr(watched, "Capture", None)
    assert folder.look() == []
