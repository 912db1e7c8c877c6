import os

import pytest

from mcpspy.cli.targets import capture_paths, existing_path, newest_capture, parsed_filter
from mcpspy.errors import CaptureError, FilterError
from tests.transcript import WALL, capture


def test_a_directory_stands_for_its_captures(tmp_path, capsys):
    paths = [capture(str(tmp_path / f"{name}.jsonl"), "> 1 ping") for name in "ba"]
    (tmp_path / "c.jsonl").write_text("no capture")
    assert list(capture_paths([str(tmp_path), paths[0]])) == [*sorted(paths), paths[0]]
    assert "skipped: " in capsys.readouterr().err


def test_a_directory_without_a_capture_is_refused(tmp_path):
    with pytest.raises(CaptureError, match="there is no capture"):
        list(capture_paths([str(tmp_path)]))


def test_a_name_that_is_not_there_has_the_nearest_one(tmp_path):
    path = capture(str(tmp_path / "weather.jsonl"), "> 1 ping")
    with pytest.raises(CaptureError, match=f"did you mean {path}"):
        existing_path(str(tmp_path / "wether.jsonl"))


def test_a_mistake_in_a_filter_is_pointed_at(capsys):
    with pytest.raises(FilterError):
        parsed_filter("status:eror", "2026-01-01T00:00:00Z")
    assert capsys.readouterr().err.endswith("^\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A capture directory with two captures. The later one is first by name."""
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    for name, seconds in (("b", 0), ("a", 60)):
        path = tmp_path / f"{name}.jsonl"
        capture(path, "> 1 ping")
        path.write_bytes(path.read_bytes().replace(b"T16:00:", f"T16:{seconds // 60:02}:".encode(), 1))
        os.utime(path, (0, WALL // 10**9))
    return tmp_path


def test_the_newest_capture_is_the_one_that_started_last(folder, capsys):
    assert newest_capture() == str(folder / "a.jsonl")
    assert capsys.readouterr() == ("", f"mcpspy: newest capture: {folder / 'a.jsonl'}\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("hello\n", "c.jsonl is not a capture: its first line is not a capture header"),
        ('{"mcpspy":9,"tool":"mcpspy 9.0"}\n', "c.jsonl has format 9, written by mcpspy 9.0"),
    ],
)
def test_later_files_that_are_no_captures_are_named_and_passed_over(folder, capsys, content, why):
    (folder / "c.jsonl").write_text(content)
    assert newest_capture() == str(folder / "a.jsonl")
    passed, chosen = capsys.readouterr().err.splitlines()
    assert passed.startswith(f"mcpspy: 1 file not shown: {why}")
    assert chosen == f"mcpspy: newest capture: {folder / 'a.jsonl'}"


def test_earlier_files_that_are_no_captures_are_not_worth_a_word(folder, capsys):
    (folder / "c.jsonl").write_text("hello\n")
    os.utime(folder / "c.jsonl", (0, WALL // 10**9))
    newest_capture()
    assert capsys.readouterr().err == f"mcpspy: newest capture: {folder / 'a.jsonl'}\n"


def test_a_name_that_would_steer_a_terminal_is_made_printable(folder, capsys):
    os.rename(folder / "a.jsonl", folder / "a\x1b[2J\n.jsonl")
    assert newest_capture() == str(folder / "a\x1b[2J\n.jsonl")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize("made", [True, False])
def test_without_captures_it_says_how_to_record_one(tmp_path, monkeypatch, made):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path if made else tmp_path / "not" / "there"))
    with pytest.raises(CaptureError, match=r"^no captures in .*; 'mcpspy wrap -- COMMAND' records one"):
        newest_capture()


def test_without_any_capture_that_can_be_read_it_names_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    (tmp_path / "c.jsonl").write_text("hello\n")
    with pytest.raises(CaptureError, match=r"1 file not shown: c.jsonl is not a capture"):
        newest_capture()
