"""WebSocket messages pass the gate of `mitm`, in each direction separately."""

import asyncio
import contextlib
import json
from itertools import islice

import pytest

from mcpspy.capture.records import Close, Frame, Release
from tests.relay.interception import certificate, gated, needs_mitmproxy
from tests.relay.mitm.test_addon import ASK, GRANT, MASK, asked
from tests.relay.stage import scripted
from tests.wire.test_websocket import frame

__all__ = ["certificate"]  # a fixture

pytestmark = needs_mitmproxy

SECOND = 1_000_000_000
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'
PING = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/%d"}'


def gate(action, **when):
    return [{"name": "g", "when": when, "action": action}]


class Socket:
    """Both ends of a WebSocket after its handshake."""

    def __init__(self, client, server):
        self.client, self.server = client, server

    async def say(self, payload, op=None, **rest):
        await self.client.send(frame(payload, op, mask=MASK, **rest))

    async def tell(self, payload, op=None, **rest):
        await self.server.send(frame(payload, op, **rest))

    async def heard(self, peer):
        """Return the first byte and the payload of the next WebSocket frame that a peer receives."""
        first, size = await peer.read(2)
        masked, size = size & 0x80, size & 0x7F
        if size > 125:
            size = int.from_bytes(await peer.read(2 if size == 126 else 8))
        mask = await peer.read(4) if masked else b"\0" * 4
        return first, bytes(byte ^ mask[at % 4] for at, byte in enumerate(await peer.read(size)))

    async def at_server(self):
        return (await self.heard(self.server))[1]

    async def at_client(self):
        return (await self.heard(self.client))[1]


async def opened(there):
    client, server, _ = await asked(there, ASK)
    await server.send(GRANT)
    assert (await client.head()).startswith(b"HTTP/1.1 101 ")
    return Socket(client, server)


@scripted
async def test_what_no_gate_names_passes_as_it_came(tmp_path, certificate):
    """The fragments of a message are kept."""
    async with gated(tmp_path, certificate, gate({"drop": True}, method="never")) as there:
        socket = await opened(there)
        await socket.say(CALL[:20], final=False)
        await socket.say(CALL[20:], "continuation")
        assert [await socket.heard(socket.server) for _ in range(2)] == [(0x01, CALL[:20]), (0x80, CALL[20:])]
        await socket.tell(b"\xff\0", "binary")
        assert await socket.heard(socket.client) == (0x82, b"\xff\0")
        await socket.tell(b"alive", "ping")
        assert await socket.heard(socket.client) == (0x89, b"alive")
        await there.captured()
    assert [(it.raw, it.op, it.by, it.held) for it in there.records(Frame)] == [
        (CALL, None, None, None),
        (b"\xff\0", "binary", None, None),
    ]


CHANGES = {
    "send": ({"send": ["a", "b"]}, [b"a", b"b"]),
    "repeat": ({"repeat": 2}, [CALL.replace(b"/call", b"/repeat")] * 2),
    "drop": ({"drop": True}, []),
}


@scripted
async def test_a_message_is_replaced_repeated_or_dropped(tmp_path, certificate):
    gates = [it | {"name": name} for name, (act, _) in CHANGES.items() for it in gate(act, method=f"tools/{name}")]
    async with gated(tmp_path, certificate, gates) as there:
        socket = await opened(there)
        for name, (_, sent) in CHANGES.items():
            await socket.say(CALL.replace(b"call", name.encode()))
            await socket.say(PING)
            assert [await socket.at_server() for _ in range(len(sent) + 1)] == [*sent, PING], name
        await there.captured()
    frames = iter(there.records(Frame))
    for name, (_, sent) in CHANGES.items():
        first = next(frames)
        assert first.raw == CALL.replace(b"call", name.encode())
        assert (first.sent, first.dropped, first.by) == (sent[0] if sent else None, not sent, f"gate {name}")
        rest = [(it.raw, it.sender) for it in islice(frames, len(sent) or 1)]
        assert rest == [*((raw, "mcpspy") for raw in sent[1:]), (PING, None)]
    assert not list(frames)


