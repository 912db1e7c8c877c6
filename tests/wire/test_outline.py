"""What is known of a large message from its first and last bytes (A-03)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.jsonrpc import Error, Id, Notification, Request, Result, Undecoded, outline, parse
from tests.limits import proportionate

BIG = json.dumps({"content": [{"type": "text", "text": 'with "id":7, } and \\ in it' * 4000}]})
ENDS = 1000


def ends(text):
    """Return the outline of a message from its ends."""
    raw = text.encode()
    assert len(raw) > 4 * ENDS
    return outline(raw[:ENDS], raw[-ENDS:])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"jsonrpc":"2.0","id":5,"result":%s}', Result),
        ('{"result":%s,"jsonrpc":"2.0","id":5}', Result),
        ('{ "result" : %s , "id" : 5 , "jsonrpc" : "2.0" }\r', Result),
        ('{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"m","data":%s}}', Error),
        ('{"error":{"data":%s},"id":5}', Error),
        ('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":%s}', Request),
        ('{"method":"tools/call","params":%s,"jsonrpc":"2.0","id":5}', Request),
        ('{"params":%s,"id":5,"method":"tools/call"}', Request),
        ('\ufeff{"jsonrpc":"2.0","method":"notifications/message","params":%s}', Notification),
    ],
)
def test_kind_id_and_method_are_found_at_either_end(text, kind):
    body = ends(text.replace("%s", BIG))
    assert type(body) is kind
    if kind is not Notification:
        assert body.id == Id("number", "5")
    if kind in (Request, Notification):
        assert body.method in ("tools/call", "notifications/message")


@pytest.mark.parametrize("token", ["5", "1.0", "123456789012345678901234", '"a\\"b"', "null"])
def test_an_id_keeps_its_type_and_its_digits(token):
    for text in (f'{{"id":{token},"result":{BIG}}}', f'{{"result":{BIG},"id":{token}}}'):
        assert ends(text).id == parse(b'{"id":%s,"result":{}}' % token.encode())[0].id


def test_the_beginning_of_params_and_of_an_error_is_read():
    request = ends('{"id":1,"method":"tools/call","params":{"name":"x","arguments":%s}}'.replace("%s", BIG))
    assert request.params == {"name": "x", "arguments": None}
    error = ends('{"id":1,"error":{"code":-32000,"message":"m","data":%s}}'.replace("%s", BIG))
    assert error.error == {"code": "-32000", "message": "m", "data": None}


@pytest.mark.parametrize(
    "text", ["[%s]", "%s", '{"result":%s}', '{"a":%s,"id":5,"result":{}}', "x%sx", '{"id":5,"a":[%s', '{"id":%s}']
)
def test_where_the_ends_do_not_tell_it_stays_unknown(text):
    assert type(ends(text.replace("%s", BIG))) is Undecoded


def test_a_number_that_the_cut_may_have_shortened_is_not_taken():
    assert type(outline(b'{"result":1,"id":12', b"xxxx")) is Undecoded


@given(st.binary(max_size=60) | st.sampled_from([b"{" * 5000, b'{"a":' * 5000, b'{"a' + b'\\"' * 5000]), st.binary())
def test_nothing_raises(head, tail):
    outline(head, tail)
    outline(b'{"id":' + head, tail + b',"x":1}')


def test_an_object_of_spaces_takes_no_time():
    with proportionate(1):
        assert isinstance(outline(b"{" + b" " * 65536, b" " * 65536), Undecoded)
