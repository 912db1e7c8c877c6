"""JSON requests and responses pass the gate of `mitm` before they are forwarded."""

import gzip
import json
import zlib

import pytest

from mcpspy.capture.records import Close, Frame, Open, Release
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import certificate, gated, needs_mitmproxy
from tests.relay.mitm.test_addon import ANSWER, POST, asked, chunk
from tests.relay.stage import scripted

__all__ = ["certificate"]  # a fixture

pytestmark = needs_mitmproxy

SECOND = 1_000_000_000
CLIENT, SERVER = {"from": "client"}, {"from": "server"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
REQUEST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
RESULT = '{"result":{"a":1}}'


def gate(action, name="g", **when):
    return [{"name": name, "when": when, "action": action}]


def lengths(head):
    return [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]


async def answered(client, server, body=ANSWER, coding=b""):
    """Send a JSON response; return the head and the body that the client receives."""
    await server.send(HEAD % (coding, len(body)), body)
    head = await client.head()
    return head, await client.read(int(lengths(head)[0].split(b": ")[1]))


@scripted
async def test_what_no_gate_names_passes_as_it_came(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True}, method="never")) as there:
        client, server, head = await asked(there)
        assert (head, await server.read(len(CALL))) == (POST, CALL)
        assert (await answered(client, server))[1] == ANSWER
        records = await there.captured()
    assert [(it.raw, it.by, it.held, it.undecided) for it in records if isinstance(it, Frame)] == [
        (CALL, None, None, False),
        (ANSWER, None, None, False),
    ]
    assert not any(it.by for it in records if isinstance(it, Open))
    assert [it.how for it in records if isinstance(it, Close)] == ["eof", "eof"]


def call(method):
    return CALL.replace(b'"ping"', b'"%b"' % method.encode())


def posted(body, session=b"s"):
    return REQUEST + b"Mcp-Session-Id: %b\r\nContent-Length: %d\r\n\r\n" % (session, len(body)) + body


