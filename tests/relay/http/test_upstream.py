"""Connections to the upstream: no stream has a time limit, and a failed connection gives an error response."""

import asyncio
import json
import ssl

import aiohttp
import pytest

from mcpspy.errors import UsageError
from mcpspy.network.access import Access
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.route import TIMEOUT, Upstream, protocol_of
from tests.relay.http.aiohttp_internals import is_timed, limit
from tests.relay.stage import scripted, stage

CALL = b'{"jsonrpc":"2.0","id":"a","method":"ping"}'
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    CALL
)


@scripted
async def test_no_time_is_set_on_any_stream():
    """H-06: checked on the objects of aiohttp."""
    assert (TIMEOUT.total, TIMEOUT.connect, TIMEOUT.sock_read) == (None, None, None)
    accepted = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
    upstream = Upstream(Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    connection, reused = await upstream.connect()
    protocol = protocol_of(connection)
    protocol.expect_response("GET")
    protocol.start_timeout()
    assert (protocol.read_timeout, is_timed(protocol), reused) == (None, False, False)
    assert limit(connection) == 0
    connection.close()
    await upstream.close()
    writer = await accepted.get()
    writer.close()
    await writer.wait_closed()
    server.close()


@pytest.mark.parametrize(
    "error", [TimeoutError(), aiohttp.ConnectionTimeoutError("x"), aiohttp.ServerTimeoutError("x")], ids=repr
)
def test_a_connection_that_takes_too_long_is_a_504(error):
    """Issue 7."""
    assert Upstream(Address("http://h/")).failure(error) == (
        504,
        "cannot reach http://h: no connection within 30 seconds",
    )


@pytest.mark.parametrize(
    "error", [OSError(), aiohttp.ClientError(), ConnectionResetError(104, "x"), ssl.SSLError()], ids=repr
)
def test_every_other_failure_is_a_502_in_words(error):
    status, sentence = Upstream(Address("http://h/")).failure(error)
    assert status == 502
    assert sentence.startswith("http://h ")


async def answer(there, request=POST + CALL):
    """Send a request; return the status, the content type and the body of the response."""
    client = await there.client()
    await client.send(request)
    head = (await client.head()).decode()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
    return int(head.split()[1]), fields["Content-Type"], await client.read(int(fields["Content-Length"]))


def judge(found, status, words):
    assert found[:2] == (status, "application/json")
    message = json.loads(found[2])
    assert (message["jsonrpc"], message["id"], message["error"]["code"]) == ("2.0", "a", -32000)
    for word in words:
        assert word in message["error"]["message"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/mcp", ["http://127.0.0.1:1", "cannot be reached", "refused"]),
        ("http://no-such-host.invalid/mcp", ["http://no-such-host.invalid", "name cannot be resolved"]),
        ("https://127.0.0.1:{port}/mcp", ["TLS", "http://"]),
    ],
)
@scripted
async def test_an_upstream_that_cannot_be_reached_is_an_error_in_the_clients_own_terms(tmp_path, url, words):
    """Issue 7: a 502, with a JSON-RPC error for a JSON-RPC request, which is recorded as sent by mcpspy."""

    async def plain(there):
        while True:
            peer = await there.server()
            await peer.reader.read(10)
            await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with stage(tmp_path, url=url) as there:
        task = asyncio.create_task(plain(there))
        judge(await answer(there), 502, words)
        status, kind, text = await answer(there, b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (status, kind) == (502, "text/plain; charset=utf-8")
        assert text.startswith(b"mcpspy: ")
        task.cancel()
    request, response = there.opens()[:2]
    assert (request.sender, response.sender, response.answers) == ("client", "mcpspy", request.ch)
    assert there.frames(request.ch) == [CALL]
    assert json.loads(there.frames(response.ch)[0])["id"] == "a"


OK = b"HTTP/1.1 200 OK\r\n"
BROKEN = [  # what an upstream sends, the words about it, and whether https:// may be meant
    (b"", "closed the connection without an answer", False),
    (b"\x15\x03\x03\x00\x02\x02\x46", "HTTP/1.1", True),
    (b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80", "HTTP/2", True),
    (b"SSH-2.0-OpenSSH_9\r\n", "does not answer in HTTP/1.1", True),
    (OK + b"Broken", "closed the connection without an answer", False),
    (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}1", "Duplicate Content-Length", False),
    (
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding can't be present with Content-Length",
        False,
    ),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x02{}", "changed unasked", False),
    (OK + b"X: a\rY: b\r\n\r\n", "HTTP/1.1", False),
]


@scripted
async def test_an_upstream_that_does_not_speak_http_1_1_is_told(tmp_path):
    """H-15; issue 7: wrong scheme, only HTTP/2, an incomplete or malformed response; the message names the fault."""
    async with stage(tmp_path) as there:
        for sent, words, secure in BROKEN:
            asked = asyncio.create_task(answer(there))
            server = await there.server()
            await server.head()
            await server.send(sent)
            if sent in (b"", OK + b"Broken"):
                server.close()
            found = await asked
            judge(found, 502, [words])
            assert (b"https" in found[2]) is secure, words
            await server.gone()
            server.close()


def tls(certificate, protocols=("http/1.1",)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.set_alpn_protocols(protocols)
    return context


@pytest.mark.parametrize("how", ["--ca", "--insecure"])
@scripted
async def test_tls_with_a_certificate_of_ones_own(tmp_path, certificate, how):
    """H-15."""
    options = ("--ca", certificate[0]) if how == "--ca" else ("--insecure",)
    async with stage(tmp_path, *options, url="https://127.0.0.1:{port}/mcp", tls=tls(certificate)) as there:
        client, server, head = await there.both(POST + CALL)
        assert b"Host: 127.0.0.1:%d\r\n" % there.upstream in head
        assert await server.read(len(CALL)) == CALL
        await server.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 202 Accepted\r\n")


@pytest.mark.parametrize("content", ["", "no certificate", "\u00e9"])
def test_a_file_without_certificates_is_named(tmp_path, content):
    (tmp_path / "ca.pem").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"^cannot read certificates from .*ca\.pem: "):
        Upstream(Address("https://localhost"), Access(ca=str(tmp_path / "ca.pem")))


@scripted
async def test_a_certificate_that_cannot_be_verified_is_told(tmp_path, certificate):
    """H-15."""
    async with stage(tmp_path, url="https://127.0.0.1:{port}/mcp", tls=tls(certificate)) as there:
        judge(await answer(there), 502, ["certificate", "self-signed", "--ca"])


@scripted
async def test_an_upstream_that_offers_only_http_2_is_told(tmp_path, certificate):
    """H-15: the proxy does not speak the only ALPN protocol of the upstream."""
    context = tls(certificate, ("h2",))
    url = "https://127.0.0.1:{port}/mcp"
    async with stage(tmp_path, "--insecure", url=url, tls=context) as there:
        asked = asyncio.create_task(answer(there))
        server = await there.server()
        await server.reader.read(100)
        await server.send(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80")
        judge(await asked, 502, ["HTTP/2"])


@scripted
async def test_an_idle_connection_that_has_gone_is_replaced(tmp_path):
    """A GET on a closed connection is sent again over a new one; the client does not notice."""
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    get = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(get)
        await server.send(ok)
        await client.head()
        await client.send(get)
        await server.head()
        server.close()
        second = await there.server()
        await second.head()
        await second.send(ok)
        assert await client.head() == ok
    assert [record.role for record in there.opens()] == ["request", "response"] * 2


@scripted
async def test_a_call_is_never_sent_twice(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + CALL)
        await server.read(len(CALL))
        await server.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        await client.head()
        asked = asyncio.create_task(client.send(POST + CALL))
        await server.head()
        await server.read(len(CALL))
        server.close()
        await asked
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert there.arrived.empty()
