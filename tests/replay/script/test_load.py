import os
import shutil
from pathlib import Path

import pytest

from mcpspy.errors import CaptureError, NotACapture
from mcpspy.replay.script.load import accept, load, script_of
from tests.replay.scripts import call, result
from tests.transcript import begin, capture, finish, record

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
        Path(beside).write_text("ne")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", fails)
    with pytest.raises(CaptureError, match=r"cannot replace .*c\.jsonl: No space left on device"):
        accept("new.jsonl", str(path))
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
    monkeypatch.setattr("mcpspy.replay.script.load.LARGEST", 100_000)
    path = in_pieces(tmp_path / "c.jsonl", "A" * 150_000)
    with pytest.raises(CaptureError, match=r"frame #\d+ has 150\.\d kB, more than the 100\.0 kB that can be replayed"):
        script_of(path)


def test_what_is_replayed_may_be_larger_than_what_is_checked(tmp_path):
    """A-03."""
    assert script_of(in_pieces(tmp_path / "c.jsonl", "A" * (9 << 20))).size > 9 << 20
