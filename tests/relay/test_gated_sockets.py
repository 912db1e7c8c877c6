"""WebSocket messages pass a gate, on `proxy` and `mitm` alike, in each direction separately."""

import asyncio
import contextlib
import json

import pytest

from mcpspy.capture.records import Frame, Release
from tests.relay.http.test_tunnel import ASK, GRANT, MASK
from tests.relay.interception import RELAYS, relaying
from tests.relay.stage import scripted
from tests.wire.test_websocket import frame

pytestmark = pytest.mark.parametrize("relay", RELAYS)
from_both = pytest.mark.parametrize("sender", ["client", "server"])

SECOND = 1_000_000_000
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
PING = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/%d"}'
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
LARGE = NOTE % 1 + b" " * 600_000
OTHER = {"client": "server", "server": "client"}
CALLS = {"method": "tools/*"}
GOING_AWAY = (1001).to_bytes(2)


def gate(action, name="g", **when):
    return [{"name": name, "when": when, "action": action}]


class Socket:
    """Both ends of a WebSocket after its handshake."""

    def __init__(self, client, server):
        self.peers = {"client": client, "server": server}
        self.masks = []

    async def say(self, sender, *payloads, op=None, **rest):
        """Send messages, all with one write."""
        mask = {"mask": MASK} if sender == "client" else {}
        await self.peers[sender].send(b"".join(frame(payload, op, **mask, **rest) for payload in payloads))

    async def heard(self, receiver):
        """Return the first byte and the payload of the next frame; only a server may receive masks (RFC 6455, 5.1)."""
        peer = self.peers[receiver]
        first, size = await peer.read(2)
        masked, size = bool(size & 0x80), size & 0x7F
        assert masked is (receiver == "server")
        if size > 125:
            size = int.from_bytes(await peer.read(2 if size == 126 else 8))
        mask = await peer.read(4) if masked else b"\0" * 4
        self.masks.append(mask)
        return first, bytes(byte ^ mask[at % 4] for at, byte in enumerate(await peer.read(size)))

    async def at(self, receiver, count=1):
        """Return the payloads of the next frames."""
        return [(await self.heard(receiver))[1] for _ in range(count)]

    async def flood(self, sender, payload, times):
        with contextlib.suppress(ConnectionError):
            for _ in range(times):
                await self.say(sender, payload)


async def opened(there, request=ASK):
    client, server, _ = await there.both(request)
    await server.send(GRANT)
    assert (await client.head()).startswith(b"HTTP/1.1 101 ")
    return Socket(client, server)


def messages(there, sender=None):
    """Return the recorded messages; `mitm` records no control frames."""
    channels = {it.ch for it in there.opens() if it.role == "ws" and sender in (None, it.sender)}
    return [it for it in there.records(Frame) if it.ch in channels and it.op in (None, "binary")]


CHANGES = {
    "send": ({"send": ["a", "b" * 9000]}, [b"a", b"b" * 9000]),
    "repeat": ({"repeat": 2}, [CALL.replace(b"/call", b"/repeat")] * 2),
    "drop": ({"drop": True}, []),
}


@from_both
@scripted
async def test_a_message_is_replaced_repeated_or_dropped(tmp_path, certificate, relay, sender):
    """A changed message is one frame, also if it is long."""
    gates = [it for name, (act, _) in CHANGES.items() for it in gate(act, name, method=f"tools/{name}")]
    async with relaying(relay, tmp_path, certificate, gates) as there:
        socket = await opened(there)
        for name, (_, sent) in CHANGES.items():
            await socket.say(sender, CALL.replace(b"call", name.encode()))
            await socket.say(sender, PING)
            found = [await socket.heard(OTHER[sender]) for _ in range(len(sent) + 1)]
            assert found == [(0x81, payload) for payload in (*sent, PING)], name
        assert (len(set(socket.masks)) > 1) is (sender == "client"), "masks are not repeated"
        await there.captured()
    frames = iter(messages(there))
    for name, (_, sent) in CHANGES.items():
        first = next(frames)
        assert first.raw == CALL.replace(b"call", name.encode())
        assert (first.sent, first.dropped, first.by) == (sent[0] if sent else None, not sent, f"gate {name}")
        rest = [(it.raw, it.sender) for it in (next(frames) for _ in range(len(sent) or 1))]
        assert rest == [*((raw, "mcpspy") for raw in sent[1:]), (PING, None)]
    assert not list(frames)


