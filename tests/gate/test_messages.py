"""A gate and `check` read the same messages from a frame."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.messages import decode, json_of, read
from mcpspy.wire import jsonrpc
from mcpspy.wire.subject import subject

FRAMES = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}',
    b'{"id":"1","method":"tools\\/call","params":{"name":5}}',
    b'{"id":1.0,"method":"prompts/get","params":{"name":"p"}}',
    b'{"id":1e0,"method":"resources/read","params":{"uri":"file:///a"}}',
    b'{"id":12345678901234567890123,"method":"completion/complete","params":{"ref":{"uri":"u"}}}',
    b'{"id":null,"method":"ping","params":[]}',
    b'{"id":true,"method":"ping"}',
    b'{"method":"notifications/resources/updated","params":{"uri":"u"}}',
    b'{"method":"notifications/cancelled","params":{"requestId":"a"}}',
    b'{"id":1,"result":{}}',
    b'{"id":1,"result":null,"error":null}',
    b'{"id":1,"error":{"code":1}}',
    b'{"error":{"code":1}}',
    b'[{"id":1,"method":"a"},{"id":2,"result":{}},5,{}]',
    b'\xef\xbb\xbf{"id":"\\ud800","method":"ping"}\r',
    b'{"id":"\xff","method":"ping"}',
    b'{"result":{}}',
    b'{"id":1,"method":5}',
    b'{"id":1,"method":"a"} x',
    b'{"id":1,"method":"a"',
    b"",
    b"[]",
    b"7",
    b"NaN",
    b"[" * 100_000,
]


def facts(frame):
    return [(m.kind, m.method, m.name, m.id) for m in read(frame, "lines")]


def told(frame):
    """Return the same facts from the parser that `check` uses."""
    found = []
    for body in jsonrpc.parse(frame):
        if isinstance(body, jsonrpc.Invalid):
            continue
        method = getattr(body, "method", None)
        id_ = getattr(body, "id", None)
        name = subject(method, body.params) if method is not None else None
        found.append((type(body).__name__.lower(), method, name, id_ if id_ and id_.kind != "other" else None))
    return found


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: repr(frame)[:40])
def test_kind_method_name_and_id_are_those_of_the_parser(frame):
    assert facts(frame) == told(frame)


keys = st.sampled_from(["id", "method", "params", "result", "error", "name", "uri"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["tools/call", "ping"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=10,
)


@given(values)
def test_any_json_reads_as_the_parser_reads_it(value):
    frame = json.dumps(value).encode()
    assert facts(frame) == told(frame)


@given(st.binary(max_size=40))
def test_no_bytes_raise(frame):
    assert facts(frame) == told(frame)


def test_an_event_is_read_by_its_data():
    (message,) = read(b'event: message\ndata: {"id":3,\ndata: "method":"ping"}\n', "sse")
    assert (message.kind, message.id) == ("request", ("number", "3"))
    assert read(b": a comment\n", "sse") == ()


def test_a_cancellation_names_its_request():
    (message,) = read(b'{"method":"notifications/cancelled","params":{"requestId":7}}', "lines")
    assert message.cancels == ("number", "7")


@pytest.mark.parametrize("text", ["1", "1.0", "1e400", '"1"', '"\\ud800\\"\\n"', "null"])
def test_an_id_is_written_as_it_was_read(text):
    (message,) = read(b'{"id":' + text.encode() + b',"method":"a"}', "lines")
    assert decode(json_of(message.id)) == decode(text.encode())
    if not text.startswith('"'):
        assert json_of(message.id) == text.encode()
