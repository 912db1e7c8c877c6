"""Which changes replace a server."""

import queue

import pytest
import watchfiles

from mcpspy.relay.reload.files import WatchedFiles
from tests.relay.harness import LIMIT


class Watched:
    def __init__(self, *paths, capture=None):
        self.told = queue.Queue()
        files = WatchedFiles(
            [str(path) for path in paths],
            capture and str(capture),
            self.told.put,
            lambda: self.told.put("ready"),
            lambda why: self.told.put(f"failed: {why}"),
        )
        files.start()

    def next(self):
        return self.told.get(timeout=LIMIT)


def test_files_below_a_directory_and_files_by_themselves(tmp_path):
    tree, other = tmp_path / "src", tmp_path / "one.toml"
    (tree / "a").mkdir(parents=True)
    other.touch()
    watched = Watched(tree, other)
    assert watched.next() == "ready"
    (tmp_path / "two.toml").touch()  # beside the file, and not watched
    (tree / "a" / "new.py").touch()
    assert watched.next() == [str(tree / "a" / "new.py")]
    (tmp_path / "one.tmp").touch()
    (tmp_path / "one.tmp").rename(other)  # as editors save
    assert watched.next() == [str(other)]
    other.write_text("x")
    assert watched.next() == [str(other)]


@pytest.mark.parametrize("above", ["project", "node_modules"])
def test_what_is_no_source_is_not_told(tmp_path, above):
    root = tmp_path / above / "src"
    for folder in (".git", "__pycache__", "node_modules", ".venv"):
        (root / folder).mkdir(parents=True)
    capture = root / "session.jsonl"
    watched = Watched(root, capture=capture)
    assert watched.next() == "ready"
    for name in (".git/index", "__pycache__/a.pyc", "node_modules/b.js", ".venv/c.py", "a.swp", "a.py~", "a.pyc"):
        (root / name).touch()
    for name in ("session.jsonl", "session-2.jsonl"):
        (root / name).touch()
    (root / ".0123.live").mkdir()
    (root / "last.py").touch()
    assert watched.next() == [str(root / "last.py")]


def test_a_directory_that_cannot_be_watched_is_named(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", refuse)
    watched = Watched(tmp_path)
    assert (
        watched.next() == f"failed: cannot watch {tmp_path} (OS file watch limit reached); the server is not reloaded"
    )
