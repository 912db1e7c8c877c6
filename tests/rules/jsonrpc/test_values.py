"""The JSON of a message: cases that the rule examples do not cover."""

import pytest

from tests.rules.examples import findings, told


@pytest.mark.parametrize("key", ["method", "id", "jsonrpc"])
def test_a_key_that_stands_twice_is_named(key):
    line = f'> | {{"jsonrpc":"2.0","id":1,"method":"ping","{key}":"x"}}'
    (finding,) = [it for it in findings(line) if it.rule == "jsonrpc/duplicate-key"]
    assert key in finding.message


def test_the_same_key_in_two_objects_is_no_finding():
    line = '> | {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"id":1},"b":{"id":2},"text":"\\"id\\":"}}'
    assert told(line, "jsonrpc/duplicate-key") == []


LONG = [2**64 - 1, 2**64, 2**64 + 1, -(2**63), -(2**63) - 1, 10**40 + 7, -(10**40) - 7]


@pytest.mark.parametrize("number", LONG)
def test_an_integer_of_any_length_is_found_and_quoted_digit_for_digit(number):
    """R-05: also if a decoder turns the integer into a float."""
    for line in (
        f'> | {{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"n":{number}}}}}',
        f'> | {{"jsonrpc":"2.0","id":{number},"method":"ping"}}',
        f'> | {{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"n": [ {number} ]}}}}',
    ):
        (found,) = [finding for finding in findings(line) if finding.rule == "jsonrpc/number-range"]
        assert str(number) in found.message


def test_an_integer_with_more_digits_than_python_converts_is_quoted_by_its_first():
    """R-05."""
    line = f'> | {{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"n":{"123456789" * 1000}}}}}'
    (found,) = [finding for finding in findings(line) if finding.rule == "jsonrpc/number-range"]
    assert "the number 123456789123456789" in found.message


@pytest.mark.parametrize("number", LONG)
def test_other_rules_quote_such_an_integer_digit_for_digit_too(number):
    """R-05."""
    schema = '{"type":"object","properties":{"n":{"type":"string"}}}'
    found = findings(f"""
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[{{"name":"count","inputSchema":{schema}}}]}}
        > 3 tools/call {{"name":"count","arguments":{{"n":{number}}}}}
        > 4 tools/call {{"name":{number}}}
    """)
    texts = {finding.rule: finding.message for finding in found}
    assert str(number) in texts["tools/arguments"], texts
    assert str(number) in texts["schema/invalid"], texts


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_stands_as_a_number_and_is_none_is_named_as_it_is_written(constant):
    """F-03: JSON has no such numbers, and the TypeScript SDK drops the frame."""
    text = f'= 2025-06-18\n> 2 ping\n< | {{"jsonrpc":"2.0","id":2,"result":{{"a":"NaN","b":{constant}}}}}'
    (found,) = findings(text)
    assert (found.rule, found.pointer, found.message) == (
        "jsonrpc/not-a-number",
        "/result/b",
        f"{constant} is not valid JSON",
    )


def test_a_number_that_is_too_large_is_something_else():
    text = '= 2025-06-18\n> 2 ping\n< | {"jsonrpc":"2.0","id":2,"result":{"a":1e999,"b":"Infinity"}}'
    assert told(text) == ["#5 jsonrpc/number-range"]


def test_a_client_that_sends_nan_is_not_left_unanswered():
    """R-04."""
    text = (
        '= 2025-06-18\n> | {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"a":NaN}}}'
    )
    assert told(text) == ["#4 jsonrpc/not-a-number"]
