"""What failed, and why: planted situations, each with the problems that are found in it."""

import os
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from mcpspy.capture.records import Header
from mcpspy.problems.fold import Problems
from mcpspy.problems.problem import Cause
from mcpspy.report.problems import explain
from mcpspy.rules.judge import JudgedEvents
from tests.cases import check
from tests.conversation.http import Exchange
from tests.rules.examples import records
from tests.rules.gate_sessions import TRANSPORTS, request, result
from tests.timelines import CAPTURES

STDIO = Header("id", "2026-11-29T12:00:00.000000Z", "test", "stdio", "s")
HTTP = Header("id", "2026-11-29T12:00:00.000000Z", "test", "http", "s")


def problems_in(text):
    """Return the fold of a transcript."""
    fold = Problems(HTTP if ">>" in text or " http" in text else STDIO)
    deque(JudgedEvents(fold).all(records(text)), 0)
    return fold


def outcome(transcript, _):
    """Return the problems of a transcript: each as its headline, side and causes, and what to do."""
    found = []
    for problem in problems_in(transcript).made():
        found.append(f"#{problem.rows[0]} {problem.kind} {problem.headline}")
        for cause in (problem.cause, *problem.further):
            rows = ",".join(map(str, cause.rows))
            found.append(
                f"#{cause.rows[0] if cause.rows else 0} {problem.side} {cause.certainty} {cause.text} [{rows}]"
            )
        found += (f"#0 do {advice}" for advice in problem.advice)
    return found


def test_planted_situations_are_explained():
    check(Path(__file__).with_name("planted.txt"), outcome)


LACKING = "`docker run` is called without `-i`, so the server gets no input"
HELLO = """
    > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
"""


@pytest.mark.parametrize(
    ("command", "end", "cause"),
    [
        ("docker run --rm image", ". exit 0", LACKING),
        (
            "podman run -t image",
            "@30 . stdin closed",
            "`podman run` is called without `-i`, so the server gets no input",
        ),
        ("docker run --rm -i image", ". exit 0", "it exited with code 0, and wrote nothing to stderr"),
        ("docker run --rm image", ". exit 125", "it exited with code 125, and wrote nothing to stderr"),
        ("server", ". exit 0", "it exited with code 0, and wrote nothing to stderr"),
    ],
)
def test_a_container_without_stdin_is_the_cause(command, end, cause):
    fold = Problems(replace(STDIO, argv=tuple(command.split())))
    deque(JudgedEvents(fold).all(records(HELLO + end)), 0)
    (problem,) = fold.made()
    deaf = "without" in cause
    assert (problem.cause.text, problem.cause.certainty) == (cause, "known")
    assert problem.side == ("client" if deaf else "server")
    assert ("`-i`" in problem.advice[0]) == deaf
    assert (problem.further[-1:] == (Cause(LACKING, "likely", (1,)),)) == (end == ". exit 125")


def test_a_placeholder_in_the_command_line_may_be_why_the_server_ended():
    fold = Problems(replace(STDIO, argv=("server", "--token", "${API_TOKEN}")))
    deque(JudgedEvents(fold).all(records("= 2025-06-18\n> 2 ping\n. exit 1")), 0)
    (problem,) = fold.made()
    told = "the command line has ${API_TOKEN} after --token: nobody filled it in"
    assert told in [cause.text for cause in problem.further]


REFUSED = "= 2025-06-18 http\n" + "".join(
    f'>> {number} tools/call {{"name":"a","arguments":{{"x":{number}}}}}\n<< 503\n' for number in range(7)
)


@pytest.mark.parametrize("still", [*range(7)])
def test_a_problem_remains_until_each_of_its_requests_is_repeated_with_success(still):
    repeated = "".join(
        f'>> 1{number} tools/call {{"name":"a","arguments":{{"x":{number}}}}}\n<< 200 1{number} = {{"content":[]}}\n'
        for number in range(7)
        if number != still
    )
    (problem,) = problems_in(REFUSED + repeated).made()
    assert (problem.count, problem.headline) == (1, "tools/call a was refused with 503")
    known = still in (0, 1, 2, 3, 6)
    assert (14 + 5 * still in problem.rows) == known
    assert not problems_in(f'{REFUSED}{repeated}>> 20 tools/call {{"name":"a","arguments":{{"x":{still}}}}}\n'
                           '<< 200 20 = {"content":[]}').made()  # fmt: skip


def test_of_two_calls_in_a_batch_one_may_be_repeated():
    http = Exchange()
    http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id="s")
    calls = [request(number, "tools/call", name="a", arguments={"x": number}) for number in (1, 2)]
    http.answer(http.ask(calls, mcp_session_id="s"), status=503, kind=None)
    http.answer(http.ask(calls[0], mcp_session_id="s"), result(1, content=[]))
    fold = Problems(HTTP)
    deque(JudgedEvents(fold).all(http.records), 0)
    (problem,) = fold.made()
    assert (problem.count, fold.failed, problem.rows[0]) == (1, 1, 9)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_answer_that_a_gate_has_edited_is_quoted_as_its_receiver_got_it(transport):
    wire = TRANSPORTS[transport]("hold")
    wire.client(request(3, "tools/call", name="a"))
    edited = {"jsonrpc": "2.0", "id": 3, "error": {"code": -32000, "message": "by hand"}}
    wire.server(result(3, content=[]), of=3, sent=edited)
    wire.end()
    fold = Problems(STDIO)
    deque(JudgedEvents(fold).all(wire.records), 0)
    (problem,) = fold.made()
    assert problem.side == "gate"
    assert problem.headline == "tools/call a failed with error -32000: by hand"


def test_the_golden_captures_have_the_problems_that_they_hold_on_purpose():
    """Each line of `golden.txt` was compared with its capture by hand."""
    found = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        for problem in explain(str(path)).problems:
            rows = ", ".join(f"#{n}" for n in problem.rows)
            found += [f"{path.name} {rows} {problem.headline}", f"  {problem.side}: {problem.cause.text}"]
    kept = Path(__file__).with_name("golden.txt")
    if os.environ.get("MCPSPY_RENEW"):
        kept.write_text("\n".join(found) + "\n", encoding="utf-8")
    assert "\n".join(found) + "\n" == kept.read_text(encoding="utf-8")
