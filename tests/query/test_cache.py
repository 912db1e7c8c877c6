"""Tables: how they are built, where they are stored, and when they are built again."""

import os
import re
import shutil
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from mcpspy import __version__
from mcpspy.errors import CaptureError, UsageError
from mcpspy.query.build import build, connection, write
from mcpspy.query.cache import file_name, forget_gone, root, scratch, tables_of
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.tables import TABLES, documented
from tests.each import each
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


@each("damage", [b"", b"PAR1", b"PAR1 and then nothing"])
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
    monkeypatch.setattr("mcpspy.query.cache.__version__", "99")
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


def test_a_file_has_the_version_of_the_tables_and_is_the_users_alone(made):
    captured = made("> 1 ping")
    with closing(connection()) as database:
        for name in TABLES:
            found = database.execute("SELECT key, value FROM parquet_kv_metadata(?)", [captured.file(name)]).fetchall()
            assert dict(found) == {b"mcpspy_schema": b"1", b"mcpspy_tool": f"mcpspy {__version__}".encode()}
            assert stat.S_IMODE(os.stat(captured.file(name)).st_mode) == 0o600


def test_nothing_else_is_left_in_the_folder(made):
    assert sorted(os.listdir(made("> 1 ping").folder)) == sorted(f"{name}.parquet" for name in TABLES)


def test_what_is_there_is_not_made_again(made, monkeypatch):
    captured = made("> 1 ping")
    monkeypatch.setattr("mcpspy.query.build.DerivedTables", None)
    build([tables_of(captured.capture.path)], lambda _: None)


def test_several_captures_are_shared_out(tmp_path, cache):
    paths = [capture(str(tmp_path / f"{name}.jsonl"), "> 1 ping") for name in "abc"]
    found, read = [tables_of(path) for path in paths], []
    build(found, read.append)
    assert all(os.path.exists(captured.file("captures")) for captured in found)
    assert sum(read) == 2 * sum(captured.size for captured in found)


def test_a_capture_that_cannot_be_read_leaves_nothing(tmp_path, cache):
    captured = tables_of(capture(str(tmp_path / "a.jsonl"), "> 1 ping"))
    os.unlink(captured.capture.path)
    with pytest.raises(CaptureError):
        build([captured], lambda _: None)
    assert not cache.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, cache):
    captured = tables_of(capture(str(tmp_path / "a.jsonl"), "> 1 ping"))
    (tmp_path / "cache").write_text("")
    with pytest.raises(UsageError, match=r"^cannot write .*cache"):
        build([captured], lambda _: None)


def test_a_query_that_fails_is_one_sentence(tmp_path):
    with (
        closing(connection()) as database,
        pytest.raises(CaptureError, match=r"^cannot write [^\n]*x.parquet: [^\n]+$"),
    ):
        write(database, "SELECT error('boom')", str(tmp_path / "x.parquet"))


def test_a_folder_is_the_users_alone_and_gone_in_the_end(cache):
    with scratch() as folder:
        assert os.path.dirname(folder) == str(cache / "running")
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert not os.listdir(cache / "running")


def test_what_a_killed_process_has_left_goes_with_the_next_query(cache):
    with scratch() as running:
        killed, new = cache / "running" / "killed", cache / "running" / "new"
        for folder in (killed, new):
            folder.mkdir()
            (folder / "lock").touch()
            (folder / "spilled").write_bytes(b"x")
        for folder in (killed, running):
            os.utime(folder, (0, 0))
        with scratch():
            assert [os.path.exists(folder) for folder in (killed, new, running)] == [False, True, True]


def test_a_folder_that_cannot_be_made_is_one_line(cache, tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(UsageError, match=r"^cannot write [^\n]*cache[^\n]*: [^\n]+$"), scratch():
        pass


PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUERIES = re.findall(r"\n([^\n]+):\n\n```sql\n(.*?)```", TEXT.split("## Ten queries")[1].split("\n## ")[0], re.DOTALL)


def test_the_page_has_the_tables():
    assert documented(TEXT) == TEXT, "write it again: scripts/write-rules"


def test_a_table_has_no_two_columns_of_one_name():
    for table in TABLES.values():
        assert len({column.name for column in table.columns}) == len(table.columns)


@each("name", TABLES)
def test_the_files_have_the_columns_with_their_types(golden, name):
    with closing(connection()) as database:
        for captured in golden.values():
            found = database.execute(f"DESCRIBE FROM '{captured.file(name)}'").fetchall()
            assert [(column, kind) for column, kind, *_ in found] == [it[:2] for it in TABLES[name].columns]


def test_there_are_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_the_queries_of_the_page_find_something(golden, tmp_path, title, query):
    query = query.replace("calls >= 10", "calls >= 1")  # golden captures are short
    with closing(CaptureDatabase(list(golden.values()), str(tmp_path))) as database:
        assert list(database.texts(query)[1])
