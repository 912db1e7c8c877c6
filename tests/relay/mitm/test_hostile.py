"""`mcpspy mitm` with malicious peers, or without HTTP: their bytes are forwarded or refused as by mitmproxy alone.

The messages about them, on stderr and in the capture, contain no secrets of the peers.
"""

import asyncio
import resource
import signal
import ssl
import time
from pathlib import Path

import pytest

from mcpspy.capture.records import Close, End, Frame, Gap, Open
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.mitm.test_addon import ASK, EVENTS, GRANT, JSON, MASK, POST, asked, chunk, memory
from tests.relay.stage import Peer, scripted
from tests.wire.test_websocket import frame

pytestmark = needs_mitmproxy

SECRET = b"hidden-words"
BEARER = b"Authorization: Bearer hidden-words\r\n"
START = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: 1\r\n"
TWO = b"Content-Length: 2\r\n"
PASSED, REFUSED, CLOSED = "passed", "refused", "closed"

REQUESTS = {
    "a line without a colon": (b"Authorization Bearer hidden-words\r\n", b"", REFUSED),
    "a name with a zero": (b"Authorization\0: Bearer hidden-words\r\n", b"", REFUSED),
    "a space before the colon": (b"Authorization : Bearer hidden-words\r\n", b"", REFUSED),
    "a zero in a value": (b"Authorization: Bearer \0hidden-words\r\n", b"", PASSED),
    "a folded value": (b"Authorization: Bearer\r\n hidden-words\r\n", b"", PASSED),
    "a line in a folded value": (b"X: y\r\n " + BEARER, b"", PASSED),
    "a line after a bare CR": (b"X: y\r" + BEARER, b"", PASSED),
    "a value of many bytes": (b"Authorization: Bearer " + SECRET * 16_000 + b"\r\n", b"", PASSED),
    "two lengths": (TWO + b"Content-Length: 3\r\n" + BEARER, b"{}", REFUSED),
    "a length that is none": (b"Content-Length: two\r\n" + BEARER, b"{}", REFUSED),
    "a length and chunks": (TWO + b"Transfer-Encoding: chunked\r\n" + BEARER, b"0\r\n\r\n", REFUSED),
    "a coding that is none": (b"Transfer-Encoding: other\r\n" + BEARER, b"0\r\n\r\n", REFUSED),
    "a chunk that is none": (b"Transfer-Encoding: chunked\r\n" + BEARER, b"hidden-words\r\n", CLOSED),
}
LINES = {
    "a target with a space": (b"GET /mcp?a=b token=hidden-words HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    "a target with a password": (b"GET http://u:hidden-words@127.0.0.1:1/ HTTP/1.1\r\n\r\n", REFUSED),
    "another version": (b"GET /mcp?token=hidden-words HTTP/9.9\r\nMcp-Session-Id: 1\r\n" + BEARER + b"\r\n", PASSED),
    "a host that is none": (b"GET /mcp HTTP/1.1\r\nHost: [none\r\nMcp-Session-Id: 1\r\n\r\n", PASSED),
    "a preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nhidden-words", CLOSED),
}
MALFORMED = {name: (START + line + b"\r\n" + body, end) for name, (line, body, end) in REQUESTS.items()} | LINES


@scripted
async def test_a_malformed_request_ends_as_with_mitmproxy_and_tells_no_secret(tmp_path, certificate):
    """O-02, S-01."""
    ends = {}
    async with interception(tmp_path, certificate) as there:
        for name, (request, _) in MALFORMED.items():
            client = await there.client()
            await client.send(request)
            server = await there.server()  # mitmproxy connects before it has the head
            got = await server.reader.read(1)
            if got:
                got += await server.head()
                ends[name] = PASSED if got == request[: len(got)] else got
                await server.send(JSON)
                assert (await client.head()).startswith(b"HTTP/1.1 200 "), name
            else:
                answer = await client.rest()
                ends[name] = REFUSED if answer.startswith(b"HTTP/1.1 400 ") else answer or CLOSED
            client.writer.transport.abort()
        await asyncio.to_thread(there.mitm.end)
    assert ends == {name: end for name, (_, end) in MALFORMED.items()}
    written = b"".join(path.read_bytes() for path in there.mitm.captures())
    assert b"/mcp" in written
    assert [line for line in written.split(b"\n") if SECRET in line] == []
    assert "hidden-words" not in there.mitm.said()
    assert "a bug" not in there.mitm.said()