FORWARDED = {
    "change": ({"send": '{"changed":true}'}, b'{"changed":true}', None),
    "repeat": ({"repeat": 2}, None, None),
    "delay": ({"delay": SECOND // 20}, None, "delayed"),
    "hold": ({"hold": SECOND // 20}, None, "expired"),
    "delayed-change": ({"delay": SECOND // 50, "send": "[]"}, b"[]", "delayed"),
    "drop": ({"drop": True}, b"", None),
}
"""The action of a gate, what it sends in place of a body, and how a held body is released."""


@pytest.mark.parametrize("sender", ["client", "server"])
@scripted
async def test_a_body_has_the_length_of_what_is_sent_and_goes_when_its_time_has_come(tmp_path, certificate, sender):
    """There is one gate for each method; a dropped request has its own test."""
    cases = {name: case for name, case in FORWARDED.items() if (name, sender) != ("drop", "client")}
    gates = [it for name, (act, *_) in cases.items() for it in gate(act, name, method=name, **{"from": sender})]
    sent = {}
    async with gated(tmp_path, certificate, gates) as there:
        for name, (_, changed, _) in cases.items():
            body = call(name) if sender == "client" else ANSWER
            sent[name] = body * 2 if name == "repeat" else body if changed is None else changed
            to_server, to_client = (sent[name], ANSWER) if sender == "client" else (call(name), sent[name])
            client, server, head = await asked(there, posted(call(name)))
            assert lengths(head) == [b"content-length: %d" % len(to_server)], name
            assert await server.read(len(to_server)) == to_server
            head, got = await answered(client, server)
            assert (lengths(head), got) == ([b"content-length: %d" % len(to_client)], to_client), name
            client.close()
        await there.captured()
    releases = {it.held: it for it in there.records(Release)}
    bodies = [it for it in there.opens() if it.sender == sender]
    for opened, (name, (action, changed, how)) in zip(bodies, cases.items(), strict=True):
        frame, *more = [it for it in there.records(Frame) if it.ch == opened.ch]
        body = call(name) if sender == "client" else ANSWER
        assert (frame.raw, frame.by, frame.dropped) == (body, f"gate {name}", name == "drop")
        assert [(it.raw, it.sender) for it in more] == [(body, "mcpspy")] * (name == "repeat")
        if how:
            release = releases.pop(frame.held)
            assert (release.how, release.sent) == (how, changed)
            assert release.t - frame.t >= action.get("delay", action.get("hold"))
        else:
            assert (frame.held, frame.sent) == (None, None if name == "drop" else changed or body)
            assert opened.sent == {"headers": [["content-length", str(len(sent[name]))]]}
    assert releases == {}


@scripted
async def test_a_chunked_request_stays_so(tmp_path, certificate):
    request = REQUEST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(CALL[:9]) + chunk(CALL[9:]) + b"0\r\n\r\n"
    async with gated(tmp_path, certificate, gate({"send": "[]"}, **CLIENT)) as there:
        _, server, head = await asked(there, request)
        assert b"Transfer-Encoding: chunked\r\n" in head
        assert await server.until(b"0\r\n\r\n") == chunk(b"[]") + b"0\r\n\r\n"
        await there.captured()
    assert (there.frames(1), there.opens()[0].by) == ([CALL], None)


@scripted
async def test_a_coded_body_stays_coded(tmp_path, certificate):
    packed = gzip.compress(ANSWER)
    async with gated(tmp_path, certificate, gate({"send": "{}"}, **SERVER)) as there:
        client, server, _ = await asked(there)
        head, body = await answered(client, server, packed, b"Content-Encoding: gzip\r\n")
        assert b"Content-Encoding: gzip\r\n" in head
        assert gzip.decompress(body) == b"{}"
        await there.captured()
    frame = there.records(Frame)[1]
    assert (frame.raw, frame.sent, frame.by) == (ANSWER, b"{}", "gate g")


@scripted
async def test_several_frames_are_coded_as_one_body(tmp_path, certificate):
    """A client would not decode a second `deflate` stream after the first one (RFC 1950)."""
    packed = zlib.compress(ANSWER)
    async with gated(tmp_path, certificate, gate({"repeat": 2}, **SERVER)) as there:
        client, server, _ = await asked(there)
        _, body = await answered(client, server, packed, b"Content-Encoding: deflate\r\n")
        decoder = zlib.decompressobj()
        assert (decoder.decompress(body), decoder.unused_data) == (ANSWER * 2, b"")
        await there.captured()
    assert [(it.raw, it.sender) for it in there.records(Frame)][1:] == [(ANSWER, None), (ANSWER, "mcpspy")]


CODINGS = {b"gzip": gzip.compress(ANSWER)[:-4], b"unknown": ANSWER}
"""Bodies that cannot be decoded: one is damaged, and one has an unknown coding."""


@pytest.mark.parametrize("sender", ["client", "server"])
@scripted
async def test_a_coding_that_cannot_be_undone_passes_and_is_said_once(tmp_path, certificate, sender):
    async with gated(tmp_path, certificate, gate({"drop": True}, **{"from": sender})) as there:
        for coding, packed in CODINGS.items():
            head = REQUEST.replace(b"Content-Type", b"Content-Encoding: %b\r\nContent-Type" % coding)
            request = head + b"Content-Length: %d\r\n\r\n" % len(packed) + packed
            client, server, _ = await asked(there, request if sender == "client" else POST + CALL)
            body = packed if sender == "client" else CALL
            assert await server.read(len(body)) == body
            if sender == "server":
                _, body = await answered(client, server, packed, b"Content-Encoding: %b\r\n" % coding)
                assert body == packed
        await there.captured()
    what = "request" if sender == "client" else "response"
    assert there.mitm.said().count(f"a {what} has a content coding that cannot be decoded; such {what}s pass") == 1
    channels = {it.ch for it in there.opens() if it.role == what}
    frames = [it for it in there.records(Frame) if it.ch in channels]
    assert [it.undecided for it in frames if it.raw in (*CODINGS.values(), ANSWER)] == [True, True]
    assert not any(it.dropped for it in frames)


@pytest.mark.parametrize("sender", ["client", "server"])
@scripted
async def test_a_body_that_decodes_to_too_much_passes_undecided(tmp_path, certificate, sender):
    """The body is over 1 MiB only after decoding."""
    long = b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (b"x" * (1 << 20))
    packed = gzip.compress(long)
    coding = b"Content-Encoding: gzip\r\n"
    request = REQUEST + coding + b"Content-Length: %d\r\n\r\n" % len(packed) + packed
    async with gated(tmp_path, certificate, gate({"drop": True}, **{"from": sender})) as there:
        client, server, _ = await asked(there, request if sender == "client" else POST + CALL)
        if sender == "client":
            assert await server.read(len(packed)) == packed
        else:
            assert (await answered(client, server, packed, coding))[1] == packed
        await there.captured()
    (frame,) = [it for it in there.records(Frame) if it.raw != CALL]
    assert (frame.raw, frame.undecided, frame.dropped) == (long, True, False)


@scripted
async def test_a_sequence_of_json_goes_on_as_it_comes(tmp_path, certificate):
    """Such a sequence may never end."""
    async with gated(tmp_path, certificate, gate({"drop": True}, **SERVER)) as there:
        for kind in (b"application/x-ndjson", b"application/json-seq", b"application/stream+json"):
            client, server, _ = await asked(there)
            await server.send(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % kind)
            await client.head()
            for line in (ANSWER + b"\n", CALL + b"\n"):
                await server.send(chunk(line))
                assert await client.read(len(chunk(line))) == chunk(line)
            await server.send(b"0\r\n\r\n")
            await client.until(b"0\r\n\r\n")
        await there.captured()
    assert not any(it.undecided or it.dropped for it in there.records(Frame))


@scripted
async def test_a_dropped_request_is_accepted_and_goes_no_further(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True}, method="ping")) as there:
        client = await there.client()
        for _ in range(2):  # the connection stays open
            await client.send(POST + CALL)
            head = await client.head()
            assert (head.startswith(b"HTTP/1.1 202 Accepted\r\n"), lengths(head)) == (True, [b"content-length: 0"])
        records = await there.captured()
        assert await (await there.server()).rest() == b""
    frames = [it for it in records if isinstance(it, Frame)]
    assert [(it.raw, it.dropped, it.by) for it in frames] == [(CALL, True, "gate g")] * 2
    responses = [it for it in records if isinstance(it, Open) and it.role == "response"]
    assert [(it.sender, it.head["status"]) for it in responses] == [("mcpspy", 202)] * 2
    assert [it.how for it in records if isinstance(it, Close)] == ["eof"] * 4


@scripted
async def test_an_answered_request_never_reaches_the_server(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"answer": RESULT}, method="ping")) as there:
        client = await there.client()
        await client.send(POST + CALL)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"content-type: application/json\r\n" in head.lower()
        body = await client.read(int(lengths(head)[0].split(b": ")[1]))
        server = await there.server()  # mitmproxy connects before it has a request
        assert json.loads(body) == {"jsonrpc": "2.0", "id": json.loads(CALL)["id"], "result": {"a": 1}}
        await there.captured()
        assert await server.rest() == b""
    question, answer = there.records(Frame)
    assert (question.raw, question.dropped, question.by) == (CALL, True, "gate g")
    assert (answer.raw, answer.by, there.opens()[1].sender) == (body, "gate g", "mcpspy")


@scripted
async def test_a_closing_gate_closes_the_connection(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"close": True}, **CLIENT)) as there:
        client = await there.client()
        await client.send(POST + CALL)
        assert await client.rest() == b""
        records = await there.captured()
    assert [it.dropped for it in records if isinstance(it, Frame)] == [True]
    assert not any(isinstance(it, Open) and it.role == "response" for it in records)


