"""One request and its response: both are forwarded unchanged, and end in the same way (H-03, H-04, H-05)."""

import asyncio
import contextlib
import gc
import hashlib
import json
import time

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.forward import ForwardedRequest
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.listener import Relay
from mcpspy.relay.http.response import Response
from mcpspy.relay.http.route import HttpRoute, Upstream
from mcpspy.wire.lines import PIECE
from tests.relay.interception import RELAYS, relaying
from tests.relay.stage import scripted, stage

POST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
GET = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: s\r\nAccept: text/event-stream\r\n\r\n"
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
LAST = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")  # the next exchange then needs a new connection
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(payload):
    return b"%x\r\n%b\r\n" % (len(payload), payload)


@scripted
async def test_heads_go_on_in_order_case_and_number_and_nothing_is_added(tmp_path):
    """H-03, H-09: Mcp-*, Last-Event-ID, Authorization, unknown Mcp-Param-*; hop-by-hop fields are not forwarded."""
    async with stage(tmp_path) as there:
        fields = (
            b"hOsT: localhost:99\r\nX-B: 1\r\nx-b:   2  \r\nMcp-Param-Foo: =?base64?eA==?=\r\nLast-Event-ID: 1-2\r\n"
            b"Authorization: Bearer secret\r\nCookie: a=b\r\nCookie: c=d\r\nX-Latin: caf\xc3\xa9\r\n"
        )
        hop = b"Connection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
        client, server, head = await there.both(
            b"GET /a%7e/%2F;x?q=%20+&&=#f HTTP/1.1\r\n" + fields.replace(b"#f", b"") + hop + b"\r\n"
        )
        assert (
            head
            == b"GET /a%7e/%2F;x?q=%20+&&=#f HTTP/1.1\r\n"
            + fields.replace(b"localhost:99", b"127.0.0.1:%d" % there.upstream).replace(b":   2  ", b": 2")
            + b"\r\n"
        )
        answer = b"HTTP/1.1 299 As it is\r\nSet-Cookie: a=1\r\nx-One: 1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n"
        await server.send(answer.replace(b"\r\n\r\n", b"\r\nConnection: X-Up\r\nX-Up: 1\r\nKeep-Alive: 7\r\n\r\n"))
        assert await client.head() == answer
    request, response = there.opens()
    assert request.by == "host"
    assert request.sent == {"headers": [["hOsT", f"127.0.0.1:{there.upstream}"]]}
    assert ["Mcp-Param-Foo", "=?base64?eA==?="] in request.head["headers"]
    assert ["X-Private", "1"] in request.head["headers"]
    assert (response.head["status"], response.head["reason"], response.answers) == (299, "As it is", request.ch)
    assert request.peer.startswith("127.0.0.1:")


@scripted
async def test_the_host_is_the_upstreams_and_the_origin_where_it_was_ours(tmp_path):
    """H-01."""
    async with stage(tmp_path) as there:
        ours = b"http://127.0.0.1:%d" % there.port
        for sent, forwarded in ((ours, b"http://127.0.0.1:%d" % there.upstream), (b"http://localhost:5173",) * 2):
            client, server, head = await there.both(
                b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: %b\r\n\r\n" % (there.port, sent)
            )
            assert b"\r\nOrigin: %b\r\n" % forwarded in head
            assert b"\r\nHost: 127.0.0.1:%d\r\n" % there.upstream in head
            await server.send(LAST)
            await client.until(b"{}")
    assert there.opens()[0].by == "host,origin"


@scripted
async def test_the_host_is_forwarded_where_the_user_says_so(tmp_path):
    """H-01: --preserve-host."""
    async with stage(tmp_path, "--preserve-host") as there:
        fields = b"Host: localhost:1\r\nOrigin: http://localhost:1\r\n\r\n"
        client, server, head = await there.both(b"GET / HTTP/1.1\r\n" + fields)
        assert head.endswith(fields)
        await server.send(OK)
        await client.until(b"{}")
    assert there.opens()[0].by is None


