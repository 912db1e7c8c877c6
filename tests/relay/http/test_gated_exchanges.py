"""The gate of `proxy`: leave to send, clients of HTTP/1.0, and held events (`test_gated_bodies` has all others)."""

import pytest

from mcpspy.capture.records import Frame, Release
from tests.relay.http.test_forward import CALL, GET, OK, POST, STREAM, chunk
from tests.relay.stage import scripted, stage

CALLS = {"from": "client", "method": "tools/call"}
ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
RESULTS = {"from": "server", "kind": "result", "method": "tools/call"}
NOTES = {"from": "server", "method": "notifications/message"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n'
OTHER = b'data: {"jsonrpc":"2.0","method":"notifications/other"}\n'


def gate(action, **when):
    return [{"name": "g", "when": when or CALLS, "action": action}]


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@scripted
async def test_a_client_that_waits_for_leave_to_send_gets_it_here(tmp_path, version):
    """RFC 9110, 10.1.1; a server ignores the `Expect` field in an HTTP/1.0 request."""
    async with stage(tmp_path, gates=gate({"send": "[]"})) as there:
        client = await there.client()
        head = POST.replace(b"HTTP/1.1", b"HTTP/" + version)
        await client.send(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(CALL))
        if version == b"1.1":
            assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(CALL)
        server = await there.server()
        head = await server.head()
        if version == b"1.1":
            assert b"Expect" not in head
        assert await server.read(12) == b"2\r\n[]\r\n0\r\n\r\n"
        await server.send(OK)
        assert (await client.until(b"{}")).startswith(b"HTTP/1.1 200 OK\r\n")
    if version == b"1.1":
        opened = there.opens()[0]
        assert ["Expect", None] in opened.sent["headers"]
        assert "gate" in opened.by
    assert there.records(Frame)[0].sent == b"[]"


@scripted
async def test_a_long_body_is_not_collected_and_its_leave_comes_from_the_upstream(tmp_path):
    """Its Content-Length is over the limit for a decision."""
    async with stage(tmp_path, gates=gate({"drop": True})) as there:
        large = CALL + b" " * (2 << 20)
        fields = b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(large)
        client, server, head = await there.both(POST + fields)
        assert b"Expect: 100-continue\r\n" in head
        await server.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(large)
        assert await server.read(len(large)) == large
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert [it.undecided for it in there.records(Frame) if it.ch == 1] == [True]


@scripted
async def test_a_long_body_in_chunks_that_waited_for_leave_passes(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True})) as there:
        client = await there.client()
        large = CALL + b" " * (2 << 20)
        await client.send(POST + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large))
        server = await there.server()
        await server.head()
        body = await server.until(b"\r\n0\r\n\r\n")
        assert body.count(b" ") == 2 << 20
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert [it.undecided for it in there.records(Frame) if it.ch == 1] == [True]


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
