"""Repeated heads are processed once, and a head is never confused with another one."""

import asyncio
import itertools
import json

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Open
from mcpspy.relay.http.known_heads import HEADS, LARGEST, KnownHeads
from tests.relay.stage import scripted, stage

CHANGING = ("x-a", "authorization")
HEAD = ((b"Host", b"h"), (b"Accept", b"*/*"))


def found(known, headers, line=()):
    """Return the result for these headers, and whether it was computed in this call."""
    now = []
    return known.find(headers, line, lambda: now.append(None) or object()), bool(now)


def test_a_head_that_comes_again_is_worked_out_once():
    known = KnownHeads()
    first, worked_out = found(known, HEAD)
    assert worked_out
    assert found(known, tuple((bytes(bytearray(name)), value) for name, value in HEAD)) == (first, False)


def test_a_head_that_differs_in_anything_is_another_one():
    known = KnownHeads()
    found(known, HEAD, ("GET",))
    others = [
        ((b"host", b"h"), (b"Accept", b"*/*")),
        ((b"Host", b"H"), (b"Accept", b"*/*")),
        HEAD[::-1],
        HEAD[:1],
        (*HEAD, HEAD[1]),
        ((b"Host", b"hAccept"), (b"", b"*/*")),
    ]
    assert all(found(known, other, ("GET",))[1] for other in others)
    assert found(known, HEAD, ("get",))[1]
    assert not found(known, HEAD, ("GET",))[1]


def test_a_peer_whose_heads_are_all_different_takes_no_memory():
    """A-01: the number of heads is bounded, and so is the size of each, with few long fields or many short ones."""
    known = KnownHeads()
    for number in range(10 * HEADS):
        found(known, ((b"traceparent", b"%d" % number),))
        assert len(known) <= HEADS
    for large in (((b"a", b"x" * LARGEST),), ((b"a", b""),) * 1000):
        assert found(known, large)[1]
        assert found(known, large)[1]
    assert found(known, HEAD, ("/" * LARGEST,))[1]
    assert found(known, HEAD, ("/" * LARGEST,))[1]


def posted(fields, n):
    body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n
    return b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n" % (fields, len(body)) + body, body


@scripted
async def test_heads_that_change_between_calls_go_on_and_are_recorded_as_they_came(tmp_path):
    """H-03: each head comes several times on one connection, so that it and others are known."""
    fields = [
        b"X-A: 1\r\n",
        b"x-a: 1\r\n",
        b"X-A: 2\r\n",
        b"X-A: 1\r\nX-A: 1\r\n",
        b"",
        b"Authorization: Bearer s3cret\r\n",
    ]
    sent = list(itertools.chain.from_iterable(itertools.repeat(fields, 3)))
    async with stage(tmp_path) as there:
        client, server = await there.client(), None
        for n, changing in enumerate(sent):
            request, body = posted(changing, n)
            await client.send(request)
            server = server or await there.server()
            expected = request.replace(b"localhost", b"127.0.0.1:%d" % there.upstream)
            assert await server.read(len(expected)) == expected
            answer = b"HTTP/1.1 200 %b\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            answer %= (b"OK" if n % 2 else b"ok", changing, len(body), body)
            await server.send(answer)
            assert await client.read(len(answer)) == answer
    opens = there.opens()
    for n, changing in enumerate(sent):
        asked, answered = opens[2 * n : 2 * n + 2]
        lines = changing.decode().replace("Bearer s3cret", "Bearer ").splitlines()
        for opened in (asked, answered):
            kept = [
                f"{name}: {value}" for name, value in opened.head["headers"] if name.lower() in ("x-a", "authorization")
            ]
            assert [line.partition("«")[0] for line in kept] == lines
        assert (answered.answers, answered.head["reason"]) == (asked.ch, "OK" if n % 2 else "ok")
        assert asked.sent == {"headers": [["Host", f"127.0.0.1:{there.upstream}"]]}
        assert there.frames(asked.ch) == there.frames(answered.ch) == [posted(changing, n)[1]]
    assert b"s3cret" not in there.path.read_bytes()


