"""`mcpspy mitm`, byte by byte: each side receives exactly the bytes that the other side sent (H-03, H-04)."""

import asyncio
import gzip
import sys
import zlib

import brotli

from mcpspy.capture.records import Close
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.mitm.test_addon import ANSWER, chunk
from tests.relay.stage import scripted

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = needs_mitmproxy

GET = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: 1\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
ODD_REQUEST = (
    b"PoST //a/../mcp?a=%7e&b=c%20d&&x=[]|#f HTTP/1.1\r\nhOsT: 127.0.0.1\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\n"
    b"Mcp-Session-Id: 1\r\nUser-Agent: u\r\nAccept-Encoding: gzip;q=0.5, br\r\nConnection: keep-alive, X-A\r\n"
    b"TE: trailers\r\nX-E: \xc3\xa4\xff\r\nContent-Length: 2\r\n\r\n{}"
)
ODD_ANSWER = (
    b"HTTP/1.1 299 Very  Fine\r\nsErVer: x\r\nDate: now\r\nVary: a\r\nVARY: b\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n"
    b"Keep-Alive: timeout=5\r\nVia: 1.1 x\r\nX-E: \xe4\r\nContent-Length: 2\r\n\r\n{}"
)


def coded(coding, raw):
    return OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding, len(raw)) + raw


EXCHANGES = {
    "odd heads": (ODD_REQUEST, ODD_ANSWER),
    "a body in chunks": (
        GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        + chunk(b'{"jsonrpc":"2.0",')
        + chunk(b'"method":"ping"}')
        + b"0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(ANSWER[:9]) + chunk(ANSWER[9:]) + b"0\r\n\r\n",
    ),
    "gzip": (GET, coded(b"gzip", gzip.compress(ANSWER))),
    "deflate": (GET, coded(b"deflate", zlib.compress(ANSWER))),
    "br": (GET, coded(b"br", brotli.compress(ANSWER))),
    "zstd": (GET, coded(b"zstd", zstd.compress(ANSWER))),
    "an unknown coding": (GET, coded(b"other", ANSWER)),
    "HEAD with a length": (HEAD, OK + b"Content-Length: 200\r\n\r\n"),
    "HEAD with chunks": (HEAD, OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "202": (GET, b"HTTP/1.1 202 Accepted\r\n" + EMPTY),
    "204": (GET, b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304 with a length": (GET, b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 20\r\n\r\n'),
    "401": (GET, b'HTTP/1.1 401 \r\nWWW-Authenticate: Bearer resource_metadata="https://x/"\r\n' + EMPTY),
    "405": (GET, b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\n" + EMPTY),
    "no chunks": (GET, OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "DELETE": (GET.replace(b"GET", b"DELETE"), b"HTTP/1.1 200 OK\r\n" + EMPTY),
    "OPTIONS": (GET.replace(b"GET /mcp", b"OPTIONS *"), b"HTTP/1.1 200 OK\r\n" + EMPTY),
    "until the end": (GET.replace(b"1.1\r", b"1.0\r"), OK.replace(b"/1.1", b"/1.0") + b"\r\n" + ANSWER),
}


@scripted
async def test_bytes_pass_as_they_are_over_one_connection(tmp_path, certificate):
    """H-03, H-04: no header is added, renamed or moved, no body is changed, and the connection stays open."""
    got = {}
    async with interception(tmp_path, certificate) as there:
        client = await there.client()
        server = None
        for name, (request, answer) in EXCHANGES.items():
            await client.send(request)
            server = server or await there.server()
            asked = await server.read(len(request))
            await server.send(answer)
            got[name] = asked, await client.read(len(answer))
        server.close()
        assert await client.rest() == b""
        await there.captured()
        assert there.arrived.empty()
    assert got == EXCHANGES
    assert [it.how for it in there.records(Close)] == ["eof"] * 2 * len(EXCHANGES)
    assert list(there.how()) == list(range(1, 2 * len(EXCHANGES) + 1))


@scripted
async def test_a_chunk_that_has_begun_goes_on_at_once(tmp_path, certificate):
    """H-04: half of an event in half of a chunk is forwarded; mitmproxy sends each part as a chunk."""
    async with interception(tmp_path, certificate) as there:
        client = await there.client()
        await client.send(GET)
        server = await there.server()
        await server.head()
        await server.send(OK.replace(b"application/json", b"text/event-stream"))
        await server.send(b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata")
        await client.head()
        assert await client.read(len(chunk(b"data"))) == chunk(b"data")
        await server.send(b": 1\n\n\r\n")
        assert await client.read(len(chunk(b": 1\n\n"))) == chunk(b": 1\n\n")
        await asyncio.to_thread(there.mitm.end)
