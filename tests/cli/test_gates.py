"""Gate files on the command line. They are compiled before anything starts and are in force from the first frame."""

import json
import os
import sys

import pytest

from mcpspy.cli.gates import compiled, compiled_apart, recorded_answers
from mcpspy.errors import CaptureError, GateError
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


LINE = 'mcpspy: {}:3:1: a gate has no key "dorp"; did you mean drop?'
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
