"""Requests of JSON pass a gate before the upstream sees them."""

import json

import pytest

from mcpspy.capture.records import Frame, Release
from tests.relay.http.test_forward import CALL, OK, POST
from tests.relay.stage import scripted, stage

ANSWER = '{"result":{"content":[]}}'
ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
CALLS = {"from": "client", "method": "tools/call"}


def gate(action, **when):
    return [{"name": "g", "when": when or CALLS, "action": action}]


@scripted
async def test_what_no_gate_names_reaches_the_upstream_as_it_came(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, method="never")) as there:
        client, server, head = await there.both(ASK)
        assert b"Content-Length: %d\r\n" % len(CALL) in head
        assert await server.read(len(CALL)) == CALL
        await server.send(OK)
        assert await client.until(b"{}") == OK
        large = b'{"x":"%b"}' % (b"a" * (2 << 20))
        await client.send(POST + b"Content-Length: %d\r\n\r\n" % len(large) + large)
        await server.head()
        assert await server.read(len(large)) == large
        await server.send(OK)
        assert await client.until(b"{}") == OK
    requests = {it.ch for it in there.opens() if it.role == "request"}
    frames = [frame for frame in there.records(Frame) if frame.ch in requests]
    assert [(frame.raw, frame.undecided) for frame in frames] == [(CALL, False), (large, True)]
    assert not any(frame.by or frame.dropped for frame in frames)


@scripted
async def test_a_changed_request_goes_in_chunks(tmp_path):
    async with stage(tmp_path, gates=gate({"send": "[]"})) as there:
        client, server, head = await there.both(ASK)
        assert b"Content-Length" not in head
        assert await server.read(12) == b"2\r\n[]\r\n0\r\n\r\n"
        await server.send(OK)
        assert await client.until(b"{}") == OK
    frame = there.records(Frame)[0]
    assert (frame.raw, frame.sent, frame.by) == (CALL, b"[]", "gate g")
    assert there.how()[1] == "eof"


@scripted
async def test_an_answered_request_never_reaches_the_upstream(tmp_path):
    async with stage(tmp_path, gates=gate({"answer": ANSWER})) as there:
        client = await there.client()
        await client.send(ASK)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Type: application/json\r\n" in head
        body = await client.until(b"}}")
        assert json.loads(body) == {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
        await client.send(POST + b"Content-Length: 2\r\n\r\n{}")  # the connection goes on
        server = await there.server()
        assert (await server.head()).startswith(b"POST ")
        await server.read(2)
        await server.send(OK)
        await client.until(b"{}")
    asked, answered, *_ = there.records(Frame)
    assert (asked.raw, asked.sent, asked.dropped, asked.by) == (CALL, None, True, "gate g")
    assert (answered.raw, answered.by) == (body, "gate g")
    assert there.opens()[1].sender == "mcpspy"


@scripted
async def test_a_dropped_request_is_accepted_and_goes_no_further(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True})) as there:
        client = await there.client()
        await client.send(ASK)
        assert (await client.head()).startswith(b"HTTP/1.1 202 Accepted\r\n")
        assert there.arrived.empty()
    (frame,) = there.records(Frame)
    assert (frame.raw, frame.dropped, frame.by) == (CALL, True, "gate g")


@scripted
async def test_a_closing_gate_closes_the_connection(tmp_path):
    async with stage(tmp_path, gates=gate({"close": True})) as there:
        client = await there.client()
        await client.send(ASK)
        assert await client.gone() in ("eof", "reset")
        assert there.arrived.empty()
    assert there.records(Frame)[0].dropped


@pytest.mark.parametrize("action", [{"delay": 20_000_000}, {"hold": 20_000_000}])
@scripted
async def test_a_held_request_goes_when_its_time_has_come(tmp_path, action):
    async with stage(tmp_path, gates=gate(action)) as there:
        client, server, _ = await there.both(ASK)
        assert await server.until(b"0\r\n\r\n") == b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL)
        await server.send(OK)
        await client.until(b"{}")
    frame = there.records(Frame)[0]
    (release,) = there.records(Release)
    assert (frame.raw, frame.held, frame.by) == (CALL, 1, "gate g")
    assert (release.held, release.how) == (1, "delayed" if "delay" in action else "expired")
    assert release.t - frame.t >= 20_000_000


@scripted
async def test_a_client_that_leaves_drops_what_is_held(tmp_path):
    async with stage(tmp_path, gates=gate({"hold": 60_000_000_000})) as there:
        client = await there.client()
        await client.send(ASK)
        while not there.path.exists() or not there.records(Frame):
            await client.send(b"")
        client.abort()
    (release,) = there.records(Release)
    assert (release.how, release.dropped) == ("closed", True)
