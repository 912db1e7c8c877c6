"""Request smuggling: hundreds of requests that two parsers could read in two ways, through `proxy` and `mitm`.

The upstream keeps every byte. However it parses them, strictly or with the mistakes of real servers, it finds only
requests that are in the capture, and never the hidden one. `pytest -m "" -k NAME` repeats one request of REQUESTS.
"""

import asyncio
import contextlib
from collections import Counter

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from tests.attack.smuggling import AFTER, HIDDEN, LENIENT, REQUESTS, STRICT
from tests.peers.serving import each
from tests.relay.interception import intercepting, needs_mitmproxy
from tests.relay.stage import Peer, scripted, stage

NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
END = b"END /x HTTP/1.1\r\n\r\n"


class Upstream:
    """Keeps what comes on each connection, and answers each request that is complete with its method and target."""

    def __init__(self):
        self.received = []

    async def serve(self, reader, writer):
        """Serve one connection."""
        place, answered = len(self.received), 0
        self.received.append(b"")
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                self.received[place] += piece
                *requests, last = STRICT.requests(self.received[place] + END) or [b""]
                for request in requests[answered:] if last == b"END /x" else ():
                    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request)
                    writer.write(head if request.startswith(b"HEAD ") else head + request)
                    answered += 1
        writer.close()

    def requests(self, parser):
        """Return all requests that a parser finds, with their number."""
        return Counter(request for data in self.received for request in parser.requests(data))


async def lives_on(connect):
    """Make a normal exchange over a new connection. Its answer is the one for it."""
    client = await connect()
    await client.send(NEXT)
    assert (await client.rest()).endswith(b"\r\n\r\nGET /next")
    client.close()


async def attack(connect, request):
    """Send a request, and another one behind it; return when both have been answered, refused, or wait for more."""
    client = await connect()
    with contextlib.suppress(ConnectionError):
        await client.send(request, AFTER)
    for _ in range(2):  # after as many exchanges over other connections, this one waits for more
        await lives_on(connect)
    with contextlib.suppress(asyncio.TimeoutError, ConnectionError):
        await asyncio.wait_for(client.rest(), 0.05)  # the answers, so that no reset hides them
    client.abort()
    await lives_on(connect)


def recorded(path):
    """Return the requests of a capture as they were forwarded, with their number."""
    heads = [
        it.head | (it.sent or {})
        for it in Capture(str(path)).records()
        if isinstance(it, Open) and it.role == "request"
    ]
    return Counter(f"{head['method']} {head['target']}".encode("utf-8", "surrogateescape") for head in heads)


def one_reading(upstream, path, parsers):
    """Assert that the upstream finds only recorded requests, whatever its parser, and not the hidden one."""
    known = recorded(path)
    for parser in parsers:
        found = upstream.requests(parser)
        assert not found - known, (parser, upstream.received)
        assert b"GET /smuggled" not in found, (parser, upstream.received)
    assert b"GET /smuggled" not in known, upstream.received


@pytest.mark.parametrize("name", each(REQUESTS, usual=list(REQUESTS)[::50]))
@scripted
async def test_no_request_is_smuggled_through_a_proxy(tmp_path, name):
    """RFC 9112, 11.2. The proxy may refuse the request; afterwards it serves others."""
    assert HIDDEN in REQUESTS[name] or "chunk" in name
    upstream = Upstream()
    async with stage(tmp_path) as there:

        async def accept():
            while True:
                peer = await there.server()
                serving.append(asyncio.create_task(upstream.serve(peer.reader, peer.writer)))

        serving = []
        accepting = asyncio.create_task(accept())
        await attack(there.client, REQUESTS[name])
        accepting.cancel()
    one_reading(upstream, there.path, [STRICT, *LENIENT])


@needs_mitmproxy
@pytest.mark.field
@scripted
async def test_no_request_is_smuggled_through_mitm_as_a_reverse_proxy(tmp_path):
    """mitmproxy forwards some malformed fields unchanged (M-08), so only a strict upstream reads them in one way."""
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def connect():
        return Peer(*await asyncio.open_connection("127.0.0.1", int(mitm.place.rpartition(":")[2])))

    with intercepting(tmp_path, "--mode", f"reverse:{url}", "--all-http") as mitm:
        for request in list(REQUESTS.values())[::10]:
            await attack(connect, request)
        await asyncio.to_thread(mitm.end)
        (path,) = mitm.captures()
        one_reading(upstream, path, [STRICT])
    server.close()
