"""`mcpspy mitm` between HTTP/2 peers: streams that either side resets, and connections that either side ends."""

import struct

import pytest

from mcpspy.capture.records import Close, Frame, Open
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.stage import Peer, scripted

pytestmark = needs_mitmproxy

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL = 0, 2, 7, 8
EVENT = b'data: {"jsonrpc":"2.0","method":"notifications/%d"}\n\n'


class Connection:
    """One end of a connection, frame by frame (RFC 9113, 4.1); received header blocks are not decoded."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def begin(self, *, client: bool) -> "Connection":
        if not client:
            assert await self.peer.read(len(PREFACE)) == PREFACE
        await self.peer.send(PREFACE if client else b"")
        await self.send(SETTINGS, 0, 0)
        return self

    async def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        head = struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream)
        await self.peer.send(head, payload)

    async def ask(self, stream: int, path: bytes) -> None:
        fields = {b":method": b"GET", b":scheme": b"https", b":path": path, b":authority": b"127.0.0.1"}
        await self.send(HEADERS, END_HEADERS | END_STREAM, stream, block(fields | {b"mcp-session-id": b"s"}))

    async def answer(self, stream: int) -> None:
        fields = {b":status": b"200", b"content-type": b"text/event-stream"}
        await self.send(HEADERS, END_HEADERS, stream, block(fields))

    async def reset(self, stream: int, code: int) -> None:
        await self.send(RST_STREAM, 0, stream, struct.pack(">I", code))

    async def next(self) -> tuple[int, int, bytes]:
        """Return the kind, stream and payload of the next frame of a stream, or of the GOAWAY frame."""
        while True:
            head = await self.peer.read(9)
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = await self.peer.read(int.from_bytes(head[:3]))
            if kind == SETTINGS and not flags & ACK:
                await self.send(SETTINGS, ACK, 0)
            if kind in (DATA, HEADERS, RST_STREAM, GOAWAY) and (payload or kind != DATA):
                return kind, stream, payload


def block(fields: dict[bytes, bytes]) -> bytes:
    """Encode a header block of literals without indexing (RFC 7541, 6.2.2)."""
    return b"".join(b"\0" + bytes((len(k),)) + k + bytes((len(v),)) + v for k, v in fields.items())


async def asked(there):
    """Send one request; return the client, the server, and the number of the stream at the server."""
    client = await Connection(await there.client(alpn=("h2",))).begin(client=True)
    await client.ask(1, b"/first")
    server = await Connection(await there.server()).begin(client=False)
    kind, number, _ = await server.next()
    assert kind == HEADERS
    return client, server, number


async def two_streams(there, folder=b""):
    """Open two event streams, with one event each; return the client and the server, each with its stream numbers.

    The paths of the requests are `/first` and `/second` below `folder`.
    """
    client = await Connection(await there.client(alpn=("h2",))).begin(client=True)
    server = None
    numbers = []
    for stream, path in ((1, b"/first"), (3, b"/second")):
        await client.ask(stream, folder + path)
        server = server or await Connection(await there.server()).begin(client=False)
        kind, number, _ = await server.next()
        assert kind == HEADERS
        numbers.append(number)
        await server.answer(number)
        assert (await client.next())[:2] == (HEADERS, stream)
        await server.send(DATA, 0, number, EVENT % stream)
        assert await client.next() == (DATA, stream, EVENT % stream)
    return client, (1, 3), server, numbers


def ends(there, sender):
    """Return how the bodies of `sender` ended, by the path of their request."""
    paths = {it.ch: it.head["target"] for it in there.opens() if it.role == "request"}
    owners = {it.ch: paths[it.answers or it.ch] for it in there.opens() if it.sender == sender}
    return {owners[it.ch]: it.how for it in there.records(Close) if it.ch in owners}


CODES = (NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL)


@pytest.mark.parametrize("by_client", [True, False])
@scripted
async def test_a_stream_that_is_reset_is_told_by_who_did_it_and_others_go_on(tmp_path, certificate, by_client):
    """H-05: for every code; a server may cancel, and a client may send another code."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        for code in CODES:
            client, ours, server, theirs = await two_streams(there, b"/%d" % code)
            if by_client:
                await client.reset(ours[0], code)
                assert (await server.next())[:2] == (RST_STREAM, theirs[0])
            else:
                await server.reset(theirs[0], code)
                assert (await client.next())[:2] == (RST_STREAM, ours[0])
            await server.send(DATA, END_STREAM, theirs[1], EVENT % 9)
            assert await client.next() == (DATA, ours[1], EVENT % 9)
        await there.captured()
    paths = [(f"/{code}/first", f"/{code}/second") for code in CODES]
    how = "abort" if by_client else "reset"
    assert ends(there, "server") == {path: end for pair in paths for path, end in zip(pair, (how, "eof"), strict=True)}
    assert ends(there, "client") == {path: "eof" for pair in paths for path in pair}
    assert [it.raw for it in there.records(Frame)] == [(EVENT % number)[:-1] for number in (1, 3, 9)] * len(CODES)


@scripted
async def test_a_stream_that_fails_before_its_answer_is_answered_on_this_side(tmp_path, certificate):
    """Mitmproxy sends the response, and it is recorded as one of mcpspy."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        for code in (NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM):
            client, server, number = await asked(there)
            await server.reset(number, code)
            assert (await client.next())[:2] == (HEADERS, 1)
        await there.captured()
    answers = [it for it in there.opens() if it.role == "response"]
    assert [(it.sender, it.head["status"]) for it in answers] == [("mcpspy", 502)] * 3
    for answer in answers:
        assert there.frames(answer.ch)[0].startswith(b"mcpspy: stream reset by server (")


@scripted
async def test_a_stream_that_the_server_cancels_before_its_answer_has_none(tmp_path, certificate):
    """The client gets the same reset, or, from mitmproxy 11, a status."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        client, server, number = await asked(there)
        await server.reset(number, CANCEL)
        assert (await client.next())[0] in (HEADERS, RST_STREAM)
        await there.captured()
    assert [(it.sender, it.role) for it in there.opens()] == [("client", "request")]


@pytest.mark.parametrize("by_client", [True, False])
@scripted
async def test_a_connection_that_is_given_up_ends_all_of_its_streams(tmp_path, certificate, by_client):
    """RFC 9113, 6.8; mitmproxy resets all of them at once."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        client, ours, server, theirs = await two_streams(there)
        goodbye = struct.pack(">II", max(ours if by_client else theirs), NO_ERROR)
        await (client if by_client else server).send(GOAWAY, 0, 0, goodbye)
        for number in (0, 1):
            if by_client:
                assert (await server.next())[:2] == (RST_STREAM, theirs[number])
            else:
                assert (await client.next())[:2] == (RST_STREAM, ours[number])
        await there.captured()
    how = "abort" if by_client else "reset"
    assert ends(there, "server") == {"/first": how, "/second": how}


@scripted
async def test_a_client_that_cancels_before_the_answer_ends_the_request_upstream(tmp_path, certificate):
    """H-05, R-09: a response without a head records when the client left."""
    async with interception(tmp_path, certificate, alpn=("h2",)) as there:
        client, server, number = await asked(there)
        await client.reset(1, CANCEL)
        assert (await server.next())[:2] == (RST_STREAM, number)
        await there.captured()
    assert [(it.role, it.head is None) for it in there.records(Open)] == [("request", False), ("response", True)]
    assert ends(there, "server") == {"/first": "abort"}
