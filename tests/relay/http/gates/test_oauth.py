"""OAuth through the proxy: a diagnosis by default, and what --rewrite-oauth changes (O-01)."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Frame
from mcpspy.relay.http import own_gates
from tests.relay.http.test_forward import LAST
from tests.relay.stage import scripted, stage

WELL_KNOWN = b"/.well-known/oauth-protected-resource"
GET = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: gzip\r\n\r\n"


def mapped(url):
    return url.replace("http://up/", "http://us/") if url.startswith("http://up/") else None


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/.well-known/oauth-protected-resource", True),
        ("/.well-known/oauth-protected-resource/mcp?x", True),
        ("/n/.well-known/oauth-protected-resource", True),
        ("/.well-known/oauth-authorization-server", False),
        ("/.well-known/oauth-protected-resources", False),
        ("/mcp?x=/.well-known/oauth-protected-resource", False),
    ],
)
def test_metadata_is_known_by_its_path(target, expected):
    assert own_gates.is_metadata(target) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'Bearer resource_metadata="http://up/x"', b'Bearer resource_metadata="http://us/x"'),
        (
            b'Bearer error="e", Resource_Metadata = "http://up/x?y", a="b"',
            b'Bearer error="e", Resource_Metadata = "http://us/x?y", a="b"',
        ),
        (b'Bearer resource_metadata="http://other/x"', None),
        (b'Bearer realm="http://up/x"', None),
        (b"\xff", None),
    ],
)
def test_a_challenge_names_our_url(value, expected):
    assert own_gates.rewritten_challenge(value, mapped) == expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b'{"resource": "http://up/mcp",  "x":1}\n', b'{"resource": "http://us/mcp",  "x":1}\n'),
        (b'{"resource":"http:\\/\\/up\\/mcp"}', b'{"resource":"http://us/mcp"}'),
        (b'{"resource":"http://other/"}', None),
        (b'{"resource":5}', None),
        (b'{"x":{"resource":"http://up/"}}', None),
        (b"[]", None),
        (b"no", None),
    ],
)
def test_metadata_names_our_url_and_nothing_else_changes(document, expected):
    assert own_gates.rewritten_metadata(document, mapped) == expected


def named(url):
    return [(b"WWW-Authenticate", b'Bearer resource_metadata="%b"' % url)]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (b"http://us/custom/location.json?x", "/custom/location.json"),
        (b"http://us/mcp", None),  # a challenge must not make the endpoint itself count as metadata
        (b"http://us", None),
        (b"http://[us/x", None),
    ],
)
def test_a_challenge_may_name_any_path(url, path):
    """O-01: RFC 9728, 5.1."""
    assert own_gates.named_path(named(url), "/mcp?session=1") == path
    assert own_gates.is_metadata("/custom/location.json?y", {path}) is (path is not None)


@given(st.binary(), st.text())
def test_nothing_of_a_peer_raises(raw, url):
    own_gates.rewritten_metadata(raw, mapped)
    own_gates.rewritten_challenge(raw, mapped)
    own_gates.named_resource([(b"WWW-Authenticate", raw)])
    own_gates.named_path(named(raw), "/mcp")
    own_gates.oauth_diagnosis(url, None, "http://up")


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("http://127.0.0.1:8000/mcp", "names http://127.0.0.1:8000,"),
        ("https://real.example:443/mcp", "names https://real.example,"),
        ("http://[::1]:5/", "names http://[::1]:5,"),
    ],
)
def test_the_diagnosis_names_the_origin_as_a_url_has_it(named, shown):
    assert shown in own_gates.oauth_diagnosis(named, ("http", "127.0.0.1", 6278), "http://up")


def challenge(there, path=WELL_KNOWN + b"/mcp"):
    url = b"http://127.0.0.1:%d%b" % (there.upstream, path)
    return (
        b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata="%b"\r\nContent-Length: 0\r\n' % url
    )


def metadata(resource):
    document = b'{"resource":"%b", "authorization_servers":["https://as.example"]}' % resource
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(document), document


async def ask(there, target, answer):
    client, server, head = await there.both(GET % (target, there.port))
    await server.send(answer[0], b"Connection: close\r\n\r\n", answer[1])
    server.close()
    return client, head


@scripted
async def test_by_default_everything_passes_and_the_user_is_told_once(tmp_path):
    """O-01: the diagnosis names mitm."""
    async with stage(tmp_path) as there:
        for _ in range(2):
            client, _ = await ask(there, b"/mcp", (challenge(there), b""))
            assert await client.head() == challenge(there) + b"\r\n"
        answer = metadata(b"http://127.0.0.1:%d/mcp" % there.upstream)
        client, head = await ask(there, WELL_KNOWN + b"/mcp", answer)
        assert b"Accept-Encoding: gzip\r\n" in head
        assert await client.until(b"]}") == answer[0] + b"\r\n" + answer[1]
    lines = there.stderr.decode().splitlines()
    assert len(lines) == 1
    for word in ("login", f"http://127.0.0.1:{there.upstream}", "--rewrite-oauth", "mcpspy mitm"):
        assert word in lines[0]


@pytest.mark.parametrize("coding", [b"", b"gzip"])
@scripted
async def test_the_metadata_alone_is_enough_for_the_diagnosis(tmp_path, coding):
    """O-01: also if they are compressed; no bytes are held or changed."""
    async with stage(tmp_path) as there:
        _, document = metadata(b"https://real.example/mcp")
        body = gzip.compress(document) if coding else document
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n" % (coding or b"identity", len(body))
        client, _ = await ask(there, WELL_KNOWN, (head, body))
        assert await client.head() == head + b"\r\n"
        assert await client.read(len(body)) == body
    assert b"https://real.example" in there.stderr


@scripted
async def test_a_server_that_names_the_url_that_was_dialled_is_no_reason_to_speak(tmp_path):
    async with stage(tmp_path) as there:
        answer = metadata(b"http://127.0.0.1:%d/mcp" % there.port)
        client, _ = await ask(there, WELL_KNOWN, answer)
        await client.until(b"]}")
    assert there.stderr == b""


@pytest.mark.parametrize("framing", ["length", "chunked"])
@scripted
async def test_with_rewrite_oauth_the_client_finds_its_own_origin(tmp_path, framing):
    """O-01: in WWW-Authenticate and in the metadata; the capture has both the received and the sent bytes."""
    async with stage(tmp_path, "--rewrite-oauth") as there:
        client, _ = await ask(there, b"/mcp", (challenge(there), b""))
        theirs, ours = b"127.0.0.1:%d" % there.upstream, b"127.0.0.1:%d" % there.port
        assert await client.head() == challenge(there).replace(theirs, ours) + b"\r\n"
        head, document = metadata(b"http://%b/mcp" % theirs)
        body = document
        if framing == "chunked":
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(document), document)
        client, asked = await ask(there, WELL_KNOWN + b"/mcp", (head, body))
        assert b"Accept-Encoding: identity\r\n" in asked
        assert b"\r\nTransfer-Encoding: chunked\r\n" in await client.head()
        size = int((await client.until(b"\r\n")).strip(), 16)
        assert json.loads(await client.read(size))["resource"] == f"http://{ours.decode()}/mcp"
        assert await client.read(7) == b"\r\n0\r\n\r\n"
    frame = there.records(Frame)[0]
    assert (frame.raw, frame.by) == (document, "oauth")
    assert frame.sent == document.replace(theirs, ours)
    assert there.opens()[1].by == "oauth"
    assert there.stderr == b""


@scripted
async def test_metadata_is_also_rewritten_where_a_challenge_says_that_it_is(tmp_path):
    """O-01: in the conformance suite, auth/metadata-var3 has the metadata at /custom/metadata/location.json."""
    path = b"/custom/location.json"
    async with stage(tmp_path, "--rewrite-oauth") as there:
        theirs, ours = b"http://127.0.0.1:%d" % there.upstream, f"http://127.0.0.1:{there.port}"
        client, _ = await ask(there, path, metadata(theirs + b"/mcp"))
        assert theirs + b"/mcp" in await client.until(b"]}")
        client, _ = await ask(there, b"/mcp", (challenge(there, path), b""))
        assert f'resource_metadata="{ours}/custom/location.json"'.encode() in await client.head()
        client, _ = await ask(there, path, metadata(theirs + b"/mcp"))
        assert f'"resource":"{ours}/mcp"'.encode() in await client.until(b"]}")
    assert there.stderr == b""


@scripted
async def test_what_cannot_be_rewritten_passes_and_is_told(tmp_path):
    async with stage(tmp_path, "--rewrite-oauth") as there:
        _, document = metadata(b"https://real.example/mcp")
        client, _ = await ask(
            there, WELL_KNOWN, (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(document), document)
        )
        assert document in await client.until(b"0\r\n\r\n")
        large = b'{"resource":"https://real.example/%b"}' % (b"x" * 100_000)
        client, _ = await ask(there, WELL_KNOWN, (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(large), large))
        got = await client.until(b"0\r\n\r\n")
        assert got.count(b"x" * 1000) == 100
        client, server, _ = await there.both(GET % (b"/mcp", there.port))
        await server.send(LAST)
        await client.until(b"{}")
    assert there.stderr.count(b"\n") == 1
