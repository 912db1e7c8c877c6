"""Responses pass a gate of `proxy`: clients of HTTP/1.0, and held events (`test_gated_bodies` has all others)."""

import pytest

from mcpspy.capture.records import Frame, Release
from tests.relay.http.test_forward import CALL, GET, POST, STREAM, chunk
from tests.relay.stage import scripted, stage

ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
RESULTS = {"from": "server", "kind": "result", "method": "tools/call"}
NOTES = {"from": "server", "method": "notifications/message"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n'
OTHER = b'data: {"jsonrpc":"2.0","method":"notifications/other"}\n'


def gate(action, **when):
    return [{"name": "g", "when": when, "action": action}]


@scripted
async def test_held_events_keep_their_order_and_the_stream_open(tmp_path):
    """Also if the upstream ends the stream in the meantime."""
    async with stage(tmp_path, gates=gate({"delay": 30_000_000}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(NOTE + b"\n" + OTHER + b"\n"), b"0\r\n\r\n")
        await client.head()
        assert await client.until(b"0\r\n\r\n") == chunk(NOTE + b"\n" + OTHER + b"\n") + b"0\r\n\r\n"
    assert [frame.held for frame in there.records(Frame)] == [1, 2]
    assert [(it.held, it.how) for it in there.records(Release)] == [(1, "delayed"), (2, "delayed")]


@pytest.mark.parametrize("keep_alive", [b"", b"Connection: keep-alive\r\n"])
@pytest.mark.parametrize("action", [{"send": "[]"}, {"delay": 20_000_000}, None], ids=["changed", "delayed", "passed"])
@scripted
async def test_json_to_a_client_of_http_1_0_ends_with_the_connection(tmp_path, action, keep_alive):
    """RFC 9112, 6.3 and 9.3: such a client does not know chunks. What is unchanged keeps its length."""
    async with stage(tmp_path, gates=gate(action, **RESULTS) if action else gate({"drop": True}, method="no")) as there:
        asked = ASK.replace(b"HTTP/1.1\r\n", b"HTTP/1.0\r\n" + keep_alive)
        client, server, _ = await there.both(asked)
        await server.read(len(CALL))
        await server.send(JSON % len(RESULT), RESULT)
        head = await client.head()
        if not action:
            assert b"Content-Length: %d\r\n" % len(RESULT) in head
            assert await client.read(len(RESULT)) == RESULT
            return
        assert (b"Content-Length" in head, b"Transfer-Encoding" in head) == (False, False)
        assert head.count(b"Connection:") == head.count(b"Connection: close") == 1
        assert await client.rest() == (b"[]" if "send" in action else RESULT)
    assert ["Content-Length", None] in there.opens()[1].sent["headers"]
    assert there.how() == {1: "eof", 2: "eof"}


@scripted
async def test_events_to_a_client_of_http_1_0_end_with_the_connection(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, **NOTES)) as there:
        events = NOTE + b"\n" + OTHER + b"\n"
        client, server, _ = await there.both(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
        length = b"Content-Length: %d\r\n\r\n" % len(events)
        await server.send(STREAM.replace(b"Transfer-Encoding: chunked\r\n\r\n", length), events)
        assert b"Content-Length" not in await client.head()
        assert await client.rest() == OTHER + b"\n"
    assert there.how()[2] == "eof"
