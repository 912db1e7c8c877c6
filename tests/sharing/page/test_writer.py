"""A page is written from a capture in any state; a page too large for browsers is refused with a filter to use."""

import re
import tracemalloc

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import UsageError
from mcpspy.filters import parse
from mcpspy.sharing.page import writer as page_writer
from mcpspy.sharing.page.writer import Shared, refuse_too_large, write_page
from mcpspy.sharing.selection import raw_lines
from mcpspy.timeline import final_rows
from tests.capture.test_parts import written as in_files
from tests.sharing.page.written import RAW, carried, session, written
from tests.transcript import capture

CALLS = "= 2025-06-18\n" + "\n".join(f"@{n} > {n} ping\n@{n}.5 < {n} = {{}}" for n in range(1, 200))  # one per second


def test_the_capture_in_the_page_is_that_on_the_disk(tmp_path):
    path = capture(tmp_path / "a.jsonl", CALLS)
    with open(path, "rb") as file:
        assert carried(written(path)) == file.read()


def test_a_page_of_the_same_capture_is_the_same(tmp_path):
    path = capture(tmp_path / "a.jsonl", CALLS)
    assert written(path) == written(path)


def test_a_capture_that_goes_on_in_other_files_becomes_one(tmp_path):
    path = in_files(str(tmp_path / "a.jsonl"))
    read = Capture(str(path))
    assert len(read.paths) > 3
    page = written(path)
    assert [row["n"] for row in session(page)["rows"]] == [row.n for row in final_rows(read.records, live=False)]
    copy = tmp_path / "copy" / "a.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(carried(page))
    assert list(Capture(str(copy)).records()) == list(read.records())


@pytest.mark.parametrize(("bound", "value"), [("MOST_BYTES", 25_000), ("MOST_ROWS", 50)])
def test_what_is_too_large_is_refused_with_a_filter_that_leaves_enough_out(tmp_path, monkeypatch, bound, value):
    monkeypatch.setattr(page_writer, bound, value)
    path = capture(tmp_path / "a.jsonl", CALLS)
    with pytest.raises(
        UsageError, match=r"is too large to be shared: a page carries at most .* rows; --filter"
    ) as error:
        written(path)
    wanted = re.search(r"--filter '(time:>=[\d.]+)' keeps the newest part", str(error.value))[1]
    rows = session(written(path, wanted))["rows"]
    assert 5 < len(rows) < 200
    assert rows[-1]["kind"] == "end"


def test_a_filter_that_leaves_too_much_is_told_what_to_add(tmp_path, monkeypatch):
    monkeypatch.setattr(page_writer, "MOST_ROWS", 50)
    with pytest.raises(UsageError, match=re.escape("--filter '(kind:request or kind:result) time:>=")):
        written(capture(tmp_path / "a.jsonl", CALLS), "kind:request or kind:result")


def test_where_the_last_frame_alone_is_too_large_the_large_ones_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(page_writer, "MOST_BYTES", 25_000)
    path = capture(tmp_path / "a.jsonl", f"{CALLS}\n@300 ! {'x' * 200_000}")
    read = Capture(path)
    with pytest.raises(UsageError, match="--filter 'size:<100kb' leaves the large frames out"):
        refuse_too_large(read, None)


def test_a_capture_whose_lines_alone_are_too_many_is_refused_without_a_filter(tmp_path, monkeypatch):
    monkeypatch.setattr(page_writer, "MOST_BYTES", 4000)
    with pytest.raises(
        UsageError, match=r"a.jsonl is too long to be shared: .*, and each of its 405 records takes space"
    ):
        written(capture(tmp_path / "a.jsonl", CALLS))


def test_memory_does_not_grow_with_the_capture(tmp_path):
    few, many = (capture(tmp_path / f"{n}.jsonl", f"! {'x' * 1500}\n" * n) for n in (2_000, 6_000))
    peaks = []
    for path in (few, many):
        tracemalloc.start()
        with open(tmp_path / "page.html", "wb") as file:
            write_page(Shared(path, lambda path=path: raw_lines(path), RAW), file)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2_000_000


def test_a_filter_keeps_what_show_keeps(tmp_path):
    path = capture(tmp_path / "a.jsonl", CALLS)
    read = Capture(path)
    wanted = parse("id:7,8", read.header.started)
    shown = {row.n for row in final_rows(read.records, live=False) if wanted(row)}
    assert shown <= {row["n"] for row in session(written(path, "id:7,8"))["rows"]}
