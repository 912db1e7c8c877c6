"""Which clients may use the port of the proxy (H-02)."""

import pytest

from mcpspy.relay.http.host_guard import Guard, arrives_at, is_loopback
from tests.relay.stage import scripted, stage


def refused(host, origin=None, listen="127.0.0.1", allowed=()):
    headers = [(b"Host", host.encode())] if host is not None else []
    if origin is not None:
        headers.append((b"oRigin", origin.encode()))
    return Guard(listen, allowed).refusal(headers)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:6278", "[::1]:5", "192.168.1.5:80", "app.localhost"]
)
def test_names_of_this_machine_and_addresses_are_ours(host):
    """DNS rebinding does not work with addresses."""
    assert refused(host) is None


@pytest.mark.parametrize("host", ["evil.example", "evil.example:6278", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_other_names_are_refused(host):
    """H-02: DNS rebinding."""
    assert "Host" in refused(host)


def test_a_request_has_exactly_one_host():
    assert "the request must have exactly one Host header" in refused(None)
    assert Guard("", []).refusal([(b"Host", b"localhost"), (b"host", b"evil")])


@pytest.mark.parametrize("allowed", ["mcp.local", "MCP.local:9000"])
def test_a_name_that_the_user_allows_is_ours(allowed):
    """H-01, H-02."""
    assert refused("mcp.local:9000", allowed=[allowed]) is None
    assert refused("mcp.local:9000", "http://mcp.local:9000", allowed=[allowed]) is None


def test_the_name_that_we_listen_on_is_ours():
    assert refused("box.lan:6278", listen="box.lan") is None
    assert refused("box.lan:6278", listen="0.0.0.0")  # noqa: S104


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:1"])
def test_pages_of_this_machine_may_use_it(origin):
    assert refused("localhost", origin) is None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "file://", "http://6.6.6.6", "vscode-webview://x"]
)
def test_other_pages_may_not(origin):
    """H-02: nor may a page whose host is an address."""
    assert "Origin" in refused("localhost", origin)


@pytest.mark.parametrize(
    ("origin", "site", "passes"),
    [
        (None, b"cross-site", False),
        (None, b" Cross-Site ", False),
        (None, b"none", True),
        (None, b"same-origin", True),
        (None, b"same-site", True),
        (b"http://localhost:5173", b"cross-site", True),
        (b"http://evil.example", b"cross-site", False),
    ],
)
def test_what_a_page_of_another_site_loads_without_an_origin_is_refused(origin, site, passes):
    """A-06: an image or link of any page can send a GET; an allowed page is cross-site if its host name differs."""
    headers = [(b"Host", b"localhost"), (b"sec-fetch-Site", site)]
    headers += [(b"Origin", origin)] if origin else []
    assert (Guard("127.0.0.1", ()).refusal(headers) is None) is passes


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False), ("box", False)],  # noqa: S104
)
def test_whether_others_can_reach_a_listener(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("there", "own", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),  # noqa: S104
        ("::", "::1", True),
        ("::ffff:127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),  # noqa: S104
        ("127.9.9.9", "0.0.0.0", True),  # noqa: S104
        ("127.0.0.1", "::", True),
        ("::1", "::", True),
        ("0.0.0.0", "::", True),  # noqa: S104
        ("127.0.0.2", "127.0.0.1", False),
        ("::1", "127.0.0.1", False),
        ("127.0.0.1", "::1", False),
        ("::1", "0.0.0.0", False),  # noqa: S104
        ("192.0.2.1", "0.0.0.0", False),  # noqa: S104
        ("2001:db8::1", "::", False),
    ],
)
def test_whether_a_connection_would_come_to_ourselves(there, own, expected):
    """Issue 7: the proxy refuses to proxy to itself under any name."""
    assert arrives_at(there, own) is expected


@pytest.mark.parametrize("field", [b"Host: evil.example", b"Host: localhost\r\nOrigin: http://evil.example"])
@scripted
async def test_a_refusal_is_a_403_that_never_reaches_the_server_and_is_recorded(tmp_path, field):
    """H-02."""
    async with stage(tmp_path) as there:
        client = await there.client()
        await client.send(b"POST /mcp HTTP/1.1\r\n" + field + b"\r\nContent-Length: 2\r\n\r\n{}")
        assert (await client.head()).startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert b"--allow-host" in await client.until(b"\n")
        assert there.arrived.empty()
    request, response = there.opens()
    assert (request.role, response.sender, response.head["status"]) == ("request", "mcpspy", 403)
    assert there.frames(request.ch) == [b"{}"]
    assert there.how() == {1: "eof", 2: "eof"}


@scripted
async def test_a_protection_that_the_server_may_lack_is_not_taken_for_its_own(tmp_path):
    """A-06: it is reported once."""
    async with stage(tmp_path) as there:
        for _ in range(2):
            client = await there.client()
            await client.send(b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert b" 403 " in await client.head()
    assert there.stderr.count(b"so the server was not tested") == 1


@scripted
async def test_a_name_is_allowed_and_the_server_still_sees_its_own_host(tmp_path):
    """H-01, H-02."""
    async with stage(tmp_path, "--allow-host", "mcp.local") as there:
        _, _, head = await there.both(b"GET / HTTP/1.1\r\nHost: mcp.local:9000\r\n\r\n")
        assert b"Host: 127.0.0.1:%d\r\n" % there.upstream in head


@pytest.mark.parametrize("target", [b"http://elsewhere.example/x", b"elsewhere.example:443"])
@scripted
async def test_it_is_no_forward_proxy(tmp_path, target):
    async with stage(tmp_path) as there:
        client = await there.client()
        method = b"CONNECT" if target.endswith(b"443") else b"GET"
        await client.send(method + b" " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert there.arrived.empty()
