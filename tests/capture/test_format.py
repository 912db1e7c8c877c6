"""What the writer and the readers of a capture share."""

import ast
import fcntl
import inspect

import pytest

from mcpspy.capture import format as module
from mcpspy.capture.format import FRAME_LINE, MAGIC, MORE, is_live, take
from tests.transcript import begin


def test_it_imports_nothing_of_the_package():
    names = [ast.unparse(it) for it in ast.walk(ast.parse(inspect.getsource(module))) if "Import" in type(it).__name__]
    assert names
    assert not any("mcpspy" in name for name in names)


def test_a_writer_writes_what_readers_look_for(tmp_path):
    writer = begin(tmp_path / "a")
    writer.frame(1, 1, b'"more"', more=False, cut=False)
    writer.frame(1, 2, b"x", more=True, cut=False)
    header, *_, whole, piece = (tmp_path / "a").read_bytes().splitlines()
    assert header.startswith(MAGIC)
    assert whole.startswith(FRAME_LINE)
    assert piece.startswith(FRAME_LINE)
    assert (MORE in whole, MORE in piece) == (False, True)


def test_a_file_is_live_while_somebody_holds_its_lock(tmp_path):
    with open(tmp_path / "a", "wb") as mine, open(tmp_path / "a", "rb") as theirs:
        assert not is_live(theirs.fileno())
        assert take(mine.fileno())
        assert is_live(theirs.fileno())
        assert not take(theirs.fileno())
    with open(tmp_path / "a", "rb") as theirs:
        assert not is_live(theirs.fileno())


def test_a_viewer_that_looks_for_a_moment_is_no_obstacle(tmp_path, monkeypatch):
    with open(tmp_path / "a", "wb") as mine, open(tmp_path / "a", "rb") as viewer:
        fcntl.flock(viewer, fcntl.LOCK_SH)
        monkeypatch.setattr(module.time, "sleep", lambda _: fcntl.flock(viewer, fcntl.LOCK_UN))
        assert take(mine.fileno())


@pytest.mark.parametrize("error", [OSError(95, "not supported"), None], ids=["no locks", "no module"])
def test_where_there_are_no_locks_every_file_is_free(tmp_path, monkeypatch, error):
    def flock(fd, operation):
        raise error

    if error:
        monkeypatch.setattr(fcntl, "flock", flock)
    else:
        monkeypatch.setattr(module.sys, "platform", "win32")
    with open(tmp_path / "a", "wb") as file:
        assert take(file.fileno())
        assert not is_live(file.fileno())
