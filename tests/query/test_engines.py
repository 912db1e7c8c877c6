"""DuckDB, ClickHouse and Spark read the Parquet export of every golden capture in place (field).

Their counts agree with `mcpspy show --json` and `mcpspy sql`: for each capture, by kind, status, rule and method.
"""

import json
import os
import sys
from collections import Counter

import duckdb
import pytest

from benchmarks import engines
from mcpspy.capture.reader import Capture
from tests import backends, limits
from tests.timelines import CAPTURES

pytestmark = [pytest.mark.field, pytest.mark.timeout(backends.SECONDS)]
COLUMNS = {"frames": "kind", "messages": "kind", "exchanges": "status", "findings": "rule"}
MESSAGES = ("request", "notification", "result", "error", "invalid", "undecoded")
METHOD = {
    "duckdb": "message->>'$.method'",
    "clickhouse": "JSONExtractString(message, 'method')",
    "spark": "get_json_object(message, '$.method')",
}
"""The expression from docs/sql.md for the method of a message, for each engine."""


def queries(method):
    """Return the queries for an engine, by name."""
    found = {
        table: f"SELECT capture, {column}, count(*) FROM {table} GROUP BY 1, 2"  # noqa: S608
        for table, column in COLUMNS.items()
    }
    asked = "kind IN ('request', 'notification')"
    return found | {"methods": f"SELECT capture, {method}, count(*) FROM messages WHERE {asked} GROUP BY 1, 2"}  # noqa: S608


def mcpspy(*words):
    """Return the lines that a command prints; U+2028 does not end a line."""
    command = [sys.executable, "-m", "mcpspy", *map(str, words)]
    return limits.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split("\n")[:-1]


def counted(rows):
    """Return the number of each value in each capture."""
    assert len({(capture, value) for capture, value, _ in rows}) == len(rows)
    return {(capture, value): int(count) for capture, value, count in rows}


def shown():
    """Count the same in the output of `mcpspy show --json`."""
    found = {name: Counter() for name in queries("")}
    for path in sorted(CAPTURES.glob("*.jsonl")):
        capture, before = Capture(str(path)).header.id, None
        for line in mcpspy("show", "--json", path):
            row = json.loads(line)
            kind = row["kind"]
            found["frames"][capture, kind] += row["n"] != before
            before = row["n"]
            found["messages"][capture, kind] += kind in MESSAGES
            found["findings"].update((capture, finding["rule"]) for finding in row["findings"])
            if kind == "request":
                found["exchanges"][capture, row["status"]] += 1
            if kind in ("request", "notification"):
                found["methods"][capture, row["message"]["method"]] += 1
    return {name: dict(+counts) for name, counts in found.items()}


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """The export after two runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "lake"
    for _ in range(2):
        mcpspy("export", CAPTURES, "--format", "parquet", "-o", folder)
    return folder


def of_sql(lake):
    asked = queries(METHOD["duckdb"])
    told = {name: mcpspy("sql", query, CAPTURES, "--format", "json") for name, query in asked.items()}
    return {name: [list(json.loads(line).values()) for line in lines] for name, lines in told.items()}


def of_duckdb(lake):
    with duckdb.connect() as database:
        for table in os.listdir(lake):
            database.sql(f"CREATE VIEW {table} AS FROM read_parquet('{lake}/{table}/**/*.parquet')")
        return {name: database.sql(query).fetchall() for name, query in queries(METHOD["duckdb"]).items()}


def of_engine(name, lake):
    python = str(backends.installed(backends.ENGINES) / "python")
    command = engines.command(python, name, str(lake), queries(METHOD[name]))
    environ = os.environ | {"SPARK_LOCAL_DIRS": str(lake.parent), "SPARK_WORKER_DIR": str(lake.parent)}
    done = limits.run(command, capture_output=True, text=True, check=False, env=environ, cwd=lake.parent, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return engines.answers(done.stdout)


def test_every_engine_counts_as_show_does_for_each_golden_capture(lake):
    wanted = shown()
    assert all(wanted.values())
    found = {"sql": of_sql(lake), "duckdb": of_duckdb(lake)}
    found |= {name: of_engine(name, lake) for name in engines.PROGRAMS}
    for engine, answers in found.items():
        assert {name: counted(rows) for name, rows in answers.items()} == wanted, engine
