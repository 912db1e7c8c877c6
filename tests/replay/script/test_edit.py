import json

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Frame
from mcpspy.conversation.model import Message, Session
from mcpspy.replay.issued_values import json_text, rewritten
from mcpspy.replay.mock import error_line, result_line
from mcpspy.wire.jsonrpc import Id, parse
from tests.each import each

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def message(raw, part=0):
    frame = Frame(1, 1, 0, raw if isinstance(raw, bytes) else raw.encode())
    return Message(1, part, 0, 1, "server", "server", frame, parse(frame.raw)[part], Session())


@each(
    "raw, path, value, edited",
    [
        ('{"id":1,"result":{}}', ("id",), 7, '{"id":7,"result":{}}'),
        ('{ "id" : 1 , "result" : {} }', ("id",), "a", '{ "id" : "a" , "result" : {} }'),
        ('{"id":1.50,"a":"\\u00e9"}', ("a",), "e", '{"id":1.50,"a":"e"}'),
        ('{"id":1,"result":{"tools":[{"id":1},{"id":2}]}}', ("result", "tools", 1, "id"), 3, None),
        ('{"a":{"id":1},"id":1,"result":{}}', ("id",), 2, '{"a":{"id":1},"id":2,"result":{}}'),
        ('{"id":1,"id":2,"result":{}}', ("id",), 3, '{"id":1,"id":3,"result":{}}'),
        ('{"id":1,"result":{}}', ("params", "cursor"), "x", '{"id":1,"result":{}}'),
        ('{"id":1,"result":[]}', ("result", "cursor"), "x", '{"id":1,"result":[]}'),
        ('{"id":1,"result":"}"}', ("result", 0), "x", '{"id":1,"result":"}"}'),
        ('\ufeff{"id":1,"method":"a"}', ("id",), 2, '\ufeff{"id":2,"method":"a"}'),
        ('{"id":1,"n":123456789012345678901234567890}', ("id",), 2, '{"id":2,"n":123456789012345678901234567890}'),
    ],
)
def test_one_value_is_replaced_and_every_other_byte_stays(raw, path, value, edited):
    expected = raw.replace('{"id":2}', '{"id":3}') if edited is None else edited
    assert rewritten(message(raw), {path: value}).decode() == expected


def test_an_id_keeps_its_own_digits():
    assert rewritten(message('{"id":1,"method":"a"}'), {("id",): Id("number", "1e0")}) == b'{"id":1e0,"method":"a"}'
    assert rewritten(message('{"id":1,"method":"a"}'), {("id",): Id("string", '"')}) == b'{"id":"\\"","method":"a"}'


def test_several_values_are_replaced_at_once():
    raw = '{"id":1,"params":{"_meta":{"token":"long enough"},"cursor":2}}'
    changes = {("params", "cursor"): "next", ("id",): 100, ("params", "_meta", "token"): 1}
    assert rewritten(message(raw), changes) == b'{"id":100,"params":{"_meta":{"token":1},"cursor":"next"}}'


def test_an_element_of_a_batch_comes_out_alone():
    raw = ' [{"id":1,"method":"a"}, {"id":2, "method":"b"}]'
    assert rewritten(message(raw, 1), {}) == b'{"id":2, "method":"b"}'
    assert rewritten(message(raw, 1), {("id",): 5}) == b'{"id":5, "method":"b"}'


def test_a_message_is_one_line_whatever_stood_between_its_tokens():
    assert rewritten(message('{\n  "id": 1,\n  "method": "a"\n}'), {}) == b'{   "id": 1,   "method": "a" }'


@each("raw", [b"not json", b'{"id":1', b"\xff\xfe", b"", b"[]"])
def test_what_is_no_json_comes_out_as_it_was(raw):
    assert rewritten(message(raw), {("id",): 2}) == raw


@given(JSON, JSON, st.booleans())
def test_an_edited_message_is_the_edited_value(before, now, spaced):
    value = {"id": 1, "params": {"a": before, "b": [before, {"c": before}]}}
    raw = json.dumps(value, indent=1 if spaced else None).encode()
    value["params"]["b"][1]["c"] = now
    assert json.loads(rewritten(message(raw), {("params", "b", 1, "c"): now})) == json.loads(json_text(value))


def test_lines_have_the_id_with_its_own_digits():
    assert result_line(Id("number", "1.0"), {}) == b'{"jsonrpc":"2.0","id":1.0,"result":{}}'
    assert json.loads(error_line(None, -1, 'a "word"')) == {
        "jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": 'a "word"'},
    }  # fmt: skip
