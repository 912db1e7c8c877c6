"""Creating the files of captures; tests/capture/test_writer.py tests what a writer does with them."""

import os

import pytest

from mcpspy.capture import writer
from mcpspy.capture.writer import open_new, open_output


def test_a_file_has_a_name_of_its_own(tmp_path):
    """S-15."""
    paths = []
    for _ in range(3):
        fd, path = open_new(str(tmp_path), {}, "weather", 0)
        os.close(fd)
        paths.append(path)
    assert len(set(paths)) == 3
    assert all("weather" in os.path.basename(path) for path in paths)


def test_names_that_are_always_taken_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "file_name", lambda *_: "taken")
    (tmp_path / "taken").touch()
    with pytest.raises(FileExistsError):
        open_new(str(tmp_path), {}, "weather", 0)


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        open_output(str(tmp_path / "fifo"), print)
