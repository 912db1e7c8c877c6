"""Reading the HTTP heads in a capture."""

import pytest

from mcpspy.wire.http_head import (
    authority,
    authority_of,
    header,
    may_hold_messages,
    media_type,
    query,
    speaks_mcp,
    stands_alone,
    status,
    title,
)


def response(status, kind=None, **headers):
    fields = [[name.replace("_", "-"), value] for name, value in headers.items()]
    return {"status": status, "reason": "", "headers": [["Content-Type", kind], *fields] if kind else fields}


def test_a_field_is_found_in_whatever_case_and_the_first_counts():
    head = {"headers": [["Mcp-Session-Id", "a"], ["mcp-session-id", "b"]]}
    assert header(head, "mcp-session-id") == "a"
    assert header(head, "accept") is None


@pytest.mark.parametrize("head", [None, {}, {"headers": None}, {"headers": 5}, {"headers": [["a"], 7, [None, 1]]}])
def test_heads_that_are_none_have_no_fields(head):
    assert header(head, "a") is None
    assert media_type(head) == ""


@pytest.mark.parametrize(("head", "found"), [({"status": 404}, 404), ({}, 0), (None, 0), ({"status": "404"}, 0)])
def test_a_status_is_a_number_or_none_at_all(head, found):
    assert status(head) == found


def test_a_media_type_has_no_parameters():
    assert media_type(response(200, "Application/JSON; charset=utf-8")) == "application/json"


def test_a_query_parameter_is_decoded():
    assert query("/m?x=1&session_id=a%20b", "session_id", "sessionId") == "a b"
    assert query("/m", "session_id") is None


@pytest.mark.parametrize(
    ("head", "request_", "alone"),
    [
        ({"method": "GET"}, None, True),
        ({"method": "POST"}, None, False),
        ({"method": "POST", "headers": [["Content-Length", "0"]]}, None, True),
        (response(200, "application/json"), {"method": "POST"}, False),
        (response(200, "text/event-stream"), {"method": "POST"}, False),
        (response(200, "text/event-stream"), {"method": "GET"}, True),
        (response(202), {"method": "POST"}, True),
        (response(400, "application/json"), {"method": "POST"}, False),
        (response(502, "text/html"), {"method": "POST"}, True),
        (response(200, "application/json", content_length="0"), {"method": "POST"}, True),
    ],
)
def test_some_heads_say_all_there_is(head, request_, alone):
    assert stands_alone(head, request_) is alone


def test_a_head_has_a_title():
    assert title({"method": "GET", "target": "/sse"}) == "GET /sse"
    assert title({"status": 202, "reason": "Accepted"}) == "202 Accepted"
    assert title(response(200, "text/event-stream")) == "200 text/event-stream"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://me:secret@MCP.example.com:443/mcp", "mcp.example.com"),
        ("//127.0.0.1:6278", "127.0.0.1:6278"),
        ("/mcp", ""),
        ("http://[::1", ""),
    ],
)
def test_the_authority_of_a_url_is_its_host_and_a_port_that_says_something(url, found):
    assert authority(url) == found


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], False),
        ([("Accept", "mcp-x")], False),
        ([("Accept", "*/*"), ("MCP-Session-Id", "1")], True),
        ([["mcp-protocol-version", "2025-06-18"]], True),
        ([("x-mcp-a", "1")], False),
        ([("Sec-WebSocket-Protocol", "x, MCP")], True),
        ([("sec-websocket-protocol", "x"), ("sec-websocket-protocol", "mcp")], True),
        ([("sec-websocket-protocol", "mcp2")], False),
    ],
)
def test_a_header_of_the_protocol_tells_that_it_is_spoken(headers, expected):
    assert speaks_mcp(headers) is expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json; charset=utf-8", True),
        ("Application/Problem+JSON", True),
        ("text/event-stream", True),
        ("text/html", False),
        ("", False),
    ],
)
def test_a_media_type_tells_whether_there_may_be_messages(content_type, expected):
    assert may_hold_messages(content_type) is expected


@pytest.mark.parametrize(
    ("scheme", "host", "port", "found"),
    [
        ("https", "a.example", 443, "a.example"),
        ("http", "a.example", 443, "a.example:443"),
        ("http", "::1", 80, "[::1]"),
        ("https", "::1", 80, "[::1]:80"),
    ],
)
def test_a_server_is_called_by_its_host_and_a_port_that_says_something(scheme, host, port, found):
    assert authority_of(scheme, host, port) == found
