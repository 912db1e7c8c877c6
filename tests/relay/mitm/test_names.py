"""The server of a flow through `mcpspy mitm`: the one that the client connected to, whatever the Host header names."""

import asyncio
import socket
import ssl

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.mitm.test_addon import JSON, POST, der
from tests.relay.mitm.test_http2 import END_HEADERS, END_STREAM, HEADERS, Connection, block
from tests.relay.stage import Peer, scripted

pytestmark = needs_mitmproxy


def trusting(*protocols):
    """Return the TLS context of a client that accepts any certificate."""
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    if protocols:
        tls.set_alpn_protocols(protocols)
    return tls


async def dialled(there, host, sni=None, alpn=()):
    """Connect a client to `host` through the proxy, and start TLS with the server name `sni`."""
    peer = await there.connect()
    place = f"{host}:{there.upstream}".encode()
    await peer.send(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (place, place))
    assert b" 200 " in await peer.head()
    await peer.writer.start_tls(trusting(*alpn), server_hostname=sni or host)
    return peer


async def exchanged(client, server, host):
    """Make a call with this Host, up to its response."""
    await client.send(POST.replace(b"Host: 127.0.0.1", b"Host: " + host.encode()), CALL)
    await server.head()
    await server.read(len(CALL))
    await server.send(JSON)
    await client.head()
    await client.read(2)


def urls(there):
    """Return the URLs of the captures, with PORT in place of the upstream's port."""
    found = [Capture(str(path)).header.url for path in there.mitm.captures()]
    return [url.replace(f":{there.upstream}", ":PORT") for url in found]


DIALLED = {
    "127.0.0.1": [
        ("127.0.0.1", None, "bank.example", "https://127.0.0.1:PORT"),
        ("127.0.0.1", "bank.example", "127.0.0.1", None),
        ("localhost", None, "127.0.0.1", None),
    ],
    "localhost": [
        ("LocalHost", "LOCALHOST", "Bank.example", "https://localhost:PORT"),
        ("localhost", "bank.example", "localhost", None),
    ],
    "LOCALHOST.": [("localhost", None, "localhost.", "https://localhost:PORT")],
    "mcp.example.com": [
        ("127.0.0.1", "mcp.example.com", "bank.example", "https://mcp.example.com:PORT"),
        ("127.0.0.1", None, "mcp.example.com", None),
    ],
}
"""By allowed host: where the client connects to, its SNI, its Host header, and the URL of the capture, or None."""


@pytest.mark.parametrize("allowed", DIALLED)
@scripted
async def test_a_flow_is_of_the_server_that_was_dialled(tmp_path, certificate, allowed):
    """M-04: the name comes from TLS, else CONNECT; if it is not allowed, the client gets the server's certificate."""
    async with interception(tmp_path, certificate, "--allow", allowed, "--insecure") as there:
        for dials, sni, says, url in DIALLED[allowed]:
            client = await dialled(there, dials, sni)
            shown = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            assert (shown == der(certificate[0])) is (url is None), (dials, sni)
            await exchanged(client, await there.server(), says)
        await there.captured()
        assert urls(there) == [DIALLED[allowed][0][-1]]
    assert len(there.opens()) == 2, "only the first exchange is recorded"


@pytest.mark.parametrize(("dials", "sni", "said"), [("localhost", None, "localhost"), ("127.0.0.1", "b.example", None)])
@scripted
async def test_a_server_that_is_allowed_by_another_name_is_told_of(tmp_path, certificate, dials, sni, said):
    """M-06: otherwise, the user would wait for a capture in vain."""
    async with interception(tmp_path, certificate, "--allow", "127.0.0.1") as there:
        for _ in range(2):
            await dialled(there, dials, sni)
        line = f"passed unseen: {said or sni}:{there.upstream}, which --allow has only by another name or address"
        await asyncio.to_thread(there.mitm.says, line)
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("\n") == 2


