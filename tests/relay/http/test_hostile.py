"""Malicious or broken peers: no request is smuggled, nothing waits for ever, and the proxy keeps running."""

import asyncio
import contextlib
import itertools
import json
import signal
import socket
import struct

import pytest

from mcpspy.capture.records import Frame
from tests.relay.http.test_forward import CALL, GET, LAST, OK, POST, STREAM, chunk
from tests.relay.http.test_tunnel import ASK, GRANT
from tests.relay.stage import scripted, stage

PLAIN = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = PLAIN + b"Transfer-Encoding: chunked\r\n"
ONE = b"2\r\n{}\r\n0\r\n\r\n"


async def lives_on(there):
    """Make a normal exchange over new connections."""
    client, server, _ = await there.both(b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await server.send(LAST)
    assert await client.until(b"{}") == OK


AMBIGUOUS = {
    "a length and chunks": PLAIN
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "chunks and a length": CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": PLAIN + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}1",
    "a list of lengths": PLAIN + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": PLAIN + b"Content-Length: +2\r\n\r\n{}",
    "chunks twice": CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n" + ONE,
    "chunks that are not last": PLAIN + b"Transfer-Encoding: chunked, identity\r\n\r\n" + ONE,
    "almost chunks": PLAIN + b"Transfer-Encoding: xchunked\r\n\r\n" + ONE,
    "a space before the colon": PLAIN + b"Transfer-Encoding : chunked\r\n\r\n" + ONE,
    "a folded line": PLAIN + b"X: 1\r\n Transfer-Encoding: chunked\r\n\r\n" + ONE,
    "bare line feeds": b"GET / HTTP/1.1\nHost: localhost\n\n",
    "a bare line feed in a field": PLAIN + b"X: a\nTransfer-Encoding: chunked\r\n\r\n" + ONE,
    "a bare carriage return": PLAIN + b"X: a\rContent-Length: 2\r\n\r\n{}",
    "a null": PLAIN + b"X: a\0b\r\n\r\n",
    "two hosts": PLAIN + b"Host: localhost\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a chunk without a size": CHUNKED + b"\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk of endless size": CHUNKED + b"\r\n" + b"f" * 17 + b"\r\n{}",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "SSH": b"SSH-2.0\r\n\r\n",
    "a space in a name": b"GET / HTTP/1.1\r\nA B: c\r\n\r\n",
}


@scripted
async def test_what_two_servers_could_read_in_two_ways_is_refused(tmp_path):
    """RFC 9112, 11.2: request smuggling."""
    async with stage(tmp_path) as there:
        for name, request in AMBIGUOUS.items():
            client = await there.client()
            await client.send(request)
            assert b" 400 Bad Request\r\n" in await client.rest(), name
        assert there.arrived.empty()
        await lives_on(there)
    assert [record.head["target"] for record in there.opens() if record.role == "request"] == ["/next"]


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
@pytest.mark.parametrize("framing", [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n" + ONE])
@scripted
async def test_a_request_with_a_body_does_not_become_a_tunnel_and_keeps_its_framing(tmp_path, protocol, framing):
    """RFC 9110, 7.8: an Upgrade may be ignored; without its framing the body would be the next request."""
    async with stage(tmp_path) as there:
        ask = PLAIN + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n" + framing
        client, server, head = await there.both(ask)
        assert head.split(b"\r\n")[2:] == [framing.split(b"\r\n")[0], b"", b""]
        assert await server.read(len(framing.partition(b"\r\n\r\n")[2])) == framing.partition(b"\r\n\r\n")[2]
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert there.frames(1) == [b"{}"]


@pytest.mark.parametrize("routes", [(), ("--route", "a=http://127.0.0.1:{port}/mcp")], ids=["one", "several"])
@scripted
async def test_a_connect_is_refused_and_what_follows_is_not_read(tmp_path, routes):
    """RFC 9112, 6.3 and 11.2: aiohttp's parser reads no body of CONNECT, so its body would be the next request."""
    framings = b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n" + ONE
    async with stage(tmp_path, *routes, *(("--capture-dir", str(tmp_path)) if routes else ())) as there:
        for target, framing in itertools.product((b"/mcp", b"*", b"localhost:80"), framings):
            client = await there.client()
            await client.send(b"CONNECT " + target + b" HTTP/1.1\r\nHost: localhost\r\n" + framing + GET)
            answers = await client.rest()
            assert answers.split(b"\r\n")[0] == (b"HTTP/1.1 404 Not Found" if routes else b"HTTP/1.1 400 Bad Request")
            assert b"Connection: close\r\n" in answers
            assert b"no route" in answers if routes else b"not of a forward proxy" in answers
        assert there.arrived.empty()


@scripted
async def test_an_upgrade_to_another_protocol_than_websocket_is_not_asked_for(tmp_path):
    """HTTP clients of Java request h2c by default, and h2c traffic could not be recorded."""
    async with stage(tmp_path) as there:
        ask = GET.replace(
            b"\r\n\r\n", b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"
        )
        _, _, head = await there.both(ask)
        assert b"pgrade" not in head
        assert b"Settings" not in head


@scripted
async def test_a_request_whose_chunks_break_ends_on_both_sides(tmp_path):
    """H-05: the bytes before the fault are forwarded, and neither side waits for the rest."""
    async with stage(tmp_path) as there:
        for rest in (b"zz\r\n", b"2\r\n[]X", b"-1\r\n"):
            client, server, _ = await there.both(CHUNKED + b"Content-Type: application/json\r\n\r\n" + chunk(b"[1,"))
            assert await server.read(8) == chunk(b"[1,")
            await client.send(rest)
            assert await server.gone() == "eof"
            head = await client.head()
            assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert "is not valid HTTP/1.1" in json.loads(await client.rest())["error"]["message"]
        await lives_on(there)
    requests, responses = there.opens()[:6:2], there.opens()[1:6:2]
    assert [there.how()[it.ch] for it in requests] == ["reset"] * 3
    assert [it.sender for it in responses] == ["mcpspy"] * 3
    assert [it.cut for it in there.records(Frame) if it.ch in {request.ch for request in requests}] == [True] * 3


@scripted
async def test_a_request_that_waits_behind_another_may_break_too(tmp_path):
    """Pipelined (RFC 9112, 9.3.2): the first is answered, the second ends."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(
            b"GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + CHUNKED + b"\r\n" + chunk(b"{}")
        )
        await client.send(b"zz\r\n")
        await server.send(LAST)
        assert await client.until(b"{}") == OK
        second = await there.server()
        assert (await second.head()).startswith(b"POST /mcp ")
        assert b" 400 Bad Request\r\n" in await client.rest()
        await second.gone()


@scripted
async def test_pipelined_requests_are_answered_in_order(tmp_path):
    """RFC 9112, 9.3.2."""
    async with stage(tmp_path) as there:
        client = await there.client()
        await client.send(*(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number for number in range(50)))
        server = await there.server()
        for number in range(50):
            assert (await server.head()).startswith(b"GET /%d " % number)
            await server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[%02d]" % number)
            assert (await client.until(b"[%02d]" % number)).count(b"HTTP/1.1 200 OK") == 1
    assert len(there.opens()) == 100


@scripted
async def test_a_head_that_comes_byte_by_byte_holds_up_nobody(tmp_path):
    """Slowloris: other clients are served in the meantime, and this one when its head is complete."""
    async with stage(tmp_path) as there:
        slow = await there.client()
        await slow.send(GET[:1])
        for byte in GET[1:-1]:
            await slow.send(bytes([byte]))
        await lives_on(there)
        await slow.send(GET[-1:])
        server = await there.server()
        assert (await server.head()).startswith(b"GET /mcp HTTP/1.1\r\n")
        await server.send(OK)
        assert await slow.until(b"{}") == OK


@scripted
async def test_informational_responses_without_end_are_an_end(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(GET)
        reading = asyncio.create_task(client.until(b"without end\n"))
        try:
            while not reading.done():
                await server.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)
        except ConnectionError:
            pass
        assert b"HTTP/1.1 502 Bad Gateway\r\n" in await reading
        await lives_on(there)


@pytest.mark.parametrize("how", ["with the head", "with the last event", "alone"])
@scripted
async def test_a_response_whose_chunks_break_ends_on_both_sides(tmp_path, how):
    """H-05: in any segments, the bytes before the fault are forwarded, and then the response breaks off too."""
    first, last, fault = chunk(b"data: 1\n\n"), chunk(b"data: 2\n\n"), b"zz\r\n"
    parts = {
        "with the head": [STREAM + first + last + fault],
        "with the last event": [STREAM, first, last + fault],
        "alone": [STREAM, first, last, fault],
    }[how]
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(GET)
        got = b""
        for part in parts:
            await server.send(part)
            if part is not parts[-1]:
                got += await client.read(len(part))
        got += await client.rest()
        assert got.startswith(STREAM)
        assert got.endswith(b"data: 2\n\n\r\n")  # without a last chunk
        await server.gone()
        await lives_on(there)
    assert there.how()[2] == "reset"
    assert there.frames(2) == [b"data: 1\n", b"data: 2\n"]


BODIES = {
    "204": (b"GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", b"{}"),
    "204 in chunks": (b"DELETE", b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
    "304": (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", b"{}"),
    "HEAD": (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{}"),
    "two answers": (b"GET", OK, OK.replace(b"{}", b"[]")),
}


@pytest.mark.parametrize("when", ["at once", "later"])
@scripted
async def test_what_an_upstream_sends_unasked_answers_no_other_request(tmp_path, when):
    """RFC 9112, 9.2: the response is forwarded, and the connection is not used again."""
    async with stage(tmp_path) as there:
        for method, answer, more in BODIES.values():
            client, server, _ = await there.both(method + b" /1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await server.send(answer + more if when == "at once" else answer)
            assert await client.read(len(answer)) == answer
            if when == "later":
                await server.send(more)
                other, beside, _ = await there.both(GET)  # when this is answered, the rest has arrived
                await beside.send(LAST)
                await other.until(b"{}")
            await client.send(b"GET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            second = await there.server()
            assert (await second.head()).startswith(b"GET /2 ")
            await second.send(LAST)
            assert await client.until(b"{}") == OK
            await server.gone()


@scripted
async def test_trailers_stay_behind_and_folded_fields_become_one_line(tmp_path):
    """An intermediary may do this, and nothing more (RFC 9110, 6.5.1; RFC 9112, 5.2 and 7.1.1)."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(CHUNKED + b"Trailer: X-T\r\n\r\n2;a=b\r\n{}\r\n0\r\nX-T: 1\r\n\r\n")
        assert await server.read(len(ONE)) == ONE
        await server.send(
            b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nTransfer-Encoding: chunked\r\n\r\n2;c\r\n[]\r\n0\r\nX-T: 1\r\n\r\n"
        )
        assert await client.until(b"0\r\n\r\n") == (
            b"HTTP/1.1 200 OK\r\nX: a b\r\nTransfer-Encoding: chunked\r\n\r\n" + ONE.replace(b"{}", b"[]")
        )
    assert [record.raw for record in there.records(Frame)] == [b"{}", b"[]"]


@scripted
async def test_a_large_call_that_an_upstream_breaks_off_is_not_sent_again(tmp_path):
    """RFC 9110, 9.2.2: not even if the connection was idle before."""
    body = b'{"jsonrpc":"2.0","id":7,"method":"x","params":"%b"}' % (b"x" * 60_000)
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(GET)
        await server.send(OK)
        await client.until(b"{}")
        await client.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await server.head()
        server.abort()
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert json.loads(await client.until(b"}}"))["id"] == 7
        assert there.arrived.empty()


@pytest.mark.parametrize("when", ["after the body", "before the body"])
@scripted
async def test_an_error_has_the_id_of_a_request_whose_body_came_after_its_head(tmp_path, when):
    """Issue 7: HTTP clients of Python send the head and the body separately."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n")
        if when == "before the body":
            server.close()
        await client.send(CALL)
        if when == "after the body":
            assert await server.read(46) == CALL
            server.close()
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert json.loads(await client.until(b"}}"))["id"] == 7
    assert there.frames(1) == [CALL]


@scripted
async def test_an_error_has_that_id_also_where_nobody_listens(tmp_path):
    async with stage(tmp_path, url="http://127.0.0.1:1/mcp") as there:
        client = await there.client()
        await client.send(POST + b"Content-Length: 46\r\n\r\n")
        await asyncio.sleep(0.05)  # so that the connection has been refused; without it, the test covers less
        await client.send(CALL)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert json.loads(await client.until(b"}}"))["id"] == 7
    assert there.frames(1) == [CALL]


@scripted
async def test_an_answer_is_heard_though_the_upstream_took_no_more_of_the_request(tmp_path):
    """H-04: a 413 that is followed by a reset."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 100000000\r\n\r\n" + CALL)
        refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        await server.send(refusal)
        assert await client.head() == refusal
        server.abort()
        await lives_on(there)


@scripted
async def test_a_request_is_recorded_though_there_never_was_a_connection(tmp_path):
    """A client gives up while the proxy connects to the upstream: the capture has its request."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()):  # fills the queue of length one
            async with stage(tmp_path, url=f"http://127.0.0.1:{deaf.getsockname()[1]}/mcp") as there:
                client = await there.client()
                await client.send(POST + b"Content-Length: 46\r\n\r\n" + CALL)
                other = await there.client()  # when this client gets its response, the call has been read
                await other.send(b"GET http://x/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await other.head()
                client.close()
    (request,) = (record for record in there.opens() if record.role == "request" and record.head["method"] == "POST")
    assert there.frames(request.ch) == [CALL]
    assert there.how()[request.ch] == "eof"


@scripted
async def test_a_client_that_closes_one_half_has_left(tmp_path):
    """A process that dies sends only a FIN; H-05 does not wait for more."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(GET)
        client.writer.write_eof()
        assert await server.gone() == "eof"
        await lives_on(there)


EVENT = b"data: " + b"x" * 100_000 + b"\n\n"
LONG = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@pytest.mark.parametrize("gates", [None, [{"name": "g", "when": {"method": ["no"]}, "action": {"drop": True}}]])
@pytest.mark.parametrize("framing", [b"Content-Length: 1000000000\r\n\r\n", b"\r\n"])
@scripted
async def test_what_a_client_received_before_it_left_is_recorded(tmp_path, framing, gates):
    """It leaves while the proxy is in the middle of a write: a part of this write has arrived."""
    async with stage(tmp_path, gates=gates) as there:
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", there.port)) as client:
            client.setblocking(False)
            await loop.sock_sendall(client, GET)
            server = await there.server()
            await server.send(LONG + framing)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):  # then the proxy waits in a write; if not, the test covers less
                    while True:
                        await server.send(EVENT)
            there.process.send_signal(signal.SIGSTOP)
            received = bytearray()
            with contextlib.suppress(TimeoutError):
                while True:
                    received += await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 0.2)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        there.process.send_signal(signal.SIGCONT)
        await server.gone()
        await lives_on(there)
    frames = [it for it in there.records(Frame) if it.ch == 2]
    assert len(received.partition(b"\r\n\r\n")[2]) <= sum(len(it.raw) + (not it.cut) for it in frames)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@scripted
async def test_a_signal_ends_everything_that_is_open_in_order(tmp_path, how):
    """A stream, an upload, a pending request, a WebSocket and an idle connection; also if the signal comes twice."""
    async with stage(tmp_path) as there:
        listener, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(b"data: 1\n\n"))
        await listener.until(b"\n\n\r\n")
        uploader, server, _ = await there.both(POST + b"Content-Length: 100\r\n\r\n" + CALL)
        await server.read(len(CALL))
        asker, _, _ = await there.both(GET)
        talker, server, _ = await there.both(ASK)
        await server.send(GRANT)
        await talker.head()
        idle = await there.client()
        there.process.send_signal(how)
        there.process.send_signal(how)
        for client in (listener, uploader, asker, talker, idle):
            await client.gone()
        assert await there.process.wait() == 0
    assert there.ended()
    hows = there.how()
    assert set(hows) == {record.ch for record in there.opens()}
    assert list(hows.values()).count("shutdown") == 4  # the stream, the upload, both directions of the WebSocket
    assert there.stderr == b""
