"""Event streams pass the gate of `mitm`, which cannot hold events."""

import zlib

import pytest

from mcpspy.capture.records import Frame, Release
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm import gated_events
from mcpspy.relay.mitm.queue import Turns
from mcpspy.wire.lines import PIECE
from tests.relay.interception import certificate, gated, needs_mitmproxy
from tests.relay.mitm.kept import EVENTS as EVENT_STREAM
from tests.relay.mitm.test_addon import EVENTS, asked, chunk
from tests.relay.stage import scripted

__all__ = ["certificate"]  # a fixture

pytestmark = needs_mitmproxy

SECOND = 1_000_000_000
EVENT = b'id: %d\ndata: {"jsonrpc":"2.0","method":"notifications/%b"}\n\n'
A, B, C = EVENT % (1, b"a"), EVENT % (2, b"b"), EVENT % (3, b"c")


def gate(action, method="notifications/b"):
    return [{"name": "g", "when": {"method": method}, "action": action}]


CHANGES = {
    "send": ({"send": "x"}, [b"id: 2\ndata: x\n"]),
    "several": ({"send": ["x", "y"]}, [b"id: 2\ndata: x\n", b"id: 2\ndata: y\n"]),
    "repeat": ({"repeat": 2}, [(EVENT % (2, b"repeat"))[:-1]] * 2),
    "drop": ({"drop": True}, []),
}


@scripted
async def test_an_event_is_replaced_repeated_or_dropped(tmp_path, certificate):
    """A complete event is forwarded at once; an incomplete one is forwarded when its blank line arrives."""
    gates = [it for name, (action, _) in CHANGES.items() for it in gate(action, f"notifications/{name}")]
    async with gated(tmp_path, certificate, gates) as there:
        for name, (_, sent) in CHANGES.items():
            event = EVENT % (2, name.encode())
            client, server, _ = await asked(there)
            await server.send(EVENTS % b"", chunk(A), chunk(event[:20]))
            await client.head()
            assert await client.read(len(chunk(A))) == chunk(A)
            await server.send(chunk(event[20:]), chunk(C), b"0\r\n\r\n")
            changed = b"".join(part + b"\n" for part in sent)
            expected = b"".join(chunk(part) for part in (changed, C) if part) + b"0\r\n\r\n"
            assert await client.read(len(expected)) == expected, name
        await there.captured()
    assert set(there.how().values()) == {"eof"}
    responses = [it.ch for it in there.opens() if it.role == "response"]
    for channel, (name, (_, sent)) in zip(responses, CHANGES.items(), strict=True):
        _, changed, *added, _ = [it for it in there.records(Frame) if it.ch == channel]
        event = (EVENT % (2, name.encode()))[:-1]
        assert (changed.raw, changed.dropped, changed.by) == (event, not sent, "gate g")
        assert [(it.raw, it.sender) for it in added] == [(part, "mcpspy") for part in sent[1:]]


@scripted
async def test_a_closing_gate_breaks_the_stream_off(tmp_path, certificate):
    """The client gets no last chunk, and the connection to the server ends at once (H-05).

    Events that arrived in the same chunk are recorded as dropped: the capture has everything that the server sent.
    """
    async with gated(tmp_path, certificate, gate({"close": True})) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(A + B + C + A + b"data: 1"))
        await client.head()
        assert await client.rest() == chunk(A)
        assert await server.gone() in ("eof", "reset")
        await there.captured()
    frames = there.records(Frame)[1:]
    assert [(it.raw, it.dropped, it.by, it.cut) for it in frames] == [
        (A[:-1], False, None, False),
        (B[:-1], True, "gate g", False),
        (C[:-1], True, "gate g", False),
        (A[:-1], True, "gate g", False),
        (b"data: 1", True, "gate g", True),
    ]
    assert there.how() == {1: "eof", 2: "abort"}


@pytest.mark.parametrize("action", [{"hold": 60 * SECOND}, {"delay": 60 * SECOND}])
@scripted
async def test_what_would_be_held_passes_at_once_and_is_said_once(tmp_path, certificate, action):
    async with gated(tmp_path, certificate, gate(action)) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(B))
        await client.head()
        assert await client.read(len(chunk(B))) == chunk(B)
        await server.send(chunk(B))
        assert await client.read(len(chunk(B))) == chunk(B)
        await there.captured()
    assert [it.by for it in there.records(Frame)] == [None] * 3
    assert not there.records(Release)
    assert there.mitm.said().count("gate g cannot hold or delay events of a stream; they pass at once") == 1