@scripted
async def test_another_authority_on_a_connection_of_http_2_is_no_other_server(tmp_path, certificate):
    """RFC 9113, 8.3.1."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        client = await Connection(await there.client(alpn=("h2",))).begin(client=True)
        fields = {b":method": b"GET", b":scheme": b"https", b":path": b"/", b":authority": b"bank.example"}
        await client.send(HEADERS, END_HEADERS | END_STREAM, 1, block(fields | {b"mcp-session-id": b"s"}))
        server = await Connection(await there.server()).begin(client=False)
        _, number, _ = await server.next()
        await server.send(HEADERS, END_HEADERS | END_STREAM, number, block({b":status": b"200"}))
        await client.next()
        await asyncio.to_thread(there.mitm.end)
        assert urls(there) == ["https://127.0.0.1:PORT"]


async def plain_server():
    """Start a server without TLS; return it, the queue of its connections, and its port."""
    arrived = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: arrived.put_nowait(Peer(*streams)), "127.0.0.1", 0)
    return server, arrived, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("tunnel", [False, True])
@scripted
async def test_a_host_without_tls_is_not_who_it_is_said_to_be(tmp_path, certificate, tunnel):
    """M-04: the client connects to a host that is not allowed."""
    server, arrived, port = await plain_server()
    async with interception(tmp_path, certificate, "--allow", "mcp.example.com") as there:
        client = await there.connect()
        request = POST.replace(b"Host: 127.0.0.1", b"Host: mcp.example.com")
        if tunnel:
            await client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            await client.head()
        else:
            request = request.replace(b"POST ", b"POST http://127.0.0.1:%d" % port)
        await client.send(request, CALL)
        upstream = await arrived.get()
        await upstream.head()
        await upstream.send(JSON)
        await client.head()
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.captures() == []
        upstream.writer.transport.abort()
    server.close()


@pytest.mark.parametrize(
    ("allowed", "name"), [("mcp.example.com", "mcp.example.com"), ("127.0.0.1", "127.0.0.1"), ("b.example", None)]
)
@scripted
async def test_where_a_client_dials_an_address_its_host_names_the_server(tmp_path, certificate, allowed, name):
    """M-04: if the Host is allowed; a SOCKS client may resolve the name itself."""
    server, arrived, port = await plain_server()
    async with interception(tmp_path, certificate, "--allow", allowed, "--mode", "socks5") as there:
        client = await there.connect()
        await client.send(b"\x05\x01\x00")
        assert await client.read(2) == b"\x05\x00"
        await client.send(b"\x05\x01\x00\x01" + socket.inet_aton("127.0.0.1") + port.to_bytes(2))
        await client.read(10)
        await client.send(POST.replace(b"Host: 127.0.0.1", b"Host: MCP.example.com"), CALL)
        upstream = await arrived.get()
        await upstream.head()
        await upstream.send(JSON)
        await client.head()
        await asyncio.to_thread(there.mitm.end)
        found = [Capture(str(path)).header.url for path in there.mitm.captures()]
        assert found == [f"http://{name}:{port}"] * bool(name)
        upstream.writer.transport.abort()
    server.close()


FEW = """
import sys
import mcpspy.relay.mitm.flow
mcpspy.relay.mitm.flow.MOST_ORIGINS = {origins}
from mcpspy.cli import main
sys.exit(main())
"""


@scripted
async def test_of_too_many_servers_the_capture_of_an_idle_one_ends(tmp_path, certificate):
    """The number of open files of a process is limited."""
    program = ("-c", FEW.format(origins=2))
    async with interception(tmp_path, certificate, "--allow", "*", "--insecure", program=program) as there:
        for name in ("a.example", "b.example", "a.example", "c.example", "b.example"):
            client = await dialled(there, "127.0.0.1", name)
            await exchanged(client, await there.server(), name)
            if name == "c.example":
                ended = {Capture(str(path)).header.url: ends(path) for path in there.mitm.captures()}
                assert [url for url, over in ended.items() if over] == [f"https://b.example:{there.upstream}"]
        await asyncio.to_thread(there.mitm.end)
        assert sorted(urls(there)) == [f"https://{name}.example:PORT" for name in "abbc"]
        assert all(ends(path) for path in there.mitm.captures())
        assert there.mitm.said().count("\n") == 1


def ends(path):
    return any(isinstance(record, End) for record in Capture(str(path)).records())


@scripted
async def test_of_too_many_servers_under_way_the_last_is_not_recorded(tmp_path, certificate):
    """It is reported once."""
    program = ("-c", FEW.format(origins=1))
    async with interception(tmp_path, certificate, "--allow", "*", "--insecure", program=program) as there:
        first = await dialled(there, "127.0.0.1", "a.example")
        await first.send(POST, CALL)
        await (await there.server()).read(1)
        for name in ("b.example", "c.example"):
            client = await dialled(there, "127.0.0.1", name)
            await exchanged(client, await there.server(), name)
        await asyncio.to_thread(there.mitm.end)
        assert urls(there) == ["https://a.example:PORT"]
        assert there.mitm.said().count("too many servers at once") == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, ("cannot reach the proxy 127.0.0.1:",)),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ("no way through the proxy 127.0.0.1:", "(407)")),
    ],
)
@scripted
async def test_a_proxy_that_does_not_lead_on_is_told_of(tmp_path, certificate, answer, words):
    """M-06: the proxy is down, or it refuses; it is reported once."""

    async def refuse(reader, writer):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT mcp.example.com:443 ")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if answer is None:
        server.close()
        await server.wait_closed()
    mode = ("--mode", f"upstream:http://127.0.0.1:{port}")
    async with interception(tmp_path, certificate, "--allow", "mcp.example.com", *mode) as there:
        for _ in range(2):
            client = await there.connect()
            await client.send(b"CONNECT mcp.example.com:443 HTTP/1.1\r\n\r\n")
            await client.head()
            await client.writer.start_tls(trusting(), server_hostname="mcp.example.com")
            await client.send(POST, CALL)
            assert (await client.head()).startswith(b"HTTP/1.1 502 ")
            client.close()
        await asyncio.to_thread(there.mitm.says, *words)
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("\n") == 2
    server.close()
