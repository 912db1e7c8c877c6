import math
import os
from datetime import UTC, datetime

import pytest

from mcpspy.capture import listing as library
from mcpspy.capture.listing import Listed, Listing, captures, delete, newest, omitted
from mcpspy.errors import CaptureError
from tests.capture.test_parts import written
from tests.transcript import WALL, begin, capture, finish

SECOND = 1_000_000_000


def names(folder):
    return [os.path.basename(listed.capture.path) for listed in captures(str(folder))]


def header(started):
    return b'{"mcpspy":1,"started":"' + started.encode() + b'"}\n'


def test_live_captures_come_first_then_the_newest(tmp_path):
    for name, day in (("old", "01"), ("new", "20"), ("mid", "10")):
        (tmp_path / f"{name}.jsonl").write_bytes(header(f"2026-11-{day}T00:00:00Z"))
    writer = begin(tmp_path / "live.jsonl")
    assert names(tmp_path) == ["live.jsonl", "new.jsonl", "mid.jsonl", "old.jsonl"]
    finish(writer, 1)


def test_each_is_listed_with_size_start_and_whether_it_is_live(tmp_path):
    path = capture(tmp_path / "a.jsonl", "> {}")
    (listed,) = captures(str(tmp_path))
    assert listed.capture.path == path
    assert listed.capture.header.name == "weather"
    assert (listed.size, listed.live) == (os.path.getsize(path), False)
    assert listed.started == pytest.approx(WALL / SECOND, abs=1e-5)
    assert listed.ended == pytest.approx(os.path.getmtime(path), abs=1e-5)
    assert listed.header is listed.capture.header


def test_what_is_live_has_no_end(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    assert [listed.ended for listed in captures(str(tmp_path))] == [math.inf]
    finish(writer, 1)


def test_what_is_no_capture_is_passed_over(tmp_path):
    capture(tmp_path / "a.jsonl", "")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "other.jsonl").write_bytes(b'{"log":{}}\n')
    (tmp_path / "newer.jsonl").write_bytes(b'{"mcpspy":2}\n')
    (tmp_path / "part.jsonl").write_bytes(b'{"mcpspy":1')
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "notes.txt").write_bytes(header("2026-11-20T00:00:00Z"))
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "fifo.jsonl")
    assert names(tmp_path) == ["a.jsonl"]
    refused = {}
    captures(str(tmp_path), refused)
    found = [os.path.basename(path) for path in refused]
    assert sorted(found) == ["empty.jsonl", "newer.jsonl", "other.jsonl", "part.jsonl"]
    assert omitted(refused) == (
        "4 files not shown: empty.jsonl is empty: not a capture; newer.jsonl has format 2, written by a later mcpspy; "
        "this mcpspy reads up to 1: update it; other.jsonl is not a capture: its first line is not a capture header; "
        "and 1 more"
    )
    assert omitted({}) == ""


@pytest.mark.parametrize(
    "started", ["0001-01-01T00:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00+23:59", "2026-11-20"]
)
def test_a_start_that_no_clock_shows_hides_no_other_capture(tmp_path, started):
    capture(tmp_path / "a.jsonl", "")
    (tmp_path / "odd.jsonl").write_bytes(header(started))
    assert "a.jsonl" in names(tmp_path)


def test_names_of_any_bytes_are_listed(tmp_path):
    found = [b"\xff.jsonl", b"new\nline.jsonl", b"\x1b[2J.jsonl"]
    for name in found:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(header("2026-11-20T00:00:00Z"))
    assert sorted(map(os.fsencode, names(tmp_path))) == sorted(found)


def test_a_missing_directory_holds_no_captures(tmp_path):
    assert captures(str(tmp_path / "missing")) == []


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(CaptureError, match="cannot list"):
        captures(str(tmp_path / "a"))


def test_a_capture_that_vanishes_while_it_is_listed_is_passed_over(tmp_path, monkeypatch):
    capture(tmp_path / "a.jsonl", "")
    capture(tmp_path / "b.jsonl", "")
    getsize = os.path.getsize

    def late(path):
        if path.endswith("a.jsonl"):
            os.unlink(path)
        return getsize(path)

    monkeypatch.setattr(library.os.path, "getsize", late)
    assert names(tmp_path) == ["b.jsonl"]


# Deleting.


