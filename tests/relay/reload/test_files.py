"""The file changes that reload a server."""

import os
import queue
import shutil
import time

import pytest
import watchfiles

from mcpspy.relay.reload.files import StartChanges, WatchedFiles, age
from tests.relay.harness import LIMIT, until


def later(folder):
    """Wait until new files are clearly younger than those there are now, and return the time."""
    begun, probe = time.time_ns(), folder / "probe"

    def passed():
        probe.unlink(missing_ok=True)
        probe.touch()
        return probe.stat().st_ctime_ns > begun + 20_000_000

    until(passed, "a later time of a file")
    return probe.stat().st_ctime_ns


class Watched:
    def __init__(self, *paths, capture=None, since=1 << 62):
        self.told = queue.Queue()
        files = WatchedFiles(
            [str(path) for path in paths],
            since,
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


@pytest.fixture
def links(tmp_path):
    """Create a link to a directory; return another one, the link, and a function that turns it to the other."""
    one, two, link = tmp_path / "1", tmp_path / "2", tmp_path / "current"
    one.mkdir()
    two.mkdir()
    link.symlink_to(one)

    def turn():
        link.unlink()
        link.symlink_to(two)

    return two, link, turn


def test_a_link_that_leads_elsewhere_is_a_change(links):
    two, link, turn = links
    watched = Watched(link)
    assert watched.next() == "ready"
    turn()
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
    """A-22: new, changed and removed files, and a file by itself; not what is ignored.

    The directory of a removed file is named, because nobody has read its name before.
    """
    tree, other = tmp_path / "src", tmp_path / "one.toml"
    (tree / "node_modules").mkdir(parents=True)
    for folder in ("below", "still"):
        (tree / folder).mkdir()
    for path in (tree / "kept.py", tree / "changed.py", tree / "below" / "removed.py", tree / "still" / "a.py", other):
        path.write_text("1")
    since = later(tmp_path)
    (tree / "new.py").touch()
    (tree / "changed.py").write_text("22")
    (tree / "below" / "removed.py").unlink()
    for ignored in (tree / "new.pyc", tree / "node_modules" / "a.js", tree / "session.jsonl"):
        ignored.touch()
    other.write_text("22")
    watched = Watched(tree, other, since=since, capture=tree / "session.jsonl")
    below = [str(tree / name) for name in ("below", "changed.py", "new.py")]
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


@pytest.mark.parametrize("gone", ["a file of the directory", "the file itself"])
def test_a_removal_before_the_watch_begins_is_reported(tmp_path, gone):
    """A-22: also right below the watched directory."""
    tree = tmp_path / "src"
    tree.mkdir()
    removed = tree / "removed.py"
    removed.touch()
    since = later(tmp_path)
    removed.unlink()
    watched = removed if gone == "the file itself" else tree
    assert Watched(watched, since=since).next() == [str(watched)]


def test_what_the_server_compiles_at_its_start_is_no_edit(tmp_path):
    """A-22: the directory is as new as the cache in it."""
    (tmp_path / "src").mkdir()
    since = later(tmp_path)
    (tmp_path / "src" / "__pycache__").mkdir()
    assert Watched(tmp_path / "src", since=since).next() == "ready"


def test_a_link_that_is_turned_before_the_watch_begins_is_reported(links, tmp_path):
    """A-22."""
    two, link, turn = links
    since = later(tmp_path)
    turn()
    assert Watched(link, since=since).next() == [str(two)]


def test_a_file_that_changes_at_three_starts_in_a_row_is_ignored():
    """A-22: a reload for another reason in between begins the count again."""
    starts = StartChanges()
    assert [starts.reload(early) for early in ({"log"}, {"log"}, set(), {"log"}, {"log", "x"})] == [[]] * 5
    assert starts.reload({"log", "x"}) == ["log"]
    assert starts.reload({"log", "x"}) == ["x"]
    assert starts.ignored == {"log", "x"}


def test_the_age_of_a_change(tmp_path, monkeypatch):
    path = tmp_path / "a.py"
    assert age(str(path)) == 0
    path.touch()
    changed = os.lstat(path).st_ctime_ns
    for now, expected in ((changed + 5, 5), (changed - 5, 0), (changed + 1_000_000_000_000, 2_000_000_000)):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        assert age(str(path)) == expected
