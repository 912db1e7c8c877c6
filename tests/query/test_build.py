"""The files of the tables."""

import os
import stat
from contextlib import closing

import pytest

from mcpspy import __version__
from mcpspy.errors import CaptureError, UsageError
from mcpspy.query import build as module
from mcpspy.query.build import build, connection, write
from mcpspy.query.cache import tables_of
from mcpspy.query.tables import TABLES
from tests.transcript import capture


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
    monkeypatch.setattr(module, "DerivedTables", None)
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