@from_both
@scripted
async def test_a_message_is_answered_in_the_place_of_the_other_side(tmp_path, certificate, relay, sender):
    async with relaying(relay, tmp_path, certificate, gate({"answer": '{"result":{}}'}, **CALLS)) as there:
        socket = await opened(there)
        await socket.say(sender, CALL)
        assert json.loads((await socket.at(sender))[0]) == json.loads(RESULT)
        await there.captured()
    asked, answer = messages(there)
    assert (asked.raw, asked.dropped, asked.by) == (CALL, True, "gate g")
    assert (answer.ch != asked.ch, answer.sender, answer.by) == (True, "mcpspy", "gate g")


@from_both
@scripted
async def test_a_closing_gate_ends_both_sides_with_a_close_frame(tmp_path, certificate, relay, sender):
    """Frames that are held in the other direction are forwarded first (RFC 6455, 7.4.1)."""
    gates = gate({"close": True}, **CALLS) + gate({"hold": 60 * SECOND}, "h", method="ping")
    receiver = OTHER[sender]
    async with relaying(relay, tmp_path, certificate, gates) as there:
        socket = await opened(there)
        await socket.say(receiver, PING)
        await socket.say(sender, NOTE % 0)
        assert await socket.at(receiver) == [NOTE % 0]
        await there.recorded(lambda it: isinstance(it, Frame) and it.held)
        await socket.say(sender, CALL, NOTE % 1)  # together: what comes later may find the connection closed
        assert await socket.heard(receiver) == (0x88, GOING_AWAY)
        if relay == "proxy":
            assert await socket.at(sender) == [PING]
        assert await socket.heard(sender) == (0x88, GOING_AWAY)
        for peer in socket.peers.values():
            assert await peer.rest() == b""
        await there.captured()
    assert [(it.raw, it.dropped, it.by) for it in messages(there, sender)] == [
        (NOTE % 0, False, None),
        (CALL, True, "gate g"),
        (NOTE % 1, True, "gate g"),
    ]
    (release,) = there.records(Release)
    assert (release.how, release.dropped) == ("closed", relay == "mitm")
    assert {there.how()[3], there.how()[4]} == {"shutdown" if relay == "proxy" else "abort"}


@from_both
@scripted
async def test_one_direction_is_held_while_the_other_goes_on(tmp_path, certificate, relay, sender):
    """The order is kept in the held direction, but a ping overtakes."""
    receiver = OTHER[sender]
    async with relaying(relay, tmp_path, certificate, gate({"hold": SECOND}, **CALLS)) as there:
        socket = await opened(there)
        for payload in (CALL, NOTE % 1, NOTE % 2, PING):
            await socket.say(sender, payload)
        await socket.say(sender, b"alive", op="ping")
        for number in range(3):
            await socket.say(receiver, NOTE % number)
        assert await socket.at(sender, 3) == [NOTE % number for number in range(3)]
        assert await socket.at(receiver, 5) == [PING, b"alive", CALL, NOTE % 1, NOTE % 2]
        await socket.say(sender, NOTE % 3)
        assert await socket.at(receiver) == [NOTE % 3]
        await there.captured()
    held = messages(there, sender)
    assert [it.held for it in held] == [1, 2, 3, None, None]
    releases = there.records(Release)
    assert [(it.held, it.how) for it in releases] == [(1, "expired"), (2, "delayed"), (3, "delayed")]
    assert releases[0].t - held[0].t >= SECOND
    assert max(it.t for it in messages(there, receiver)) < releases[0].t


@scripted
async def test_a_cancellation_drops_the_held_request_and_itself(tmp_path, certificate, relay):
    """As on stdio (docs/capture-format.md, `release`)."""
    async with relaying(relay, tmp_path, certificate, gate({"hold": 60 * SECOND}, **CALLS)) as there:
        socket = await opened(there)
        for payload in (CALL, CANCEL, NOTE % 1):
            await socket.say("client", payload)
        assert await socket.at("server") == [NOTE % 1]
        await there.captured()
    (release,) = there.records(Release)
    assert (release.how, release.dropped, release.by) == ("cancelled", True, "gate g")
    assert [(it.raw, it.dropped, it.by) for it in messages(there)][1] == (CANCEL, True, "gate g")


@pytest.mark.parametrize("ending", ["close", "abort"])
@scripted
async def test_what_a_client_has_said_goes_before_it_closes(tmp_path, certificate, relay, ending):
    """What is held for the client itself is dropped."""
    gates = gate({"hold": 60 * SECOND}, **CALLS) + gate({"hold": 60 * SECOND}, **{"from": "server"})
    async with relaying(relay, tmp_path, certificate, gates) as there:
        socket = await opened(there)
        await socket.say("server", RESULT)
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == RESULT)
        await socket.say("client", CALL)
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == CALL)
        if ending == "close":
            await socket.say("client", (1000).to_bytes(2) + b"done", op="close")
        else:
            socket.peers["client"].close()
        assert await socket.at("server") == [CALL]
        if ending == "close":
            socket.peers["client"].close()
        assert await socket.peers["server"].gone() in ("eof", "reset")
        await there.captured()
    releases = {it.held: (it.how, it.dropped) for it in there.records(Release)}
    assert releases == {1: ("closed", True), 2: ("closed", False)}


