"""The `ops` rules: findings about operations, only on request."""

from mcpspy.conversation.facts import Operations
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


def test_a_slow_call_names_what_it_took_and_the_threshold():
    slow = f"@1 {call(3)}@13 {answer(3)}"
    assert found(LISTED + slow) == [(7, "ops/slow-call", "echo took 12.00 s; more than 10.00 s is slow")]
    assert rules(LISTED + slow, slow=12_000_000_000) == []
    assert rules(LISTED + f"@1 {call(3)}@1.2 {answer(3)}", slow=100_000_000) == ["ops/slow-call"]


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


def test_arguments_that_are_nested_very_deeply_do_no_harm():
    deep = "[" * 1000 + "]" * 1000
    params = f'{{"name":"echo","arguments":{{"a":{deep}}}}}'
    calls = "".join(f'> | {{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{params}}}\n' for n in (3, 4, 5))
    assert set(rules(LISTED + calls)) <= {"ops/loop"}
