"""What only the gate of `mitm` does: it cannot hold events (`test_gated_bodies` has what `proxy` does too)."""

import zlib

from mcpspy.capture.records import Frame, Release
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm import gated as module
from mcpspy.relay.mitm.flow import Turns
from mcpspy.wire.lines import PIECE
from tests.relay.interception import gated, needs_mitmproxy
from tests.relay.mitm.kept import EVENTS as EVENT_STREAM
from tests.relay.mitm.test_addon import EVENTS, asked, chunk
from tests.relay.stage import scripted
from tests.relay.test_gated_bodies import ANSWER, CALL, EVENT, REQUEST, RESPONSE, A, C, whole
from tests.relay.test_gated_sockets import opened

pytestmark = needs_mitmproxy

SECOND = 1_000_000_000


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"


def lengths(head):
    return [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]


async def answered(client, server, body=ANSWER, coding=b""):
    """Send a JSON response; return the head and the body that the client receives."""
    await server.send(HEAD % (coding, len(body)), body)
    head = await client.head()
    return head, await client.read(int(lengths(head)[0].split(b": ")[1]))


@scripted
async def test_what_would_be_held_passes_at_once_and_is_said_once(tmp_path, certificate):
    """A delayed change is made at once."""
    late = [("hold", {"hold": 60 * SECOND}), ("delay", {"delay": 60 * SECOND})]
    late.append(("change", {"delay": 60 * SECOND, "send": "x"}))
    gates = [{"name": name, "when": {"method": f"notifications/{name}"}, "action": action} for name, action in late]
    async with gated(tmp_path, certificate, gates) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"")
        await client.head()
        for name, _ in late * 2:
            event = EVENT % (2, name.encode())
            await server.send(chunk(event))
            event = b"id: 2\ndata: x\n\n" if name == "change" else event
            assert await client.read(len(chunk(event))) == chunk(event)
        await there.captured()
    assert [(it.by, it.sent) for it in there.records(Frame)][1:4] == [
        (None, None),
        (None, None),
        ("gate change", b"id: 2\ndata: x\n"),
    ]
    assert not there.records(Release)
    for name in ("hold", "delay"):
        assert there.said().count(f"gate {name} cannot hold or delay events of a stream; they pass at once") == 1


@scripted
async def test_a_chunked_request_stays_so(tmp_path, certificate):
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + chunk(CALL[:9]) + chunk(CALL[9:]) + b"0\r\n\r\n"
    gates = [{"name": "g", "when": {"from": "client"}, "action": {"send": "[]"}}]
    async with gated(tmp_path, certificate, gates) as there:
        _, server, head = await asked(there, REQUEST + chunks)
        assert b"Transfer-Encoding: chunked\r\n" in head
        assert await server.until(b"0\r\n\r\n") == chunk(b"[]") + b"0\r\n\r\n"
        await there.captured()
    assert (there.frames(1), there.opens()[0].by) == ([CALL], None)


@scripted
async def test_the_fragments_of_a_message_are_kept(tmp_path, certificate):
    gates = [{"name": "g", "when": {"method": "never"}, "action": {"drop": True}}]
    async with gated(tmp_path, certificate, gates) as there:
        socket = await opened(there)
        await socket.say("client", CALL[:20], final=False)
        await socket.say("client", CALL[20:], op="continuation")
        assert [await socket.heard("server") for _ in range(2)] == [(0x01, CALL[:20]), (0x80, CALL[20:])]
        await socket.say("server", b"\xff\0", op="binary")
        assert await socket.heard("client") == (0x82, b"\xff\0")
        await socket.say("server", b"alive", op="ping")
        assert await socket.heard("client") == (0x89, b"alive")
        await there.captured()
    assert [(it.raw, it.op, it.by, it.held) for it in there.records(Frame)] == [
        (CALL, None, None, None),
        (b"\xff\0", "binary", None, None),
    ]


@scripted
async def test_what_was_held_before_mcp_was_recognised_is_in_the_capture(tmp_path, certificate):
    """M-04: neither the heads nor the request are a sign of MCP; its response is."""
    odd, gates = b'{"id":1}', [{"name": "g", "when": {"from": "client"}, "action": {"delay": SECOND // 50}}]
    async with gated(tmp_path, certificate, gates) as there:
        client, server, _ = await asked(there, whole(REQUEST, odd))
        assert await server.read(len(odd)) == odd
        await server.send(whole(RESPONSE, ANSWER))
        await client.until(ANSWER)
        await there.captured()
    frame, answer = there.records(Frame)
    (release,) = there.records(Release)
    assert (frame.raw, frame.held, frame.by, answer.raw) == (odd, 1, "gate g", ANSWER)
    assert (release.held, release.how) == (1, "delayed")


def test_a_chunk_that_decodes_to_megabytes_is_decoded_part_by_part(kept, monkeypatch):
    """Three kilobytes can decode to thousands of times their size (A-12)."""
    sizes = []

    class Watched(module.EventBlocks):
        def feed(self, plain):
            sizes.append(len(plain))
            return super().feed(plain)

    monkeypatch.setattr(module, "EventBlocks", Watched)
    flow = kept.flow((b"Accept", b"text/event-stream"))
    later = []
    turns = Turns(flow, later.append)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", [*EVENT_STREAM, (b"Content-Encoding", b"gzip")]))
    checked = LiveGate((), {}, kept.said.append)
    events = module.GatedEvents(checked, checked.facts("server", "sse"), turns, "gzip", kept.said.append)
    long = A + b"data: " + b"x" * (4 << 20) + b"\n\n" + C
    coder = zlib.compressobj(wbits=31)
    decoder = zlib.decompressobj(31)
    passed = b"".join(events(coder.compress(long) + coder.flush())) + b"".join(events(b""))
    assert decoder.decompress(passed) == long
    assert max(sizes) <= PIECE
    assert sum(sizes) == len(long)
    turns.finish()
    flow.end(flow.origin.now(), "eof", "eof")
    kept.origin.end()
    assert [it.undecided for it in kept.records(Frame)] == [False, True, False]