OK = b"HTTP/1.1 200 OK\r\n"
COOKIE = b"Set-Cookie: hidden-words\r\n"
ANSWERS = {
    "a line without a colon": (OK + b"Set-Cookie hidden-words\r\n\r\n", b""),
    "no HTTP": (b"hidden-words\r\n\r\n", b""),
    "a status that is none": (b"HTTP/1.1 hidden-words OK\r\n\r\n", b""),
    "a name with a zero": (OK + b"Set-Cookie\0: hidden-words\r\n" + TWO + b"\r\n{}", b""),
    "a length that is none": (OK + b"Content-Length: hidden-words\r\n\r\n{}", b""),
    "two lengths": (OK + TWO + b"Content-Length: 3\r\n" + COOKIE + b"\r\n{}", b""),
    "a coding that is none": (OK + b'Transfer-Encoding: it\'s "hidden-words"\r\n\r\n', b""),
    "a folded value": (OK + b"Set-Cookie: a=\r\n hidden-words\r\n" + TWO + b"\r\n{}", b"HTTP/1.1 200 OK\r\nSet-Cookie"),
    "a reason": (b"HTTP/1.1 401 token=hidden-words\r\n" + TWO + b"\r\n{}", b"HTTP/1.1 401 token=hidden-words\r\n"),
    "half a head": (OK + b"Set-Cookie: hidden-words\r\n", b""),
}


@scripted
async def test_a_malformed_answer_ends_as_with_mitmproxy_and_tells_no_secret(tmp_path, certificate):
    """O-02: mitmproxy quotes the refused bytes in its response to the client; the capture does not have them."""
    async with interception(tmp_path, certificate) as there:
        for name, (answer, start) in ANSWERS.items():
            client, server, _ = await asked(there)
            await server.read(len(CALL))
            await server.send(answer)
            if name == "half a head":
                server.close()
            assert (await client.head()).startswith(start or b"HTTP/1.1 502 "), name
            client.writer.transport.abort()
        await there.captured()
    written = there.path.read_bytes()
    assert [line for line in written.split(b"\n") if SECRET in line] == []
    assert "hidden-words" not in there.mitm.said()
    answers = [it for it in there.records(Open) if it.role == "response"]
    assert [it.sender for it in answers] == ["server" if start else "mcpspy" for _, start in ANSWERS.values()]
    texts = [it.raw for it in there.records(Frame) if it.raw.startswith(b"mcpspy: ")]
    assert "mcpspy: Cannot parse HTTP response: Invalid header line: «withheld»".encode() in texts


async def hello(there):
    """Connect a client that has received the certificate with TLS 1.2, in which alerts are not encrypted yet."""
    peer = await there.tunnel()
    await peer.send(client_hello())
    await peer.until(b"\x0e\x00\x00\x00")  # ServerHelloDone (RFC 5246, 7.4.5)
    return peer


