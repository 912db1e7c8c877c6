"""The layers of mitmproxy with a gate: bodies that are too long, peers that disconnect, streams that end."""

import pytest

from mcpspy.capture.records import Close, Frame, Release
from tests import limits
from tests.peers import prepare
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import gated, needs_mitmproxy
from tests.relay.mitm.test_addon import ANSWER, EVENTS, POST, asked, chunk
from tests.relay.mitm.test_gated_events import HEAD, lengths
from tests.relay.mitm.test_http2 import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    EVENT,
    HEADERS,
    RST_STREAM,
    Connection,
    block,
    two_streams,
)
from tests.relay.stage import scripted
from tests.relay.test_gated_bodies import REQUEST, SECOND, gate

pytestmark = needs_mitmproxy

INSTALL = """
from mitmproxy.proxy.layers import http, websocket
before = http.HttpStream, websocket.WebsocketLayer
from mcpspy.relay.mitm import layers
layers.install(gated=False)
assert (http.HttpStream, websocket.WebsocketLayer) == before
layers.install(gated=True)
assert (http.HttpStream, websocket.WebsocketLayer) == (layers.GatedStream, layers.GatedSocketLayer)
"""


def test_without_a_gate_the_layers_are_those_of_mitmproxy():
    limits.run([prepare.python("mitm"), "-c", INSTALL], check=True)


@pytest.mark.parametrize("chunked", [False, True])
@scripted
async def test_a_body_that_is_too_long_passes_undecided(tmp_path, certificate, chunked):
    """Such a body is streamed, whether its length is known before or not."""
    size = 3 << 19
    half = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * size
    rest = b"y" * size + b'"}'
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(half + rest)
    parts = [chunk(half), chunk(rest) + b"0\r\n\r\n"] if chunked else [half, rest]
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        client = await there.client()
        await client.send(REQUEST + length + b"\r\n\r\n", parts[0])
        server = await there.server()
        await server.head()
        await server.until(b"x" * 1024)  # before the client has sent the rest
        await client.send(parts[1])
        await server.until(b'"}')
        await server.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", length, b"\r\n\r\n", parts[0])
        await client.head()
        await client.until(b"x" * 1024)
        await server.send(parts[1])
        await client.until(b'"}')
        await there.captured()
    frames = there.records(Frame)
    assert [(it.raw == half + rest, it.undecided, it.dropped) for it in frames] == [(True, True, False)] * 2


@scripted
async def test_a_server_that_breaks_off_does_not_look_finished(tmp_path, certificate):
    """H-05: the received part of a collected body is forwarded and recorded."""
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        get = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: s\r\n\r\n"
        client, server, _ = await asked(there, get)
        await server.send(HEAD % (b"", 100), ANSWER)
        server.writer.close()
        head = await client.head()
        assert (lengths(head), await client.rest()) == ([b"content-length: 100"], ANSWER)
        await there.captured()
    (frame,) = there.records(Frame)
    assert (frame.raw, frame.cut, there.how()[2]) == (ANSWER, True, "reset")


@scripted
async def test_a_client_that_breaks_off_is_recorded(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        client = await there.client()
        await client.send(POST.replace(b"/mcp", b"/mcp", 1).replace(b"X-Odd: One", b"Mcp-Session-Id: s"), CALL[:20])
        client.abort()
        await there.recorded(lambda it: isinstance(it, Close))
        await there.captured()
    assert there.frames(1) in ([CALL[:20]], [])
    assert there.how()[1] in ("reset", "abort")


async def posted(there):
    """Connect an HTTP/2 client, and send a JSON request on stream 1."""
    client = await Connection(await there.client(alpn=("h2",))).begin(client=True)
    fields = {b":method": b"POST", b":scheme": b"https", b":path": b"/mcp", b":authority": b"127.0.0.1"}
    head = block(fields | {b"content-type": b"application/json", b"content-length": b"%d" % len(CALL)})
    await client.send(HEADERS, END_HEADERS, 1, head)
    await client.send(DATA, END_STREAM, 1, CALL)
    return client


@scripted
async def test_a_stream_of_http_2_that_is_reset_ends_the_hold_of_its_request(tmp_path, certificate):
    """H-05: the hold ends at once, though the connection stays open; the server gets only the request of stream 3."""
    async with gated(tmp_path, certificate, gate({"hold": 60 * SECOND}, method="ping"), alpn=("h2",)) as there:
        client = await posted(there)
        await there.recorded(lambda it: isinstance(it, Frame) and it.held)
        await client.reset(1, CANCEL)
        await there.recorded(lambda it: isinstance(it, Release))
        await client.ask(3, b"/other")
        server = await Connection(await there.server()).begin(client=False)
        kind, _, head = await server.next()
        assert (kind, b"/other" in head or b"/mcp" not in head) == (HEADERS, True)
        await there.captured()
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("closed", True)]
    assert there.how()[1] == "eof"


@scripted
async def test_a_changed_request_of_http_2_has_the_length_of_what_is_sent(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"send": "[]"}, method="ping"), alpn=("h2",)) as there:
        await posted(there)
        server = await Connection(await there.server()).begin(client=False)
        (kind, number, _), body = await server.next(), await server.next()
        assert (kind, body) == (HEADERS, (DATA, number, b"[]"))
        await there.captured()
    assert there.records(Frame)[0].sent == b"[]"


@scripted
async def test_a_closed_event_stream_of_http_2_leaves_the_others(tmp_path, certificate):
    """Both the stream of the server and that of the client are reset."""
    closing = gate({"close": True}, method="notifications/7")
    async with gated(tmp_path, certificate, closing, alpn=("h2",)) as there:
        client, ours, server, theirs = await two_streams(there)
        await server.send(DATA, 0, theirs[0], EVENT % 7)
        assert (await server.next())[:2] == (RST_STREAM, theirs[0])
        assert (await client.next())[:2] == (RST_STREAM, ours[0])
        await server.send(DATA, 0, theirs[1], EVENT % 9)
        assert await client.next() == (DATA, ours[1], EVENT % 9)
        await there.captured()
    assert [it.raw for it in there.records(Frame) if it.dropped] == [(EVENT % 7)[:-1]]


@scripted
async def test_the_next_request_of_a_connection_follows_an_event_stream(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True}, method="never")) as there:
        client, server, _ = await asked(there)
        await server.read(len(CALL))
        await server.send(EVENTS % b"", chunk(b"data: 1\n\n"), b"0\r\n\r\n")
        await client.head()
        assert await client.until(b"0\r\n\r\n") == chunk(b"data: 1\n\n") + b"0\r\n\r\n"
        await client.send(POST + CALL)
        assert await server.head() == POST
        await there.captured()
