"""Which captures the words of a command line name (R-13)."""

import pytest

from mcpspy.cli.captures import existing, named_captures
from mcpspy.errors import CaptureError
from mcpspy.recording.copy import record_line

HEADER = {"mcpspy": 1, "id": "1", "started": "2026-11-20T19:15:00.000000Z"} | {
    "tool": "t",
    "transport": "stdio",
    "name": "a",
}


def test_a_directory_stands_for_its_captures_and_what_is_none_is_named(tmp_path, capsys):
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(record_line(HEADER))
    (tmp_path / "log.jsonl").write_text("hello\n")
    (tmp_path / "notes.txt").write_text("hello\n")
    assert list(named_captures([str(tmp_path)])) == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert f"mcpspy: skipped: {tmp_path / 'log.jsonl'}" in capsys.readouterr().err


def test_a_capture_that_goes_on_in_another_file_is_named_once(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(
        record_line(HEADER) + record_line({"kind": "continued", "t": 1, "file": "a-2.jsonl"})
    )
    second = HEADER | {"id": "2", "continues": {"id": "1", "file": "a.jsonl", "lines": 1}}
    (tmp_path / "a-2.jsonl").write_bytes(record_line(second))
    assert list(named_captures([str(tmp_path)])) == [str(tmp_path / "a.jsonl")]


def test_a_name_of_nothing_gets_the_nearest(tmp_path):
    (tmp_path / "session.jsonl").write_bytes(record_line(HEADER))
    with pytest.raises(CaptureError, match=r"no such file; the nearest: .*/session\.jsonl"):
        existing(str(tmp_path / "sesion.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match="there is no capture"):
        list(named_captures([str(tmp_path / "empty")]))
