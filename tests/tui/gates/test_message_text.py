"""A message as text to edit, and the faults in the edited text."""

import json

import pytest

from mcpspy.timeline import Row
from mcpspy.tui.message.text import (
    answer_mistake,
    answer_text,
    json_mistake,
    one_line,
    own_id,
    pretty,
    request_mistake,
)
from mcpspy.wire.jsonrpc import Id
from tests.test_text import unsafe


@pytest.mark.parametrize(
    "text",
    [
        '{"id":3,"method":"ping"}',
        '{"a":1.10,"a":1e5,"b":[],"c":{},"d":[1,{"x":"\\u00e9 \\n"}],"e":123456789012345678901234567890}',
        '[{"id":1},{"id":2}]',
        '"a  b"',
        "",
    ],
)
def test_a_message_on_one_line_again_is_the_same_byte_for_byte(text):
    assert one_line(pretty(text)) == text


def test_a_member_has_a_line():
    text = '{"jsonrpc":"2.0", "id" : 3,"params":{"a":[1,2]}}'
    assert pretty(text).split("\n") == [
        "{", '  "jsonrpc":"2.0",', '  "id" : 3,', '  "params":{',
        '    "a":[', "      1,", "      2", "    ]", "  }", "}",
    ]  # fmt: skip


def test_only_the_id_of_the_message_itself_is_replaced():
    for text, expected in (
        ('{"jsonrpc":"2.0","id":3,"params":{"id":4}}', '{"jsonrpc":"2.0","id":"x","params":{"id":4}}'),
        ('{"params":{},"id":"a"}', '{"params":{},"id":"x"}'),
        ('{ "id" :\n3 }', '{"id":"x"}'),
    ):
        assert one_line(pretty(text, "x")) == expected


def test_what_cannot_be_seen_stands_there_as_an_escape():
    text = '{"a":"\u202e\u2028\U000e0041\x07日本"}'
    shown = pretty(text)
    assert not unsafe(shown.replace("\n", ""))
    assert json.loads(shown)["a"] == "\u202e\u2028\U000e0041\x07日本"
    assert "日本" in shown


def test_a_line_separator_within_a_string_is_no_end_of_a_line():
    assert one_line('{"a":\n  "b\u2028c\x0bd"}') == '{"a":"b\u2028c\x0bd"}'


MISTAKES = {
    '{\n  "a":1,\n}': "at line 3, column 1", '{"a" 1}': "at line 1, column 6", "": "at line 1, column 1",
    '{"a":NaN}': "NaN is not a JSON value", "[" * 100_000: "nested too deeply",
}  # fmt: skip


def test_what_is_no_json_is_told_with_its_place():
    for text in ("{}", "[1]", '{"a":1,"a":1e400}', "9" * 5000, "null"):
        assert json_mistake(text) is None
    for text, mistake in MISTAKES.items():
        for wrong in (json_mistake(text), answer_mistake(text), request_mistake(text, "x")):
            assert wrong.startswith("not JSON")
            assert mistake in wrong


def test_a_response_has_a_result_or_an_error():
    for text in ('{"id":1,"result":{}}', '{"error":{"code":1}}'):
        assert answer_mistake(text) is None
    for text in ('{"id":1}', '{"result":{},"error":{}}', "[]", "null", '"result"'):
        assert "either result or error" in answer_mistake(text)


def test_a_request_of_ours_keeps_its_id():
    number = own_id()
    assert number != own_id()
    assert number.startswith("mcpspy-")
    assert request_mistake(f'{{"id":"{number}","method":"ping"}}', number) is None
    assert number in request_mistake('{"id":1,"method":"ping"}', number)
    assert number in request_mistake('{"method":"ping"}', number)
    for text in ("[]", f'{{"id":"{number}"}}', f'{{"id":"{number}","method":1}}'):
        assert "a request is" in request_mistake(text, number)


@pytest.mark.parametrize(
    ("number", "method", "answer"),
    [
        (Id("number", "1.50"), "tools/call", '"id":1.50,"result":{"content":[{"type":"text","text":""}]}'),
        (Id("string", 'a"\u202e'), "ping", '"id":"a\\"\\u202e","result":{}'),
        (None, "ping", '"id":null,"result":{}'),
    ],
)
def test_an_answer_begins_with_the_id_of_its_request(number, method, answer):
    text = answer_text(Row(5, 0, "request", "client", id=number, method=method))
    assert one_line(text) == f'{{"jsonrpc":"2.0",{answer}}}'
    assert answer_mistake(text) is None
