"""What is wrong in a session, why it did not start, what its tools cost, and how few questions that takes."""

import os
import re
import sys

import pytest

import mcpspy
from mcpspy.agent.answers import LARGEST, size_of
from mcpspy.agent.problems import explain_start, find_problems
from mcpspy.agent.rows import read_message
from mcpspy.agent.sessions import list_sessions, tool_usage
from tests import limits
from tests.agent.conftest import EXAMPLE
from tests.each import each
from tests.transcript import record


def test_one_answer_has_what_failed_and_why(folder):
    name = folder.add()
    answer = find_problems(folder.captures)
    assert list(answer)[4] == "problems"
    assert answer["counts"] == {"requests": 5, "failed": 3, "findings": {"error": 2, "warning": 0, "info": 0}}
    exit_, wrong, tool = answer["problems"]
    assert (exit_["headline"], exit_["failed"]) == ("The server ended during tools/call echo", 1)
    assert exit_["cause"]["text"] == "it exited with code 3; on stderr: echo: warning"
    assert (wrong["side"], wrong["rules"]) == ("client", ["tools/arguments"])
    assert wrong["cause"]["certainty"] == "known"
    assert wrong["cause"]["at"] == [f"{name}#10", f"{name}#9"]
    assert "validate the arguments" in wrong["advice"][0]
    assert tool["headline"] == "tools/call echo failed: no such file"
    assert tool["at"] == [f"{name}#12", f"{name}#13"]
    assert answer["end"]["text"] == "the server exited with code 3"
    assert not answer.keys() & {"findings", "stderr"}  # the problems have them


def test_what_explains_no_problem_follows(folder):
    name = folder.add("= 2025-11-25\n! ready\n> 2 ping\n< 2 = {}\n< 2 = {}", code=0)
    answer = find_problems(folder.captures)
    assert "problems" not in answer
    assert answer["findings"][0]["severity"] == "error"
    assert answer["findings"][0]["fix"]
    assert answer["stderr"] == [{"at": f"{name}#8", "text": "ready"}]


CUT = "gh" + "p_" + "a1B2" * 9


@each("before", range(100, 170, 9))
def test_no_secret_of_a_text_that_is_cut_comes_out(folder, before):
    """A-13: a token is not recognized any more when the arguments of a problem cut it."""
    good = '> 2 tools/call {"name":"a","arguments":{"q":"' + "x" * (before - 7) + " " + CUT + " is long" + '"}}'
    bad = '> 3 tools/call {"name":"a"}\n< 3 ! {"code":-1,"message":"no"}'
    folder.add(f'= 2025-11-25\n{good}\n< 2 = {{"content":[]}}\n{bad}', code=0)
    told = str(find_problems(folder.captures)["problems"])
    assert "the same tool succeeded" in told
    assert CUT[:8] not in told


def test_what_a_problem_quotes_is_known_from_its_frames(folder):
    call = '> 2 tools/call {"name":"a","arguments":{"password":"hunter2xyz"}}\n! hunter2xyz?'
    folder.add(f'= 2025-11-25\n{call}\n< 2 ! {{"code":-1,"message":"hunter2xyz is refused"}}', code=0)
    told = str(find_problems(folder.captures)["problems"])
    assert "is refused" in told
    assert "hunter2xyz" not in told


def test_a_session_without_problems_is_short(folder):
    folder.add("= 2025-11-25\n> 2 ping\n< 2 = {}", code=0)
    answer = find_problems(folder.captures)
    assert not answer.keys() & {"problems", "findings", "stderr", "more"}
    assert answer["note"].startswith("no problems")
    assert size_of(answer) < 400


