"""The responses of the proxy itself."""

import json

import pytest

from mcpspy.relay.http.local_replies import answer


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "Bad Request"), (403, "Forbidden"), (504, "Gateway Timeout"), (599, "")]
)
def test_an_answer_in_words(status, reason):
    head, body = answer(status, "it is so", json_request=None)
    assert body == b"mcpspy: it is so\n"
    expected = "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 17\r\n\r\n"
    assert head.encode() == expected.format(status, reason).encode()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x"}', 7),
        (b'{"jsonrpc":"2.0","id":"7","method":"x"}', "7"),
        (b'{"jsonrpc":"2.0","method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', None),
        (b'[{"jsonrpc":"2.0","id":7,"method":"x"},{"jsonrpc":"2.0","id":8,"method":"x"}]', None),
        (b"null", None),
        (b"\xff", None),
    ],
)
def test_an_answer_in_json_rpc_has_the_id_of_the_request(asked, expected):
    """Issue 7: a client that speaks JSON-RPC gets a JSON-RPC error."""
    head, body = answer(502, 'no "server"', json_request=asked)
    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": expected,
        "error": {"code": -32000, "message": 'mcpspy: no "server"'},
    }
    assert (b"Content-Length", b"%d" % len(body)) in head.headers
