"""Gate files on the command line. They are compiled before anything starts and are in force from the first frame."""

import json
import os
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.cli.gates import compiled, compiled_apart, recorded_answers
from mcpspy.cli.show import GateMarks
from mcpspy.errors import CaptureError, GateError
from mcpspy.gate.gate import LIMIT
from mcpspy.timeline import final_rows
from tests.cli.conftest import refusal
from tests.cli.test_replay import SESSION
from tests.peers import warm
from tests.replay.scripts import INITIALIZE, INITIALIZED, SERVER, call, result
from tests.replay.webs import listening, served
from tests.transcript import capture

ANSWER = """
[[gate]]
name = "no rain"
when = 'from:client name:get_forecast id:9'
answer = { error = { code = -32000, message = "no rain today" } }
times = 1
"""
REFUSED = '{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"no rain today"}}'
OSLO, BERGEN = call(7, "get_forecast", '{"city":"Oslo"}'), call(9, "get_forecast", '{"city":"Bergen"}')


def run(*arguments, said=()):
    status, out, err = warm.finish(*arguments, said="".join(f"{line}\n" for line in said))
    return status, out.splitlines(), err.splitlines()


def test_a_gate_of_wrap_is_in_force_from_the_first_frame_on(gates, tmp_path):
    path = tmp_path / "a.jsonl"
    said = [BERGEN, INITIALIZE, OSLO]
    code, out, err = run("wrap", "--gate", gates(ANSWER), "-o", path, "--no-control", "--", *SERVER, said=said)
    assert (code, err) == (0, [])
    found = {line["id"]: line for line in map(json.loads, out)}
    assert [found[1], found[7]] == [json.loads(INITIALIZED), json.loads(result(7, "12 °C, light rain"))]
    assert found[9] == json.loads(REFUSED)
    assert '"by":"gate no rain"' in path.read_text(encoding="utf-8")


def test_the_two_ways_to_compile_give_the_same(gates, monkeypatch):
    path = gates(ANSWER + '[[gate]]\nwhen = "size:>1kb é"\ndelay = "1.5s"\nchance = 0.25\nsend = ["\\u0000\\"", ""]\n')
    assert compiled_apart(path) == compiled(path, "stdio")
    assert compiled(None, "stdio") is None
    monkeypatch.chdir(os.path.dirname(path))
    os.rename("gates.toml", "--gates")
    assert compiled_apart("--gates") == compiled("--gates", "stdio")


LINE = "mcpspy: {}:3:1: a gate has no key \"dorp\"; did you mean 'drop'?"
WRONG = "[[gate]]\nname = 'a'\ndorp = true\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["wrap", "-o", "{folder}/a.jsonl", "--gate", "{gates}", "--", sys.executable, "-c", "open('{folder}/on', 'w')"],
        ["wrap", "-o", "{folder}/a.jsonl", "--gate={gates}", "--", "{folder}/no-such-program"],
        ["proxy", "http://127.0.0.1:9/mcp", "-o", "{folder}/a.jsonl", "--gate", "{gates}", "--listen", "127.0.0.1:0"],
        ["mock", "{folder}/w.jsonl", "--gate", "{gates}"],
        ["mock", "{folder}/w.jsonl", "--gate", "{gates}", "--listen", "127.0.0.1:0"],
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_started(gates, tmp_path, arguments):
    capture(tmp_path / "w.jsonl", SESSION)
    path = gates(WRONG)
    code, out, err = run(*(word.format(folder=tmp_path, gates=path) for word in arguments))
    assert (code, out, err) == (2, [], [LINE.format(path)])
    assert not (tmp_path / "a.jsonl").exists()
    assert not (tmp_path / "on").exists()


def test_an_option_without_a_file_is_a_line(mcpspy):
    for option, said in (
        ("--gate", "--gate needs a value; see 'mcpspy wrap --help'"),
        ("--no-contrl", "wrap has no option '--no-contrl'; did you mean '--no-control'?"),
    ):
        assert mcpspy("wrap", option, "--", "x") == (2, "", f"mcpspy: {said}\n")


def test_an_action_of_another_transport_is_refused(gates):
    with pytest.raises(GateError, match="status answers an HTTP request, and stdio has none"):
        compiled(gates("[[gate]]\nstatus = 503"), "stdio")


def test_a_gate_of_proxy_is_in_force(gates, tmp_path):
    path = tmp_path / "a.jsonl"
    options = ["-o", path, "--gate", gates(ANSWER), "--no-control"]
    recorded = capture(tmp_path / "w.jsonl", SESSION)
    with served(recorded) as server, listening("proxy", server.url, *options) as proxy:
        assert proxy.post(BERGEN) == (200, REFUSED)
        status, text = proxy.post(OSLO)
    assert (status, json.loads(text)) == (200, json.loads(result(7, "12 °C, light rain")))
    assert '"by":"gate no rain"' in path.read_text(encoding="utf-8")


