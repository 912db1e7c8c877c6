"""Viewers set gates on a running proxy while streams are open, byte by byte (`test_gated_bodies` has requests)."""

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Release
from mcpspy.wire.websocket import TEXT, encode, unmask
from tests.relay.http.test_forward import CALL, GET, LAST, POST, STREAM, chunk
from tests.relay.http.test_tunnel import ASK as HANDSHAKE
from tests.relay.http.test_tunnel import GRANT as SWITCH
from tests.relay.stage import scripted, stage
from tests.relay.viewer import HOLD, viewing

ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
EDITED = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"edited":true}}'
CALLS = {"from": "client", "method": "tools/call"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
OTHER = b'data: {"jsonrpc":"2.0","method":"notifications/other"}\r\n\r\n'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'


SSE_GET = b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
SSE_ASK = ASK.replace(b"/mcp", b"/messages/?session_id=abc")
ENDPOINT = chunk(b"event: endpoint\ndata: /messages/?session_id=abc\n\n")


async def listening(there):
    """Open the stream of HTTP+SSE; return the client and the server."""
    client, server, _ = await there.both(SSE_GET)
    await server.send(STREAM, ENDPOINT)
    await client.head()
    assert await client.read(len(ENDPOINT)) == ENDPOINT
    return client, server


@scripted
async def test_a_stream_that_is_open_goes_over_to_the_gate_between_two_events(tmp_path):
    async with stage(tmp_path, gates=[]) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(b"\xef\xbb\xbf" + OTHER + NOTE[:20]))
        await client.head()
        assert await client.read(len(chunk(OTHER + NOTE[:20])) + 3)
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, method="notifications/message")
            await server.send(chunk(NOTE[20:]))  # the rest of the event that was open
            assert await client.read(len(chunk(NOTE[20:]))) == chunk(NOTE[20:])
            await server.send(chunk(NOTE + OTHER))
            first, second = await viewer.holds(2)
            assert [first.raw, second.raw] == [NOTE[:-1], OTHER[:-2]]
            edited = '{"jsonrpc":"2.0","method":"edited"}'
            viewer.release(1, "edited", edited)
            expected = chunk(b"data: %b\n\n" % edited.encode() + OTHER)
            assert await client.read(len(expected)) == expected
            viewer.set_gates([])
            await server.send(chunk(NOTE), b"0\r\n\r\n")
            assert await client.until(b"0\r\n\r\n") == chunk(NOTE) + b"0\r\n\r\n"
    frames = there.records(Frame)
    assert [it.raw for it in frames] == [b"\xef\xbb\xbf" + OTHER[:-2], NOTE[:-1], NOTE[:-1], OTHER[:-2], NOTE[:-1]]
    assert [it.held for it in frames] == [None, None, 1, 2, None]


@pytest.mark.parametrize("inside", [False, True])
@scripted
async def test_a_request_of_http_and_sse_is_answered_on_a_stream_that_is_older_than_the_gate(tmp_path, inside):
    """Nothing has arrived on the stream since; if an event is incomplete, the reply waits for its end."""
    event = chunk(b"event: message\ndata: %b\n\n" % RESULT)
    begun, rest = (chunk(NOTE[:20]), chunk(NOTE[20:])) if inside else (b"", chunk(NOTE))
    async with stage(tmp_path, path="/sse", gates=[]) as there:
        stream, server = await listening(there)
        await server.send(begun)
        assert await stream.read(len(begun)) == begun
        with viewing(there.path) as viewer:
            viewer.gate({"answer": '{"result":{}}'}, **CALLS)
            client = await there.client()
            await client.send(SSE_ASK)
            assert (await client.head()).startswith(b"HTTP/1.1 202 ")
            if not inside:
                assert await stream.read(len(event)) == event
            await server.send(rest)
            assert await stream.read(len(rest)) == rest
            if inside:
                assert await stream.read(len(event)) == event
            await client.send(SSE_ASK)
            assert await stream.read(len(event)) == event
            await server.send(b"0\r\n\r\n")
            assert await stream.until(b"0\r\n\r\n") == b"0\r\n\r\n"
    own = [it for it in there.records(Frame) if it.sender == "mcpspy"]
    assert [(it.raw, it.by) for it in own] == [(b"event: message\ndata: %b\n" % RESULT, "gate g")] * 2
    assert [it.raw for it in there.records(Frame) if it.raw == NOTE[:-1]] == [NOTE[:-1]]


@scripted
async def test_the_responses_of_http_and_sse_are_known_by_their_requests(tmp_path):
    """The stream began before the gate was set, and before the session id was known."""
    answer = b"event: message\ndata: %b\n\n" % RESULT
    async with stage(tmp_path, path="/sse", gates=[]) as there:
        client, server = await listening(there)
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **{"from": "server", "method": "tools/call"})
            await there.both(SSE_ASK)
            await server.send(chunk(answer))
            (frame,) = await viewer.holds()
            assert frame.raw == answer[:-1]
            viewer.release(1, "continued")
            assert await client.read(len(chunk(answer))) == chunk(answer)


@scripted
async def test_each_route_has_gates_of_its_own(tmp_path):
    """All routes have the gates of the file, and each route counts its own matches."""
    once = {"name": "once", "when": CALLS, "action": {"drop": True}, "times": 1}
    folder = ("--capture-dir", str(tmp_path))
    routes = ("--route", "a=http://127.0.0.1:{port}/mcp", "--route", "b=http://127.0.0.1:{port}/mcp", *folder)
    async with stage(tmp_path, *routes, gates=[once]) as there:
        await there.client()  # the port is that of the first URL
        for name in (b"a", b"b"):
            ask = ASK.replace(b"/mcp", b"/%b/mcp" % name)
            client = await there.client()
            await client.send(ask)
            assert (await client.head()).startswith(b"HTTP/1.1 202 ")
            await client.send(ask)
            server = await there.server()
            await server.head()
            await server.send(LAST)
            await client.until(b"{}")
        paths = sorted(tmp_path.glob("*.jsonl"))
    assert len(paths) == 2
    for path in paths:
        (gates,) = [it for it in Capture(str(path)).records() if isinstance(it, Gates)]
        assert (list(gates.gates), gates.by) == ([once], "file")


@scripted
async def test_a_websocket_that_is_open_goes_over_to_the_gate_between_two_messages(tmp_path):
    """Each direction switches separately, and messages that match no gate keep their bytes."""
    mask = b"\x12\x34\x56\x78"
    call, other = encode(CALL, TEXT, mask), encode(b'{"method":"other"}', TEXT, mask)
    async with stage(tmp_path, gates=[]) as there:
        client, server, _ = await there.both(HANDSHAKE)
        await server.send(SWITCH)
        await client.head()
        await client.send(call, call[:9])
        assert await server.read(len(call) + 9) == call + call[:9]
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **CALLS)
            await client.send(call[9:], other)  # the rest of the open message; the gate decides on none before its end
            assert await server.read(len(call) - 9 + len(other)) == call[9:] + other
            await client.send(call, other)
            first, second = await viewer.holds(2)
            assert (first.raw, first.by) == (CALL, "gate g")
            await server.send(encode(RESULT, TEXT))
            assert await client.read(len(encode(RESULT, TEXT))) == encode(RESULT, TEXT)
            viewer.release(first.held, "edited", EDITED)
            got = await server.read(6 + len(EDITED) + len(other))
            assert unmask(got[6 : -len(other)], got[2:6], 0) == EDITED.encode()
            assert got[-len(other) :] == other
    assert [(it.held, it.how) for it in there.records(Release)] == [(1, "edited"), (second.held, "delayed")]
