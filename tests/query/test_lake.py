"""A folder of Parquet files, read in place."""

import json
import os
import stat
from collections import Counter
from contextlib import closing

import duckdb
import pytest

from mcpspy.errors import CaptureError, UsageError
from mcpspy.query.build import build, connection, write
from mcpspy.query.cache import tables_of
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.lake import add
from mcpspy.query.tables import TABLES
from tests.transcript import capture

LATE = """
@1 > 1 ping
@1 < 1 = {}
@90000 > 2 ping
@90000 < 2 = {}
"""


def files(folder):
    """Return each file below a folder with its modification time."""
    return {
        os.path.relpath(os.path.join(place, name), folder): os.stat(os.path.join(place, name)).st_mtime_ns
        for place, _, names in os.walk(folder)
        for name in names
    }


def scan(folder, table):
    types = "{'day': DATE, 'server': VARCHAR}"
    return f"read_parquet('{folder}/{table}/**/*.parquet', hive_partitioning=true, hive_types={types})"


def read(folder, table, columns="*", rest=""):
    return duckdb.sql(f"SELECT {columns} FROM {scan(folder, table)} {rest}").fetchall()  # noqa: S608


def test_every_row_of_every_golden_capture_is_read_in_place(golden, tmp_path):
    captures = list(golden.values())
    assert add(captures, str(tmp_path), again=False) == len(captures)
    with closing(CaptureDatabase(captures, str(tmp_path))) as database:
        for name, table in TABLES.items():
            columns = ", ".join(f'CAST("{column.name}" AS VARCHAR)' for column in table.columns)
            _, expected = database.texts(f"SELECT {columns} FROM {name}")  # noqa: S608
            assert Counter(read(tmp_path, name, columns)) == Counter(expected)


def test_rows_stand_under_their_day_and_server(made, tmp_path):
    captured = made(LATE)
    add([captured], str(tmp_path / "lake"), again=False)
    name = f"server=weather/{captured.id}.parquet"
    found = {path.split("/")[0]: set() for path in files(tmp_path / "lake")}
    for path in files(tmp_path / "lake"):
        table, _, rest = path.partition("/")
        found[table].add(rest)
    first, second = f"day=2025-11-24/{name}", f"day=2025-11-25/{name}"
    assert found["captures"] == {first}
    assert found["frames"] == found["messages"] == found["exchanges"] == {first, second}
    assert read(tmp_path / "lake", "exchanges", "day::VARCHAR, server, request", "ORDER BY ALL") == [
        ("2025-11-24", "weather", 5), ("2025-11-25", "weather", 7),
    ]  # fmt: skip


def test_a_second_run_writes_nothing_and_a_new_capture_touches_no_file_of_another(made, tmp_path):
    folder = tmp_path / "lake"
    first = made("> 1 ping", "a")
    assert add([first], str(folder), again=False) == 1
    before = files(folder)
    assert add([first], str(folder), again=False) == 0
    second = made("> 1 tools/list", "b")
    second.id = "other"
    assert add([first, second], str(folder), again=False) == 1
    after = files(folder)
    assert {path: after[path] for path in before} == before
    assert {os.path.basename(path) for path in set(after) - set(before)} == {"other.parquet"}
    assert add([first], str(folder), again=True) == 1


def test_a_capture_that_has_grown_is_written_again_under_its_own_names(made, tmp_path):
    folder = tmp_path / "lake"
    captured = made("> 1 ping")
    add([captured], str(folder), again=False)
    before = set(files(folder))
    os.unlink(captured.capture.path)
    grown = made("> 1 ping\n< 1 = {}")
    grown.id = captured.id
    assert add([grown], str(folder), again=False) == 1
    assert set(files(folder)) == {path for path in before if not path.startswith("findings/")}
    assert read(folder, "exchanges", "status") == [("ok",)]


