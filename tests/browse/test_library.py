"""The list of captures follows the changes in a directory, and each step of counting is short."""

import math
import os
from collections import Counter

import pytest

from mcpspy.browse import library
from mcpspy.browse.library import Activity, Library
from mcpspy.capture.reader import Capture
from mcpspy.conversation.counts import Counts, count
from mcpspy.timeline import final_rows
from tests.capture.test_reader import FRAME, file, piece
from tests.test_timeline import EVERY_OUTCOME
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import WALL, abandon, begin, capture, finish, record


def header(started):
    return b'{"mcpspy":1,"started":"' + started.encode() + b'"}\n'


def look(found):
    """Read the directory and count all captures. Return whether the list has changed."""
    before = found.changes
    found.look()
    while found.grow(0):
        pass
    return found.changes != before


@pytest.fixture
def seen(tmp_path):
    """Return a function that reads a directory, counts all its captures and returns the list."""
    found = Library([str(tmp_path)])

    def seen():
        look(found)
        return {os.path.basename(entry.path): entry for entry in found.entries}

    return seen


def test_what_failed_and_when_messages_came_is_counted(tmp_path, seen):
    lines = "".join(f"@{at} > {at} tools/call {{}}\n@{at}.5 < {at} = {{}}\n" for at in (1, 2, 3, 4, 60, 64))
    path = capture(tmp_path / "a.jsonl", f"{lines}@64 > 9 tools/call {{}}")
    entry = seen()["a.jsonl"]
    assert entry.problems == 1
    assert entry.activity.over(4) == [8, 0, 0, 5]
    assert entry.activity.over(100)[-1] == 3
    assert Activity().over(4) == []
    with open(path, "ab") as file:
        file.write(b"\n")
    assert seen()["a.jsonl"].problems == 1


def names(found):
    return [os.path.basename(entry.path) for entry in found.entries]


def test_a_directory_that_is_not_there_yet_has_no_captures(tmp_path):
    found = Library([str(tmp_path / "captures")])
    assert not look(found)
    assert found.entries == []
    (tmp_path / "captures").mkdir()
    capture(tmp_path / "captures" / "a.jsonl", "")
    assert look(found)
    assert names(found) == ["a.jsonl"]


def test_a_file_that_cannot_be_read_is_told_of_until_it_can_be_or_is_gone(tmp_path, seen):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(b'{"mcpspy":2}\n')
    found = Library([str(tmp_path)])
    assert not look(found)
    assert sorted(map(os.path.basename, found.refused)) == ["a.jsonl", "b.jsonl"]
    look(found)
    assert len(found.refused) == 2
    (tmp_path / "a.jsonl").unlink()
    capture(tmp_path / "c.jsonl", "")
    os.replace(tmp_path / "c.jsonl", tmp_path / "b.jsonl")
    look(found)
    assert found.refused == {}
    assert names(found) == ["b.jsonl"]


def test_a_session_appears_as_it_starts_and_is_no_longer_live_when_it_ends(tmp_path):
    found = Library([str(tmp_path)])
    look(found)
    writer = begin(tmp_path / "a.jsonl")
    assert look(found)
    (entry,) = found.entries
    assert (entry.header.name, entry.live, entry.size) == ("weather", True, os.path.getsize(tmp_path / "a.jsonl"))
    assert entry.started == pytest.approx(WALL / 1e9, abs=1e-5)
    assert not look(found)
    finish(writer)
    assert look(found)
    assert not found.entries[0].live


def test_a_session_that_was_killed_is_not_live(tmp_path):
    found = Library([str(tmp_path)])
    writer = begin(tmp_path / "a.jsonl")
    look(found)
    abandon(writer)
    assert look(found), "the file is as it was, but its lock is gone"
    assert not found.entries[0].live


def test_what_is_said_is_counted_as_it_is_said(tmp_path, seen):
    writer = begin(tmp_path / "a.jsonl")
    assert seen()["a.jsonl"].counts == Counts()
    record(writer, '> {"id":1,"method":"ping"}')
    assert seen()["a.jsonl"].counts == Counts(frames=1, exchanges=1)
    writer.frame(2, 2_000_000, b'{"id":1,"error":{}}', more=False, cut=False)
    assert seen()["a.jsonl"].counts == Counts(frames=2, exchanges=1, errors=1, failed=1)
    finish(writer)
    assert seen()["a.jsonl"].counts == Counts(frames=2, exchanges=1, errors=1, failed=1)


