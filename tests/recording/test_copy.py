"""A copy of a capture is written completely or not at all."""

import os
import stat

import pytest

from mcpspy.errors import UsageError
from mcpspy.recording.copy import record_line, write_copy

HEADER = record_line({"mcpspy": 1, "id": "0" * 32})


def test_a_copy_has_the_lines_and_is_readable_by_the_user_alone(tmp_path):
    path = tmp_path / "copy.jsonl"
    write_copy([HEADER, record_line({"kind": "end", "t": 1})], str(path))
    assert path.read_bytes() == HEADER + b'{"kind":"end","t":1}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["copy.jsonl"]


def test_what_is_no_capture_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not the header of a capture"):
        write_copy([b'{"kind":"end","t":1}\n'], str(tmp_path / "copy.jsonl"))
    assert not os.listdir(tmp_path)


def test_a_finished_capture_is_replaced_only_where_that_was_asked_for(tmp_path):
    path = tmp_path / "copy.jsonl"
    write_copy([HEADER], str(path))
    with pytest.raises(UsageError, match="exists"):
        write_copy([HEADER, b"\n"], str(path))
    write_copy([HEADER, b"\n"], str(path), replace=True)
    assert path.read_bytes() == HEADER + b"\n"