@scripted
async def test_a_location_leads_to_where_each_client_dialled(tmp_path):
    """H-07: the same response goes to clients that use different names for the proxy."""
    async with stage(tmp_path) as there:
        for host in (b"localhost:1", b"127.0.0.1:2", b"localhost:1"):
            client, server, _ = await there.both(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            location = b"Location: http://127.0.0.1:%d/x\r\n" % there.upstream
            await server.send(b"HTTP/1.1 302 Found\r\n" + location + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
            assert b"\r\nLocation: http://%b/x\r\n" % host in await client.head()


@scripted
async def test_the_records_of_two_connections_are_in_order_and_one_channel_in_one_piece(tmp_path):
    async with stage(tmp_path) as there:
        clients = [await there.client() for _ in range(2)]
        servers = []
        for n, client in enumerate(clients):
            await client.send(posted(b"", n)[0])
            servers.append(await there.server())
            await servers[n].head()
        for n in (1, 0):  # the second request is answered first
            await servers[n].send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % n)
            await clients[n].until(b"\r\n\r\n%d" % n)
    lines = [json.loads(line) for line in there.path.read_bytes().splitlines()[1:-1]]
    assert [(line["kind"], line["ch"]) for line in lines] == [
        (kind, ch) for ch in (1, 2, 3, 4) for kind in ("open", "frame", "close")
    ]
    assert [line.get("answers") for line in lines if line["kind"] == "open"] == [None, None, 2, 1]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)


@scripted
async def test_all_that_was_forwarded_is_in_the_capture_of_a_proxy_that_is_killed(tmp_path):
    """Each message that a peer received is recorded, except possibly the last one before the kill."""
    there = None
    try:
        async with stage(tmp_path) as there:
            arrived, together = [[], []], asyncio.Barrier(4)  # killed earlier, a connection would never come

            async def talk(client):
                await client.send(posted(b"", 0)[0])
                server, n = await there.server(), 0
                await together.wait()
                while True:
                    head = await server.head()
                    arrived[0].append(await server.read(int(head.rpartition(b": ")[2])))
                    await server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    await client.until(b"{}")
                    arrived[1].append(b"{}")
                    if len(arrived[1]) == 100:
                        there.process.kill()
                    n += 1
                    await client.send(posted(b"", n)[0])

            outcomes = await asyncio.gather(*[talk(await there.client()) for _ in range(4)], return_exceptions=True)
            assert all(isinstance(outcome, (ConnectionError, asyncio.IncompleteReadError)) for outcome in outcomes)
            await there.process.wait()
    except AssertionError:
        assert there.process.returncode < 0  # it was killed, so it did not exit normally
    records = list(Capture(str(there.path)).records())
    senders = {record.ch: record.sender for record in records if isinstance(record, Open)}
    for sender, messages in zip(("client", "server"), arrived, strict=True):
        kept = [record.raw for record in records if isinstance(record, Frame) and senders[record.ch] == sender]
        for message in set(messages):
            assert kept.count(message) >= messages.count(message) - 1
        assert len(kept) >= len(messages) - 1


@scripted
async def test_a_head_that_is_known_is_judged_anew_where_its_path_has_become_that_of_metadata(tmp_path):
    """O-02: after a challenge names the path, requests for it must not ask for a content coding."""
    ask = b"GET %b HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
    answers = {
        b"/meta": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"/mcp": b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata="
        b'"http://127.0.0.1:%d/meta"\r\nContent-Length: 0\r\n\r\n',
    }
    async with stage(tmp_path, "--rewrite-oauth") as there:
        client, server, codings = await there.client(), None, []
        for target in (b"/meta", b"/meta", b"/mcp", b"/meta"):
            await client.send(ask % target)
            server = server or await there.server()
            codings.append((await server.head()).partition(b"Accept-Encoding: ")[2])
            await server.send(answers[target].replace(b"%d", b"%d" % there.upstream))
            await client.head()
    assert codings == [coding + b"\r\n\r\n" for coding in (b"gzip", b"gzip", b"gzip", b"identity")]


@scripted
async def test_what_answers_a_request_with_secrets_is_withheld_each_time(tmp_path):
    """A-08: also if the head of the response is already known from another request."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
    async with stage(tmp_path) as there:
        client, server = await there.client(), None
        for n, target in enumerate((b"/mcp", b"/token", b"/mcp", b"/token")):
            request = posted(b"", n)[0].replace(b"/mcp", target)
            await client.send(request)
            server = server or await there.server()
            await server.read(len(request.replace(b"localhost", b"127.0.0.1:%d" % there.upstream)))
            body = b"public" if target == b"/mcp" else b"s3cret"
            await server.send(answer % (6, body))
            assert await client.read(len(answer % (6, body))) == answer % (6, body)
    bodies = [there.frames(opened.ch) for opened in there.opens() if opened.answers]
    assert bodies == 2 * [[b"public"], ["«withheld: 6 bytes»".encode()]]