def client_hello():
    """Return the first bytes of a TLS client."""
    context = ssl.create_default_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = context.wrap_bio(received, sent, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        handshake.do_handshake()
    return sent.read()


LEFT = "a client disconnected after it received our certificate"
ALERT = b"\x15\x03\x03\x00\x02\x02"
NOT_TLS = b"\x16\x03\x01\x00\x05hidden-words"


@pytest.mark.parametrize(
    ("greeted", "sent", "words"),
    [
        (True, ALERT + b"\x30", ("refused our certificate for 127.0.0.1 (unknown ca): it does not trust",)),
        (True, ALERT + b"\x2a", ("refused our certificate for 127.0.0.1 (bad certificate): ", "leave 127.0.0.1 out")),
        (True, ALERT + b"\x2e", ("refused our certificate for 127.0.0.1 (certificate unknown): ",)),
        (True, ALERT + b"\x28", ("no TLS with a client for 127.0.0.1 (", "alert handshake failure): ")),
        (True, b"", (f"{LEFT} for 127.0.0.1: ", "leave 127.0.0.1 out", "mcpspy run")),
        (True, b"hidden-words", ("no TLS with a client for 127.0.0.1 (",)),
        (False, NOT_TLS, ("no TLS with a client for 127.0.0.1 (Cannot parse ClientHello): ",)),
        (False, NOT_TLS[:6], None),
        (False, b"", None),
    ],
    ids=lambda it: repr(it)[:40],
)
@scripted
async def test_why_no_tls_came_about_with_a_client_is_told_apart(tmp_path, certificate, greeted, sent, words):
    """M-06: an alert, no alert, or no TLS; a client that leaves before it has a certificate gives no message."""
    async with interception(tmp_path, certificate) as there:
        peer = await (hello(there) if greeted else there.tunnel())
        await peer.send(sent)
        if not words or "disconnected" in words[0]:
            peer.writer.write_eof()
        assert await peer.gone() in ("eof", "reset")
        if words:
            await asyncio.to_thread(there.mitm.says, *words)
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("\n") == 1 + bool(words)
        assert "hidden-words" not in there.mitm.said()
        assert b"hidden-words".hex() not in there.mitm.said()


@scripted
async def test_a_client_that_leaves_before_it_has_our_certificate_has_not_refused_it(tmp_path, certificate):
    """M-06: it leaves during the handshake with the server, which comes first, or within its own ClientHello."""
    silent = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: silent.put_nowait(Peer(*streams)), "127.0.0.1", 0)
    async with interception(tmp_path, certificate) as there:
        there.upstream, upstream = server.sockets[0].getsockname()[1], there.upstream
        client = await there.tunnel()
        await client.send(client_hello())
        half = await there.connect()
        await half.send(client_hello()[:9])
        half.close()
        answering = await silent.get()
        await answering.read(1)
        client.writer.transport.abort()
        there.upstream = upstream
        await there.tunnel()  # after this, mitm has noticed the disconnected clients
        answering.writer.transport.abort()
        await asyncio.to_thread(there.mitm.says, "no TLS with 127.0.0.1:")
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("\n") == 2
    server.close()


BUGS = """
import sys
import mcpspy.relay.mitm.addon
from mcpspy.relay.mitm.flow import Flow
from mcpspy.relay.mitm.addon import Interceptor
def bug(*_, **__):
    raise ZeroDivisionError("planted")
for place in {places}:
    owner, _, name = place.rpartition(".")
    assert hasattr(eval(owner), name)
    setattr(eval(owner), name, bug)
from mcpspy.cli import main
sys.exit(main())
"""
HOOKS = (
    "request response error client_disconnected websocket_message websocket_end tcp_message tls_clienthello"
    " tls_failed_client tls_failed_server server_connect_error"
)


@pytest.mark.parametrize(
    "places",
    [
        [f"Interceptor.{hook}" for hook in HOOKS.split()],
        ["mcpspy.relay.mitm.addon.Origins.at"],
        ["mcpspy.relay.mitm.addon.tee"],
        ["mcpspy.relay.mitm.addon.Turns.add"],
        ["Flow.__init__"],
        ["Flow.respond", "Flow.request_ended"],
    ],
    ids=lambda places: places[0],
)
@scripted
async def test_a_bug_in_a_hook_does_not_break_the_flow(tmp_path, certificate, places):
    """S-01, M-03: a stream, a WebSocket and a client that disconnects call every hook."""
    async with interception(tmp_path, certificate, program=("-c", BUGS.format(places=places))) as there:
        client, server, _ = await asked(there)
        assert await server.read(len(CALL)) == CALL
        await server.send(EVENTS % b"", chunk(b"data: 1\n\n"))
        await client.head()
        assert await client.read(len(chunk(b"data: 1\n\n"))) == chunk(b"data: 1\n\n")
        client.writer.transport.abort()
        assert await server.gone() in ("eof", "reset")
        client, server, _ = await asked(there, ASK)
        await server.send(GRANT)
        await client.head()
        for text in (b"a", b"b"):
            await client.send(frame(text, mask=MASK))
            assert len(await server.read(7)) == 7
        await client.send(frame((1000).to_bytes(2), "close", mask=MASK))
        assert await server.gone() in ("eof", "reset")
        with pytest.raises(ssl.SSLError):
            await there.client(certificate[0])
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("a bug in recording or in mitmproxy (ZeroDivisionError: planted)") == 1


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process")
@scripted
async def test_a_full_disk_does_not_break_the_flow_and_is_told_once(tmp_path, certificate):
    """S-01: RLIMIT_FSIZE simulates the full disk; the lost records are a gap."""
    async with interception(tmp_path, certificate) as there:
        pid = there.mitm.process.pid
        client, server, _ = await asked(there)
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        for limit in (2_000, hard):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
            for _ in range(5):
                await server.read(len(CALL))
                await server.send(JSON)
                await client.head()
                assert await client.read(2) == b"{}"
                await client.send(POST, CALL)
                assert await server.head() == POST
        await there.captured()
    assert there.mitm.said().count("traffic goes on, but is not recorded until writing works again") == 1
    (gap,) = there.records(Gap)
    assert gap.lost > 5
    assert there.ended()


