"""WebSocket messages pass a gate of `proxy`, byte for byte (`test_gated_sockets` has what `mitm` does too)."""

import asyncio
from types import SimpleNamespace

import pytest
from aiohttp.base_protocol import BaseProtocol

from mcpspy.capture.records import Close, Frame, Release
from mcpspy.gate.gate import LIMIT, Reply
from mcpspy.gate.order import FRAMES
from mcpspy.recording.http_exchange import HttpExchange
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.tunnel import GatedTunnel
from mcpspy.relay.live_gate import LiveGate
from tests.memory import objects_in
from tests.relay.http.test_tunnel import MASK, opened
from tests.relay.stage import scripted, stage
from tests.transcript import begin
from tests.wire.test_websocket import frame

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search"}}'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
OTHER = b'{"jsonrpc":"2.0","method":"notifications/other"}'
CALLS = {"from": "client", "method": "tools/call"}
MINUTE = 60_000_000_000
GOING_AWAY = b"\x03\xe9"


def gate(action, **when):
    return [{"name": "g", "when": when or CALLS, "action": action}]


def masked(payload, *rest):
    return frame(payload, *rest, mask=MASK) if rest else frame(payload, mask=MASK)


async def arrives(peer, payload, op=None):
    """Check that a peer receives this frame next, and return its mask."""
    head = await peer.read(2)
    length = head[1] & 0x7F
    if length > 125:
        head += await peer.read(2 if length == 126 else 8)
        length = int.from_bytes(head[2:], "big")
    mask = await peer.read(4) if head[1] & 0x80 else b""
    assert head + mask + await peer.read(length) == frame(payload, op, mask=mask)
    return mask


def frames(there, ch=None):
    return [it for it in there.records(Frame) if ch in (None, it.ch)]


@pytest.mark.parametrize("ends", [True, False])
@scripted
async def test_an_answer_waits_until_a_long_message_to_that_peer_has_ended(tmp_path, ends):
    """No other message may come between the fragments of one, or after a close frame (RFC 6455, 5.4 and 5.5.1)."""
    begun, rest = frame(b"a" * (LIMIT + 1), None, False), frame(b"b", "continuation")
    pong, close = frame(b"!", "pong"), frame(b"\x03\xe8", "close")
    async with stage(tmp_path, gates=gate({"answer": '{"result":{}}'})) as there:
        client, server, _ = await opened(there)
        await server.send(begun)
        assert await client.read(len(begun)) == begun
        await client.send(masked(CALL), frame(b"!", "ping", mask=MASK))
        assert await arrives(server, b"!", "ping")
        await server.send(pong, rest if ends else close)
        assert await client.read(len(pong)) == pong
        if ends:
            assert await client.read(len(rest)) == rest
            await arrives(client, RESULT)
        else:
            server.close()
            assert await client.rest() == close
    found = {it.raw: (it.op, it.undecided, it.sender) for it in frames(there, 4)}
    assert found[b"!"] == ("pong", False, None)
    assert (RESULT in found) is ends
    if ends:
        assert found == {
            b"a" * (LIMIT + 1) + b"b": (None, True, None),
            b"!": ("pong", False, None),
            RESULT: (None, False, "mcpspy"),
        }


class Sink(BaseProtocol):
    """A connection that keeps the bytes that are written to it."""

    def __init__(self):
        super().__init__(asyncio.get_running_loop())
        self.written, self.more = [], asyncio.Event()
        self.transport = SimpleNamespace(write=self.write, is_closing=lambda: False)

    def write(self, raw):
        self.written.append(raw)
        self.more.set()


class Source(asyncio.Queue):
    """The stream of a peer: chunks, and an empty one at the end."""

    def __init__(self, *chunks):
        super().__init__()
        for chunk in chunks:
            self.put_nowait(chunk)

    async def read(self):
        return await self.get()

    def feed_eof(self):
        self.put_nowait(b"")


def tunnel(path, gates):
    """Return a tunnel, its two connections, and a function that starts a pump to one of them."""
    recording = Recording(print, sink=begin(path))
    recorded = HttpExchange(recording)
    recorded.open_request(0, {"method": "GET", "target": "/", "version": "1.1", "headers": []})
    recorded.open_socket(0)
    exchange = SimpleNamespace(recorded=recorded, route=SimpleNamespace(recording=recording))
    client, server = Sink(), Sink()
    there = GatedTunnel(exchange, LiveGate(gates, {}, print), client, server)

    def pump(source, sink):
        return asyncio.create_task(there.pump(source, sink, None, lambda: 1))

    return there, client, server, pump


async def written(sink, expected):
    """Wait until as many bytes have been written, and compare them."""
    while sum(map(len, sink.written)) < len(expected):
        sink.more.clear()
        await sink.more.wait()
    assert b"".join(sink.written) == expected


@scripted
async def test_small_messages_go_on_in_few_writes_and_others_have_their_turn(tmp_path):
    _, client, _, pump = tunnel(tmp_path / "capture.jsonl", gate({"drop": True}, method="never"))
    stream, turns = (frame(b"") + frame(b"", "ping")) * 1000, []

    async def count():
        while True:
            turns.append(len(client.written))
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await pump(Source(stream, b""), client)
    counting.cancel()
    assert b"".join(client.written) == stream
    assert len(client.written) < 100
    assert len(turns) > 10


