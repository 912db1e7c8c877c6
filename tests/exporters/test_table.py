import csv
import io
import json
import sqlite3

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.exporters.csv_table import COLUMNS
from mcpspy.timeline import final_rows, to_json
from tests.exporters.consumers import exported, golden
from tests.transcript import capture

FORMULAS = ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\N{FULLWIDTH EQUALS SIGN}1", "'quoted"]


def read(content):
    """Return the rows of a table, read by Python's CSV reader in strict mode."""
    reader = csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True)
    assert reader.fieldnames == list(COLUMNS)
    return list(reader)


def undone(cell):
    """Return the original text of a cell, without the apostrophe that the export adds in front."""
    return cell.removeprefix("'")


@pytest.mark.parametrize("path", golden(), ids=lambda path: path.rpartition("/")[2])
def test_a_table_has_the_values_of_show_json(path):
    capture = Capture(path)
    expected = [json.loads(to_json(row, capture.header)) for row in final_rows(capture.records, live=False)]
    rows = read(exported("csv", path))
    assert len(rows) == len(expected)
    for row, want in zip(rows, expected, strict=True):
        for name in ("n", "part", "from", "channel", "kind", "method", "name", "revision", "session", "status", "size"):
            assert undone(row[name]) == ("" if want[name] is None else str(want[name])), name
        assert float(row["t"]) == want["t"]
        assert row["latency"] == "" or float(row["latency"]) == want["latency"]
        assert row["id"] in (json.dumps(want["id"]), "" if want["id"] is None else None)
        assert row["findings"].split() == [finding["rule"] for finding in want["findings"]]
        if "message" in want:
            assert json.loads(row["message"]) == want["message"]
        else:
            assert undone(row["text"]) == (want["text"] or "")


def test_sqlite_takes_the_tables_of_all_golden_captures():
    base = sqlite3.connect(":memory:")
    base.execute("create table rows ('" + "', '".join(COLUMNS) + "')")
    rows = [row for path in golden() for row in csv.reader(io.StringIO(exported("csv", path).decode(), newline=""))]
    marks = ", ".join("?" * len(COLUMNS))
    base.executemany(f"insert into rows values ({marks})", rows)  # noqa: S608 (question marks); rows need as many cells
    [(calls,)] = base.execute("select count(*) from rows where kind = 'request' and method = 'tools/call'")
    [(valid,)] = base.execute("select count(*) from rows where kind = 'request' and json_valid(message)")
    assert 0 < calls < valid
    base.close()


def test_several_captures_are_one_table():
    rows = read(exported("csv", *golden()[:2]))
    assert list(dict.fromkeys(row["capture"] for row in rows)) == [
        "everything-2025-11-25", "features-node-2024-11-05",
    ]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_run_has_an_apostrophe_in_front_which_can_be_taken_off(tmp_path, formula):
    call = {"jsonrpc": "2.0", "id": formula, "method": formula, "params": {}}
    path = capture(str(tmp_path / "made.jsonl"), f"> {json.dumps(call)}\n! {formula}")
    row, *_ = read(exported("csv", path))
    assert row["method"] == f"'{formula}"
    assert undone(row["method"]) == formula
    assert row["id"] == f'"{formula}"', "a string shows that it is one"


def test_negative_numbers_stay_numbers(tmp_path):
    path = capture(str(tmp_path / "made.jsonl"), '> {"jsonrpc":"2.0","id":-1,"method":"-2.5e3"}')
    row, *_ = read(exported("csv", path))
    assert (row["id"], row["method"]) == ("-1", "-2.5e3")


def test_what_acts_on_a_terminal_or_ends_a_text_is_a_picture(tmp_path):
    path = capture(str(tmp_path / "made.jsonl"), '! a\0b\x1b[31mc\x9bd,"e"')
    row, *_ = read(exported("csv", path))
    assert row["text"] == 'a\u2400b\u241b[31mc\ufffdd,"e"'


def test_a_filter_chooses_the_rows(tmp_path):
    path = capture(str(tmp_path / "made.jsonl"), "> 1 ping\n< 1 = {}")
    assert [row["n"] for row in read(exported("csv", path, wants=lambda row: row.kind == "result"))] == ["6"]
