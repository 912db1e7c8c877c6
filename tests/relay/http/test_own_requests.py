"""Requests of viewers: they have the head of the client, and the client never sees their responses."""

import asyncio
import json

import pytest

from mcpspy.capture.records import Frame
from mcpspy.gate.messages import read
from mcpspy.relay.http.listener import fitting
from mcpspy.wire.websocket import TEXT, encode
from tests.relay.harness import until
from tests.relay.http.test_forward import CALL, LAST, POST, STREAM, chunk
from tests.relay.http.test_live import SSE_ASK, listening
from tests.relay.http.test_tunnel import ASK as HANDSHAKE
from tests.relay.http.test_tunnel import GRANT as SWITCH
from tests.relay.stage import scripted, stage
from tests.relay.viewer import viewing

FIELDS = b"Mcp-Session-Id: one\r\nAuthorization: Bearer s3cret\r\nAccept-Encoding: gzip\r\n"
ASK = POST + FIELDS + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
OWN = b'{"jsonrpc":"2.0","id":"mcpspy-1","method":"tools/list"}'
ANSWER = b'{"jsonrpc":"2.0","id":"mcpspy-1","result":{"tools":[]}}'


async def asked(there, viewer, session=None):
    """Send a request of a client and then one of a viewer; return the viewer's request as the upstream gets it."""
    client, server, _ = await there.both(ASK)
    await server.read(len(CALL))
    await server.send(LAST)
    await client.until(b"{}")
    viewer.send(OWN.decode(), session)
    own = await there.server()
    return own, await own.head(), await own.read(len(OWN))


async def recorded(viewer, count):
    """Wait for `count` frames of viewers, and return them."""

    def there():
        found = [it for it in viewer.records(Frame) if it.by == "viewer"]
        return found if len(found) >= count else None

    return await asyncio.to_thread(until, there, "frames of viewers")


@pytest.mark.parametrize("session", [None, "one"])
@scripted
async def test_it_goes_with_the_head_of_the_last_request_and_the_answer_is_recorded(tmp_path, session):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            server, head, body = await asked(there, viewer, session)
            assert body == OWN
            assert head.startswith(b"POST /mcp HTTP/1.1\r\n")
            for field in (b"Mcp-Session-Id: one", b"Authorization: Bearer s3cret", b"Content-Length: %d" % len(OWN)):
                assert head.count(field + b"\r\n") == 1
            assert b"Accept-Encoding: identity\r\n" in head
            await server.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            await server.send(b"Content-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
            asked_, answered = await recorded(viewer, 2)
    assert (asked_.raw, asked_.sender, asked_.dropped) == (OWN, "mcpspy", False)
    assert (answered.raw, answered.sender, answered.dropped) == (ANSWER, None, True)
    opens = {it.ch: it for it in there.opens()}
    request, response = opens[asked_.ch], opens[answered.ch]
    assert (request.sender, request.role, request.by) == ("client", "request", "viewer")
    assert ["Mcp-Session-Id", "one"] in request.head["headers"]
    assert b"s3cret" not in there.path.read_bytes()
    assert (response.answers, response.head["status"]) == (request.ch, 200)
    assert there.how()[request.ch] == there.how()[response.ch] == "eof"


@scripted
async def test_an_answer_of_events_is_read_to_its_end(tmp_path):
    note = b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            server, *_ = await asked(there, viewer)
            await server.send(STREAM, chunk(note + b"data: " + ANSWER + b"\n\n"), b"0\r\n\r\n")
            frames = await recorded(viewer, 3)
    assert [it.raw for it in frames] == [OWN, note[:-1], b"data: " + ANSWER + b"\n"]
    assert [it.dropped for it in frames] == [False, True, True]


@scripted
async def test_a_server_that_breaks_off_is_an_error_that_the_viewer_sees(tmp_path):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            server, *_ = await asked(there, viewer)
            server.close()
            _, answered = await recorded(viewer, 2)
    error = json.loads(answered.raw)
    assert error["id"] == "mcpspy-1"
    assert "closed the connection" in error["error"]["message"]
    assert answered.dropped


@scripted
async def test_over_http_and_sse_the_answer_is_dropped_from_the_clients_stream(tmp_path):
    """The stream began before the viewer's request, and no gate is in force."""
    note = b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'
    accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with stage(tmp_path, path="/sse") as there:
        client, stream = await listening(there)
        with viewing(there.path) as viewer:
            _, server, _ = await there.both(SSE_ASK)
            await server.send(accepted)
            viewer.send(OWN.decode(), "abc")
            own = await there.server()
            assert (await own.head()).startswith(b"POST /messages/?session_id=abc HTTP/1.1\r\n")
            assert await own.read(len(OWN)) == OWN
            await own.send(accepted)
            await stream.send(chunk(b"data: %b\n\n" % ANSWER), chunk(note), b"0\r\n\r\n")
            assert await client.until(b"0\r\n\r\n") == chunk(note) + b"0\r\n\r\n"
    own, answered = [it for it in there.records(Frame) if it.by == "viewer"]
    assert (own.raw, own.sender) == (OWN, "mcpspy")
    assert (answered.raw, answered.dropped) == (b"data: %b\n" % ANSWER, True)


@scripted
async def test_over_a_websocket_it_is_a_message_and_the_answer_is_dropped(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(HANDSHAKE)
        await server.send(SWITCH)
        await client.head()
        with viewing(there.path) as viewer:
            viewer.send(OWN.decode())
            ping = encode(b"{}", TEXT)
            assert len(await server.read(6 + len(OWN))) == 6 + len(OWN)
            await server.send(encode(ANSWER, TEXT), ping)
            assert await client.read(len(ping)) == ping
    own, answered = [it for it in there.records(Frame) if it.by == "viewer"]
    assert (own.raw, own.sender, answered.raw, answered.dropped) == (OWN, "mcpspy", ANSWER, True)


@scripted
async def test_what_cannot_be_sent_is_told(tmp_path):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            viewer.send(CALL.decode())
            viewer.send(OWN.decode(), "unknown")
            client, server, _ = await there.both(ASK)
            await server.send(LAST)
            await client.until(b"{}")
    assert b"a viewer's frame is not a request whose id begins with mcpspy-" in there.stderr
    assert b"no client of the session 'unknown'" in there.stderr


def test_headers_that_repeat_the_body_fit_the_request():
    """Revision 2026-07-28."""
    call = b'{"id":"mcpspy-1","method":"tools/call","params":{"name":"%b"}}'
    headers = [(b"A", b"1"), (b"mcp-method", b"tools/call"), (b"mcp-name", b"echo"), (b"mcp-param-a", b"1")]
    assert fitting(headers, read(call % b"echo", "body")[0]) == headers
    other = fitting(headers, read(call % "écho".encode(), "body")[0])
    assert other == [(b"A", b"1"), (b"Mcp-Method", b"tools/call"), (b"Mcp-Name", b"=?base64?w6ljaG8=?=")]
    listing = fitting(headers, read(OWN, "body")[0])
    assert listing == [(b"A", b"1"), (b"Mcp-Method", b"tools/list")]
    assert fitting(headers[:1], read(OWN, "body")[0]) == headers[:1]
