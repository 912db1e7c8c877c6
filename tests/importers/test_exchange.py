import gzip
import re

import pytest

from mcpspy.capture.records import Close, Gap
from mcpspy.importers.captures import Account, Captures
from mcpspy.importers.exchange import RecordedExchange, Web, place, split
from tests.each import each
from tests.importers.files import AT, PING, PONG, brought, dumps, entry, flow, har, told

PLAIN = {
    "origin": "https://mcp.example.com",
    "asked": AT * 10**9,
    "answered": AT * 10**9,
    "ended": AT * 10**9,
    "head": {"method": "POST", "target": "/", "version": "1.1"},
    "headers": [],
    "body": b"",
    "status": 200,
    "reason": "",
    "response_headers": [],
    "answer": (),
}


@each(
    "fields, wanted",
    [
        ({}, False),
        ({"body": PING}, True),
        ({"body": b'{"id":1,"method":"ping"}'}, False),
        ({"answer": ((0, PONG),)}, True),
        ({"answer": ((0, PONG),), "response_headers": [("Content-Type", "application/json")]}, True),
        ({"answer": ((0, PONG),), "response_headers": [("Content-Type", "text/html")]}, False),
        ({"answer": ((0, b"event: endpoint\ndata: /messages"),)}, True),
        ({"headers": [("MCP-Protocol-Version", "2025-06-18")]}, True),
        ({"response_headers": [("mcp-session-id", "x")]}, True),
        ({"headers": [("Sec-WebSocket-Protocol", "x, mcp")]}, True),
        ({"answer": ((0, gzip.compress(PONG)),)}, False),
        (
            {"answer": ((0, gzip.compress(PONG)),), "coded": True, "response_headers": [("content-encoding", "gzip")]},
            True,
        ),
    ],
)
def test_what_is_mcp_is_told_by_content(tmp_path, fields, wanted):
    captures = Captures({}, {"MCPSPY_CAPTURE_DIR": str(tmp_path)}, Account(""), "file")
    assert (Web(captures).start(RecordedExchange(**PLAIN | fields)) is not None) == wanted
    assert not list(tmp_path.iterdir()), "a capture is made with the first step"


@each(
    "media_type, body",
    [
        (b"application/x-www-form-urlencoded", b"password=hunter2"),
        (b"multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nhunter2'),
    ],
)
def test_a_form_is_imported_without_its_secrets(tmp_path, media_type, body):
    """O-02: the same as for a live form."""
    state = flow(body)
    state["request"] |= {"headers": [[b"Content-Type", media_type], [b"Mcp-Session-Id", b"x"]], "path": b"/login"}
    _, [capture] = brought(tmp_path, dumps(state))
    told_of = "\n".join(told(capture))
    assert "hunter2" not in told_of
    assert re.search("«(redacted|withheld): ?[0-9a-f]+", told_of)


@each("media_type", [b"text/html; charset=utf-8", b"application/xhtml+xml"])
def test_a_page_is_imported_without_the_secrets_of_its_forms(tmp_path, media_type):
    state = flow()
    page = b'<form><input name="client_secret" value="hunter2"><a href="/cb?code=hunter2">'
    state["response"] |= {"content": page, "headers": [[b"Content-Type", media_type]]}
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture)[-1].startswith("20 server response «withheld: ")


@each("form", ["flow", "HAR"])
def test_why_an_exchange_broke_off_is_told_without_what_that_quotes(tmp_path, form):
    """O-02: the reason may quote a header or contain a URL."""
    why = "Invalid header line: b'Set-Cookie: hunter2' of https://mcp.example.com/?token=hunter2"
    if form == "flow":
        raw = dumps(flow(response=None, error={"msg": why, "timestamp": AT + 1.0}))
    else:
        raw = har(entry(status=0, content={}, headers=[]) | {"response": {"status": 0, "_error": why}})
    _, [capture] = brought(tmp_path, raw)
    [gap] = [record.why for record in capture.records() if isinstance(record, Gap)]
    assert "hunter2" not in gap
    assert ": Invalid header line: «withheld» of https://mcp.example.com/?token=«redacted:" in gap


def test_the_reason_of_a_close_is_told_without_secrets(tmp_path):
    messages = [[1, True, PING, AT + 1.0, False, False]]
    state = flow(websocket={"messages": messages, "close_code": 1000, "close_reason": "bye, token=hunter2"})
    state["response"]["status_code"] = 101
    _, [capture] = brought(tmp_path, dumps(state))
    closes = [record for record in capture.records() if isinstance(record, Close) and record.code]
    assert [close.code for close in closes] == [1000, 1000]
    assert all(close.reason.startswith("bye, token=«redacted:") for close in closes)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "https://mcp.example.com/\ud800"},
        {"url": "https://\ud800/"},
        {"method": "\ud800"},
        {"headers": [{"name": "mcp-\ud800", "value": "x"}]},
        {"headers": [{"name": "mcp-x", "value": "\ud800"}]},
    ],
)
def test_an_entry_whose_head_cannot_be_written_is_damaged_and_no_other(tmp_path, fields):
    """A lone surrogate is valid in JSON, but cannot be encoded as UTF-8."""
    bad = entry()
    bad["request"] |= fields
    account, captures = brought(tmp_path, har(entry(), bad, entry()))
    assert (account.read, account.lost) == (3, 1)
    assert [len(told(capture)) for capture in captures] == [8]
    assert len(list((tmp_path / "captures").iterdir())) == 1


@each("form", ["gzip", "br", "no-such-coding"])
def test_a_body_whose_coding_cannot_be_undone_stays_as_it_came_and_that_is_said(tmp_path, form):
    state = flow()
    state["response"] |= {"content": b"no code", "headers": [[b"content-encoding", form.encode()]]}
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture)[-1] == "20 server response no code"
    assert [record for record in capture.records() if getattr(record, "undecoded", False)]


@each(
    "url, found",
    [
        ("https://me:pw@Mcp.Example.com:443/a?b=c#d", ("https://mcp.example.com", "/a?b=c")),
        ("wss://[::1]:9/", ("https://[::1]:9", "/")),
        ("http://h", ("http://h", "/")),
    ],
)
def test_a_url_is_an_origin_and_a_target(url, found):
    assert split(url) == found


@each("bad", ["mcp://label/x", "/mcp", "http://", "http://h:99999/"])
def test_what_no_client_can_dial_is_refused(bad):
    with pytest.raises(ValueError):  # noqa: PT011 (urllib raises some of them)
        split(bad)


def test_the_port_of_the_scheme_is_not_named():
    assert place("HTTPS", "h", 443) == "https://h"
    assert place("http", "h", 443) == "http://h:443"


@each("host", ["", "a/b", "me@h", "h\n", "a:b", "h?x", "[::1]", "h h/"])
def test_a_host_that_is_none_is_refused(host):
    with pytest.raises(ValueError):  # noqa: PT011 (urllib raises some of them)
        place("https", host, 443)


def test_an_empty_message_of_a_websocket_is_a_frame(tmp_path):
    messages = [[1, True, b"", AT + 1.0, False, False], [1, True, PING, AT + 1.0, False, False]]
    messages.append([8, True, b"\x03\xe8", AT + 1.0, False, False])
    state = flow(websocket={"messages": messages})
    state["response"]["status_code"] = 101
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture)[-2:] == ["1000 client ws ", f"1000 client ws {PING.decode()}"]