def test_recordings_answer_for_the_gates_that_name_them(tmp_path):
    path = capture(tmp_path / "w.jsonl", SESSION)
    gates = [
        {"name": "a", "when": {}, "action": {"answer-from": {"file": path, "miss": "forward"}, "delay": 1}},
        {"name": "b", "when": {}, "action": {"drop": True}},
    ]
    answerers = recorded_answers(gates)
    assert list(answerers) == ["a"]
    assert answerers["a"](OSLO.encode()) == result(7, "12 °C, light rain").encode()
    assert recorded_answers(gates[1:]) == recorded_answers(None) == {}
    gates[0]["action"]["answer-from"]["file"] = str(tmp_path / "none.jsonl")
    with pytest.raises(CaptureError, match="No such file"):
        recorded_answers(gates)


CLOUDY = call(8, "get_forecast", '{"city":"Paris"}')


def test_a_gate_stands_before_a_mock_on_stdio(gates, tmp_path, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "captures"))
    path = capture(tmp_path / "w.jsonl", SESSION)
    code, out, err = run("mock", path, "--gate", gates(ANSWER), said=[BERGEN, OSLO])
    assert (code, out, err) == (0, [REFUSED, result(7, "12 °C, light rain")], [])
    assert not (tmp_path / "captures").exists()


def test_a_mock_behind_a_gate_keeps_its_options_and_its_exit_status(gates, tmp_path):
    path = capture(tmp_path / "w.jsonl", SESSION)
    code, out, err = run("mock", path, "--gate", gates(ANSWER), said=[CLOUDY])
    assert (code, len(out), len(err)) == (1, 1, 1)
    assert "get_forecast was not recorded" in err[0]
    code, out, err = run("mock", path, "--loose", "--gate", gates(ANSWER), said=[CLOUDY])
    assert (code, out) == (0, [result(8, "12 °C, light rain")])


@pytest.mark.parametrize("status", [False, True])
def test_a_gate_stands_before_a_mock_over_http(gates, tmp_path, monkeypatch, status):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "captures"))
    path = capture(tmp_path / "w.jsonl", SESSION)
    with served(path, options=["--gate", gates(ANSWER)]) as mock:
        assert mock.post(BERGEN) == (200, REFUSED)
        code, text = mock.post(OSLO)
        assert (code, json.loads(text)) == (200, json.loads(result(7, "12 °C, light rain")))
        if status:
            mock.post(CLOUDY)
        code, err = mock.end()
    assert code == int(status), err
    assert ("get_forecast was not recorded" in err) is status
    assert not (tmp_path / "captures").exists()


MARKED = """
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
    path = capture(tmp_path / "a", MARKED)
    found = marked(path, SEARCH, RESULTS)
    assert list(filter(None, found.values())) == [
        ["searches"], ["results"], ["searches", "results"], ["searches"], ["searches"]
    ]  # fmt: skip
    assert [names for (_, part), names in found.items() if part] == [["searches"]]


def test_every_frame_of_a_message_passes_and_nothing_else_does(tmp_path):
    path = capture(tmp_path / "a", MARKED)
    found = marked(path, EVERY)
    kinds = {row.n: row.kind for row in final_rows(Capture(str(path)).records, live=False)}
    assert {kinds[n] for (n, _), names in found.items() if not names} == {"stderr", "end"}


def test_a_frame_that_is_too_long_passes(tmp_path):
    large = '> {"id":1,"method":"' + LIMIT * "x" + '"}'
    path = capture(tmp_path / "a", f'> {{"id":0,"method":"a"}}\n{large}\n> {{"id":2,"method":"a"}}')
    assert list(marked(path, EVERY).values()) == [["every"], [], ["every"], []]


FILE = "[[gate]]\nname = 'searches'\nwhen = 'name:search*'\ndrop = true\n[[gate]]\nwhen = 'kind:result'\ndrop = true\n"


def test_show_marks_the_rows(tmp_path, show, gates):
    path = capture(tmp_path / "a", MARKED)
    code, out, err = show(path, "--gate", gates(FILE))
    assert (code, err) == (0, "")
    assert [line.partition("  gate ")[2] for line in out.splitlines() if "  gate " in line] == [
        "searches", "2", "searches, 2", "searches", "searches"
    ]  # fmt: skip
    assert "  gate " not in show(path)[1]


@pytest.mark.parametrize("options", [[], ["--follow"], ["--filter", "kind:result"]])
def test_show_marks_the_rows_of_its_json(tmp_path, show, gates, options):
    path = capture(tmp_path / "a", MARKED)
    _, out, _ = show(path, "--json", "--gate", gates(FILE), *options)
    rows = [row for row in map(json.loads, out.splitlines()) if row["kind"] == "result"]
    assert [row["gates"] for row in rows] == [["2"], ["searches", "2"]]
    assert all("gates" not in json.loads(row) for row in show(path, "--json", *options)[1].splitlines())


def test_a_mistake_is_one_line(tmp_path, show, gates):
    path = gates(FILE.replace("name:search*", "latency:>1s"))
    err = refusal(show(capture(tmp_path / "a", MARKED), "--gate", path))
    assert err.startswith(f"mcpspy: {path}:3:9: when: latency:>1s needs more than one frame to answer; ")