@scripted
async def test_a_delayed_change_is_made_at_once(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"delay": 60 * SECOND, "send": "x"})) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(B))
        await client.head()
        assert await client.read(len(chunk(b"id: 2\ndata: x\n\n"))) == chunk(b"id: 2\ndata: x\n\n")
        await there.captured()
    assert there.records(Frame)[1].sent == b"id: 2\ndata: x\n"


@scripted
async def test_an_answer_to_a_server_passes_and_is_said_once(tmp_path, certificate):
    question = b'data: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}\n\n'
    async with gated(tmp_path, certificate, gate({"answer": '{"result":{}}'}, "sampling/*")) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(question), chunk(question))
        await client.head()
        assert await client.read(2 * len(chunk(question))) == chunk(question) * 2
        await there.captured()
    assert there.mitm.said().count("gate g cannot answer a server over HTTP") == 1


@scripted
async def test_a_coded_stream_stays_coded_and_is_flushed_with_each_event(tmp_path, certificate):
    """H-04, H-11."""
    coder, decoder = zlib.compressobj(wbits=31), zlib.decompressobj(31)
    async with gated(tmp_path, certificate, gate({"send": "x"})) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"Content-Encoding: gzip\r\n")
        assert b"Content-Encoding: gzip\r\n" in await client.head()
        for event, passed in ((A, A), (B, b"id: 2\ndata: x\n\n")):
            await server.send(chunk(coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH)))
            size = int(await client.until(b"\r\n"), 16)
            assert decoder.decompress((await client.read(size + 2))[:-2]) == passed
        await server.send(chunk(coder.flush()), b"0\r\n\r\n")
        size = int(await client.until(b"\r\n"), 16)
        decoder.decompress((await client.read(size + 2))[:-2])
        assert await client.read(5) == b"0\r\n\r\n"
        assert decoder.eof
        await there.captured()
    frames = there.records(Frame)[1:]
    assert [(it.raw, it.sent) for it in frames] == [(A[:-1], None), (B[:-1], b"id: 2\ndata: x\n")]


def test_a_chunk_that_decodes_to_megabytes_is_decoded_part_by_part(kept, monkeypatch):
    """Three kilobytes can decode to thousands of times their size (A-12)."""
    sizes = []

    class Watched(gated_events.EventBlocks):
        def feed(self, plain):
            sizes.append(len(plain))
            return super().feed(plain)

    monkeypatch.setattr(gated_events, "EventBlocks", Watched)
    flow = kept.flow((b"Accept", b"text/event-stream"))
    later = []
    turns = Turns(flow, later.append)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", [*EVENT_STREAM, (b"Content-Encoding", b"gzip")]))
    checked = LiveGate((), {}, kept.said.append)
    events = gated_events.GatedEvents(checked, checked.facts("server", "sse"), turns, "gzip", kept.said.append)
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


@scripted
async def test_a_stream_with_a_length_gets_none(tmp_path, certificate):
    body = A + B
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        client, server, _ = await asked(there)
        await server.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body), body
        )
        head = (await client.head()).lower()
        assert b"content-length" not in head
        assert b"transfer-encoding: chunked\r\n" in head
        assert await client.until(b"0\r\n\r\n") == chunk(A) + b"0\r\n\r\n"
        await there.captured()
    response = there.opens()[1]
    assert (response.sent, response.by) == ({"headers": [["content-length", None]]}, "gate")


@scripted
async def test_an_event_that_is_too_long_passes_undecided(tmp_path, certificate):
    long = b'data: {"jsonrpc":"2.0","method":"notifications/b","params":"%b"}\n\n' % (b"x" * (1 << 20))
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(A), chunk(long), chunk(B), chunk(C))
        await client.head()
        body = b""
        while not body.endswith(C):
            size = int(await client.until(b"\r\n"), 16)
            body += (await client.read(size + 2))[:-2]
        assert body == A + long + C
        await there.captured()
    frames = there.records(Frame)[1:]
    assert [(it.undecided, it.dropped) for it in frames] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]


@scripted
async def test_the_beginning_of_an_event_goes_on_when_the_server_breaks_off(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        client, server, _ = await asked(there)
        await server.send(EVENTS % b"", chunk(A), chunk(b"data: 1"))
        await client.head()
        assert await client.read(len(chunk(A))) == chunk(A)
        server.writer.transport.abort()
        assert await client.rest() == chunk(b"data: 1")
        await there.captured()
    assert [(it.raw, it.cut) for it in there.records(Frame)][1:] == [(A[:-1], False), (b"data: 1", True)]
    assert there.how()[2] == "reset"