def test_many_problems_stay_within_the_bound_and_say_how_to_get_the_rest(folder):
    call = '> {0} tools/call {{"name":"t{0}"}}\n< {0} ! {{"code":-32000,"message":"{1}"}}\n! {1}'
    calls = "\n".join(call.format(n, "漢 " * 450) for n in range(2, 60))
    folder.add("= 2025-11-25\n" + calls)
    answer = find_problems(folder.captures)
    assert size_of(answer) <= LARGEST
    assert len(answer["problems"]) > 2
    assert f"more problems: {59 - len(answer['problems'])}; read_timeline with filter 'status:failed'" in answer["more"]


def test_a_run_has_the_problems_of_each_session(folder):
    names = [folder.add(EXAMPLE, f"s{n}", ppid=42) for n in range(12)]
    answer = find_problems(folder.captures, session=f"run:{names[0]}")
    assert size_of(answer) <= LARGEST
    told = [it["session"] for it in answer["sessions"]]
    rest = [it.removeprefix("find_problems ") for it in answer.get("more", ())]
    assert sorted(told + rest) == sorted(names)
    assert all(it["problems"] for it in answer["sessions"])


def test_a_live_session_is_told_as_far_as_it_is(folder):
    writer, name = folder.begin()
    assert find_problems(folder.captures, session=name)["state"] == "live"
    record(writer, EXAMPLE)
    answer = find_problems(folder.captures, session=name)
    assert answer["counts"]["failed"] == 2
    assert "requests that wait: 1; read_timeline with filter 'status:pending kind:request'" in answer["more"]
    writer.end(0, 0, None)


def test_what_is_not_read_yet_is_said(folder, monkeypatch):
    folder.add()
    entry = folder.captures.find("")
    monkeypatch.setattr("mcpspy.agent.captures.grow", lambda *_: None)
    folder.captures.open(entry)
    assert find_problems(folder.captures)["read"].startswith("0 %")


HELLO = '> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}\n'
WELCOME = '< 1 = {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}\n'


@pytest.mark.parametrize(
    ("text", "ending", "why"),
    [
        ("", {"code": None, "why": "cannot start the server: no such file"}, "cannot start the server: no such file"),
        (HELLO, {"code": None, "why": "cannot start the server: not found"}, "cannot start the server: not found"),
        ("", {"code": 1}, "The server ended before the client: it exited with code 1"),
        ("", {"code": 0}, "the client has sent nothing; the server exited with code 0"),
        (
            HELLO + "! KeyError: API_KEY",
            {"code": 1},
            "before it answered initialize: it exited with code 1; on stderr: ",
        ),
        (
            HELLO + "< | Listening on port 3000",
            {"code": 0},
            "text that is not MCP to stdout: this line is not JSON (error at character 0): Listening on port 3000",
        ),
        (HELLO + '< 1 ! {"code":-32602,"message":"old"}', {"code": 0}, "initialize was refused with error -32602: old"),
        (HELLO + WELCOME, {"code": 0}, "the client never sent notifications/initialized"),
        ("> 1 tools/list", {"code": None}, "tools/list was sent without `initialize` before it"),
    ],
)
def test_the_reason_is_told(folder, text, ending, why):
    folder.add(text, **ending)
    answer = explain_start(folder.captures)
    assert not answer["started"]
    assert why in answer["why"]
    assert answer["advice"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("= 2025-11-25", "nothing else was answered"),
        ("= 2025-11-25\n> 2 ping\n< 2 = {}", "requests were answered"),
        (HELLO + "@15 " + WELCOME + "@15.1 > notifications/initialized", "succeeded after 15 s"),
    ],
)
def test_a_session_that_started_says_so(folder, text, why):
    folder.add(text)
    answer = explain_start(folder.captures)
    assert answer["started"]
    assert why in answer["why"]


def test_the_facts_are_beside_it(folder):
    name = folder.add(HELLO + "! KeyError: API_KEY", argv=("node", "--token", "hunter2xyz"))
    answer = explain_start(folder.captures, session=name)
    assert answer["handshake"]["request"] == f"{name}#5"
    assert answer["stderr"][0]["text"] == "KeyError: API_KEY"
    assert answer["command"][0] == "node"
    assert "hunter2xyz" not in str(answer)