def test_files_have_their_version_and_are_the_users_alone(made, tmp_path):
    folder = tmp_path / "lake"
    captured = made("> 1 ping")
    add([captured], str(folder), again=False)
    for path in files(folder):
        known = dict(duckdb.execute("SELECT key, value FROM parquet_kv_metadata(?)", [str(folder / path)]).fetchall())
        assert (known[b"mcpspy_schema"], known[b"mcpspy_capture"]) == (b"1", captured.id.encode())
        assert stat.S_IMODE((folder / path).stat().st_mode) == 0o600
        assert not path.split("/")[-1].startswith(".")


@pytest.mark.parametrize("name", ["../../x", "a/b", "ä 1%2F=", "", "123", "..", "long" * 100, "/é" * 60])
def test_a_server_of_any_name_stays_in_the_folder(tmp_path, cache, name):
    path = tmp_path / "made.jsonl"
    capture(str(path), "> 1 ping")
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first) | {"name": name, "id": "../evil"}
    path.write_text("\n".join([json.dumps(header), *rest, ""]), encoding="utf-8")
    captured = tables_of(str(path))
    build([captured], lambda _: None)
    folder = tmp_path / "lake" / "in"
    assert add([captured], str(folder), again=False) == 1
    assert os.listdir(tmp_path / "lake") == ["in"]
    assert sorted(os.listdir(folder)) == ["captures", "exchanges", "findings", "frames", "messages"]
    ((server,),) = read(folder, "messages", "server")
    assert server == (name or None) or (len(name) > 100 and server.startswith(name[:12]))
    assert add([captured], str(folder), again=False) == 0


def test_a_finding_that_there_is_no_more_goes_and_those_of_others_stay(made, tmp_path):
    """A copy of a capture, made while it grew, has an unanswered request, which is a finding."""
    folder = tmp_path / "lake"
    captured, other = made("@90000 > 1 ping"), made("> 1 ping", "other")
    other.id = "other"
    add([captured, other], str(folder), again=False)
    assert read(folder, "findings", "day::VARCHAR, rule", "ORDER BY ALL") == [
        ("2025-11-24", "pairing/unanswered"), ("2025-11-25", "pairing/unanswered"),
    ]  # fmt: skip
    grown = made("@90000 > 1 ping\n< 1 = {}", "grown")
    grown.id = captured.id
    add([grown], str(folder), again=False)
    assert read(folder, "findings", "day::VARCHAR") == [("2025-11-24",)]


@pytest.mark.parametrize("table", sorted(TABLES.keys() - {"tools", "findings"}))
def test_a_file_that_is_missing_or_of_another_state_is_written_again(made, tmp_path, table):
    """A killed process leaves such files, or two processes that export two states of a capture at the same time."""
    folder = tmp_path / "lake"
    captured = made("> 1 ping\n< 1 = {}")
    add([captured], str(folder), again=False)
    (place,) = (folder / table).rglob("*.parquet")
    rows = read(folder, table)
    place.unlink()
    assert [add([captured], str(folder), again=False) for _ in range(2)] == [1, 0]
    with closing(connection()) as database:
        place.unlink()
        write(database, "SELECT 1 AS n", str(place), {"mcpspy_state": "1 0 live"})
    assert [add([captured], str(folder), again=False) for _ in range(2)] == [1, 0]
    assert read(folder, table) == rows


def test_tables_that_are_damaged_are_one_line(made, tmp_path):
    captured = made("> 1 ping")
    with open(captured.file("frames"), "wb"):
        pass
    with pytest.raises(CaptureError, match=r"^cannot read the tables of a capture: [^\n]+$"):
        add([captured], str(tmp_path / "lake"), again=False)


def test_a_damaged_file_is_written_again(made, tmp_path):
    folder = tmp_path / "lake"
    captured = made("> 1 ping")
    add([captured], str(folder), again=False)
    (place,) = (folder / "captures").rglob("*.parquet")
    place.write_bytes(b"PAR1")
    assert add([captured], str(folder), again=False) == 1
    assert read(folder, "captures", "frames") == [(2,)]


def test_a_folder_that_cannot_be_written_is_one_sentence(made, tmp_path):
    captured = made("> 1 ping")
    (tmp_path / "lake").write_text("")
    with pytest.raises(UsageError, match=r"^cannot write .*lake.*: [^\n]+$"):
        add([captured], str(tmp_path / "lake"), again=False)
