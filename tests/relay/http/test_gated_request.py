"""JSON requests pass a gate before they are forwarded to the upstream."""

import json

import pytest

from mcpspy.capture.records import Frame, Release
from mcpspy.relay.http.encoders import coded
from tests.relay.http.test_forward import CALL, LAST, OK, POST
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
async def test_a_request_that_is_cut_to_nothing_reaches_the_upstream_without_a_body(tmp_path):
    async with stage(tmp_path, gates=gate({"cut": 0})) as there:
        client, server, _ = await there.both(ASK)
        assert await server.read(5) == b"0\r\n\r\n"
        await server.send(OK)
        assert await client.until(b"{}") == OK
    frame = there.records(Frame)[0]
    assert (frame.raw, frame.sent, frame.by) == (CALL, b"", "gate g")


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
        await client.send(POST + b"Content-Length: 2\r\n\r\n{}")  # the connection stays open
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
    """A delayed request keeps its Content-Length; a held one is sent in chunks, because it may still be edited."""
    async with stage(tmp_path, gates=gate(action)) as there:
        client, server, head = await there.both(ASK)
        assert (b"Content-Length: %d\r\n" % len(CALL) in head) == ("delay" in action)
        sent = CALL if "delay" in action else b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL)
        assert await server.read(len(sent)) == sent
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


def post(body, head=POST, **fields):
    """Return a POST request; `fields` are header lines."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items()).encode()
    return head + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def cancelling(request_id):
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % request_id


@scripted
async def test_a_cancellation_in_another_post_drops_the_held_request_and_itself(tmp_path):
    """Only in the same session, and only the request of that id."""
    async with stage(tmp_path, gates=gate({"hold": 60_000_000_000})) as there:
        client = await there.client()
        await client.send(post(CALL, Mcp_Session_Id="one"))
        while not there.records(Frame):
            await client.send(b"")
        for body, session in ((cancelling(b"7"), "two"), (cancelling(b"8"), "one")):
            other, server, _ = await there.both(post(body, Mcp_Session_Id=session))
            assert await server.read(len(body)) == body
            await server.send(LAST)
            assert (await other.until(b"{}")).startswith(b"HTTP/1.1 200 OK\r\n")
        other = await there.client()
        await other.send(post(cancelling(b"7"), Mcp_Session_Id="one"))
        for peer in (client, other):
            assert (await peer.head()).startswith(b"HTTP/1.1 202 Accepted\r\n")
        assert there.arrived.empty()
    (release,) = there.records(Release)
    assert (release.held, release.how, release.dropped, release.by) == (1, "cancelled", True, "gate g")
    cancelled = [it for it in there.records(Frame) if it.raw == cancelling(b"7")]
    assert [(it.dropped, it.by) for it in cancelled] == [(False, None), (True, "gate g")]


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
        _, server, _ = await there.both(post(body, Content_Encoding="gzip"))
        assert await server.read(len(body)) == body
        await server.send(LAST)
    assert there.records(Frame)[0].undecided
    assert there.stderr == b""


@scripted
async def test_a_body_with_several_content_codings_is_decided_on(tmp_path):
    async with stage(tmp_path, gates=gate({"send": "[]"})) as there:
        body = coded(CALL, "gzip, br")
        _, server, head = await there.both(post(body, Content_Encoding="gzip, br"))
        assert b"Content-Encoding: gzip, br\r\n" in head
        chunk = await server.until(b"\r\n0\r\n\r\n")
        sent = coded(b"[]", "gzip, br")
        assert chunk == b"%x\r\n%b\r\n0\r\n\r\n" % (len(sent), sent)
    assert there.records(Frame)[0].sent == b"[]"


@scripted
async def test_a_content_coding_that_is_unknown_passes_and_is_said_once(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True})) as there:
        for _ in range(2):
            client, server, _ = await there.both(post(CALL, Content_Encoding="exi"))
            assert await server.read(len(CALL)) == CALL
            await server.send(LAST)
            await client.until(b"{}")
    assert there.stderr.count(b"a request has a content coding that cannot be decoded") == 1


@pytest.mark.parametrize("action", [{"answer": ANSWER}, {"answer": ANSWER, "delay": 20_000_000}])
@scripted
async def test_a_refused_request_gets_the_status_and_goes_no_further(tmp_path, action):
    gates = [{"name": "refuses 503", "when": CALLS, "action": action}]
    async with stage(tmp_path, gates=gates) as there:
        client = await there.client()
        await client.send(ASK)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n")
        error = json.loads(await client.until(b"}}"))
        assert (error["id"], error["error"]["code"]) == (7, -32000)
        assert "gate refuses 503" in error["error"]["message"]
        assert there.arrived.empty()
        await client.send(POST + b"Content-Length: 2\r\n\r\n{}")  # the connection stays open
        server = await there.server()
        await server.head()
        await server.send(OK)
        await client.until(b"{}")
    asked, answered, *_ = there.records(Frame)
    assert asked.raw == CALL
    assert json.loads(answered.raw) == error
    opened = there.opens()[1]
    assert (opened.sender, opened.by, opened.head["status"]) == ("mcpspy", "gate refuses 503", 503)


@scripted
async def test_a_response_cannot_be_refused_and_passes(tmp_path):
    when = {"from": "server", "method": "tools/call"}
    hold = [{"name": "refuses 503", "when": when, "action": {"hold": 20_000_000}}]
    async with stage(tmp_path, gates=hold) as there:
        client, server, _ = await there.both(ASK)
        result = b'{"jsonrpc":"2.0","id":7,"result":{}}'
        await server.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        await server.send(b"Content-Length: %d\r\n\r\n" % len(result) + result)
        assert result in await client.until(b"0\r\n\r\n")
    assert there.stderr.count(b"gate refuses 503 can answer only requests over HTTP with a status") == 1
