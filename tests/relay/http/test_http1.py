"""The bounds of heads and of framing (A-01), and clients that half-close (A-11, H-05)."""

import asyncio
import socket
import sys

import pytest
from aiohttp import web

from mcpspy.relay.http import http1
from mcpspy.relay.http.http1 import FIELDS, LARGEST, Http1Server
from tests.relay.harness import status
from tests.relay.http.test_forward import CALL, LAST, OK, STREAM, chunk, memory
from tests.relay.http.test_hostile import CHUNKED, lives_on
from tests.relay.stage import scripted, stage

HOST = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
GET = HOST + b"\r\n"
ASK = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(CALL) + CALL
FIELD = b"X-Long: " + b"x" * 8192 + b"\r\n"
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells")


async def sent(peer, *parts):
    """Send `parts`; return the size of those that were sent before the other side closed the connection."""
    size = 0
    try:
        for part in parts:
            await peer.send(part)
            size += len(part)
    except ConnectionError:
        pass
    return size


@scripted
async def test_a_head_of_64_kib_and_more_passes(tmp_path):
    """H-14."""
    async with stage(tmp_path) as there:
        fields = FIELD * 20
        client, server, head = await there.both(HOST + fields + b"\r\n")
        assert fields in head
        await server.send(OK.replace(b"\r\n\r\n", b"\r\n" + fields + b"\r\n"))
        assert fields in await client.head()
        assert await client.read(2) == b"{}"