@scripted
async def test_a_receiver_that_has_left_ends_the_direction(tmp_path):
    def refuse(raw):
        raise ConnectionResetError

    _, client, _, pump = tunnel(tmp_path / "capture.jsonl", gate({"drop": True}))
    client.transport.write = refuse
    assert await pump(Source(frame(b"x")), client) == "abort"


@scripted
async def test_an_answer_does_not_wait_for_the_peer_that_it_goes_to(tmp_path):
    """The server floods a client that reads nothing."""
    gates = gate({"answer": '{"result":{}}'})
    _, client, server, pump = tunnel(tmp_path / "capture.jsonl", gates)
    client.pause_writing()
    source = Source(frame(b"x" * 100_000))
    flooding = pump(source, client)
    await asyncio.sleep(0)
    await pump(Source(masked(CALL) + masked(OTHER), b""), server)
    assert server.written == [masked(OTHER)]
    assert client.written == [frame(b"x" * 100_000)]
    client.resume_writing()
    await written(client, frame(b"x" * 100_000) + frame(RESULT))
    source.feed_eof()
    await flooding


@scripted
async def test_only_so_many_answers_wait_and_then_who_asks_is_not_read(tmp_path):
    there, client, server, pump = tunnel(tmp_path / "capture.jsonl", gate({"answer": '{"result":{}}'}))
    client.pause_writing()
    source = Source(frame(b"x"))
    flooding = pump(source, client)
    asking = pump(Source(masked(CALL) * 3 * FRAMES, b""), server)
    for _ in range(3 * FRAMES):
        await asyncio.sleep(0)
    assert not asking.done()
    (answers,) = [it for it in objects_in(there, list) if it and isinstance(it[0], Reply)]
    assert FRAMES <= len(answers) < FRAMES + 100
    client.resume_writing()
    await asking
    await written(client, frame(b"x") + frame(RESULT) * 3 * FRAMES)
    source.feed_eof()
    await flooding


@pytest.mark.parametrize("end", [frame(b"\x03\xe8", "close", mask=MASK), b""], ids=["close frame", "end"])
@scripted
async def test_the_end_of_the_sender_lets_all_go_before_it(tmp_path, end):
    """An incomplete message is forwarded too."""
    async with stage(tmp_path, gates=gate({"hold": MINUTE})) as there:
        client, server, _ = await opened(there)
        whole = masked(CALL) + masked(OTHER)
        cut = frame(b"cut", None, False, MASK)
        await client.send(whole, cut, end)
        client.close()
        assert await server.read(len(whole + cut + end)) == whole + cut + end
        assert await server.gone() == "eof"
    assert [(it.held, it.how, it.dropped) for it in there.records(Release)] == [
        (1, "closed", False),
        (2, "closed", False),
    ]
    assert [(it.raw, it.cut) for it in frames(there, 3)] == [(CALL, False), (OTHER, False), (b"cut", True)]
    close = {it.ch: it for it in there.records(Close)}[3]
    assert (close.how, close.code) == ("eof", 1000 if end else None)


@scripted
async def test_a_closing_gate_does_not_break_into_a_long_message(tmp_path):
    async with stage(tmp_path, gates=gate({"close": True})) as there:
        client, server, _ = await opened(there)
        begun = frame(b"a" * (2 * LIMIT))[:-1]
        await server.send(begun)
        assert await client.read(len(begun)) == begun
        await client.send(masked(CALL))
        assert await arrives(server, GOING_AWAY, "close")
        assert await client.rest() == b""
    assert [(it.cut, it.undecided) for it in frames(there, 4)] == [(True, True)]


@scripted
async def test_a_long_message_waits_for_what_is_held(tmp_path):
    async with stage(tmp_path, gates=gate({"delay": 50_000_000})) as there:
        client, server, _ = await opened(there)
        stream = masked(CALL) + masked(b"a" * (LIMIT + 1)) + masked(OTHER)
        await client.send(stream)
        assert await server.read(len(stream)) == stream
    assert [(it.held, it.undecided) for it in frames(there, 3)] == [(1, False), (None, True), (None, False)]


@scripted
async def test_an_extension_that_was_not_negotiated_passes_and_is_said_once(tmp_path):
    """RFC 7692: permessage-deflate sets RSV1; the proxy removes its offer in the handshake, so no peer should."""
    coded = bytearray(masked(b"coded"))
    coded[0] |= 0x40
    async with stage(tmp_path, gates=gate({"drop": True}, **{"from": "client"})) as there:
        client, server, _ = await opened(there)
        await client.send(bytes(coded) * 2, masked(b"{}"), frame(b"!", "ping", mask=MASK))
        assert await server.read(2 * len(coded)) == bytes(coded) * 2
        assert await server.read(7) == frame(b"!", "ping", mask=MASK)
    assert [(it.raw, it.undecided, it.dropped) for it in frames(there, 3)] == [
        (b"coded", True, False),
        (b"coded", True, False),
        (b"{}", False, True),
        (b"!", False, False),
    ]
    assert there.stderr.count(b"extension that was not negotiated") == 1


@scripted
async def test_the_end_of_the_proxy_records_what_is_held_as_not_forwarded(tmp_path):
    async with stage(tmp_path, gates=gate({"hold": MINUTE})) as there:
        client, server, _ = await opened(there)
        await client.send(masked(CALL), frame(b"!", "ping", mask=MASK))
        await server.read(7)
        assert await there.end() == 0
    (release,) = there.records(Release)
    assert (release.how, release.dropped) == ("closed", True)
    assert (there.how()[3], there.how()[4]) == ("shutdown", "shutdown")
