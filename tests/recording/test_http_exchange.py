"""Framing, content coding and redaction of an exchange, which `proxy`, `mitm` and `import` share."""

import gzip

import pytest

from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.recording.recording import Recording
from tests.recording.recorder import Recorder


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def exchange(recorder):
    return HttpExchange(Recording([].append, sink=recorder))


def request(*headers, target="/mcp", method="POST"):
    return {"method": method, "target": target, "version": "1.1", "headers": [list(header) for header in headers]}


def response(*headers, status=200):
    return {"status": status, "reason": "OK", "headers": [list(header) for header in headers]}


def calls(recorder, name):
    return [call[1:] for call in recorder.calls if call[0] == name]


@pytest.mark.parametrize(
    ("kind", "framing"),
    [
        ("text/event-stream", "sse"),
        ("Text/Event-Stream; charset=utf-8", "sse"),
        ("application/json", "body"),
        ("", "body"),
        ("text/html", "body"),
    ],
)
def test_a_response_is_framed_by_its_type(exchange, recorder, kind, framing):
    exchange.open_request(0, request())
    exchange.open_response(1, response(("Content-Type", kind)))
    (_, _, sender, role, framed, fields) = calls(recorder, "open")[1]
    assert (sender, role, framed, fields["answers"]) == ("server", "response", framing, 1)


def test_each_body_is_decoded_by_its_own_head(exchange, recorder):
    """H-11."""
    exchange.open_request(0, request(("content-encoding", "gzip"))).feed(gzip.compress(b"{}"), 1)
    exchange.open_response(1, response()).feed(b"[]", 1)
    exchange.end(2, "eof", "eof")
    assert [frame[2] for frame in calls(recorder, "frame")] == [b"{}", b"[]"]


def test_what_a_foreign_file_has_decoded_is_taken_as_it_is(exchange, recorder):
    """I-02."""
    exchange.open_request(0, request(("content-encoding", "gzip")), decoded=True).feed(b"{}", 1)
    exchange.open_response(1, response(("content-encoding", "br")), decoded=True).feed(b"[]", 1)
    exchange.end(2, "eof", "eof")
    assert [frame[2] for frame in calls(recorder, "frame")] == [b"{}", b"[]"]
    assert [close[3] for close in calls(recorder, "close")] == [{}, {}]


@pytest.mark.parametrize("decoded", [False, True], ids=["a relay", "import"])
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (request(target="/oauth/token"), response(("content-type", "application/json"))),
        (request(("content-type", "application/x-www-form-urlencoded")), response()),
        (request(("content-type", "multipart/form-data; boundary=b")), response()),
        (request(), response(("content-type", "text/html; charset=utf-8"))),
        (request(), response(("content-type", "application/xhtml+xml"))),
    ],
    ids=["an OAuth endpoint", "a form", "a form with files", "a page", "an XHTML page"],
)
def test_what_may_hold_secrets_is_recorded_without_them(exchange, recorder, asked, answered, decoded):
    """O-02: all three commands withhold pages; earlier, `proxy` recorded them."""
    secret = b"--b\r\nname=token\r\n\r\nhunter2" if "html" not in str(answered) else b"{}"
    exchange.open_request(0, asked, decoded=decoded).feed(secret, 1)
    exchange.open_response(1, answered, decoded=decoded).feed(b'<a href="?code=hunter2">', 2)
    exchange.end(3, "eof", "eof")
    frames = [frame[2] for frame in calls(recorder, "frame")]
    assert len(frames) == 2
    assert all(b"hunter2" not in frame for frame in frames)


LOGINS = ["/oauth/register/42", "/oauth/exchange", "/%74oken", "/token.php", "/api/session", "/mcp"]


