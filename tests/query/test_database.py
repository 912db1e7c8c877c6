"""A query can read the tables, and do nothing else."""

import json
import os
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import pytest

from mcpspy.errors import UsageError
from mcpspy.query.database import CaptureDatabase
from mcpspy.query.tables import TABLES


@pytest.fixture
def database(golden):
    with closing(CaptureDatabase(list(golden.values()))) as found:
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
    """Python's variables are nothing to a query either."""
    foo = duckdb.from_query("SELECT 1 AS a")  # noqa: F841 (the last query would see it)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    table, before = golden["field-stdio"].file("frames"), os.stat(golden["field-stdio"].file("frames"))
    asked = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
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


def test_a_result_is_written_where_it_may_be_and_nowhere_else(golden, tmp_path):
    path = tmp_path / "x.parquet"
    path.touch()
    with closing(CaptureDatabase([golden["field-stdio"]], str(path))) as database:
        database.write("SELECT count(*) AS n FROM frames", str(path))
        with pytest.raises(UsageError, match=r"^Permission Error: "):
            database.write("SELECT 1", str(tmp_path / "y.parquet"))
    assert duckdb.sql(f"FROM '{path}'").fetchall()[0][0] > 0


def test_every_capture_is_in_the_views(database, golden):
    assert texts(database, "SELECT count(DISTINCT capture) FROM frames")[1] == [(str(len(golden)),)]
    assert [name for (name,) in texts(database, "SHOW TABLES")[1]] == sorted(TABLES)