def test_live_ones_come_first_then_the_newest(tmp_path):
    for name, day in (("old", "01"), ("new", "20"), ("mid", "10"), ("also-mid", "10")):
        (tmp_path / f"{name}.jsonl").write_bytes(header(f"2026-11-{day}T00:00:00Z"))
    writer = begin(tmp_path / "live.jsonl")
    found = Library([str(tmp_path)])
    look(found)
    assert names(found) == ["live.jsonl", "new.jsonl", "also-mid.jsonl", "mid.jsonl", "old.jsonl"]
    finish(writer)
    look(found)
    assert names(found)[-1] == "live.jsonl"


def test_a_capture_ended_when_it_was_written_last(tmp_path, seen):
    path = capture(tmp_path / "a.jsonl", "")
    assert seen()["a.jsonl"].ended == pytest.approx(os.path.getmtime(path))
    writer = begin(tmp_path / "b.jsonl")
    assert seen()["b.jsonl"].ended == math.inf
    finish(writer)


@pytest.mark.parametrize("counted", [True, False])
def test_a_session_whose_relay_ended_without_a_word_was_killed(tmp_path, seen, monkeypatch, counted):
    if not counted:
        monkeypatch.setattr(library, "COUNTED", 1)
    capture(tmp_path / "ended.jsonl", EVERY_OUTCOME)
    writer = begin(tmp_path / "killed.jsonl")
    record(writer, EVERY_OUTCOME)
    assert not any(entry.killed for entry in seen().values()), "it is live"
    abandon(writer)
    assert {name: entry.killed for name, entry in seen().items()} == {"ended.jsonl": False, "killed.jsonl": True}


@pytest.mark.parametrize(
    ("last", "killed"),
    [
        ({"kind": "continued", "t": 5, "file": "b.jsonl"}, False),
        ({"t": 5, "kind": "end"}, False),
        (FRAME, True),
        (b"[]\n", True),
        (b'{"kind":"end"', True),
        (b"\xff\n", True),
    ],
    ids=["it goes on in another file", "another writer", "a frame", "no record", "torn", "damage"],
)
def test_the_last_record_tells_how_a_capture_ended(tmp_path, seen, last, killed):
    (tmp_path / "a.jsonl").write_bytes(file(FRAME, last))
    assert seen()["a.jsonl"].killed is killed


def test_a_deleted_capture_is_gone(tmp_path):
    path = capture(tmp_path / "a.jsonl", "")
    found = Library([str(tmp_path)])
    look(found)
    os.unlink(path)
    assert look(found)
    assert found.entries == []


@pytest.mark.parametrize("frames", [0, 50])
def test_a_capture_that_is_replaced_under_its_name_is_another(tmp_path, seen, frames):
    """`wrap -o` replaces a finished capture."""
    capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    before = seen()["a.jsonl"]
    writer = begin(tmp_path / "a.jsonl", name="other")
    record(writer, '> {"id":1,"method":"ping"}\n' * frames)
    after = seen()["a.jsonl"]
    assert after is not before
    assert (after.header.name, after.live, after.counts) == ("other", True, Counts(frames, frames, 0))
    finish(writer)


def test_a_capture_that_is_cut_short_is_counted_anew(tmp_path, seen):
    path = capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    assert seen()["a.jsonl"].counts.frames == 10
    content = (tmp_path / "a.jsonl").read_bytes().splitlines(keepends=True)
    os.truncate(path, sum(map(len, content[:5])))
    assert seen()["a.jsonl"].counts == Counts(1, 1, 0)


