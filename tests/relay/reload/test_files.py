"""The file changes that reload a server."""

import queue
import shutil

import pytest
import watchfiles

from mcpspy.relay.reload.files import WatchedFiles, snapshot
from tests.relay.harness import LIMIT


class Watched:
    def __init__(self, *paths, capture=None, known=None):
        self.told = queue.Queue()
        files = WatchedFiles(
            [str(path) for path in paths],
            snapshot(map(str, paths)) if known is None else known,
            capture and str(capture),
            self.told.put,
            lambda: self.told.put("ready"),
            lambda why: self.told.put(f"failed: {why}"),
        )
        files.start()

    def next(self):
        return self.told.get(timeout=LIMIT)

    def until(self, path):
        while path not in self.next():
            pass


def test_files_below_a_directory_and_files_by_themselves(tmp_path):
    tree, other = tmp_path / "src", tmp_path / "one.toml"
    (tree / "a").mkdir(parents=True)
    other.touch()
    watched = Watched(tree, other)
    assert watched.next() == "ready"
    (tmp_path / "two.toml").touch()  # next to the file, and not watched
    (tree / "a" / "new.py").touch()
    assert watched.next() == [str(tree / "a" / "new.py")]
    (tmp_path / "one.tmp").touch()
    (tmp_path / "one.tmp").rename(other)  # editors save files like this
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


def test_a_directory_that_is_made_anew_is_watched_again(tmp_path):
    """A build may remove and create again the directory that it fills."""
    tree, other = tmp_path / "src", tmp_path / "build" / "server.js"
    for folder in (tree, other.parent):
        folder.mkdir()
    other.touch()
    watched = Watched(tree, other)
    assert watched.next() == "ready"
    for path in (tree / "new.py", other):
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.touch()
        watched.until(str(path.parent if path is not other else path))
        path.write_text("later")
        watched.until(str(path))


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path):
    one, two, link = tmp_path / "1", tmp_path / "2", tmp_path / "current"
    one.mkdir()
    two.mkdir()
    link.symlink_to(one)
    watched = Watched(link)
    assert watched.next() == "ready"
    link.unlink()
    link.symlink_to(two)
    assert watched.next() == [str(two)]
    (two / "new.py").touch()
    assert watched.next() == [str(two / "new.py")]


def test_what_only_begins_like_the_capture_is_told(tmp_path):
    watched = Watched(tmp_path, capture=tmp_path / "server.jsonl")
    assert watched.next() == "ready"
    for name in ("server.jsonl", "server-2.jsonl", "server-3-0a1b.jsonl", "4913", "server.py"):
        (tmp_path / name).touch()
    assert watched.next() == [str(tmp_path / "server.py")]


def test_an_edit_before_the_watch_begins_is_reported(tmp_path):
    """A-22: new, changed and removed files, and a file by itself; not what is ignored."""
    tree, other = tmp_path / "src", tmp_path / "one.toml"
    (tree / "node_modules").mkdir(parents=True)
    for path in (tree / "kept.py", tree / "changed.py", tree / "removed.py", other):
        path.write_text("1")
    known = snapshot([str(tree), str(other)])
    (tree / "new.py").touch()
    (tree / "changed.py").write_text("22")
    (tree / "removed.py").unlink()
    for ignored in (tree / "new.pyc", tree / "node_modules" / "a.js", tree / "session.jsonl"):
        ignored.touch()
    other.write_text("22")
    watched = Watched(tree, other, known=known, capture=tree / "session.jsonl")
    below = [str(tree / name) for name in ("changed.py", "new.py", "removed.py")]
    told = [watched.next() for _ in range(3)]
    assert all(it in told for it in ("ready", below, [str(other)]))


def test_an_edit_while_another_directory_is_watched_anew_is_reported(tmp_path, monkeypatch):
    """A-22: the same gap as at the start."""
    tree, other = tmp_path / "src", tmp_path / "build"
    for folder in (tree, other):
        folder.mkdir()
    watched = Watched(tree, other)
    assert watched.next() == "ready"

    def edit_first(*paths, watch=watchfiles.watch, **options):
        (tree / "new.py").touch()
        return watch(*paths, **options)

    monkeypatch.setattr(watchfiles, "watch", edit_first)
    other.rmdir()
    other.mkdir()
    watched.until(str(tree / "new.py"))
