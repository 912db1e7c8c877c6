"""`mcpspy mitm`: HTTPS between a client and its server, decrypted for allowed hosts, streamed and recorded."""

import asyncio
import gzip
import socket
import ssl
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.stage import scripted
from tests.wire.test_websocket import frame

pytestmark = needs_mitmproxy

POST = (
    b"POST /mcp?a=%%7e HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Odd: One\r\nx-odd: Two\r\n"
    b"Authorization: Bearer hidden-words\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CALL)
)
ANSWER = b'{"jsonrpc":"2.0","id":"a","result":{}}'
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%bTransfer-Encoding: chunked\r\n\r\n"


def chunk(raw):
    return b"%x\r\n%b\r\n" % (len(raw), raw)


async def asked(there, request=POST + CALL):
    """Send a request; return the client, the server and the head of the request at the server."""
    client = await there.client()
    await client.send(request)
    server = await there.server()
    head = await server.head()
    return client, server, head


@scripted
async def test_an_exchange_is_recorded_as_by_the_proxy(tmp_path, certificate):
    """M-03: transport, url, heads, peer, `answers`, how channels end, and no secrets."""
    async with interception(tmp_path, certificate) as there:
        client, server, head = await asked(there)
        assert head == POST
        assert await server.read(len(CALL)) == CALL
        await server.send(b"HTTP/1.1 200 Fine\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n", ANSWER)
        assert (await client.head()).startswith(b"HTTP/1.1 200 Fine\r\n")
        assert await client.read(len(ANSWER)) == ANSWER
        request, raw, asked_all, response, answer, answered, end = await there.captured()
        upstream = there.upstream
    header = Capture(str(there.path)).header
    assert (header.transport, header.url, header.name) == (
        "mitm",
        f"https://127.0.0.1:{upstream}",
        f"127.0.0.1:{upstream}",
    )
    assert (request.role, request.framing, request.sender, request.ch) == ("request", "body", "client", 1)
    assert (request.head["method"], request.head["target"], request.head["version"]) == ("POST", "/mcp?a=%7e", "1.1")
    assert [name for name, _ in request.head["headers"]][1:3] == ["X-Odd", "x-odd"]
    assert request.peer.startswith("127.0.0.1:")
    assert (raw.ch, raw.raw, asked_all.how) == (1, CALL, "eof")
    assert (response.role, response.framing, response.answers, response.ch) == ("response", "body", 1, 2)
    assert (response.head["status"], response.head["reason"]) == (200, "Fine")
    assert (answer.raw, answered.how) == (ANSWER, "eof")
    assert isinstance(end, End)
    assert 0 <= request.t <= raw.t <= response.t <= answer.t <= end.t
    assert b"hidden-words" not in there.path.read_bytes()
    assert there.path.stat().st_mode & 0o777 == 0o600


@scripted
async def test_a_request_is_streamed_too(tmp_path, certificate):
    """H-14: the server receives the first half before the client sends the second."""
    half = len(CALL) // 2
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there, POST + CALL[:half])
        assert await server.read(half) == CALL[:half]
        await client.send(CALL[half:])
        assert await server.read(len(CALL) - half) == CALL[half:]
        await server.send(JSON)
        await client.head()
        await there.captured()
    assert there.frames(1) == [CALL]


IMPATIENT = """
import sys
import mitmproxy.proxy.server
mitmproxy.proxy.server.TCP_TIMEOUT = 0.2
from mcpspy.cli import main
sys.exit(main())
"""


@scripted
async def test_a_stream_may_be_idle_for_longer_than_mitmproxy_likes(tmp_path, certificate):
    """H-06: an idle connection is still open after mitmproxy's time limit, which is short in this test."""
    async with interception(tmp_path, certificate, program=("-c", IMPATIENT)) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"")
        await client.head()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 1)
        await server.send(chunk(b"data: 1\n\n"))
        assert await client.read(len(chunk(b"data: 1\n\n"))) == chunk(b"data: 1\n\n")


@scripted
async def test_a_port_without_a_server_is_told_of(tmp_path, certificate):
    async with interception(tmp_path, certificate) as there:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", int(there.mitm.place.rpartition(":")[2]))
            writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502 ")
            await asyncio.to_thread(there.mitm.says, f"cannot reach 127.0.0.1:{port}: ")
            writer.close()


@scripted
async def test_an_upstream_that_cannot_be_reached_is_answered_and_recorded(tmp_path, certificate):
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there)
        server.writer.transport.abort()
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        records = await there.captured()
    response = next(it for it in records if isinstance(it, Open) and it.role == "response")
    assert (response.sender, response.head["status"]) == ("mcpspy", 502)
    assert there.how()[2] == "eof"


PLAIN = b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("all_http", [False, True])
@scripted
async def test_what_is_not_mcp_is_recorded_only_when_asked_for(tmp_path, certificate, all_http):
    """M-04: a GET with a JSON response, then a call, over one connection."""
    options = ("--allow", "127.0.0.1", "--ca", certificate[0]) + ("--all-http",) * all_http
    async with interception(tmp_path, certificate, *options) as there:
        client, server, _ = await asked(there, PLAIN)
        await server.send(JSON)
        await client.head()
        assert await client.read(2) == b"{}"
        assert bool(there.mitm.captures()) is all_http
        await client.send(POST, CALL)
        await server.head()
        await server.send(JSON)
        await client.head()
        await client.read(2)
        await there.captured()
    assert [it.head["method"] for it in there.opens() if it.role == "request"] == ["GET"] * all_http + ["POST"]