@scripted
async def test_a_request_head_is_bounded(tmp_path):
    """A-01: as a whole, even if each field is small, each field, and their number; also behind another request."""
    whole = FIELD * (LARGEST // len(FIELD) + 1)
    async with stage(tmp_path) as there:
        for fields in (whole, b"X: " + b"x" * LARGEST + b"\r\n", b"X: y\r\n" * (FIELDS + 1)):
            client = await there.client()
            await client.send(HOST + fields + b"\r\n")
            answer = await client.rest()
            assert answer.startswith(b"HTTP/1.0 431 Request Header Fields Too Large\r\n")
            if fields is whole:
                assert answer.endswith(b"mcpspy: the request's head takes more than %d bytes\n" % LARGEST)
        assert there.arrived.empty()
        client, server, _ = await there.both(GET)
        await client.send(HOST + whole + b"\r\n" + GET)  # pipelined (RFC 9112, 9.3.2)
        await server.send(LAST)
        assert await client.until(b"{}") == OK
        assert (await client.rest()).startswith(b"HTTP/1.0 431 ")
        assert there.arrived.empty()
        await lives_on(there)
    assert [record.head["target"] for record in there.opens() if record.role == "request"] == ["/mcp", "/next"]


@pytest.mark.parametrize("who", ["client", "server"])
@pytest.mark.parametrize("fields", [FIELD, b"X: " + b"x" * 8192, b"X: y\r\n"], ids=["fields", "one", "short"])
@scripted
async def test_an_endless_head_ends_at_the_bound(tmp_path, who, fields):
    """A-01: a head of 10 MB is not read to its end; the client gets the reason, and the capture has it too."""
    async with stage(tmp_path) as there:
        client, server = await there.client(), None
        if who == "server":
            client, server, _ = await there.both(GET)
        before = memory(there.process.pid)
        start = HOST if who == "client" else b"HTTP/1.1 200 OK\r\n"
        await sent(server or client, start, *[fields] * (10_000_000 // len(fields)))
        if server:
            assert (await client.head()).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert memory(there.process.pid) - before < 8 << 20
        await lives_on(there)
    if server and fields is FIELD:
        assert b"answers with a head of more than %d bytes" % LARGEST in there.frames(2)[0]


@needs_linux
@scripted
async def test_the_unfinished_heads_of_many_clients_are_bounded_together(tmp_path):
    """A-01: 500 times 3 MB took 2.9 GB."""
    async with stage(tmp_path) as there:
        clients = [await there.client() for _ in range(500)]
        part = HOST + FIELD * 25  # the first 80 of these use up the total for all clients
        await asyncio.gather(*(sent(client, part) for client in clients))
        await asyncio.gather(*(sent(client, *[FIELD * 25] * 14) for client in clients))
        await lives_on(there)
        assert int(status(there.process.pid, "VmHWM").split()[0]) < 200 << 10, "its peak, in KiB"


ENDLESS = {
    "a chunk extension": (b"2;x=", b"y" * 65536),
    "trailers": (b"0\r\n", FIELD * 8),
}


@pytest.mark.parametrize("who", ["client", "server"])
@pytest.mark.parametrize("what", ENDLESS)
@scripted
async def test_the_framing_of_a_body_is_bounded(tmp_path, what, who):
    """A-01."""
    begin, more = ENDLESS[what]
    async with stage(tmp_path) as there:
        if who == "client":
            peer, other, _ = await there.both(CHUNKED + b"Content-Type: text/plain\r\n\r\n" + chunk(b"{}") + begin)
            assert await other.read(7) == chunk(b"{}")
        else:
            other, peer, _ = await there.both(GET)
            await peer.send(STREAM + chunk(b"data: 1\n\n") + begin)
            assert await other.read(len(STREAM)) == STREAM
        before = memory(there.process.pid)
        assert await sent(peer, *[more] * 1000) < 16 << 20
        assert not (await other.rest()).endswith(b"0\r\n\r\n")
        assert memory(there.process.pid) - before < 8 << 20
        await lives_on(there)
    assert there.how()[1 if who == "client" else 2] == "reset"


async def answered(request):
    return web.Response(text=await request.text())


@scripted
async def test_a_head_has_to_arrive_in_time_and_nothing_else_has(monkeypatch):
    """A-01; by H-06, there is no limit between two requests, nor for a body."""
    monkeypatch.setattr(http1, "PATIENCE", 0.2)
    server = Http1Server(answered)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    dial = listening.sockets[0].getsockname()
    post = b"POST / HTTP/1.1\r\nHost: localhost\r\n"

    async def client(*parts):
        reader, writer = await asyncio.open_connection(*dial)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        return reader, writer

    idle = [await client(*parts) for parts in ([], [ASK[: -len(CALL)], CALL])]
    bodies = [
        await client(post + b"Content-Length: 2\r\n\r\n{"),
        await client(post + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1"),
    ]
    slow = [await client(HOST), await client(GET, HOST), await client(GET + HOST[:-2]), await client(post, b"X: ")]
    for number, (reader, _) in enumerate(slow):
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200 OK") == (number in (1, 2))
        assert b"HTTP/1.0 408 Request Timeout\r\n" in answers
        assert answers.endswith(b"the request's head did not arrive within 0 seconds\n")
    assert server.unfinished == 0
    for _, writer in idle:
        writer.write(GET)
    bodies[0][1].write(b"}")
    bodies[1][1].write(b"\r\n}\r\n0\r\n\r\n")
    for reader, _ in idle + bodies:
        assert b"HTTP/1.1 200 OK" in await reader.readuntil(b"\r\n\r\n")
    for _, writer in idle + bodies + slow:
        writer.transport.abort()
    listening.close()
    await server.shutdown(0)


@needs_linux
@pytest.mark.parametrize("request_", [GET, ASK, CHUNKED + b"\r\n" + chunk(CALL) + b"0\r\n\r\n"])
@scripted
async def test_a_client_that_half_closes_gets_its_answer(tmp_path, request_):
    """A-11: the response comes after three checks of the client, and then the connection ends."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(request_)
        client.writer.write_eof()
        await asyncio.sleep(3.5 * http1.LOOK_AGAIN)
        await server.send(OK)
        assert await client.rest() == OK
    assert there.how()[2] == "eof"


@needs_linux
@scripted
async def test_a_client_that_half_closes_at_once_gets_its_answer(tmp_path):
    """A-11: `printf … | nc -N` does this; also with pipelined requests."""
    async with stage(tmp_path) as there:
        client = await there.client()
        await client.send(GET + GET)
        client.writer.write_eof()
        server = await there.server()
        for _ in range(2):
            await server.head()
            await server.send(OK)
        assert await client.rest() == OK + OK


@pytest.mark.parametrize("half_closed", [False, True])
@pytest.mark.parametrize("head", [b"", STREAM])
@scripted
async def test_a_client_that_leaves_cancels_its_request_however_idle(tmp_path, half_closed, head):
    """H-05: also a client that has half-closed before."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(ASK)
        await server.read(len(CALL))
        if head:
            await server.send(head)
            assert await client.read(len(head)) == head
        if half_closed:
            client.writer.write_eof()
        client.writer.get_extra_info("socket").shutdown(socket.SHUT_RD)
        client.close()
        start = asyncio.get_running_loop().time()
        await server.gone()
        assert asyncio.get_running_loop().time() - start < 10
        await lives_on(there)
    assert there.how()[1] in ("reset", "eof")


@scripted
async def test_a_client_that_half_closes_a_stream_that_it_listens_to_has_left(tmp_path):
    """H-05: such a stream has no last response, so if a forwarder half-closes for its client it would never end."""
    async with stage(tmp_path) as there:
        listen = GET.replace(b"\r\n\r\n", b"\r\nAccept: text/event-stream\r\n\r\n")
        client, server, _ = await there.both(listen)
        await server.send(STREAM)
        assert await client.read(len(STREAM)) == STREAM
        client.writer.write_eof()
        await server.gone()


@pytest.mark.parametrize("place", range(1, 5))
def test_a_blank_line_is_found_where_segments_divide_it(place):
    head, body = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", b"x\r\n\r\ny"
    cut = len(head) - place
    assert http1.after_blank_line(b"", head + body) == len(head)
    assert http1.after_blank_line(head[:cut][-3:], head[cut:] + body) == place
    assert http1.after_blank_line(head[:cut][-3:], head[cut:-1]) == place - 1


@scripted
async def test_a_response_head_in_any_segments_is_taken(tmp_path):
    """A-01: bytes after the head do not count as part of it."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (3 * LARGEST)
    body = b"x" * (3 * LARGEST)
    async with stage(tmp_path) as there:
        for place in (1, 2, 3, len(answer) - 1):
            client, server, _ = await there.both(GET)
            await server.send(answer[:-place])
            await asyncio.sleep(0.02)  # so that it is a separate segment
            await server.send(answer[-place:] + body)
            got = await client.read(len(answer) + len(body))
            assert got == answer + body
            client.close()
            server.close()
