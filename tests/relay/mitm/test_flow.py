"""Recognising MCP in the traffic of a host; nothing else is recorded."""

import pytest

from mcpspy.capture.records import Close, Frame, Open
from mcpspy.recording.http_exchange import MOST_PENDING
from tests.memory import objects_in
from tests.relay.mitm.kept import CALL, EVENTS, JSON, Kept, pass_through

FORM = b'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\nhunter2\r\n--b--\r\n'


@pytest.mark.parametrize(
    ("asked", "body", "answered", "answer"),
    [
        (b"multipart/form-data; boundary=b", FORM, b"text/plain", b""),
        (b"application/x-www-form-urlencoded", b"password=hunter2", b"text/plain", b""),
        (b"application/json", b"{}", b"text/html; charset=utf-8", b'<input name="code" value="hunter2">'),
        (b"", b"", b"application/xhtml+xml", b'<a href="/?code=hunter2">'),
    ],
    ids=str,
)
def test_forms_and_pages_are_recorded_without_their_secrets(kept, asked, body, answered, answer):
    """O-02, with `--all-http`."""
    flow = kept.flow((b"Content-Type", asked), target="/login")
    flow.pending.accept()
    pass_through(flow, body, [(b"Content-Type", answered)], answer)
    raw = b"".join(record.raw for record in kept.records(Frame))
    assert b"hunter2" not in raw
    assert "«".encode() in raw


@pytest.mark.parametrize(
    ("asked", "body", "headers", "answer"),
    [
        ([], CALL, [], b""),
        ([], CALL, [(b"Content-Type", b"text/html")], b"<p>"),
        ([(b"MCP-Protocol-Version", b"2025-06-18")], b"", [], b""),
        ([(b"mcp-session-id", b"a")], b"", [], b""),
        ([], b"{}", [*JSON, (b"Mcp-Session-Id", b"a")], b"{}"),
        ([], b"{}", JSON, CALL),
        ([], b"", EVENTS, b"data: " + CALL + b"\n\n"),
        ([], b"", EVENTS, b": hello\n\nevent: endpoint\r\ndata: /messages?session_id=1\r\n\r\n"),
        ([], b'{"method":"a","jsonrpc":"2.0"}', JSON, b"{}"),
    ],
    ids=str,
)
def test_what_is_mcp_is_recorded_whole(kept, asked, body, headers, answer):
    """M-04: an MCP header, a message on either side, or the first event of HTTP+SSE."""
    pass_through(kept.flow(*asked), body, headers, answer)
    request, response = kept.records(Open)
    assert (request.ch, response.ch, response.answers) == (1, 2, 1)
    assert len(kept.records(Close)) == 2
    joined = b"".join(record.raw for record in kept.records(Frame) if record.ch == 1)
    assert joined == body
    assert kept.said == []


@pytest.mark.parametrize(
    ("body", "headers", "answer"),
    [
        (b"", [(b"Content-Type", b"text/html")], CALL),
        (b'{"version":"2.0"}', JSON, b'{"jsonrpc":"1.0"}'),
        (b"grant_type=refresh_token&refresh_token=hidden", JSON, b'{"access_token":"hidden"}'),
        (b"", EVENTS, b"event: endpoints\ndata: x\n\n" * 3),
        (b"", JSON, b'{"a":"' + b"x" * MOST_PENDING + b'"}'),
        (b"x" * (MOST_PENDING + 1), JSON, CALL),
    ],
    ids=lambda it: str(it[:30]),
)
def test_what_is_not_mcp_opens_no_capture(kept, body, headers, answer):
    """M-04."""
    pass_through(kept.flow(), body, headers, answer)
    assert list(kept.folder.iterdir()) == []


def test_what_is_held_is_bounded(kept):
    """M-04: a stream without a sign of MCP; once its records are discarded, it is no longer examined."""
    flow = kept.flow(method="GET")
    flow.request_ended(1)
    answer = flow.respond(1, 200, "OK", EVENTS)
    for _ in range(100):
        answer.feed(b"data: " + b"x" * 10_000 + b"\n\n", 2)
        assert sum(map(len, objects_in(flow.pending, bytes))) <= MOST_PENDING
    assert flow.pending.discarded
    answer.feed(b"data: " + CALL + b"\n\n", 3)
    assert list(kept.folder.iterdir()) == []


