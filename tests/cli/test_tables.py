import shutil

import pytest

from mcpspy.cli.tables import built
from tests.transcript import capture


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_of_copies_of_a_capture_the_longer_one_is_taken(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    copy = str(tmp_path / "b.jsonl")
    shutil.copy(path, copy)
    with open(copy, "a", encoding="utf-8") as file:
        file.write('{"kind":"gap","t":1,"lost":1,"why":"x"}\n')
    for named in ([path, copy], [copy, path]):
        assert [captured.capture.path for captured in built(named)] == [copy]
        assert capsys.readouterr().err == (
            f"mcpspy: {named[1]} and {named[0]} are copies of one capture; the longer one is taken\n"
        )


def test_a_capture_that_is_named_twice_is_one(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    assert len(built([path, path, str(tmp_path)])) == 1
    assert capsys.readouterr().err == ""


def test_a_name_with_the_marks_of_a_pattern_is_a_name_where_it_exists(tmp_path):
    path = capture(str(tmp_path / "a[1].jsonl"), "> 1 ping")
    assert [captured.capture.path for captured in built([path])] == [path]


def test_of_a_directory_what_a_later_mcpspy_has_written_is_skipped(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    (tmp_path / "b.jsonl").write_text('{"mcpspy":9}\n')
    assert [captured.capture.path for captured in built([str(tmp_path)])] == [path]
    err = capsys.readouterr().err
    assert (err.count("\n"), f"skipped: {tmp_path}/b.jsonl has format 9" in err) == (1, True)
