"""`mcpspy show --gate`: which frames each gate would have matched."""

import json

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.cli.marks import GateMarks
from mcpspy.gate.gate import LIMIT
from mcpspy.timeline import final_rows
from tests.cli.conftest import refusal
from tests.transcript import capture

SESSION = """
    > {"id":1,"method":"tools/call","params":{"name":"search"}}
    > {"id":2,"method":"tools/list"}
    < {"id":2,"result":{"tools":[]}}
    < {"id":1,"result":{"content":[]}}
    < | not JSON
    ! search
    > [{"id":3,"method":"ping"},{"id":4,"method":"tools/call","params":{"name":"search"}}]
"""
SEARCH = {
    "name": "searches",
    "when": {"name": "search*"},
    "action": {"delay": 1},
    "chance": 0.0,
    "after": 9,
    "times": 1,
}
RESULTS = {"name": "results", "when": {"kind": "result"}, "action": {"drop": True}}
EVERY = {"name": "every", "when": {}, "action": {"close": True}}


def marked(path, *gates):
    marks = GateMarks(gates)
    rows = marks.watch(final_rows(Capture(str(path)).records, live=False))
    return {(row.n, row.part): marks.of(row) for row in rows}


def test_requests_and_their_responses_have_the_names_of_their_gates(tmp_path):
    path = capture(tmp_path / "a", SESSION)
    found = marked(path, SEARCH, RESULTS)
    assert list(filter(None, found.values())) == [
        ["searches"], ["results"], ["searches", "results"], ["searches"], ["searches"]
    ]  # fmt: skip
    assert [names for (_, part), names in found.items() if part] == [["searches"]]


def test_every_frame_of_a_message_passes_and_nothing_else_does(tmp_path):
    path = capture(tmp_path / "a", SESSION)
    found = marked(path, EVERY)
    kinds = {row.n: row.kind for row in final_rows(Capture(str(path)).records, live=False)}
    assert {kinds[n] for (n, _), names in found.items() if not names} == {"stderr", "end"}


def test_a_frame_that_is_too_long_passes(tmp_path):
    large = '> {"id":1,"method":"' + LIMIT * "x" + '"}'
    path = capture(tmp_path / "a", f'> {{"id":0,"method":"a"}}\n{large}\n> {{"id":2,"method":"a"}}')
    assert list(marked(path, EVERY).values()) == [["every"], [], ["every"], []]


FILE = "[[gate]]\nname = 'searches'\nwhen = 'name:search*'\ndrop = true\n[[gate]]\nwhen = 'kind:result'\ndrop = true\n"


def test_show_marks_the_rows(tmp_path, show, gates):
    path = capture(tmp_path / "a", SESSION)
    code, out, err = show(path, "--gate", gates(FILE))
    assert (code, err) == (0, "")
    assert [line.partition("  gate ")[2] for line in out.splitlines() if "  gate " in line] == [
        "searches", "2", "searches, 2", "searches", "searches"
    ]  # fmt: skip
    assert "  gate " not in show(path)[1]


@pytest.mark.parametrize("options", [[], ["--follow"], ["--filter", "kind:result"]])
def test_show_marks_the_rows_of_its_json(tmp_path, show, gates, options):
    path = capture(tmp_path / "a", SESSION)
    _, out, _ = show(path, "--json", "--gate", gates(FILE), *options)
    rows = [row for row in map(json.loads, out.splitlines()) if row["kind"] == "result"]
    assert [row["gates"] for row in rows] == [["2"], ["searches", "2"]]
    assert all("gates" not in json.loads(row) for row in show(path, "--json", *options)[1].splitlines())


def test_a_mistake_is_one_line(tmp_path, show, gates):
    path = gates(FILE.replace("name:search*", "latency:>1s"))
    err = refusal(show(capture(tmp_path / "a", SESSION), "--gate", path))
    assert err.startswith(f"mcpspy: {path}:3:9: when: latency:>1s needs more than one frame to answer; ")
