"""The content and the paths of exports in the TUI."""

import os
from contextlib import closing

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.tui.model.exports import ExportRequest, requested, written
from mcpspy.tui.model.merged import Merged
from tests.exporters.consumers import exported
from tests.transcript import capture


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return capture(str(tmp_path / "made.jsonl"), "> 1 ping\n< 1 = {}")


@pytest.fixture
def session(path):
    with closing(OpenCapture(path)) as found:
        yield found


def test_without_a_name_the_file_has_one_that_is_free_in_this_directory(tmp_path, path, session):
    assert requested("csv", session, session, "") == ExportRequest("csv", (path,), "", "made.csv")
    (tmp_path / "made.csv").touch()
    assert requested("csv", session, session, "method:ping").path == "made-2.csv"
    assert requested("csv  a b.csv ", session, session, "").path == "a b.csv"
    assert requested("csv ~/x.csv", session, session, "").path == os.path.expanduser("~/x.csv")


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("", "export needs a format; there are har, mermaid, perfetto, csv"),
        ("mermad", "no format 'mermad'; did you mean 'mermaid'?"),
        ("csv made.jsonl", "made.jsonl exists; give another name"),
        ("har", "/made.jsonl is a stdio session, and har holds HTTP only; use mermaid, perfetto, csv"),
    ],
)
def test_a_mistake_is_known_before_anything_is_read(session, argument, words):
    with pytest.raises(UsageError) as caught:
        requested(argument, session, session, "")
    assert words in str(caught.value)


def test_of_several_sessions_a_format_holds_all_or_the_selected_one(tmp_path, path):
    other = capture(str(tmp_path / "other.jsonl"), "> 1 ping")
    with closing(Merged([OpenCapture(path), OpenCapture(other)])) as merged:
        assert requested("csv", merged, merged.sessions[1], "").paths == (path, other)
        assert requested("mermaid", merged, merged.sessions[1], "").paths == (other,)


def test_what_is_written_is_what_the_filter_shows(tmp_path, path):
    counts = []
    written(ExportRequest("csv", (path,), "method:ping status:ok kind:request", "x.csv"), counts.append)
    assert (tmp_path / "x.csv").read_bytes() == exported("csv", path, wants=lambda row: row.kind == "request")
    assert sum(counts) == 2 * os.path.getsize(path)


def test_what_ends_early_leaves_nothing(tmp_path, path):
    def stop(_):
        raise KeyError

    with pytest.raises(KeyError):
        written(ExportRequest("csv", (path,), "", "x.csv"), stop)
    assert os.listdir(tmp_path) == ["made.jsonl"]