async def flood(peer, block):
    """Send a block again and again; this blocks when the other side stops reading."""
    while True:
        await peer.send(block)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@scripted
async def test_a_signal_ends_it_soon_whatever_is_under_way(tmp_path, certificate, how):
    """M-08: a stream that the client does not read, a WebSocket, an incomplete request, an incomplete handshake."""
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there)
        client.writer.transport.pause_reading()
        await server.send(EVENTS % b"")
        event = chunk(b"data: " + b"x" * 100_000 + b"\n\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flood(server, event), 0.5)
        client, server, _ = await asked(there, ASK)
        await server.send(GRANT)
        await client.head()
        await asked(there, POST)
        await hello(there)
        began = time.monotonic()
        there.mitm.process.send_signal(how)
        await there.captured()
        assert time.monotonic() - began < 10
    records = there.records()
    assert isinstance(records[-1], End)
    assert {it.ch for it in records if isinstance(it, Open)} == {it.ch for it in records if isinstance(it, Close)}


@pytest.mark.parametrize("by_client", [True, False])
@scripted
async def test_a_websocket_that_one_side_leaves_ends_on_the_other(tmp_path, certificate, by_client):
    """H-05: without a close frame."""
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there, ASK)
        await server.send(GRANT)
        await client.head()
        await client.send(frame(CALL, mask=MASK))
        await server.read(len(frame(CALL, mask=MASK)))
        leaving, left = (client, server) if by_client else (server, client)
        leaving.writer.transport.abort()
        assert await left.gone() in ("eof", "reset")
        await there.captured()
    assert there.how() == {
        1: "eof",
        2: "eof",
        3: "reset" if by_client else "abort",
        4: "abort" if by_client else "reset",
    }


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of others")
@scripted
async def test_memory_stays_flat_for_a_reader_that_stalls_and_for_a_websocket_that_goes_on(tmp_path, certificate):
    """H-06: a server has to wait when its client does not read; mitmproxy would keep each message of a WebSocket."""
    async with interception(tmp_path, certificate) as there:
        client, server, _ = await asked(there)
        socket, remote, _ = await asked(there, ASK)
        await remote.send(GRANT)
        await socket.head()
        before = memory(there.mitm.process.pid)
        client.writer.transport.pause_reading()
        await server.send(EVENTS % b"")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flood(server, chunk(b"data: " + b"x" * 100_000 + b"\n\n")), 2)
        message = frame(b"\0" * (1 << 20), "binary")
        for _ in range(60):
            await remote.send(message)
            assert await socket.read(len(message)) == message
        assert memory(there.mitm.process.pid) - before < 40


@pytest.mark.parametrize(
    "place", ["mcpspy.wire.content_coding.Whole.feed", "mcpspy.recording.http_exchange.Pending.frame"]
)
@scripted
async def test_a_bug_that_stops_the_recording_of_each_exchange_is_said_once(tmp_path, certificate, place):
    """S-01, M-03: it is not reported for each exchange, and bytes are forwarded unchanged."""
    program = ("-c", BUGS.format(places=[place]))
    async with interception(tmp_path, certificate, program=program) as there:
        for _ in range(2):
            client, server, head = await asked(there)
            assert (head, await server.read(len(CALL))) == (POST, CALL)
            await server.send(EVENTS % b"", chunk(b"data: 1\n\n"), b"0\r\n\r\n")
            await client.head()
            assert await client.until(b"0\r\n\r\n") == chunk(b"data: 1\n\n") + b"0\r\n\r\n"
        await asyncio.to_thread(there.mitm.end)
        assert there.mitm.said().count("stopped by a bug (ZeroDivisionError: planted)") == 1
        assert "; others are recorded" in there.mitm.said()
