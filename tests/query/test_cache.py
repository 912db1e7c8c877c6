"""Where tables are stored, and when they are built again."""

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from mcpspy.query import cache as module
from mcpspy.query.build import build
from mcpspy.query.cache import file_name, forget_gone, root, tables_of
from tests.transcript import capture


@pytest.fixture
def path(tmp_path, cache):
    return capture(str(tmp_path / "made.jsonl"), "> 1 ping")


def test_the_cache_is_where_the_system_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert root() == os.path.join("/x", "mcpspy", "sql", "v1")
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert root() == str(tmp_path / ".cache" / "mcpspy" / "sql" / "v1")


def test_the_folders_are_the_users_alone(path):
    captured = tables_of(path)
    build([captured], lambda _: None)
    folder = captured.folder
    while not folder.endswith("mcpspy"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        folder = os.path.dirname(folder)


def test_a_capture_that_has_grown_has_other_tables(path):
    before = tables_of(path)
    assert tables_of(path).folder == before.folder
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"kind":"frame","ch":1,"t":9,"raw":"x"}\n')
    assert tables_of(path).folder != before.folder


def test_a_capture_that_was_changed_has_other_tables(path):
    before = tables_of(path)
    os.utime(path, ns=(0, 0))
    assert tables_of(path).folder != before.folder


def test_copies_of_a_capture_have_tables_of_their_own_and_one_id(path, tmp_path):
    shutil.copy2(path, tmp_path / "copy.jsonl")
    first, second = tables_of(path), tables_of(str(tmp_path / "copy.jsonl"))
    assert (first.id, first.folder != second.folder) == (second.id, True)


def test_of_one_capture_the_newest_two_stay(path):
    folders = []
    for number in range(4):
        os.utime(path, ns=(0, number))
        captured = tables_of(path)
        build([captured], lambda _: None)
        os.utime(captured.folder, (number, number))
        folders.append(captured.folder)
    assert [os.path.exists(folder) for folder in folders] == [False, False, True, True]


def test_what_a_killed_process_has_left_goes_after_a_day(path):
    captured = tables_of(path)
    old, new = f"{captured.folder}.1.part", f"{captured.folder}.2.part"
    for folder, age in ((old, 90_000), (new, 10)):
        os.makedirs(folder)
        os.utime(folder, (time.time() - age,) * 2)
    build([captured], lambda _: None)
    assert [os.path.exists(folder) for folder in (old, new)] == [False, True]


def test_the_tables_of_a_capture_that_is_gone_are_deleted(path, tmp_path):
    other = capture(str(tmp_path / "other.jsonl"), "> 1 ping")
    gone, stays = tables_of(path), tables_of(other)
    build([gone], lambda _: None)
    build([stays], lambda _: None)
    os.unlink(path)
    forget_gone()
    assert [os.path.exists(captured.folder) for captured in (gone, stays)] == [False, True]


def test_a_process_that_was_slower_takes_the_tables_of_the_other(path):
    slow, quick = tables_of(path), tables_of(path)
    with slow.made():
        build([quick], lambda _: None)
        before = os.stat(quick.folder)
    assert slow.fresh
    assert os.stat(slow.folder).st_ino == before.st_ino


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1 and then nothing"])
def test_tables_that_are_damaged_are_made_again(path, damage):
    captured = tables_of(path)
    build([captured], lambda _: None)
    Path(captured.file("frames")).write_bytes(damage)
    again = tables_of(path)
    assert (again.fresh, again.folder) == (False, captured.folder)
    build([again], lambda _: None)
    assert tables_of(path).fresh


def test_a_capture_that_was_written_anew_with_its_size_and_time_has_other_tables(path):
    before, known = tables_of(path), os.stat(path)
    text = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(text.replace("ping", "pong"), encoding="utf-8")
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert tables_of(path).folder != before.folder


def test_another_version_of_mcpspy_has_other_tables(path, monkeypatch):
    before = tables_of(path)
    monkeypatch.setattr(module, "__version__", "99")
    assert tables_of(path).folder != before.folder


def test_a_folder_that_another_process_has_only_begun_stays(path, cache):
    captured = tables_of(path)
    build([captured], lambda _: None)
    begun = cache / "begun"
    begun.mkdir()
    (begun / "capture.path").touch(0o600)
    forget_gone()
    assert begun.exists()


def test_a_capture_of_an_id_that_is_no_name_of_a_file_has_another():
    assert file_name("9f2c-1") == "9f2c-1"
    for evil in ("../../etc/passwd", "", "a/b", "a" * 100, "\ud800", "."):
        assert len(file_name(evil)) == 24
