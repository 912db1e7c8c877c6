"""Requests that wait for leave to send, or expand, pass a gate of `proxy` (`test_gated_bodies` has all others)."""

import pytest

from mcpspy.capture.records import Frame
from mcpspy.relay.http.encoders import coded
from tests.relay.http.test_forward import CALL, LAST, OK, POST
from tests.relay.stage import scripted, stage

CALLS = {"from": "client", "method": "tools/call"}


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
async def test_a_body_that_expands_passes_and_is_marked_undecided(tmp_path):
    body = coded(b'{"x":"%b"}' % (b"a" * (18 << 20)), "gzip")
    async with stage(tmp_path, gates=gate({"drop": True}, method="never")) as there:
        _, server, _ = await there.both(
            POST + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        assert await server.read(len(body)) == body
        await server.send(LAST)
    assert there.records(Frame)[0].undecided
    assert there.stderr == b""