@scripted
async def test_an_idle_connection_to_the_upstream_is_used_again(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n" + CALL)
        for _ in range(3):
            await server.read(46)
            await server.send(OK)
            await client.until(b"{}")
            await client.send(POST + b"Content-Length: 46\r\n\r\n" + CALL)
            await server.head()
        assert there.arrived.empty()
        await server.read(46)
        await server.send(OK)
        await client.until(b"{}")


@pytest.mark.parametrize("relay", RELAYS)
@pytest.mark.parametrize("when", ["before the head", "idle in the stream", "in the request's body"])
@scripted
async def test_a_client_that_leaves_ends_the_upstreams_side_at_once(tmp_path, certificate, relay, when):
    """H-05, H-13: within 100 ms, even if the stream is idle."""
    delays = []
    async with relaying(relay, tmp_path, certificate) as there:
        for _ in range(5):
            if when == "in the request's body":
                client, server, _ = await there.both(POST + b"Content-Length: 100\r\n\r\n" + CALL)
                await server.read(len(CALL))
            else:
                client, server, _ = await there.both(GET)
            if when == "idle in the stream":
                await server.send(STREAM)
                await client.head()
            before = time.monotonic()
            client.abort()
            await server.gone()
            delays.append(time.monotonic() - before)
        await there.captured()
    assert sorted(delays)[2] < 0.1  # the median: one of them may be slow on a busy machine
    hows = list(there.how().values())
    if when == "in the request's body":
        assert hows == ["reset"] * 5
        assert all(record.cut for record in there.records(Frame))
    else:
        assert hows == ["eof", "abort"] * 5
        heads = [record.head for record in there.records(Open) if record.role == "response"]
        assert [head is None for head in heads] == [when == "before the head"] * 5


@scripted
async def test_32_mib_pass_in_flat_memory(tmp_path):
    """H-14, F-04: in each direction, with Expect: 100-continue."""
    total, piece = 32 << 20, b"0123456789abcdef" * 4096
    async with stage(tmp_path) as there:
        before = memory(there.process.pid)
        client, server, _ = await there.both(POST + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % total)
        await server.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await client.head()
        digests = [hashlib.sha256(), hashlib.sha256()]

        async def send(peer):
            for _ in range(total // len(piece)):
                await peer.send(piece)

        async def receive(peer, digest):
            left = total
            while left:
                part = await peer.reader.read(min(left, 1 << 20))
                assert part
                digest.update(part)
                left -= len(part)

        await asyncio.gather(send(client), receive(server, digests[0]))
        await server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        await client.head()
        await asyncio.gather(send(server), receive(client, digests[1]))
        expected = hashlib.sha256(piece * (total // len(piece))).hexdigest()
        assert [digest.hexdigest() for digest in digests] == [expected] * 2
        assert memory(there.process.pid) - before < 10 << 20
    assert [hashlib.sha256(record.raw).hexdigest() for record in there.records(Frame)] == [expected] * 2


def memory(pid):
    """Return the resident memory of a process in bytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@scripted
async def test_100_streams_at_once_and_calls_beside_them(tmp_path):
    """H-06: no limit on connections."""
    async with stage(tmp_path) as there:
        streams = []
        for number in range(100):
            client, server, _ = await there.both(GET.replace(b"/mcp", b"/%d" % number))
            await server.send(STREAM)
            await client.head()
            streams.append((client, server))
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n" + CALL)
        await server.send(OK)
        assert await client.until(b"{}") == OK
        for number, (client, server) in enumerate(streams):
            await server.send(chunk(b"data: %d\n\n" % number))
            assert (await client.until(b"\n\n\r\n")).endswith(b"data: %d\n\n\r\n" % number)
    assert sorted(record.raw for record in there.records(Frame) if record.raw.startswith(b"data")) == sorted(
        b"data: %d\n" % number for number in range(100)
    )
    assert list(there.how().values()).count("shutdown") == 100


@scripted
async def test_secrets_of_heads_are_not_in_the_capture(tmp_path):
    """O-02: secrets in headers, queries and Location are forwarded, but not recorded."""
    async with stage(tmp_path) as there:
        head = (
            b"GET /mcp?api_key=hunter2&code=hunter2&x=1 HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer hunter2\r\n"
            b"Cookie: a=hunter2\r\nX-Api-Key: hunter2\r\nMcp-Session-Id: stays\r\n\r\n"
        )
        client, server, got = await there.both(head)
        assert got.count(b"hunter2") == 5
        await server.send(
            b"HTTP/1.1 302 Found\r\nSet-Cookie: s=hunter2\r\nLocation: http://h/cb?state=x&code=hunter2\r\n"
            b"Content-Length: 0\r\n\r\n"
        )
        assert (await client.head()).count(b"hunter2") == 2
    text = there.path.read_bytes()
    assert b"hunter2" not in text
    assert text.count("«redacted:".encode()) == 7
    assert b"stays" in text


FORM, JSON = b"application/x-www-form-urlencoded", b"application/json"
TOKENS = b'{"access_token":"hunter2","refresh_token":"hunter2","token_type":"Bearer","expires_in":3600}'
CODE = b"grant_type=authorization_code&code=hunter2&code_verifier=hunter2&client_secret=hunter2"
PARTS = b'--b\r\nContent-Disposition: form-data; name="client_secret"\r\n\r\nhunter2\r\n--b--\r\n'
LARGE = b'{"client_secret":"hunter2","x":"%b"}' % (b"a" * 70_000)
EVENT = b'data: {"access_token":"hunter2"}\n\n'
OAUTH = [  # the target, the kind and body of the request and of the response, and what is recorded of both
    (b"/oauth/token", FORM, CODE, JSON, TOKENS, "redacted:", "redacted:"),
    (b"/register", JSON, b'{"software_statement":"a","client_secret":"hunter2"}', JSON, TOKENS, *["redacted:"] * 2),
    (b"/connect/go", FORM, b"assertion=hunter2&refresh_token=hunter2", JSON, TOKENS, "redacted:", "redacted:"),
    (b"/upload", b"multipart/form-data; boundary=b", PARTS, JSON, TOKENS, "withheld: ", "redacted:"),
    (b"/token", JSON, LARGE, JSON, b"{}", f"withheld: {len(LARGE)} bytes", ""),
    (b"/token", FORM, b"a", b"text/event-stream", EVENT, "withheld: 1 bytes", f"withheld: {len(EVENT)} bytes"),
]


@scripted
async def test_secrets_of_oauth_bodies_are_not_in_the_capture(tmp_path):
    """O-02: in forms and JSON. A body that is too large to redact and an event stream are not recorded at all."""
    fields = b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
    async with stage(tmp_path) as there:
        client, server = await there.client(), None
        for target, kind, body, answer_kind, answer, *_ in OAUTH:
            await client.send(b"POST %b HTTP/1.1\r\nHost: localhost\r\n" % target + fields % (kind, len(body), body))
            server = server or await there.server()
            await server.head()
            assert await server.read(len(body)) == body
            await server.send(b"HTTP/1.1 200 OK\r\n" + fields % (answer_kind, len(answer), answer))
            assert (await client.until(answer)).endswith(answer)
    assert b"hunter2" not in there.path.read_bytes()
    assert there.path.read_bytes().count(b'\\"expires_in\\": 3600') == 4
    frames = [b"".join(there.frames(opened.ch)).decode() for opened in there.opens()]
    for recorded, word in zip(frames, [it for *_, one, two in OAUTH for it in (one, two)], strict=True):
        assert (f"«{word}" in recorded) if word else "«" not in recorded, (word, recorded)


@scripted
async def test_a_capture_that_cannot_be_written_changes_nothing(tmp_path):
    """S-01 for HTTP: it is reported once."""
    (tmp_path / "capture.jsonl").mkdir()
    async with stage(tmp_path) as there:
        for _ in range(2):
            client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n" + CALL)
            assert await server.read(46) == CALL
            await server.send(LAST)
            assert await client.until(b"{}") == OK
    assert there.stderr.count(b"cannot write a capture") == 1


@scripted
async def test_a_body_that_came_whole_is_one_record_up_to_the_size_of_a_piece(tmp_path):
    async with stage(tmp_path) as there:
        client, server = await there.client(), None
        for size in (PIECE, PIECE + 1):
            length, body = b"Content-Length: %d\r\n\r\n" % size, b"x" * size
            await client.send(POST + length + body)
            server = server or await there.server()
            assert (await server.head()).endswith(length)
            assert await server.read(size) == body
            await server.send(b"HTTP/1.1 200 OK\r\n" + length + body)
            assert (await client.head()).endswith(length)
            assert await client.read(size) == body
    lines = [json.loads(line) for line in there.path.read_bytes().splitlines()]
    pieces = [(len(line["raw"]), "more" in line) for line in lines if line.get("kind") == "frame"]
    assert pieces == 2 * [(PIECE, False)] + 2 * [(PIECE, True), (1, False)]


@scripted
async def test_what_is_left_of_an_exchange_does_not_wait_for_the_garbage_collector(tmp_path):
    """An exchange is freed at once, with its bodies: objects in a reference cycle would stay for a while."""

    async def accept(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(CALL)
                writer.write(OK)
        writer.close()

    upstream = await asyncio.start_server(accept, "127.0.0.1", 0)
    address = Address(f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/")
    recording = Recording(print)
    recording.begin("http", "a", output=str(tmp_path / "a.jsonl"))
    relay = Relay([HttpRoute(address, Upstream(address), recording)], Guard("", []), print)
    server = await asyncio.get_running_loop().create_server(relay.server(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL)
            await reader.readuntil(b"{}")
        writer.write(b"GET / HTTP/1.1\r\nHost: x.example\r\n\r\n")  # refused, after all earlier exchanges have ended
        await reader.readuntil(b"x.example")
        left = [it for it in gc.get_objects() if isinstance(it, (ForwardedRequest, Response))]
        assert len(left) <= 1
    finally:
        gc.enable()
        del left
        writer.close()
        server.close()
        upstream.close()
        await relay.end()