@scripted
async def test_a_held_request_holds_up_no_other(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"hold": 60 * SECOND}, method="ping")) as there:
        held = await there.client()
        await held.send(POST + CALL)
        unasked = await there.server()  # connected before there is a request
        other = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
        client, server, _ = await asked(there, REQUEST + b"Content-Length: %d\r\n\r\n" % len(other) + other)
        assert await server.read(len(other)) == other
        assert (await answered(client, server))[1] == ANSWER
        await there.captured()
        assert await unasked.rest() == b""
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("closed", True)]


@scripted
async def test_a_cancellation_in_another_request_drops_the_held_one_and_itself(tmp_path, certificate):
    """A cancellation in another session is forwarded, and drops no request."""
    params = {"requestId": json.loads(CALL)["id"]}
    cancelled = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode()
    async with gated(tmp_path, certificate, gate({"hold": 60 * SECOND}, method="ping")) as there:
        holder, *others = [await there.client() for _ in range(3)]
        await holder.send(posted(CALL))
        await there.recorded(lambda it: isinstance(it, Frame) and it.held)
        await others[0].send(posted(cancelled, b"another"))
        _, server, _ = [await there.server() for _ in range(3)]  # connected before there are requests
        await server.head()
        assert await server.read(len(cancelled)) == cancelled
        await others[1].send(posted(cancelled))
        for client in (holder, others[1]):
            assert (await client.head()).startswith(b"HTTP/1.1 202 Accepted\r\n")
        await there.captured()
    frames = there.records(Frame)
    assert [(it.raw, it.dropped, it.by) for it in frames] == [
        (CALL, False, "gate g"),
        (cancelled, False, None),
        (cancelled, True, "gate g"),
    ]
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("cancelled", True)]


@scripted
async def test_a_closed_response_does_not_look_finished(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"close": True}, **SERVER)) as there:
        client, server, _ = await asked(there)
        await server.send(HEAD % (b"", len(ANSWER)), ANSWER)
        assert await client.rest() == b""
        records = await there.captured()
    assert [it.dropped for it in records if isinstance(it, Frame)] == [False, True]
    assert there.how() == {1: "eof", 2: "abort"}


@scripted
async def test_a_gate_with_a_bug_lets_frames_pass_and_is_reported_once(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True}, name="raises")) as there:
        client, server, _ = await asked(there)
        assert await server.read(len(CALL)) == CALL
        assert (await answered(client, server))[1] == ANSWER
        await there.captured()
    assert there.frames(1) + there.frames(2) == [CALL, ANSWER]
    assert there.mitm.said().count("gate raises failed") == 1


@scripted
async def test_what_was_held_before_mcp_was_recognised_is_in_the_capture(tmp_path, certificate):
    """M-04: neither the heads nor the request are a sign of MCP; its response is."""
    odd = b'{"id":1}'
    async with gated(tmp_path, certificate, gate({"delay": SECOND // 50}, **CLIENT)) as there:
        client, server, _ = await asked(there, REQUEST + b"Content-Length: %d\r\n\r\n" % len(odd) + odd)
        assert await server.read(len(odd)) == odd
        assert (await answered(client, server))[1] == ANSWER
        await there.captured()
    frame, answer = there.records(Frame)
    (release,) = there.records(Release)
    assert (frame.raw, frame.held, frame.by, answer.raw) == (odd, 1, "gate g", ANSWER)
    assert (release.held, release.how) == (1, "delayed")