@scripted
async def test_a_long_message_that_was_changed_is_one_frame(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"send": "x" * 9000}, **{"from": "server"})) as there:
        socket = await opened(there)
        await socket.tell(RESULT)
        assert await socket.heard(socket.client) == (0x81, b"x" * 9000)


@scripted
async def test_a_message_is_answered_in_the_place_of_the_server(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"answer": '{"result":{}}'}, method="tools/*")) as there:
        socket = await opened(there)
        await socket.say(CALL)
        assert json.loads(await socket.at_client()) == json.loads(RESULT)
        await there.captured()
    asked_, answer = there.records(Frame)
    assert (asked_.raw, asked_.dropped, asked_.by) == (CALL, True, "gate g")
    assert (answer.ch, answer.sender, answer.by) == (4, "mcpspy", "gate g")


@scripted
async def test_a_closing_gate_closes_both_connections(tmp_path, certificate):
    async with gated(tmp_path, certificate, gate({"close": True}, method="tools/*")) as there:
        socket = await opened(there)
        await socket.say(PING)
        assert await socket.at_server() == PING
        await socket.client.send(frame(CALL, mask=MASK), frame(NOTE % 1, mask=MASK))
        for peer in (socket.client, socket.server):
            assert await socket.heard(peer) == (0x88, (1001).to_bytes(2))  # RFC 6455, 7.4.1
            assert await peer.rest() == b""
        await there.captured()
    frames = [(it.raw, it.dropped, it.by) for it in there.records(Frame)]
    assert frames == [(PING, False, None), (CALL, True, "gate g"), (NOTE % 1, True, "gate g")]
    assert [it.how for it in there.records(Close)][2:] == ["abort", "abort"]


@scripted
async def test_one_direction_is_held_while_the_other_goes_on(tmp_path, certificate):
    """The order is kept in the held direction, but a ping overtakes."""
    async with gated(tmp_path, certificate, gate({"hold": 2 * SECOND}, method="tools/*")) as there:
        socket = await opened(there)
        await socket.say(CALL)
        await socket.say(NOTE % 1)
        await socket.say(NOTE % 2)
        for number in range(3):
            await socket.tell(NOTE % number)
            assert await socket.at_client() == NOTE % number
        await socket.say(PING)
        await socket.say(b"alive", "ping")
        assert [await socket.at_server() for _ in range(2)] == [PING, b"alive"]
        assert [await socket.at_server() for _ in range(3)] == [CALL, NOTE % 1, NOTE % 2]
        await socket.say(NOTE % 3)
        assert await socket.at_server() == NOTE % 3
        await there.captured()
    client = [it for it in there.records(Frame) if it.ch == 3]
    assert [it.held for it in client] == [1, 2, 3, None, None]
    releases = there.records(Release)
    assert [(it.held, it.how) for it in releases] == [(1, "expired"), (2, "delayed"), (3, "delayed")]
    assert releases[0].t - client[0].t >= 2 * SECOND
    passed = [it.t for it in there.records(Frame) if it.ch == 4]
    assert len(passed) == 3
    assert max(passed) < releases[0].t


@pytest.mark.parametrize("sender", ["client", "server"])
@scripted
async def test_a_peer_of_whom_much_is_held_is_not_read_while_the_other_goes_on(tmp_path, certificate, sender):
    """The other peer may also disconnect before all messages have been read."""
    note = NOTE % 1 + b" " * 600_000
    async with gated(tmp_path, certificate, gate({"hold": 60 * SECOND}, method="tools/*")) as there:
        socket = await opened(there)
        if sender == "client":
            say, tell, told, other = socket.say, socket.tell, socket.at_client, socket.server
        else:
            say, tell, told, other = socket.tell, socket.say, socket.at_server, socket.client
        await say(CALL)
        flood = asyncio.create_task(_flood(say, note, 50))
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == note and it.held == 3)
        for number in range(3):
            await tell(NOTE % number)
            assert await told() == NOTE % number
        other.abort()
        peer = socket.client if sender == "client" else socket.server
        assert await peer.gone() in ("eof", "reset")
        await flood
        await there.captured()
    held = [it.held for it in there.records(Frame) if it.held]
    assert 3 <= len(held) <= 6
    assert {(it.how, it.dropped) for it in there.records(Release)} == {("closed", True)}