def test_a_finished_capture_is_deleted(tmp_path):
    path = capture(tmp_path / "a.jsonl", "")
    (listed,) = captures(str(tmp_path))
    assert delete(listed)
    assert not os.path.exists(path)


def test_a_capture_that_is_live_by_now_is_not_deleted(tmp_path):
    path = capture(tmp_path / "a.jsonl", "")
    (listed,) = captures(str(tmp_path))
    writer = begin(path)
    assert not delete(listed)
    assert os.path.exists(path)
    finish(writer, 1)


def test_a_capture_that_is_gone_already_is_not_deleted_again(tmp_path):
    """Two `prune` may run at once."""
    path = capture(tmp_path / "a.jsonl", "")
    (listed,) = captures(str(tmp_path))
    os.unlink(path)
    assert not delete(listed)


def test_no_descriptor_is_left_open(tmp_path):
    capture(tmp_path / "a.jsonl", "")
    before = set(os.listdir("/dev/fd"))
    (listed,) = captures(str(tmp_path))
    delete(listed)
    assert set(os.listdir("/dev/fd")) == before


@pytest.fixture
def looked_at(monkeypatch):
    """Return a list that collects the names of the files whose headers are read."""
    seen = []

    class Read(library.Capture):
        def __init__(self, path):
            seen.append(os.path.basename(path))
            super().__init__(path)

    monkeypatch.setattr(library, "Capture", Read)
    return seen


def test_an_unchanged_file_is_not_opened_again(tmp_path, looked_at):
    """The directory is read twice a second."""
    capture(tmp_path / "a.jsonl", "")
    (tmp_path / "other.jsonl").write_bytes(b'{"log":{}}\n')
    listing = Listing([str(tmp_path)], Listed)
    for changes in (True, False):
        before = listing.changes
        listing.look()
        assert not listing.grow(math.inf)
        assert (listing.changes > before) is changes
    assert looked_at == ["other.jsonl", "a.jsonl"]
    assert [entry.path for entry in listing.entries] == [str(tmp_path / "a.jsonl")]


def dated(folder, name, started, written=None):
    """Write a capture that started on one day of November, and was last written on another one."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(header(f"2025-11-{started:02}T00:00:00Z"))
    if written:
        os.utime(path, (0, datetime(2025, 11, written, tzinfo=UTC).timestamp()))


def newest_name(folder, refused=None):
    found = newest(str(folder), {} if refused is None else refused)
    return found and os.path.basename(found.capture.path)


def test_the_newest_is_found_among_those_that_were_written_after_it_started(tmp_path, looked_at):
    for name, started, last in (("long", 1, 28), ("new", 20, 21), ("short", 19, 22), ("old", 3, 4), ("older", 2, 3)):
        dated(tmp_path, name, started, last)
    assert newest_name(tmp_path) == "new.jsonl"
    assert looked_at == ["long.jsonl", "short.jsonl", "new.jsonl"]


def test_the_start_in_the_name_counts_where_files_were_written_anew(tmp_path, looked_at):
    for day in range(1, 20):
        dated(tmp_path, f"202511{day:02}T000000Z-weather", day)
    dated(tmp_path, "20251301T000000Z-no-day", 2, 3)
    assert newest_name(tmp_path) == "20251119T000000Z-weather.jsonl"
    assert len(looked_at) == 1


def test_of_files_whose_times_tell_nothing_some_are_read(tmp_path, looked_at, monkeypatch):
    monkeypatch.setattr(library, "HEADERS", 5)
    for number in range(9):
        dated(tmp_path, f"copy{number}", 1 + number)
    refused = {}
    assert newest_name(tmp_path, refused) in looked_at
    assert (len(looked_at), refused) == (5, {})


def test_a_capture_is_found_behind_any_number_of_other_files(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "HEADERS", 2)
    dated(tmp_path, "a", 1, 2)
    for number in range(5):
        (tmp_path / f"other{number}.jsonl").write_bytes(b"{}\n")
    refused = {}
    assert newest_name(tmp_path, refused) == "a.jsonl"
    assert len(refused) == 5
    assert newest_name(tmp_path / "nowhere") is None


def test_of_a_capture_of_several_files_the_first_is_the_newest(tmp_path):
    dated(tmp_path, "before", 1, 2)
    written(tmp_path / "a.jsonl")
    assert len(os.listdir(tmp_path)) > 2
    assert newest_name(tmp_path) == "a.jsonl"