@pytest.mark.parametrize("target", LOGINS)
@pytest.mark.parametrize(
    "body",
    [
        b'{"client_secret":"hunter2"}',
        b'[{"password":"hunter2"}]',
        b"access_token=hunter2",
        b'{"password":"hunter2",}',
    ],
)
def test_a_login_is_known_by_what_it_holds_wherever_it_is(exchange, recorder, target, body):
    """A-08: secrets of logins outside the usual paths were recorded in clear text."""
    for piece in (body[:9], body[9:]):
        (exchange.request or exchange.open_request(0, request(target=target))).feed(piece, 1)
    exchange.open_response(2, response(("content-type", "application/json"))).feed(body, 3)
    exchange.end(4, "eof", "eof")
    frames = [frame[2] for frame in calls(recorder, "frame")]
    assert len(frames) == 2
    assert all(b"hunter2" not in frame and "«".encode() in frame for frame in frames)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"token":"mine","password":"kept"}}',
        b'[{"jsonrpc":"2.0","method":"a","params":{"password":"kept"}}]',
        b'{"id":1,"result":{"password":"kept"},"jsonrpc":"2.0"}',
        b'{"token_endpoint":"https://h/token","token_endpoint_auth_methods_supported":["none"]}',
        b'{"resource":"https://h/mcp","scopes_supported":["a"]}',
        b'{"a": 1.10, "a": 2}',
        b"not json",
        b"123",
    ],
)
def test_messages_and_what_has_no_secret_stay_byte_for_byte(exchange, recorder, body):
    exchange.open_request(0, request()).feed(body, 1)
    exchange.open_response(2, response()).feed(body, 3)
    exchange.end(4, "eof", "eof")
    assert [frame[2] for frame in calls(recorder, "frame")] == [body, body]


def test_a_response_of_our_own_is_recorded_whole(exchange, recorder):
    exchange.open_request(0, request(target="/oauth/token"))
    exchange.open_response(1, response(), "mcpspy").feed(b"mcpspy: no connection", 2)
    exchange.end(3, "abort", "eof")
    assert [frame[2] for frame in calls(recorder, "frame")] == [b"mcpspy: no connection"]
    assert [call[2] for call in calls(recorder, "open")] == ["client", "mcpspy"]


def test_complete_messages_of_a_websocket(exchange, recorder):
    """RFC 6455, 5.2: messages are recorded without encoding them as frames first."""
    exchange.open_request(0, request(method="GET"))
    exchange.open_response(1, response(status=101))
    exchange.open_socket(2)
    big = b"x" * 70_000
    for opcode, payload in ((1, b"{}"), (2, b"\xff"), (9, b""), (10, b"p"), (8, b"\x03\xe8"), (1, big)):
        exchange.message(3, "client", opcode, payload)
    exchange.close_socket(4, 4001, "see ?token=hunter2", "server")
    frames = [(ch, raw, more, rest) for ch, _, raw, more, _, rest in calls(recorder, "frame")]
    assert frames == [
        (3, b"{}", False, None),
        (3, b"\xff", False, {"op": "binary"}),
        (3, b"", False, {"op": "ping"}),
        (3, b"p", False, {"op": "pong"}),
        (3, big[:65536], True, None),
        (3, big[65536:], False, None),
    ]
    closes = calls(recorder, "close")
    assert [(ch, how, rest["code"]) for ch, _, how, rest in closes] == [(4, "eof", 4001), (3, "eof", 4001)]
    assert all("hunter2" not in rest["reason"] for *_, rest in closes)


def test_a_websocket_without_a_close_frame_was_broken_off(exchange, recorder):
    exchange.open_request(0, request(method="GET"))
    exchange.open_socket(1)
    exchange.close_socket(2, 1006, "", "client")
    assert [(ch, how) for ch, _, how, _ in calls(recorder, "close")] == [(2, "reset"), (3, "abort")]


def test_a_gate_tells_what_was_sent(exchange, recorder):
    """`sent` and `by` come from the gate's verdict, never from comparing bytes afterwards."""
    exchange.open_request(0, request())
    body = exchange.open_response(1, response(("content-type", "text/event-stream")))
    body.frame(b"data: 1\n", 2, gated={"sent": b"data: I\n", "by": "endpoint"})
    body.feed(b"data: 1\n\n", 3)
    assert [frame[2:] for frame in calls(recorder, "frame")] == [
        (b"data: 1\n", False, False, {"sent": "data: I\n", "by": "endpoint"}),
        (b"data: 1\n", False, False, None),
    ]


def test_a_client_that_leaves_before_the_head_of_a_response_is_seen_to_leave(exchange, recorder):
    """H-05: the response has no head, and ends with `abort` because the client left."""
    exchange.open_request(0, request()).end(1, "eof")
    exchange.end(7, "reset", "abort")
    assert calls(recorder, "open")[1:] == [(2, 7, "server", "response", "body", {"answers": 1})]
    assert calls(recorder, "close") == [(1, 1, "eof", {}), (2, 7, "abort", {})]


@pytest.mark.parametrize(("asked", "answer"), [("reset", "abort"), ("eof", "shutdown"), ("abort", "reset")])
def test_a_request_that_breaks_off_and_a_relay_that_ends_leave_no_response(exchange, recorder, asked, answer):
    exchange.open_request(0, request())
    exchange.end(7, asked, answer)
    assert len(calls(recorder, "open")) == 1
