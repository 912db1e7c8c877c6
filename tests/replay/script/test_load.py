"""Captures that are loaded, replaced and extended."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from mcpspy.errors import CaptureError, McpspyError, NotACapture
from mcpspy.replay.growth import beside, take_in
from mcpspy.replay.script import accept, load, script_of
from tests.each import each
from tests.limits import within
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.transcript import abandon, begin, capture, finish, record

WHOLE = f"> {call(1, 'a')}\n< {result(1, 'A')}"


def test_a_whole_session_is_loaded_without_a_word(tmp_path):
    script = load(capture(tmp_path / "c.jsonl", WHOLE), pytest.fail)
    assert [turn.name for turn in script.turns] == ["a"]
    assert script.header.name == "weather"


def test_a_capture_without_a_client_cannot_be_played(tmp_path):
    with pytest.raises(CaptureError, match="has no message of a client: there is nothing to replay"):
        load(capture(tmp_path / "c.jsonl", f"< {result(1, 'A')}\n! aside"), pytest.fail)


def test_a_capture_with_a_gap_cannot_be_played(tmp_path):
    path = capture(tmp_path / "c.jsonl", WHOLE)
    Path(path).write_text(Path(path).read_text().replace('"kind":"end"', '"kind":"en'))
    with pytest.raises(CaptureError, match=r"is truncated in mid-session \(a damaged line\): record it again"):
        load(path, pytest.fail)
    assert script_of(path).turns, "it can be compared all the same"


def cut(path, lines):
    """Truncate a capture after the given number of lines; return its path."""
    Path(path).write_text("".join(Path(path).read_text().splitlines(keepends=True)[:lines]))
    return path


def test_a_capture_that_ends_in_mid_session_cannot_be_played(tmp_path):
    path = cut(capture(tmp_path / "c.jsonl", WHOLE), 5)
    cut_off = r"truncated in mid-session: tools/call \(#5\) has no answer, and the capture has no end"
    with pytest.raises(CaptureError, match=cut_off):
        load(path, pytest.fail)


def test_a_capture_whose_relay_was_killed_is_taken_for_whole(tmp_path):
    said = []
    path = cut(capture(tmp_path / "c.jsonl", WHOLE), 6)
    assert load(path, said.append).turns
    assert said == [f"{path} has no end, because its relay was killed; it is replayed as far as it goes"]


def test_a_live_capture_is_not_played(tmp_path):
    path = str(tmp_path / "c.jsonl")
    writer = begin(path)
    record(writer, WHOLE)
    with pytest.raises(CaptureError, match="is still being recorded"):
        load(path, pytest.fail)
    finish(writer)
    assert load(path, pytest.fail)


def test_what_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text("{}\n")
    with pytest.raises(NotACapture):
        load(str(path), pytest.fail)


def test_a_new_session_becomes_the_capture_with_the_permissions_of_the_old_one(tmp_path):
    path, new, link = tmp_path / "c.jsonl", tmp_path / "new.jsonl", tmp_path / "link.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    new.write_text("new")
    new.chmod(0o600)
    link.symlink_to(path.name)
    accept(str(new), str(link))
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o644, True)
    assert sorted(os.listdir(tmp_path)) == ["c.jsonl", "link.jsonl", "new.jsonl"]


def test_a_session_that_is_kept_for_the_first_time_is_for_its_owner(tmp_path):
    (tmp_path / "new.jsonl").write_text("new")
    accept(str(tmp_path / "new.jsonl"), str(tmp_path / "c.jsonl"))
    assert (tmp_path / "c.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_capture_that_cannot_be_replaced_stays_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl"
    path.write_text("old")

    def fails(_, beside):
        beside.write(b"ne")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fails)
    with pytest.raises(CaptureError, match=r"cannot replace .*c\.jsonl: No space left on device"):
        accept(str(path), str(path))
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["c.jsonl"])


def in_pieces(path, text):
    """Write a capture of one call whose answer is in pieces, as a relay writes it; return its path."""
    writer = begin(path)
    record(writer, f"> {call(1, 'a')}")
    raw = result(1, text).encode()
    for at in range(0, len(raw), 65536):
        writer.frame(2, 10**9, raw[at : at + 65536], more=at + 65536 < len(raw), cut=False)
    finish(writer, 2 * 10**9)
    return str(path)


def test_a_frame_that_is_too_large_to_be_replayed_is_named(tmp_path, monkeypatch):
    """A-03."""
    monkeypatch.setattr("mcpspy.replay.script.LARGEST", 100_000)
    path = in_pieces(tmp_path / "c.jsonl", "A" * 150_000)
    with pytest.raises(CaptureError, match=r"frame #\d+ has 150\.\d kB, more than the 100\.0 kB that can be replayed"):
        script_of(path)


def test_what_is_replayed_may_be_larger_than_what_is_checked(tmp_path):
    """A-03."""
    assert script_of(in_pieces(tmp_path / "c.jsonl", "A" * (9 << 20))).size > 9 << 20


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


@each("text", [A, SHAKEN, f"{SHAKEN}\n> {call(2, 'b')}", "! no such module"])
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