def der(path):
    return ssl.PEM_cert_to_DER_cert(Path(path).read_text())


@scripted
async def test_other_hosts_pass_untouched_and_unrecorded(tmp_path, certificate):
    """M-04: the client gets the server's own certificate."""
    async with interception(tmp_path, certificate, "--allow", "mcp.example.com") as there:
        client = await there.client(certificate[0])
        assert client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True) == der(certificate[0])
        await client.send(POST, CALL)
        server = await there.server()
        assert await server.head() == POST
        await server.send(JSON)
        await client.head()
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.captures() == []


@pytest.mark.parametrize("allowed", [False, True])
@scripted
async def test_hosts_without_tls_follow_the_same_rule(tmp_path, certificate, allowed):
    """M-04: without TLS, each request to a proxy names its host."""
    arrived = asyncio.Queue()
    plain = await asyncio.start_server(lambda reader, writer: arrived.put_nowait((reader, writer)), "127.0.0.1", 0)
    place = b"127.0.0.1:%d" % plain.sockets[0].getsockname()[1]
    request = POST.replace(b"POST /", b"POST http://" + place + b"/").replace(b"Host: 127.0.0.1", b"Host: " + place)
    host = "127.0.0.1" if allowed else "mcp.example.com"
    async with interception(tmp_path, certificate, "--allow", host) as there:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(there.mitm.place.rpartition(":")[2]))
        writer.write(request)
        server, answer = await arrived.get()
        assert (await server.readuntil(b"\r\n\r\n")).startswith(b"POST /mcp?a=%7e HTTP/1.1\r\n")
        writer.write(CALL)
        assert await server.readexactly(len(CALL)) == CALL  # streamed before the response
        answer.write(JSON)
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        for each in (writer, answer):
            each.close()
        await asyncio.to_thread(there.mitm.end)
        urls = [Capture(str(path)).header.url for path in there.mitm.captures()]
        assert urls == [f"http://{place.decode()}"] * allowed
    plain.close()


@scripted
async def test_a_server_that_is_not_trusted_is_told_of(tmp_path, certificate):
    """M-06: the client gets a response, and the user gets the reason."""
    async with interception(tmp_path, certificate, "--allow", "127.0.0.1") as there:
        client = await there.client()
        await client.send(POST, CALL)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        line = await asyncio.to_thread(there.mitm.says, f"no TLS with 127.0.0.1:{there.upstream}")
        assert "give --ca FILE, or --insecure" in line


ASK = (
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
GRANT = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
MASK = b"\x12\x34\x56\x78"


@scripted
async def test_a_websocket_is_recorded_message_by_message(tmp_path, certificate):
    """Only a message shows that it is MCP; the messages before that one are recorded too, and so is a large one."""
    big = b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (b"\xc3\xa9" * 50_000)
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there, ASK)
        await server.send(GRANT)
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        for message in (frame(b"hello", mask=MASK), frame(b"\xff\0", "binary", mask=MASK), frame(CALL, mask=MASK)):
            await client.send(message)
            assert len(await server.read(len(message))) == len(message)
        await server.send(frame(big))
        assert await client.read(len(frame(big))) == frame(big)
        await client.send(frame((1000).to_bytes(2) + b"done", "close", mask=MASK))
        await server.read(12)
        await server.gone()
        await there.captured()
    request, response, *sockets = there.opens()
    assert (response.head["status"], response.answers) == (101, request.ch)
    assert [(it.sender, it.role, it.answers) for it in sockets] == [("client", "ws", 1), ("server", "ws", 1)]
    frames = {it.ch: [(each.raw, each.op) for each in there.records(Frame) if each.ch == it.ch] for it in sockets}
    assert frames == {3: [(b"hello", None), (b"\xff\0", "binary"), (CALL, None)], 4: [(big, None)]}
    closes = {it.ch: (it.how, it.code, it.reason) for it in there.records(Close)}
    assert closes[3] == ("eof", 1000, "done")
    assert closes[4][0] == "eof"


def memory(pid):
    """Return the resident memory of a process in MB."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of others")
@scripted
async def test_another_protocol_inside_of_http_is_not_kept(tmp_path, certificate):
    """M-04: by default, mitmproxy keeps all bytes of a TCP flow until its end."""
    block = b"\0" * (1 << 20)
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there, ASK.replace(b"websocket", b"other"))
        await server.send(GRANT.replace(b"websocket", b"other"))
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        before = memory(there.mitm.process.pid)
        for _ in range(60):
            await server.send(block)
            assert await client.read(len(block)) == block
        assert memory(there.mitm.process.pid) - before < 40


@scripted
async def test_a_body_of_many_bytes_is_recorded_whole(tmp_path, certificate):
    """F-04: the body is compressed, and longer than the bytes that are held."""
    big = b'{"jsonrpc":"2.0","id":"a","result":"%b"}' % (b"x" * 2_000_000)
    coded = gzip.compress(big)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there)
        await server.send(head % len(coded), coded)
        await client.head()
        assert await client.read(len(coded)) == coded
        await there.captured()
    assert there.frames(2) == [big]
