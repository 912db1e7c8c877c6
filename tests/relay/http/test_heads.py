"""Pure functions that map the HTTP heads of one peer to those for the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import UsageError
from mcpspy.relay.http.heads import (
    CHUNKED,
    UPGRADE,
    Address,
    end_to_end,
    every,
    first,
    is_json,
    mapped_reference,
    origin_of,
    recorded,
    request_head,
    response_head,
    text,
)

UP = Address("https://Up.example:8443/mcp?a=1")
HOST = [(b"Host", b"127.0.0.1:6278")]


@pytest.mark.parametrize(
    ("url", "authority", "target"),
    [
        ("http://h/mcp", "h", "/mcp"),
        ("http://h:80", "h", "/"),
        ("https://H:443/?a=%7e", "h", "/?a=%7e"),
        ("http://h:443/a//b/", "h:443", "/a//b/"),
        ("http://[::1]:8000/mcp", "[::1]:8000", "/mcp"),
    ],
)
def test_an_address_is_an_authority_and_a_target(url, authority, target):
    """H-01: the port is part of it unless it is the default. H-09: the target is kept byte for byte."""
    address = Address(url)
    assert (address.authority, address.target) == (authority, target)


@pytest.mark.parametrize("url", ["", "h:80", "ftp://h/", "/mcp", "http://", "http://h:99999/"])
def test_what_is_no_url_of_a_server_is_a_mistake(url):
    with pytest.raises(UsageError, match="is not a URL, such as"):
        Address(url)


def test_a_url_with_a_password_is_refused_without_repeating_it():
    with pytest.raises(UsageError, match=r"^'http://«withheld»@h/' has a password: let the client send it$"):
        Address("http://u:p@h/")


def test_fields_of_the_hop_stay_behind_with_those_that_connection_names():
    """H-03; RFC 9110, 7.6.1."""
    headers = [
        (b"A", b"1"),
        (b"connection", b"close, X-One"),
        (b"CONNECTION", b"x-two"),
        (b"x-one", b""),
        (b"X-Two", b""),
        (b"Keep-Alive", b"5"),
        (b"TE", b"trailers"),
        (b"Proxy-Connection", b"x"),
        (b"Upgrade", b"h2c"),
        (b"a", b"2"),
    ]
    assert end_to_end(headers) == [(b"A", b"1"), (b"a", b"2")]
    assert end_to_end(headers, UPGRADE)[1:3] == headers[1:3]
    assert end_to_end([(b"Transfer-Encoding", b"chunked")], CHUNKED) == [(b"Transfer-Encoding", b"chunked")]


@pytest.mark.parametrize("name", [b"Host", b"Content-Length", b"Mcp-Session-Id"])
def test_connection_cannot_take_away_what_the_message_needs(name):
    assert end_to_end([(b"Connection", name), (name, b"1")]) == [(name, b"1")]


@pytest.mark.parametrize(
    ("target", "forwarded"),
    [("/n/mcp", "/mcp"), ("/n", "/"), ("/n/", "/"), ("/n?x=1", "/?x=1"), ("/n/a%2f//b?", "/a%2f//b?")],
)
def test_the_prefix_of_a_route_is_taken_off_the_target(target, forwarded):
    """H-09."""
    head = request_head("GET", target, HOST, Address("http://h/", "/n"))
    assert head.line == f"GET {forwarded} HTTP/1.1".encode()
    assert head.sent["target"] == forwarded


def test_a_request_without_a_host_gets_one():
    head = request_head("GET", "/", [], UP)
    assert head.encode() == b"GET / HTTP/1.1\r\nHost: up.example:8443\r\n\r\n"
    assert head.fields() == {"sent": {"headers": [["Host", "up.example:8443"]]}, "by": "host"}


def test_a_host_that_is_right_already_is_no_change():
    assert request_head("GET", "/", [(b"Host", b"up.example:8443")], UP).fields() == {}


@pytest.mark.parametrize(
    ("reference", "mapped"),
    [
        ("https://up.example:8443/x?y=%7e#z", "http://127.0.0.1:6278/x?y=%7e#z"),
        ("HTTPS://UP.EXAMPLE:8443/x", "http://127.0.0.1:6278/x"),
        ("//up.example:8443/x", "http://127.0.0.1:6278/x"),
        ("https://up.example:8443", "http://127.0.0.1:6278/"),
        ("https://up.example:8443?s=1", "http://127.0.0.1:6278/?s=1"),
        ("http://up.example:8443/x", None),
        ("https://up.example/x", None),
        ("https://up.example:8443@evil/x", None),
        ("https://other/https://up.example:8443/", None),
        ("/x", None),
        ("x/y", None),
        ("?s=1", None),
        ("", None),
        ("mailto:x", None),
        ("https://[broken/", None),
    ],
)
def test_only_a_url_that_leads_past_us_is_mapped(reference, mapped):
    """H-07, H-08."""
    assert mapped_reference(reference, HOST, UP) == mapped


@pytest.mark.parametrize(
    ("reference", "mapped"),
    [
        ("https://up.example:8443/x", "http://127.0.0.1:6278/n/x"),
        ("/x?s=1", "/n/x?s=1"),
        ("x", None),
        ("../x", None),
        ("?s", None),
    ],
)
def test_under_a_prefix_paths_are_mapped_too(reference, mapped):
    """H-08, H-09."""
    assert mapped_reference(reference, HOST, Address("https://up.example:8443/", "/n")) == mapped


def test_a_response_keeps_its_reason_and_its_odd_bytes():
    """H-04."""
    head = response_head(200, "Très bien\udcff", [(b"X", b"\xff\xe9")], HOST, UP)
    assert head.encode() == "HTTP/1.1 200 Très bien".encode() + b"\xff\r\nX: \xff\xe9\r\n\r\n"


def test_a_length_does_not_contradict_chunks():
    """RFC 9112, 6.3: requests can be smuggled if two hops read the length differently."""
    headers = [(b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked")]
    assert response_head(200, "OK", headers, HOST, UP, keep=CHUNKED).headers == headers[1:]
    assert response_head(200, "OK", headers[:1], HOST, UP).headers == headers[:1]


def test_headers_are_recorded_as_text():
    assert recorded([(b"A", "é".encode()), (b"B", b"\xe9")]) == [("A", "é"), ("B", "é")]
    assert text(b"\xff") == "ÿ"


def test_fields_are_found_by_name_whatever_the_case():
    headers = [(b"Accept", b"a"), (b"X", b"1"), (b"ACCEPT", b"b")]
    assert (first(headers, b"accept"), every(headers, b"accept"), first(headers, b"no")) == (b"a", "a, b", None)


@given(st.text())
def test_no_url_raises(url):
    origin_of(url)
    mapped_reference(url, HOST, UP)


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/vnd.api+json", True),
        ("application/problem+json;x=1", True),
        ("application/x-ndjson", False),
        ("application/json-seq", False),
        ("application/geo+json-seq", False),
        ("application/stream+json", False),
        ("application/vnd.acme.stream+json", False),
        ("application/jsonl", False),
        ("text/event-stream", False),
        ("text/plain; name=json", False),
        ("", False),
    ],
)
def test_only_a_body_of_one_json_text_may_be_collected(kind, json):
    """RFC 7464 and NDJSON are streams: each text has to be forwarded as soon as it arrives."""
    assert is_json([(b"Content-Type", kind.encode())]) == json