def test_a_capture_that_is_still_being_copied_is_counted_right(tmp_path, seen):
    """No process holds its lock, but the file grows."""
    content = (CAPTURES / "field-stdio.jsonl").read_bytes()
    (tmp_path / "a.jsonl").write_bytes(content[: len(content) // 2])
    seen()
    with open(tmp_path / "a.jsonl", "ab") as rest:
        rest.write(content[len(content) // 2 :])
    assert seen()["a.jsonl"].counts == count(Capture(str(tmp_path / "a.jsonl")).records())


def test_what_is_no_capture_is_passed_over_until_it_is_one(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "other.jsonl").write_bytes(b'{"log":{}}\n')
    (tmp_path / "newer.jsonl").write_bytes(b'{"mcpspy":2}\n')
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "notes.txt").write_bytes(header("2026-11-20T00:00:00Z"))
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "fifo.jsonl")
    found = Library([str(tmp_path)])
    assert not look(found)
    assert found.entries == []
    capture(tmp_path / "empty.jsonl", "")
    assert look(found)
    assert names(found) == ["empty.jsonl"]


def test_files_may_be_given_instead_of_directories(tmp_path):
    one, two = (capture(tmp_path / f"{name}.log", "", name=name) for name in ("one", "two"))
    (tmp_path / "more").mkdir()
    capture(tmp_path / "more" / "three.jsonl", "", name="three")
    found = Library([one, two, one, str(tmp_path / "more"), str(tmp_path / "missing")])
    look(found)
    assert sorted(entry.header.name for entry in found.entries) == ["one", "three", "two"]


# Counting.


@pytest.mark.parametrize("size", [100, 1 << 16])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_counting_in_slices_gives_what_the_fold_gives(path, size, monkeypatch):
    monkeypatch.setattr(library, "SLICE", size)
    found = Library([str(path)])
    found.look()
    steps = 1
    while found.grow(0):
        steps += 1
    assert steps >= found.entries[0].size // size
    assert found.entries[0].counts == count(Capture(str(path)).records())


@pytest.mark.parametrize(
    "content",
    [
        file(FRAME, tail=b'{"kind":"fra'),
        file(piece(1, "{"), piece(2, "x")),
        file(piece(1, "{"), b"damage\n"),
        file(FRAME | {"raw": '{"id":1,"result":{}}'}),
        file(FRAME)[:-1],
        file(),
    ],
    ids=["a torn line", "pieces", "damage", "an orphan", "no last newline", "nothing"],
)
def test_what_the_end_of_a_file_leaves_open_is_counted(tmp_path, seen, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    expected = count(Capture(str(tmp_path / "a.jsonl")).records())
    assert seen()["a.jsonl"].counts == expected
    assert seen()["a.jsonl"].counts == expected


def test_a_large_capture_is_listed_but_not_counted(tmp_path, seen, monkeypatch):
    """Its counts are null."""
    path = capture(tmp_path / "large.jsonl", EVERY_OUTCOME)
    capture(tmp_path / "small.jsonl", "> {}")
    monkeypatch.setattr(library, "COUNTED", os.path.getsize(path) - 1)
    found = seen()
    assert found["large.jsonl"].counts == Counts()
    assert found["small.jsonl"].counts == Counts(1, 0, 1)


def test_a_capture_that_is_gone_when_it_is_counted_is_passed_over(tmp_path):
    for name in ("a", "b"):
        capture(tmp_path / f"{name}.jsonl", "> {}")
    found = Library([str(tmp_path)])
    found.look()
    while len(found.entries) < 2:
        found.grow(0)
    os.unlink(tmp_path / "a.jsonl")
    while found.grow(0):
        pass
    assert [entry.counts.frames for entry in found.entries] == [0, 1]


def test_what_was_found_is_counted_by_severity(tmp_path, seen):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< | nonsense')
    seen()
    finish(writer)
    expected = Counter()
    for row in final_rows(Capture(str(tmp_path / "a.jsonl")).records, live=False):
        expected.update(finding.severity for finding in row.findings)
    assert seen()["a.jsonl"].found == {"error": 0, "warning": 0, "info": 0} | expected
    assert expected["error"]


def test_a_round_over_many_captures_goes_in_steps_and_the_newest_come_first(tmp_path):
    for number in range(50):
        (tmp_path / f"{number:02}.jsonl").write_bytes(header(f"2026-11-20T00:00:{number:02}Z"))
    found = Library([str(tmp_path)])
    found.look()
    assert found.entries == []
    assert found.grow(0)
    assert 0 < len(found.entries) < 5
    assert names(found)[0] == "49.jsonl"
    found.look()
    assert len(found.entries) < 10, "a round that goes on is not begun anew"
    while found.grow(0):
        pass
    assert names(found) == sorted(names(found), reverse=True)
    assert len(found.entries) == 50


def test_what_is_counted_keeps_nothing_else_in_memory(tmp_path, seen):
    capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    assert seen()["a.jsonl"].counting is None


def test_live_ones_are_counted_first(tmp_path):
    for name in "abc":
        capture(tmp_path / f"{name}.jsonl", EVERY_OUTCOME)
    writer = begin(tmp_path / "0.jsonl")
    record(writer, "> {}")
    found = Library([str(tmp_path)])
    found.look()
    while not any(entry.counts.frames for entry in found.entries):
        assert found.grow(0)
    assert [entry.counts.frames for entry in found.entries if entry.live] == [1]
    finish(writer)


# Finding.


def test_words_are_found_in_name_transport_command_url_and_path(tmp_path):
    capture(tmp_path / "a.jsonl", "", name="Weather", argv=("npx", "@scope/forecast"))
    capture(tmp_path / "b.jsonl", "", name="files", transport="http", argv=(), url="https://example.com/mcp")
    found = Library([str(tmp_path)])
    look(found)
    for text, expected in (
        ("", "ab"), ("  ", "ab"), ("weather", "a"), ("FORE", "a"), ("http example", "b"), ("b.jsonl", "b"),
        ("stdio http", ""), ("files weather", ""), (str(tmp_path), "ab"),
    ):  # fmt: skip
        assert sorted(entry.path[-7] for entry in library.chosen(found.entries, text)) == list(expected), text
