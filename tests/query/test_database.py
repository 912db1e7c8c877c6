"""A query can read the tables and nothing else."""

import json
import os
import threading
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import pytest

from mcpspy.errors import UsageError
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.tables import TABLES


@pytest.fixture(scope="module")
def database(golden, tmp_path_factory):
    with closing(CaptureDatabase(list(golden.values()), str(tmp_path_factory.mktemp("scratch")))) as found:
        yield found


def texts(database, query):
    names, rows = database.texts(query)
    return names, list(rows)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH '{folder}/x.db'",
        "COPY frames TO '{folder}/x.csv'",
        "COPY (SELECT 1) TO '{table}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "EXPORT DATABASE '{folder}/x'",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO frames SELECT * FROM frames",
        "DROP VIEW frames",
        "EXPLAIN ANALYZE COPY frames TO '{folder}/x.csv'",
        "SELECT 1; COPY frames TO '{folder}/x.csv'",
        "",
        "-- nothing",
    ],
)
def test_only_one_select_is_run(database, golden, tmp_path, query):
    table = golden["field-stdio"].file("frames")
    with pytest.raises(UsageError, match=r"^a query is one SELECT statement, and this is [A-Z a-z]+$"):
        database.texts(query.format(folder=tmp_path, table=table))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH '{folder}/x.db'",
        "COPY frames TO '{folder}/x.csv'",
        "COPY (SELECT 1) TO '{table}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
        "EXPORT DATABASE '{folder}/x'",
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT * FROM read_text('{folder}/secret.csv')",
        "SELECT * FROM read_json('{folder}/*')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM sniff_csv('{folder}/secret.csv')",
        "SELECT * FROM parquet_metadata('{folder}/secret.csv')",
        "SELECT * FROM query('COPY frames TO ''{folder}/x.csv''')",
        "SELECT * FROM read_csv('http://127.0.0.1:{port}/x.csv')",
        "SELECT getenv('HOME')",
        "SELECT * FROM foo",
    ],
)
def test_duckdb_denies_the_rest_also_to_who_gets_past_the_first_lock(database, golden, tmp_path, query):
    """A query cannot read Python variables either."""
    foo = duckdb.from_query("SELECT 1 AS a")  # noqa: F841 (the last query would read it)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    table, before = golden["field-stdio"].file("frames"), os.stat(golden["field-stdio"].file("frames"))
    asked = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            with pytest.raises(duckdb.Error):
                database.database.execute(
                    query.format(folder=tmp_path, table=table, port=server.server_address[1])
                ).fetchall()
        finally:
            server.shutdown()
    assert not asked
    assert os.listdir(tmp_path) == ["secret.csv"]
    after = os.stat(table)
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec", 'Parser Error: syntax error at or near "selec"'),
        ("SELECT x FROM frames", 'Binder Error: Referenced column "x" not found'),
        ("SELECT * FROM frame", "Catalog Error: Table with name frame does not exist! Did you mean"),
        ("SELECT 'a'::INT", "Conversion Error: Could not convert string 'a' to INT32"),
        ("SELECT 1) TO 'x' --", "Parser Error: "),
        ("SELECT (1", "Parser Error: "),
    ],
)
def test_a_mistake_is_one_line_of_duckdbs(database, query, message):
    with pytest.raises(UsageError) as caught:
        texts(database, query)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query", ["SELECT 1 AS a", "SELECT 1 AS a;", "SELECT 1 AS a -- b", "WITH x AS (SELECT 1 AS a) FROM x"]
)
def test_a_query_may_end_as_it_likes(database, query):
    assert texts(database, query) == (["a"], [("1",)])


@pytest.mark.parametrize(
    "query", ["DESCRIBE frames", "SUMMARIZE findings", "SHOW TABLES", "VALUES (1)", "TABLE captures"]
)
def test_tables_can_be_described(database, query):
    assert texts(database, query)[1]


def test_the_order_of_a_query_is_kept(database):
    _, rows = texts(database, "SELECT time, n FROM frames ORDER BY time DESC, n")
    assert len(rows) > 1000
    assert [time for time, _ in rows] == sorted((time for time, _ in rows), reverse=True)


def test_rows_are_json_objects(database):
    query = """SELECT 1 AS a, 'x' AS b, NULL AS c, '{"z":[1.50]}'::JSON AS d, [1, 2] AS e, {'k': true} AS f,
        TIMESTAMP '2026-11-20 01:02:03.000004' AS g, 'NaN'::DOUBLE AS h, 18446744073709551616 AS i, 2 AS a"""
    (line,) = database.objects(query)
    assert json.loads(line) == {
        "a": 1, "b": "x", "c": None, "d": {"z": [1.5]}, "e": [1, 2], "f": {"k": True},
        "g": "2026-11-20 01:02:03.000004", "h": None, "i": 18446744073709551616, "a_1": 2,
    }  # fmt: skip


def test_a_column_of_any_name_is_a_member(database):
    query = 'SELECT 1 AS result, 2 AS row, 3 AS "one row of the results"'
    assert [json.loads(line) for line in database.objects(query)] == [
        {"result": 1, "row": 2, "one row of the results": 3}
    ]


def test_numbers_that_json_does_not_have_are_null_and_all_else_stays(database):
    query = """SELECT '{"a":[1e999,1.50,"NaN, \\" -Infinity"]}'::JSON AS a, '-inf'::DOUBLE AS b, ['nan'::FLOAT] AS c"""
    assert list(database.objects(query)) == [rb'{"a":{"a":[1e999,1.5,"NaN, \" -Infinity"]},"b":null,"c":[null]}']


def test_json_may_be_nested_deeply(database):
    query = "SELECT (repeat('[', 3000) || '\"NaN\"' || repeat(']', 3000))::JSON AS a"
    assert list(database.objects(query)) == [b'{"a":' + b"[" * 3000 + b'"NaN"' + b"]" * 3000 + b"}"]


def test_a_result_is_written_where_it_may_be_and_nowhere_else(golden, tmp_path):
    with closing(CaptureDatabase([golden["field-stdio"]], str(tmp_path))) as database:
        path = database.write("SELECT count(*) AS n FROM frames")
        with pytest.raises(duckdb.PermissionException):
            database.database.execute(f"COPY (SELECT 1) TO '{tmp_path / 'y.parquet'}'")
    assert os.path.dirname(path) == str(tmp_path)
    assert duckdb.sql(f"FROM '{path}'").fetchall()[0][0] > 0


def test_a_file_of_a_table_that_is_damaged_is_one_line(golden, tmp_path):
    captured = replace(golden["field-stdio"], folder=str(tmp_path))
    with pytest.raises(UsageError, match=r"^IO Error: No files found [^\n]+$"):
        CaptureDatabase([captured], str(tmp_path))


def test_ctrl_c_ends_a_query(database, monkeypatch):
    def interrupted(future):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.texts("SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a <> b")
    assert texts(database, "SELECT 1 AS a") == (["a"], [("1",)])


def test_a_query_that_is_not_text_is_refused(database):
    with pytest.raises(UsageError, match=r"^the query is not valid UTF-8$"):
        database.texts("SELECT '\udcff'")


def test_every_capture_is_in_the_views(database, golden):
    assert texts(database, "SELECT count(DISTINCT capture) FROM frames")[1] == [(str(len(golden)),)]
    assert [name for (name,) in texts(database, "SHOW TABLES")[1]] == sorted(TABLES)