@from_both
@scripted
async def test_a_peer_of_whom_much_is_held_is_not_read_while_the_other_goes_on(tmp_path, certificate, relay, sender):
    """The other peer may also disconnect before all messages have been read."""
    receiver = OTHER[sender]
    async with relaying(relay, tmp_path, certificate, gate({"hold": 60 * SECOND}, **CALLS)) as there:
        socket = await opened(there)
        await socket.say(sender, CALL)
        flood = asyncio.create_task(socket.flood(sender, LARGE, 50))
        await there.recorded(lambda it: isinstance(it, Frame) and it.raw == LARGE and it.held == 3)
        for number in range(3):
            await socket.say(receiver, NOTE % number)
        assert await socket.at(sender, 3) == [NOTE % number for number in range(3)]
        assert not flood.done()
        socket.peers[receiver].abort()
        assert await socket.peers[sender].gone() in ("eof", "reset")
        await flood
        await there.captured()
    held = [it.held for it in there.records(Frame) if it.held]
    assert 3 <= len(held) <= 6
    assert {(it.how, it.dropped) for it in there.records(Release)} == {("closed", True)}


@scripted
async def test_what_was_held_up_is_read_when_there_is_room_again(tmp_path, certificate, relay):
    async with relaying(relay, tmp_path, certificate, gate({"delay": SECOND // 4}, **CALLS)) as there:
        socket = await opened(there)
        await socket.say("client", CALL)
        flood = asyncio.create_task(socket.flood("client", LARGE, 4))
        assert await socket.at("server") == [CALL]
        heard = b""
        while len(heard) < 4 * len(LARGE):
            heard += (await socket.at("server"))[0]
        assert heard == LARGE * 4
        await flood
        await there.captured()
    assert [it.raw == LARGE for it in messages(there)] == [False] + [True] * 4


@scripted
async def test_two_sockets_of_one_session_do_not_mix_their_ids(tmp_path, certificate, relay):
    """For the gate, each connection is a separate session with its own request ids."""
    ask = ASK.replace(b"\r\n\r\n", b"\r\nMcp-Session-Id: s\r\n\r\n")
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, **CALLS, kind="response")) as there:
        one, other = [await opened(there, ask) for _ in range(2)]
        await one.say("client", CALL)
        assert await one.at("server") == [CALL]
        await other.say("server", RESULT)
        assert await other.at("client") == [RESULT]  # it is not the response to a request of this connection
        await one.say("server", RESULT)
        await one.say("server", NOTE % 1)
        assert await one.at("client") == [NOTE % 1]


@scripted
async def test_a_message_that_is_released_does_not_enter_another(tmp_path, certificate, relay):
    """Half of a message has arrived when the message before it is released."""
    async with relaying(relay, tmp_path, certificate, gate({"delay": SECOND // 5}, **CALLS)) as there:
        socket = await opened(there)
        await socket.say("client", CALL)
        half = NOTE % 1
        await socket.say("client", half[:9], final=False)
        assert await socket.at("server") == [CALL]
        await socket.say("client", half[9:], op="continuation")
        assert b"".join(await socket.at("server", 2)) == half
        await there.captured()
    assert [it.raw for it in messages(there)] == [CALL, half]


@pytest.mark.parametrize("parts", [1, 5])
@scripted
async def test_a_message_that_is_too_long_passes_undecided(tmp_path, certificate, relay, parts):
    """In one fragment or in several; the next message is decided on again."""
    size = (1 << 20) // parts + 1
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, **{"from": "client"})) as there:
        socket = await opened(there)
        await socket.say("client", CALL)
        for part in range(parts):
            op = "continuation" if part else None
            await socket.say("client", b"x" * size, op=op, final=part == parts - 1)
        await socket.say("client", b"y" * 100_000)
        await socket.say("client", b"alive", op="ping")
        heard = b""
        while not heard.endswith(b"alive"):
            heard += (await socket.at("server"))[0]
        assert heard == b"x" * parts * size + b"alive"
        await there.captured()
    assert [(len(it.raw), it.undecided, it.dropped) for it in messages(there)] == [
        (len(CALL), False, True),
        (parts * size, True, False),
        (100_000, False, True),
    ]