def test_frames_without_bytes_are_bounded_too(kept):
    flow = kept.flow(method="GET")
    flow.request_ended(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.response_ended(1, switch=True)
    for _ in range(MOST_PENDING // 10):
        flow.message(2, 1, b"", from_client=True)
    assert flow.pending.discarded


def test_an_answer_that_cannot_hold_a_message_does_not_forget_a_request_under_way(kept):
    """A server may refuse a request before it has read all of it."""
    flow = kept.flow()
    flow.request.feed(CALL[:10], 1)
    flow.respond(2, 401, "Unauthorized", [])
    flow.request.feed(CALL[10:], 3)
    flow.request_ended(1)
    flow.response_ended(9, switch=False)
    assert [record.head.get("status") for record in kept.records(Open)] == [None, 401]


def test_flows_have_channels_of_their_own_and_the_times_at_which_they_were_read(kept):
    """A flow that is recognised late is written late, but with its own times."""
    late, early = kept.flow(), kept.flow((b"mcp-method", b"ping"))
    pass_through(early, CALL, JSON, CALL)
    late.request.feed(b"{}", 5)
    late.request_ended(1)
    late.respond(6, 200, "OK", JSON).feed(CALL, 7)
    late.response_ended(9, switch=False)
    opens = kept.records(Open)
    assert [(it.ch, it.answers) for it in opens] == [(1, None), (2, 1), (3, None), (4, 3)]
    assert opens[2].t < opens[0].t
    assert opens[3].t == 6


def test_everything_is_recorded_of_what_is_released_and_its_secrets_are_not(kept):
    """O-02: the bodies of OAuth endpoints and forms."""
    flow = kept.flow((b"Authorization", b"Basic aGlkZGVu"), target="/oauth/token?client_secret=hidden")
    flow.pending.accept()
    pass_through(flow, b"code=hidden&code_verifier=hidden", JSON, b'{"access_token":"hidden"}')
    (path,) = kept.folder.iterdir()
    text = path.read_text()
    assert "hidden" not in text
    assert "aGlkZGVu" not in text
    assert text.count("«redacted:") == 5


def test_an_answer_of_our_own_says_so(kept):
    flow = kept.flow()
    flow.request.feed(CALL, 1)
    flow.refuse(2, 502, "Bad Gateway", "no connection")
    assert flow.over
    assert [it.sender for it in kept.records(Open)] == ["client", "mcpspy"]
    assert [it.raw for it in kept.records(Frame)][-1] == b"mcpspy: no connection"
    assert [it.how for it in kept.records(Close)] == ["abort", "eof"]


@pytest.mark.parametrize("size", [1, 125, 126, 65535, 65536, 200_000])
def test_a_websocket_of_any_message_size(kept, size):
    """RFC 6455, 5.2."""
    flow = kept.flow((b"Sec-WebSocket-Protocol", b"a, mcp"), method="GET")
    flow.request_ended(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.response_ended(9, switch=True)
    assert not flow.over
    flow.message(2, 1, b"x" * size, from_client=True)
    flow.message(3, 2, b"\xff" * size, from_client=False)
    flow.socket_ended(9, 1001, "away", by_client=False)
    assert flow.over
    assert [(it.ch, it.raw, it.op) for it in kept.records(Frame)] == [
        (3, b"x" * size, None),
        (4, b"\xff" * size, "binary"),
    ]
    assert [(it.ch, it.how, it.code, it.reason) for it in kept.records(Close)][2:] == [
        (4, "eof", 1001, "away"),
        (3, "eof", 1001, "away"),
    ]


def test_a_websocket_that_breaks_off(kept):
    flow = kept.flow((b"Sec-WebSocket-Protocol", b"mcp"), method="GET")
    flow.request_ended(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.response_ended(9, switch=True)
    flow.socket_ended(9, 1006, "", by_client=True)
    assert [(it.ch, it.how, it.code) for it in kept.records(Close)][2:] == [(3, "reset", None), (4, "abort", None)]


def test_a_capture_that_cannot_be_made_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    kept = Kept(tmp_path / "file" / "below")
    for _ in range(2):
        pass_through(kept.flow(), CALL, JSON, CALL)
    assert len(kept.said) == 1


def test_a_bug_is_said_and_raised_to_nobody(kept):
    """S-01."""
    flow = kept.flow()
    flow.pending.frame = None
    pass_through(flow, CALL, JSON, CALL)
    (sentence,) = kept.said
    assert "stopped by a bug" in sentence
    assert "https://h" in sentence


def test_nothing_comes_after_the_end(kept):
    flow, late = kept.flow((b"mcp-method", b"ping")), kept.flow()
    kept.origin.end()
    flow.end(9, "shutdown", "shutdown")
    pass_through(late, CALL, JSON, CALL)
    assert len(kept.records(Open)) == 1


@pytest.mark.parametrize("at", [*range(65519, 65537), 131_060])
def test_a_sign_of_mcp_may_lie_across_pieces(kept, at):
    """M-04: a body is recorded in pieces of 64 KiB, and the sign may be at their border."""
    start = b'{"result":"'
    body = start + b"x" * (at - len(start) - 2) + b'",' + b'"jsonrpc": "2.0"}'
    assert body.index(b'"jsonrpc"') == at
    pass_through(kept.flow(), b"", JSON, body)
    assert b"".join(record.raw for record in kept.records(Frame)) == body
