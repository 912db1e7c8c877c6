"""Expectations about whole sessions: duration, tokens, errors, stderr and start."""

import pytest

from tests.contract.examples import failures, watched

SESSION = """
    @1 = 2025-06-18
    @2 > 2 tools/list
    @2.5 < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
    @3 > 3 tools/call {"name":"echo"}
    @4 < 3 = {"content":[{"type":"text","text":"a"}]}
"""


def session(key, value):
    return f"[session]\n{key} = {value}"


def test_a_session_lasts_from_its_first_message_to_its_end():
    assert failures(SESSION, session("max_duration", '"3s"')) == []
    assert [frame for frame, *_ in failures(SESSION, session("max_duration", '"1.2s"'))] == [5]
    ended = SESSION + "@9 . exit 0"
    found = failures(ended, session("max_duration", '"5s"'))
    assert [message for *_, message in found] == [
        "expected that the session takes at most 5.00 s; this is after 8.00 s"
    ]
    assert failures(ended, session("max_duration", '"5s"'), transport="http") == []


def test_tokens_are_definitions_and_results():
    ((frame, rule, message),) = failures(SESSION, session("max_tokens", "20"))
    assert (frame, rule) == (7, "expect/tokens")
    assert message.endswith("definitions ~11, results ~10 so far")
    assert [frame for frame, *_ in failures(SESSION, session("max_tokens", "5"))] == [5]
    assert failures(SESSION, session("max_tokens", "22")) == []


def test_a_tool_that_is_listed_again_counts_once():
    again = '    @5 > 4 tools/list\n    @6 < 4 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'
    assert failures(SESSION + again, session("max_tokens", "22")) == []


def test_errors_of_any_request_and_of_tools_are_found():
    text = (
        SESSION
        + """
        > 4 ping
        < 4 ! {"code":-32603,"message":"broken"}
        > 5 tools/call {"name":"echo"}
        < 5 = {"content":[],"isError":true}
        < 0 roots/list
        > 0 ! {"code":-32601,"message":"no roots"}
    """
    )
    found, (outcome,) = watched(text, session("no_errors", "true"))
    assert [(it.frame, it.pointer, it.blame) for it in found] == [
        (9, "/error", "server"), (11, "/result/isError", "server"), (13, "/error", "client"),
    ]  # fmt: skip
    assert found[0].message.endswith('ping: error -32603: "broken"')
    assert outcome.passed is False


def test_a_status_of_failure_is_an_error_and_a_request_for_a_token_is_none():
    refused = """
        = 2025-06-18 http
        >> 5 ping
        << 500
    """
    found = failures(refused, session("no_errors", "true"), transport="http")
    assert [message.rpartition("; ")[2] for *_, message in found] == ["ping: status 500"]
    assert failures(refused.replace("500", "401"), session("no_errors", "true"), transport="http") == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("Traceback", 1),
        ("traceback", 0),
        ("Trace*last", 1),
        ("last*Trace", 0),
        ("*", 2),
        ("ready", 1),
        ("(most*last)", 1),
        ("(most|last)", 0),
    ],
)
def test_a_line_of_stderr_is_compared_with_a_text(pattern, found):
    text = SESSION + "! Traceback (most recent call last):\n! ready"
    assert len(failures(text, session("stderr_without", f'["{pattern}"]'))) == found


def test_a_server_starts_with_its_first_answer():
    assert failures(SESSION, session("started_within", '"1.5s"')) == []
    late = "@1 > 1 ping\n@3 < 1 = {}\n@4 > 2 ping\n@9 < 2 = {}"
    ((frame, _, message),) = failures(late, session("started_within", '"2.5s"'))
    assert frame == 2
    assert message.endswith("the first answer came after 3.00 s")
    assert failures(late, session("started_within", '"2.5s"'), transport="http") == []
    ((frame, _, message),) = failures("@1 > 1 ping", session("started_within", '"2s"'))
    assert (frame, message.rpartition("; ")[2]) == (1, "it answered nothing")
