import os
import threading
from pathlib import Path

import pytest

from mcpspy.errors import McpspyError
from mcpspy.replay.script.growth import beside, take_in
from mcpspy.replay.script.load import script_of
from tests.limits import within
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.transcript import abandon, begin, capture, finish, record

SHAKEN = f"> {INITIALIZE}\n< {INITIALIZED}"
A = f"{SHAKEN}\n> {call(2, 'a')}\n< {result(2, 'A')}"
B = f"{SHAKEN}\n> {call(2, 'b')}\n< {result(2, 'B')}"


def names(path):
    """Return the tools that were called in a capture."""
    return [turn.name for turn in script_of(str(path)).turns if turn.method == "tools/call"]


def left(folder):
    return sorted(os.listdir(folder))


def test_a_session_beside_a_capture_becomes_a_part_of_it(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    os.chmod(path, 0o640)
    old = Path(path).read_bytes()
    capture(beside(path), B)
    assert take_in(path, pytest.fail) == 1
    assert names(path) == ["a", "b"]
    assert Path(path).read_bytes().startswith(old)
    assert left(tmp_path) == ["c.jsonl"]
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_without_a_capture_the_session_is_it(tmp_path):
    path = str(tmp_path / "c.jsonl")
    whole = Path(capture(beside(path), A)).read_bytes()
    assert take_in(path, pytest.fail) == 2
    assert Path(path).read_bytes() == whole
    assert left(tmp_path) == ["c.jsonl"]


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    path = capture(tmp_path / "real" / "c.jsonl", A)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    capture(beside(str(link)), B)
    assert take_in(str(link), pytest.fail) == 1
    assert link.is_symlink()
    assert names(path) == ["a", "b"]


@pytest.mark.parametrize("text", [A, SHAKEN, f"{SHAKEN}\n> {call(2, 'b')}", "! no such module"])
def test_a_session_with_nothing_new_goes(tmp_path, text):
    path = capture(tmp_path / "c.jsonl", A)
    old = Path(path).read_bytes()
    capture(beside(path), text)
    assert take_in(path, pytest.fail) == 0
    assert Path(path).read_bytes() == old
    assert left(tmp_path) == ["c.jsonl"]


def test_a_session_that_is_still_recorded_stays_beside_until_it_is_over(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    writer = begin(beside(path))
    record(writer, B)
    assert take_in(path, pytest.fail) == 0
    assert len(left(tmp_path)) == 2
    finish(writer)
    assert take_in(path, pytest.fail) == 1


def test_a_session_whose_relay_was_killed_is_taken_in(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    writer = begin(beside(path))
    record(writer, f"{B}\n> {call(3, 'cut off')}")
    abandon(writer)
    assert take_in(path, pytest.fail) == 1
    assert names(path) == ["a", "b", "cut off"]


def test_a_session_that_is_not_whole_stays_beside_and_that_is_said(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    damaged = Path(capture(beside(path), B))
    damaged.write_text(damaged.read_text().replace('"kind":"end"', '"kind":"en'))
    said = []
    assert take_in(path, said.append) == 0
    assert said == [
        f"{damaged} is not added to {path}: it is incomplete (a damaged line); delete it if you do not need it"
    ]
    assert damaged.exists()


def test_a_capture_that_is_being_recorded_is_not_replaced(tmp_path):
    path = str(tmp_path / "c.jsonl")
    writer = begin(path)
    record(writer, A)
    session = capture(beside(path), B)
    with pytest.raises(McpspyError, match="is being recorded: what was missing stays beside it"):
        take_in(path, pytest.fail)
    assert Path(session).exists()
    finish(writer)


def test_many_at_once_lose_nothing(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    wanted = [f"tool {n}" for n in range(20)]

    def add(name):
        capture(beside(path), f"{SHAKEN}\n> {call(2, name)}\n< {result(2, name)}")
        take_in(path, pytest.fail)

    threads = [threading.Thread(target=add, args=(name,), daemon=True) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        within(thread.join)
    assert sorted(names(path)) == sorted(["a", *wanted])
    assert left(tmp_path) == ["c.jsonl"]


def test_what_was_left_by_one_that_was_killed_while_it_wrote_goes(tmp_path):
    path = capture(tmp_path / "c.jsonl", A)
    mine = tmp_path / "c.jsonl.old.new"
    for left_over in (mine, tmp_path / "c.jsonl.0a1b2c3d.new", tmp_path / "c.jsonl.0a1b2c3d.new.12.part"):
        left_over.touch()
    take_in(path, pytest.fail)
    assert left(tmp_path) == ["c.jsonl", mine.name]