@pytest.mark.parametrize(
    ("text", "why"),
    [(HELLO, "the session ended before the server answered initialize"), ("", "the client has sent nothing")],
)
def test_a_client_may_leave_before_the_session_starts(folder, text, why):
    writer, _ = folder.begin()
    record(writer, text)
    writer.close(1, 2_000_000_000, "eof")
    writer.end(3_000_000_000, None, None)
    assert explain_start(folder.captures)["why"].startswith(why)


def test_a_live_session_may_still_be_answered(folder):
    writer, _ = folder.begin()
    for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"), (3, "server", "stderr")):
        writer.open(ch, 0, sender, role, "lines")
    writer.frame(1, 0, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', more=False, cut=False)
    assert "has not answered initialize yet" in explain_start(folder.captures)["why"]
    writer.end(0, 0, None)


def test_each_tool_has_its_cost_and_use(folder):
    name = folder.add()
    answer = tool_usage(folder.captures)
    tool = answer["tools"][0]
    assert (tool["name"], tool["calls"], tool["errors"], tool["findings"]) == ("echo", 3, 2, 1)
    assert tool["ms"] == {"p50": 1.0, "p95": 1.0, "max": 1.0}
    assert (tool["definition"], tool["first_call"]) == (f"{name}#9", f"{name}#10")
    assert answer["totals"] == {
        "tools": 1,
        "definition_tokens": tool["definition_tokens"],
        "calls": 3,
        "errors": 2,
        "never_called": 0,
    }


def test_many_tools_come_in_pages_the_most_expensive_first(folder):
    tools = ",".join(
        f'{{"name":"t{n}","description":"{"x" * n}","inputSchema":{{"type":"object"}}}}' for n in range(200)
    )
    folder.add(f'= 2025-11-25\n> 2 tools/list\n< 2 = {{"tools":[{tools}]}}')
    read, cursor = [], ""
    while cursor is not None:
        answer = tool_usage(folder.captures, cursor=cursor)
        assert size_of(answer) <= LARGEST
        read += [it["name"] for it in answer["tools"]]
        cursor = answer.get("next")
    assert sorted(read) == sorted(f"t{n}" for n in range(200))
    assert read[0] == "t199"
    assert answer["totals"]["never_called"] == 200


def test_a_tool_that_was_never_listed(folder):
    folder.add('= 2025-11-25\n> 2 tools/call {"name":"ghost"}\n< 2 = {"content":[]}')
    assert tool_usage(folder.captures)["tools"][0]["listed"] is False


PAGE = os.path.join(os.path.dirname(os.path.dirname(mcpspy.__file__)), "docs", "agents.md")


@pytest.mark.field
def test_three_calls_are_enough(folder):
    path = str(folder.path / "demo.jsonl")
    limits.run([sys.executable, "-m", "mcpspy.demo.client", "-o", path], check=True, capture_output=True)
    session = list_sessions(folder.captures)["sessions"][0]["session"]
    problems = find_problems(folder.captures, session=session)
    wrong = next(it for it in problems["problems"] if "tools/arguments" in it.get("rules", ()))
    message = read_message(folder.captures, address=wrong["cause"]["at"][0])
    assert (wrong["side"], wrong["cause"]["certainty"]) == ("client", "known")
    assert "validate the arguments" in message["findings"][0]["fix"]
    assert size_of([problems, message]) < 4000


def test_the_transcript_on_the_page_is_within_six_calls_and_20_kb():
    with open(PAGE, encoding="utf-8") as file:
        transcript = file.read().partition("## A task")[2].partition("```\n")[2].partition("```")[0]
    calls = re.findall(r"^> \w+ {.*}$", transcript, re.MULTILINE)
    assert 0 < len(calls) <= 6
    assert len(transcript.encode()) < 20_000
