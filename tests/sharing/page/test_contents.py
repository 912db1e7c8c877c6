"""The session inside a page: its rows match `show --json`, and its other facts match the capture."""

import io
import json

import orjson
import pytest

from mcpspy.capture.reader import Capture
from mcpspy.report.problems import explain, explained_fields
from mcpspy.rules import RULES
from mcpspy.sharing.page.contents import page_row
from mcpspy.sharing.page.writer import scrubbed, write_page
from mcpspy.sharing.scrub import Scrub
from mcpspy.timeline import final_rows, to_json
from tests.sharing.page.written import session, written
from tests.timelines import GOLDEN
from tests.transcript import abandon, begin, capture, record

TALK = """
    = 2025-06-18
    > {"jsonrpc":"2.0","id":5,"method":"tools/list"}
    < {"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}}
    @1 > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"one","arguments":{}}}
    @1.25 < {"jsonrpc":"2.0","id":6,"result":{"content":[]}}
    @2 > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t\\ud800o","arguments":{}}}
    @3 < {"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}
"""


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_rows_are_those_of_show_json_in_its_order_without_what_the_capture_has(path):
    read = Capture(str(path))
    shown = [json.loads(to_json(row, read.header)) for row in final_rows(read.records, live=False)]
    for ours, theirs in zip(session(written(path))["rows"], shown, strict=True):
        own = {name: ours.pop(name) for name in ("preview", "text", "token") if name in ours}
        message = {name: theirs.pop(name) for name in ("message", "text", "tail") if name in theirs}
        assert ours == theirs
        assert own.get("text") in (None, message.get("text"))


def test_the_page_is_told_what_the_capture_says_of_itself(tmp_path):
    about = session(written(capture(tmp_path / "a.jsonl", TALK)))["about"]
    assert about == {
        "file": "a.jsonl", "name": "weather", "transport": "stdio", "started": "2025-11-24T16:00:00.123456Z",
        "tool": "mcpspy 0.1.0", "argv": ["node", "weather.js"], "url": None, "id": about["id"], "live": False,
        "damage": [], "made": "mcpspy 0.1.0", "end": "the server exited with code 0",
        "scrubbed": False, "raw": True, "replaced": [], "filter": None,
    }  # fmt: skip


def test_the_page_is_told_who_spoke_and_how_the_tools_did(tmp_path):
    found = session(written(capture(tmp_path / "a.jsonl", TALK)))
    assert found["peers"]["client"]["revision"] == found["peers"]["server"]["revision"] == "2025-06-18"
    one, other = found["tools"]
    assert one == {
        "name": "one", "bytes": one["bytes"], "listed": 9, "called": 10, "calls": 1, "errors": 0, "found": one["found"],
        "p50": 0.25, "p95": 0.25, "max": 0.25,
    }  # fmt: skip
    assert (other["name"], other["errors"], other["listed"], other["max"]) == ("t\ud800o", 1, 0, 1.0)


def test_the_page_is_told_of_the_rules_that_found_something_and_of_no_other(tmp_path):
    found = session(written(capture(tmp_path / "a.jsonl", TALK)))
    named = {finding["rule"] for row in found["rows"] for finding in row["findings"]}
    assert set(found["rules"]) == named
    assert named
    for name, told in found["rules"].items():
        assert told["explanation"] == RULES[name].explanation
        assert told["spec"].startswith("https://")


def test_the_problems_are_those_of_why(tmp_path):
    path = capture(tmp_path / "a.jsonl", TALK)
    problems = [
        {key: value for key, value in problem.items() if key != "captures"}
        for problem in json.loads(orjson.dumps(explained_fields([explain(path)])["problems"]))
    ]
    assert session(written(path))["problems"] == problems
    assert [problem["headline"] for problem in problems] == ["tools/call t\\ud800o failed with error 1: no"]


def test_what_is_scrubbed_is_in_no_text_of_a_problem(tmp_path):
    path = capture(
        tmp_path / "a.jsonl",
        """
        = 2025-06-18
        > 2 tools/call {"name":"login","arguments":{"password":"x9Kq2Lm8Zt4W"}}
        ! the server got x9Kq2Lm8Zt4W
        < 2 = {"content":[{"type":"text","text":"x9Kq2Lm8Zt4W is wrong"}],"isError":true}
        """,
    )
    assert "x9Kq2Lm8Zt4W" in str(session(written(path))["problems"])
    page = io.BytesIO()
    write_page(scrubbed(path, Scrub(path), None), page)
    (problem,) = session(page.getvalue().decode())["problems"]
    assert "x9Kq2Lm8Zt4W" not in str(problem)
    assert problem["headline"] == "tools/call login failed: redacted-value-1 is wrong"
    assert "the server got redacted-value-1" in str(problem["further"])


def test_a_capture_that_is_damaged_or_has_no_end_is_shown_with_the_places(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, TALK)
    abandon(writer)
    with open(writer.path, "ab") as file:
        file.write(b"no record\n" * 30 + b'{"kind":"frame"')
    found = session(written(writer.path))
    assert found["about"]["damage"][:2] == ["#14: 1 lost: a damaged line", "#15: 1 lost: a damaged line"]
    assert (len(found["about"]["damage"]), found["about"]["damage"][-1]) == (21, "…")
    assert found["about"]["end"] is None
    assert [row["kind"] for row in found["rows"]].count("gap") == 31


def test_a_live_capture_is_shown_as_far_as_it_goes_and_nothing_is_called_unanswered(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, TALK.partition("@1.25")[0])
    found = session(written(writer.path))
    abandon(writer)
    assert (found["about"]["live"], found["about"]["damage"]) == (True, [])
    assert found["rows"][-1]["status"] == "pending"


def test_what_a_filter_leaves_out_is_nowhere_in_the_page(tmp_path):
    found = session(written(capture(tmp_path / "a.jsonl", TALK), "id:6"))
    assert [tool["name"] for tool in found["tools"]] == ["one"]
    assert found["about"]["filter"] == "id:6"
    assert found["about"]["damage"] == []
    assert [row["kind"] for row in found["rows"]].count("gap") == 2


def rows(path):
    """Yield each row as the page has it."""
    read = Capture(str(path))
    for row in final_rows(read.records, live=False):
        yield orjson.loads(orjson.dumps(page_row(row, read.header)))


def test_an_id_that_javascript_would_write_otherwise_is_given_digit_for_digit(tmp_path):
    ids = ["1", "1.0", "1e3", "12345678901234567890", "null", '"1"', "-5", "0", "true"]
    path = capture(
        tmp_path / "a.jsonl", "\n".join(f'> {{"jsonrpc":"2.0","id":{each},"method":"ping"}}' for each in ids)
    )
    given = [row.get("token") for row in rows(path)]
    assert given[: len(ids)] == [None, "1.0", "1e3", "12345678901234567890", "null", None, None, None, None]


def test_a_text_is_given_where_there_is_no_frame_and_else_a_short_one_to_show(tmp_path):
    path = capture(tmp_path / "a.jsonl", f"! {'x' * 1000}\n< |\n> = 2025-06-18\n< | no JSON")
    found = [(row["kind"], row.get("text"), len(row.get("preview", ""))) for row in rows(path)]
    assert found[:2] == [("stderr", None, 300), ("invalid", "a blank line", 0)]
    assert ("end", "the server exited with code 0", 0) in found
