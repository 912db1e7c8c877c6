"""WebSockets pass byte for byte, and are recorded message by message."""

import pytest

from mcpspy.capture.records import Close, Frame
from tests.relay.stage import scripted, stage
from tests.wire.test_websocket import frame

ASK = (
    b"GET /ws?x=1 HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
GRANT = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
)
MASK = b"\x12\x34\x56\x78"


async def opened(there):
    client, server, head = await there.both(ASK)
    await server.send(GRANT)
    assert await client.head() == GRANT
    return client, server, head


@scripted
async def test_the_handshake_passes_without_extensions(tmp_path):
    """Issue 7: extensions are removed, the subprotocol is kept."""
    async with stage(tmp_path) as there:
        _, _, head = await opened(there)
        asked = ASK.replace(b"localhost", b"127.0.0.1:%d" % there.upstream)
        assert head == asked.replace(b"Sec-WebSocket-Extensions: permessage-deflate\r\n", b"")
    request, response, *sockets = there.opens()
    assert request.by == "host,encoding"
    assert request.sent["headers"][-1] == ["Sec-WebSocket-Extensions", None]
    assert (response.head["status"], response.answers) == (101, request.ch)
    assert [(it.sender, it.role, it.framing, it.answers) for it in sockets] == [
        ("client", "ws", "message", request.ch),
        ("server", "ws", "message", request.ch),
    ]


NEVER = [{"name": "g", "when": {"method": "never"}, "action": {"drop": True}}]


@pytest.mark.parametrize("gates", [None, NEVER], ids=["plain", "gated"])
@scripted
async def test_messages_pass_as_they_are_and_are_frames(tmp_path, gates):
    """Fragments, masks, pings, binary messages and close codes. A gate decides on whole messages; pings overtake."""
    begun, ping = frame(b"ab", None, False, MASK), frame(b"!", "ping", mask=MASK)
    rest = frame(b"c", "continuation", mask=MASK)
    binary = frame(b"\xff\0", "binary", mask=MASK)
    parts = [frame(b'{"id":1}', mask=MASK), begun + ping + rest[:3], rest[3:] + binary]
    expected = parts if gates is None else [parts[0], ping, begun + rest + binary]
    async with stage(tmp_path, gates=gates) as there:
        client, server, _ = await opened(there)
        for part, forwarded in zip(parts, expected, strict=True):
            await client.send(part)
            assert await server.read(len(forwarded)) == forwarded
        pong = frame(b"!", "pong")
        await server.send(pong[:1])
        if gates is None:
            assert await client.read(1) == pong[:1]
        await server.send(pong[1:])
        assert await client.read(len(pong) - (gates is None)) == pong[gates is None :]
        bye = frame(b"\x0f\xa1bye", "close", mask=MASK)
        await client.send(bye)
        assert await server.read(len(bye)) == bye
        await server.send(frame(b"\x03\xe8", "close"))
        assert await client.read(4) == frame(b"\x03\xe8", "close")
        server.close()
        assert await client.gone() == "eof"
    frames = there.records(Frame)
    assert [(it.raw, it.op) for it in frames if it.ch == 3] == [
        (b'{"id":1}', None),
        (b"!", "ping"),
        (b"abc", None),
        (b"\xff\0", "binary"),
    ]
    assert [(it.raw, it.op) for it in frames if it.ch == 4] == [(b"!", "pong")]
    assert not any(it.by or it.dropped or it.held or it.undecided for it in frames)
    closes = {record.ch: record for record in there.records(Close)}
    assert (closes[3].how, closes[3].code, closes[3].reason) == ("abort", 4001, "bye")
    assert (closes[4].how, closes[4].code) == ("eof", 1000)


@pytest.mark.parametrize("who", ["client", "server"])
@scripted
async def test_when_one_peer_leaves_the_other_learns_it_and_nothing_is_lost(tmp_path, who):
    """H-05: the last bytes arrive before the end."""
    async with stage(tmp_path) as there:
        client, server, _ = await opened(there)
        leaving, staying = (client, server) if who == "client" else (server, client)
        last = frame(b"x" * 200_000, mask=MASK if who == "client" else b"") + frame(b"", "close")
        await leaving.send(last)
        leaving.close()
        assert await staying.read(len(last)) == last
        assert await staying.gone() == "eof"
    assert [len(record.raw) for record in there.records(Frame)] == [200_000]
    assert there.how()[3 if who == "client" else 4] == "eof"


@scripted
async def test_a_message_of_8_mb_passes_both_ways_at_once(tmp_path):
    """Issue 7: no size limit; neither direction waits for the other."""
    import asyncio

    async with stage(tmp_path) as there:
        client, server, _ = await opened(there)
        big = frame(b"0123456789" * 800_000, mask=MASK)
        plain = frame(b"0123456789" * 800_000)
        _, _, got, answered = await asyncio.gather(
            client.send(big), server.send(plain), server.read(len(big)), client.read(len(plain))
        )
        assert (got, answered) == (big, plain)
        client.close()
        await server.gone()
    assert {record.raw for record in there.records(Frame)} == {b"0123456789" * 800_000}


@scripted
async def test_a_handshake_that_is_refused_is_a_response(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(ASK)
        refusal = b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno"
        await server.send(refusal)
        assert await client.until(b"no") == refusal
    assert [record.role for record in there.opens()] == ["request", "response"]


@scripted
async def test_the_end_of_the_proxy_ends_a_socket_in_order(tmp_path):
    async with stage(tmp_path) as there:
        client, _, _ = await opened(there)
        assert await there.end() == 0
        await client.gone()
    assert there.how() == {1: "eof", 2: "eof", 3: "shutdown", 4: "shutdown"}
    assert there.ended()
