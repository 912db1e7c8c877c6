"""Rules for every message: cases that the rule examples do not cover."""

import pytest

from tests.rules.examples import findings, told


@pytest.mark.parametrize(
    ("number", "rules"),
    [
        ("1", []),
        ('"1"', []),
        ("-1", []),
        ("1.0", ["jsonrpc/id-fraction"]),
        ("1e0", ["jsonrpc/id-fraction"]),
        ("1.5", ["jsonrpc/id-fraction"]),
        ("null", ["jsonrpc/id-null"]),
        ("true", ["jsonrpc/id-type"]),
        ("[1]", ["jsonrpc/id-type"]),
        ("{}", ["jsonrpc/id-type"]),
        ("9007199254740993", ["jsonrpc/number-range"]),
        ("-9007199254740993", ["jsonrpc/number-range"]),
        ("9007199254740992", []),
    ],
)
def test_an_id_is_a_string_or_an_integer_that_every_peer_can_read(number, rules):
    line = f'> | {{"jsonrpc":"2.0","id":{number},"method":"ping"}}'
    assert [finding.rule for finding in findings(line) if finding.rule.startswith("jsonrpc/")] == rules


@pytest.mark.parametrize("code", [-32700, -32000, -31999, 0, 5, -32020, -32021, -32022, -32100])
def test_a_code_that_is_free_or_defined_is_no_finding(code):
    text = f'> 1 tools/list {{META}}\n< 1 ! {{"code":{code},"message":"x"}}'
    assert told(text, "jsonrpc/error-code") == []


@pytest.mark.parametrize("code", [-32023, -32099, -32002, -32042])
def test_a_code_that_is_reserved_is_a_finding_in_2026_07_28_alone(code):
    answer = f'! {{"code":{code},"message":"x"}}'
    assert told(f"> 1 tools/list {{META}}\n< 1 {answer}", "jsonrpc/error-code") == ["#2 jsonrpc/error-code"]
    assert told(f"= 2025-11-25\n> 2 tools/list\n< 2 {answer}", "jsonrpc/error-code") == []


def test_an_error_that_could_not_tell_its_request_may_have_a_null_id():
    text = '> | {"jsonrpc":\n< | {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    assert told(text, "jsonrpc/id", "pairing/") == []


def test_each_message_of_a_batch_is_judged_by_itself():
    batch = '[{"jsonrpc":"2.0","id":2,"method":"ping"},{"id":3,"method":"ping"},5]'
    found = findings(f"= 2025-03-26\n> | {batch}")
    places = {(it.part, it.rule) for it in found if it.severity == "error"}
    assert places == {(1, "jsonrpc/version-missing"), (2, "jsonrpc/not-an-object")}


def test_a_batch_is_told_of_once():
    batch = '[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]'
    assert told(f"= 2025-06-18\n> | {batch}", "jsonrpc/batch") == ["#4 jsonrpc/batch"]
