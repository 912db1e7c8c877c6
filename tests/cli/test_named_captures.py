"""The captures that a command line names; `tests/cli/test_check.py` has what commands make of them."""

import os

import pytest

from mcpspy.cli.named_captures import existing, named_captures, refuse_to_overwrite, write_report
from mcpspy.errors import CaptureError, UsageError
from tests.report.captures import fine


def test_a_directory_stands_for_its_captures_and_a_file_for_itself(tmp_path, capsys):
    for name in ("b.jsonl", "a.jsonl"):
        fine(tmp_path / name)
    (tmp_path / "c.jsonl").write_text("text\n")
    other = tmp_path / "c.jsonl"
    found = [os.path.basename(path) for path in named_captures([str(tmp_path), str(other)])]
    assert found == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert "skipped: " in capsys.readouterr().err


def test_a_directory_without_captures_and_a_wrong_name_are_refused(tmp_path):
    with pytest.raises(CaptureError, match="there is no capture"):
        list(named_captures([str(tmp_path)]))
    fine(tmp_path / "weather.jsonl")
    with pytest.raises(CaptureError, match=r"no such file; the nearest: .*weather\.jsonl"):
        existing(str(tmp_path / "weather.json"))


def test_what_is_read_is_not_written(tmp_path):
    path = fine(tmp_path / "a.jsonl")
    os.link(path, tmp_path / "b")
    with pytest.raises(UsageError, match=r"-o .*b is the file"):
        refuse_to_overwrite("-o", str(tmp_path / "b"), [str(path)])
    refuse_to_overwrite("-o", str(tmp_path / "c"), [str(path)])


def test_a_report_is_printed_or_written(tmp_path, capsys):
    write_report(["a\n", "b\n"], None)
    assert capsys.readouterr().out == "a\nb\n"
    write_report(["a\n"], str(tmp_path / "a"))
    assert (tmp_path / "a").read_text() == "a\n"
    with pytest.raises(UsageError, match="cannot write"):
        write_report([], str(tmp_path / "no" / "a"))
