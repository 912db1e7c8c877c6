"""`mcpspy sql`: results in every format, and one line for every mistake."""

import csv
import io
import json
import os
import shutil
import stat
import subprocess
import sys

import duckdb
import pytest

from mcpspy import cli
from mcpspy.cli.sql import built
from tests.cli.conftest import refusal
from tests.transcript import capture

QUERY = "SELECT method, status FROM exchanges ORDER BY request"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mcpspy" / "sql" / "v1"


@pytest.fixture
def made(tmp_path):
    return capture(str(tmp_path / "made.jsonl"), "> 1 ping\n< 1 = {}\n> 2 tools/list")


@pytest.fixture
def sql(home, capsysbinary, monkeypatch):
    """Run `mcpspy sql`, which writes its results as bytes."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcpspy-under-test", "sql", *arguments])
        status = cli.main()
        found = capsysbinary.readouterr()
        return status, found.out.decode(), found.err.decode()

    return run


def test_a_result_is_a_table(sql, made):
    assert sql(QUERY, made) == (
        0, "method      status\n----------  ----------\nping        ok\ntools/list  unanswered\n(2 rows)\n", "",
    )  # fmt: skip


def test_a_result_may_be_empty(sql, made):
    assert sql("SELECT n FROM frames WHERE false", made) == (0, "n\n-\n(0 rows)\n", "")
    assert sql("SELECT n FROM frames WHERE false", made, "--format", "json") == (0, "", "")


def test_what_peers_made_up_is_printed_on_one_line_and_cut(sql, tmp_path):
    text = r'> {"id":1,"method":"tools/call","params":{"name":"a\u001b[2J\n' + "x" * 100 + '"}}'
    _, out, _ = sql("SELECT name, 1 AS b FROM exchanges", capture(str(tmp_path / "evil.jsonl"), text))
    assert out.splitlines()[2] == r"a\e[2J\n" + "x" * 51 + "…  1"


def test_a_result_is_json(sql, made):
    _, out, _ = sql(QUERY, made, "--format", "json")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"method": "ping", "status": "ok"}, {"method": "tools/list", "status": "unanswered"},
    ]  # fmt: skip


def test_a_result_is_csv_without_formulas(sql, made):
    _, out, _ = sql("SELECT '=1+1' AS a, 'x,\"y' AS b, NULL AS c, -1.5 AS d", made, "--format", "csv")
    assert list(csv.reader(io.StringIO(out, newline=""))) == [["a", "b", "c", "d"], ["'=1+1", 'x,"y', "", "-1.5"]]


def test_a_result_is_a_parquet_file(sql, made, tmp_path, cache):
    path = tmp_path / "x.parquet"
    assert sql(QUERY, made, "--format", "parquet", "-o", str(path)) == (0, f"{path}\n", "")
    assert duckdb.sql(f"FROM '{path}'").fetchall() == [("ping", "ok"), ("tools/list", "unanswered")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not os.listdir(cache / "running")


@pytest.mark.parametrize("form", ["table", "json", "csv", "parquet"])
def test_a_file_is_replaced_only_by_force_and_stays_where_a_query_fails(sql, made, tmp_path, form):
    path = tmp_path / "x"
    path.write_text("mine")
    arguments = (made, "--format", form, "-o", str(path))
    assert sql(QUERY, *arguments) == (2, "", f"mcpspy: {path} exists; --force replaces it\n")
    assert sql("selec", *arguments, "--force")[0] == 2
    assert path.read_text() == "mine"
    assert sql(QUERY, *arguments, "--force")[0] == 0
    assert path.read_bytes() != b"mine"


def test_a_capture_is_not_replaced_by_a_result_even_with_force(sql, made):
    with open(made, "rb") as file:
        before = file.read()
    assert sql(QUERY, made, "-o", made, "--force") == (
        2, "", f"mcpspy: {made} is a capture that is queried here; the result needs another name\n",
    )  # fmt: skip
    with open(made, "rb") as file:
        assert file.read() == before


def test_parquet_needs_a_file(sql, made):
    assert sql(QUERY, made, "--format", "parquet") == (2, "", "mcpspy: --format parquet needs a file: -o FILE\n")


def test_directories_patterns_and_the_capture_directory_are_queried(sql, made, tmp_path, monkeypatch):
    other = capture(str(tmp_path / "other.jsonl"), "> 1 ping")
    count = "SELECT count(*) AS n FROM captures"
    change_id(other)
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    for named in ((str(tmp_path),), (str(tmp_path / "*.jsonl"),), (made, other), ()):
        assert sql(count, *named, "--format", "json") == (0, '{"n":2}\n', "")
    assert sql(count, str(tmp_path / "o*.jsonl"), "--format", "json")[1] == '{"n":1}\n'


def change_id(path):
    with open(path, encoding="utf-8") as file:
        first, *rest = file.readlines()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([json.dumps(json.loads(first) | {"id": path}) + "\n", *rest])


def test_a_capture_that_has_grown_is_read_again(sql, made, tmp_path):
    count = ("SELECT count(*) AS n FROM messages", made, "--format", "json")
    assert sql(*count)[1] == '{"n":3}\n'
    with open(made, "a", encoding="utf-8") as file:
        file.write('{"kind":"frame","ch":1,"t":99000000000,"raw":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"x\\"}"}\n')
    assert sql(*count)[1] == '{"n":4}\n'


def test_a_mistake_is_one_line_and_the_status_2(sql, made):
    assert sql("selec", made) == (2, "", 'mcpspy: Parser Error: syntax error at or near "selec"\n')
    assert sql("COPY frames TO 'x'", made) == (
        2, "", "mcpspy: a query is one SELECT statement, and this is COPY\n",
    )  # fmt: skip
    refusal(sql("SELECT error('a\nb')", made))


def test_a_capture_that_cannot_be_read_is_one_line(sql, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"mcpspy":9}\n')
    status, _, err = sql(QUERY, str(path))
    assert (status, err.count("\n")) == (2, 1)
    assert "has format 9" in err
    assert sql(QUERY, str(tmp_path / "y.jsonl"))[2].startswith(f"mcpspy: cannot read {tmp_path}/y.jsonl: no such file")


def test_without_the_extra_one_line_says_what_to_install(sql, made, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("duckdb", "mcpspy.query."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delattr("mcpspy.query.build", raising=False)
    status, out, err = sql(QUERY, made)
    assert (status, out) == (2, "")
    assert err == (
        f"mcpspy: SQL and Parquet need duckdb, which is not installed: {sys.executable} -m pip install 'mcpspy[sql]'\n"
    )


def test_nothing_else_is_written_to_stderr(made):
    """DuckDB's bindings report there, at exit, what they consider leaked."""
    for query, status in ((QUERY, 0), ("SELECT error('a') FROM frames", 2)):
        run = subprocess.run(
            [sys.executable, "-m", "mcpspy", "sql", query, made],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr.count("\n")) == (status, status // 2)


def test_of_copies_of_a_capture_the_longer_one_is_taken(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    copy = str(tmp_path / "b.jsonl")
    shutil.copy(path, copy)
    with open(copy, "a", encoding="utf-8") as file:
        file.write('{"kind":"gap","t":1,"lost":1,"why":"x"}\n')
    for named in ([path, copy], [copy, path]):
        assert [captured.capture.path for captured in built(named)] == [copy]
        assert capsys.readouterr().err == (
            f"mcpspy: {named[1]} and {named[0]} are copies of one capture; the longer one is taken\n"
        )


def test_a_capture_that_is_named_twice_is_one(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    assert len(built([path, path, str(tmp_path)])) == 1
    assert capsys.readouterr().err == ""


def test_a_name_with_the_marks_of_a_pattern_is_a_name_where_it_exists(tmp_path):
    path = capture(str(tmp_path / "a[1].jsonl"), "> 1 ping")
    assert [captured.capture.path for captured in built([path])] == [path]


def test_of_a_directory_what_a_later_mcpspy_has_written_is_skipped(tmp_path, capsys):
    path = capture(str(tmp_path / "a.jsonl"), "> 1 ping")
    (tmp_path / "b.jsonl").write_text('{"mcpspy":9}\n')
    assert [captured.capture.path for captured in built([str(tmp_path)])] == [path]
    err = capsys.readouterr().err
    assert (err.count("\n"), f"skipped: {tmp_path}/b.jsonl has format 9" in err) == (1, True)
