"""The `ops` rules: findings about operations, only on request."""

import pytest

from mcpspy.conversation.history import Operations
from tests.rules.examples import findings

LISTED = """
    = 2025-06-18
    > 2 tools/list
    < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
"""
FAILED = '< 3 = {"content":[{"type":"text","text":"no such city"}],"isError":true}'


def call(number, text="a", name="echo"):
    return f'> {number} tools/call {{"name":"{name}","arguments":{{"text":"{text}"}}}}\n'


def answer(number):
    return f'< {number} = {{"content":[]}}\n'


def found(text, **operations):
    """Return the findings as frame, rule and sentence."""
    asked = findings(text, operations=Operations(**operations))
    return [(it.frame, it.rule, it.message) for it in asked if it.rule.startswith("ops/")]


def rules(text, **operations):
    return [rule for _, rule, _ in found(text, **operations)]


def test_nobody_gets_an_opinion_who_has_not_asked():
    loop = "".join(call(n) + answer(n) for n in (3, 4, 5))
    assert [it for it in findings(LISTED + loop) if it.rule.startswith("ops/")] == []
    assert rules(LISTED + loop) == ["ops/loop"]


def test_a_failed_call_shows_what_the_tool_answered():
    assert found(LISTED + call(3) + FAILED) == [(7, "ops/tool-failed", 'echo failed: "no such city"')]
    refused = [(7, "ops/tool-failed", 'echo failed: error -32602: "no"')]
    assert found(LISTED + call(3) + '< 3 ! {"code":-32602,"message":"no"}') == refused


@pytest.mark.parametrize("content", ["5", "[]", "[5]", '[{"type":"text","text":5}]', '{"a":1}'])
def test_a_failed_call_without_a_text_is_one_too(content):
    text = f'< 3 = {{"content":{content},"isError":true}}'
    assert rules(LISTED + call(3) + text) == ["ops/tool-failed"]


def test_a_slow_call_names_what_it_took_and_the_threshold():
    slow = f"@1 {call(3)}@13 {answer(3)}"
    assert found(LISTED + slow) == [(7, "ops/slow-call", "echo took 12.00 s; more than 10.00 s is slow")]
    assert rules(LISTED + slow, slow=12_000_000_000) == []
    assert rules(LISTED + f"@1 {call(3)}@1.2 {answer(3)}", slow=100_000_000) == ["ops/slow-call"]


def test_time_in_which_a_person_was_asked_is_not_the_tools():
    asked = """
        @1 > 3 tools/call {"name":"echo"}
        @2 < 0 elicitation/create {"message":"m","requestedSchema":{"type":"object","properties":{}}}
        @40 > 0 = {"action":"accept","content":{}}
    """
    assert rules(LISTED + asked + f"@41 {answer(3)}") == []
    assert rules(LISTED + asked + f"@52 {answer(3)}") == ["ops/slow-call"]


def test_two_questions_at_once_count_once():
    asked = """
        @1 > 3 tools/call {"name":"echo"}
        @2 < 0 elicitation/create {"message":"m","requestedSchema":{"type":"object","properties":{}}}
        @3 < 1 sampling/createMessage {"messages":[],"maxTokens":1}
        @12 > 0 = {"action":"accept","content":{}}
        @13 > 1 ! {"code":-1,"message":"no"}
    """
    assert rules(LISTED + asked + f"@14 {answer(3)}", slow=1_999_000_000) == ["ops/slow-call"]
    assert rules(LISTED + asked + f"@14 {answer(3)}", slow=2_000_000_000) == []


def test_the_third_call_is_a_loop_once_whatever_the_order_of_the_arguments():
    same = [
        '> 3 tools/call {"name":"echo","arguments":{"a":1,"b":2}}',
        '> 4 tools/call {"arguments":{"b":2,"a":1},"name":"echo","_meta":{"progressToken":7}}',
        '> 5 tools/call {"name":"echo","arguments":{"a":1,"b":2}}',
        '> 6 tools/call {"name":"echo","arguments":{"a":1,"b":2}}',
    ]
    assert [(frame, rule) for frame, rule, _ in found(LISTED + "\n".join(same))] == [(8, "ops/loop")]


@pytest.mark.parametrize(
    "calls",
    [
        [call(3), call(4)],
        [call(3), call(4, "b"), call(5)],
        [call(3), call(4), call(5, name="other"), call(6), call(7)],
        [call(3), call(4), "~ 2\n", call(5)],
    ],
)
def test_other_calls_between_are_no_loop(calls):
    assert "ops/loop" not in rules(LISTED + "".join(calls))


def test_arguments_that_are_nested_very_deeply_do_no_harm():
    deep = "[" * 1000 + "]" * 1000
    params = f'{{"name":"echo","arguments":{{"a":{deep}}}}}'
    calls = "".join(f'> | {{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{params}}}\n' for n in (3, 4, 5))
    assert set(rules(LISTED + calls)) <= {"ops/loop"}


def test_other_requests_between_do_not_hide_a_loop():
    assert "ops/loop" in rules(LISTED + call(3) + "> 4 ping\n" + call(5) + "> 6 ping\n" + call(7))


def test_a_server_whose_tools_nobody_calls_is_told_with_what_it_costs():
    ((frame, rule, sentence),) = found(LISTED)
    assert (frame, rule) == (5, "ops/unused-server")
    assert sentence == "the server lists 1 tool (~11 tokens), and none was called"


@pytest.mark.parametrize(
    "text",
    [
        LISTED + call(3),
        '= 2025-06-18\n> 2 tools/list\n< 2 = {"tools":[]}',
        "= 2025-06-18\n> 2 ping\n< 2 = {}",
        LISTED + "~ 2\n> 9 ping",
    ],
)
def test_a_server_that_is_used_or_has_nothing_to_use_is_not(text):
    assert "ops/unused-server" not in rules(text)