async def _flood(say, payload, times):
    with contextlib.suppress(ConnectionError):
        for _ in range(times):
            await say(payload)


@scripted
async def test_what_was_held_up_is_read_when_there_is_room_again(tmp_path, certificate):
    note = NOTE % 1 + b" " * 600_000
    async with gated(tmp_path, certificate, gate({"delay": SECOND // 2}, method="tools/*")) as there:
        socket = await opened(there)
        await socket.say(CALL)
        flood = asyncio.create_task(_flood(socket.say, note, 6))
        assert await socket.at_server() == CALL
        heard = b""
        while len(heard) < 6 * len(note):
            heard += await socket.at_server()
        assert heard == note * 6
        await flood
        await there.captured()
    assert [it.raw == note for it in there.records(Frame)] == [False] + [True] * 6


@scripted
async def test_two_sockets_of_one_session_do_not_mix_their_ids(tmp_path, certificate):
    """For the gate, each connection is a separate session with its own request ids."""
    ask = ASK.replace(b"\r\n\r\n", b"\r\nMcp-Session-Id: s\r\n\r\n")
    async with gated(tmp_path, certificate, gate({"drop": True}, method="tools/*", kind="response")) as there:
        sockets = []
        for _ in range(2):
            client, server, _ = await asked(there, ask)
            await server.send(GRANT)
            await client.head()
            sockets.append(Socket(client, server))
        one, other = sockets
        await one.say(CALL)
        assert await one.at_server() == CALL
        await other.tell(RESULT)
        assert await other.at_client() == RESULT  # it is not the response to a request of this connection
        await one.tell(RESULT)
        await one.tell(NOTE % 1)
        assert await one.at_client() == NOTE % 1


@scripted
async def test_a_message_that_is_released_does_not_enter_another(tmp_path, certificate):
    """Half of a message has arrived when the message before it is released."""
    async with gated(tmp_path, certificate, gate({"delay": SECOND // 5}, method="tools/*")) as there:
        socket = await opened(there)
        await socket.say(CALL)
        half = NOTE % 1
        await socket.say(half[:9], final=False)
        assert await socket.at_server() == CALL
        await socket.say(half[9:], "continuation")
        parts = [await socket.at_server() for _ in range(2)]
        assert b"".join(parts) == half
        await there.captured()
    assert [it.raw for it in there.records(Frame)] == [CALL, half]


@pytest.mark.parametrize("ending", ["close", "abort"])
@scripted
async def test_what_a_client_has_said_goes_before_it_closes(tmp_path, certificate, ending):
    gates = gate({"hold": 60 * SECOND}, method="tools/*") + gate({"hold": 60 * SECOND}, **{"from": "server"})
    async with gated(tmp_path, certificate, gates) as there:
        socket = await opened(there)
        await socket.tell(RESULT)
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == RESULT)
        await socket.say(CALL)
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == CALL)
        if ending == "close":
            await socket.say((1000).to_bytes(2) + b"done", "close")
        else:
            socket.client.abort()
        assert await socket.at_server() == CALL
        assert await socket.server.gone() in ("eof", "reset")
        await there.captured()
    releases = {it.held: (it.how, it.dropped) for it in there.records(Release)}
    assert releases == {1: ("closed", True), 2: ("closed", False)}


@scripted
async def test_a_message_that_is_too_long_passes_undecided(tmp_path, certificate):
    long = b"x" * ((1 << 20) + 1)
    async with gated(tmp_path, certificate, gate({"drop": True})) as there:
        socket = await opened(there)
        await socket.say(CALL)
        await socket.say(long)
        heard = b""
        while len(heard) < len(long):
            heard += await socket.at_server()
        assert heard == long
        await there.captured()
    assert [(it.raw == long, it.undecided, it.dropped) for it in there.records(Frame)] == [
        (False, False, True),
        (True, True, False),
    ]
