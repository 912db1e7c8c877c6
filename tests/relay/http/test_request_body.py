"""Bodies of requests: in any segments, with an early response, and with `Expect: 100-continue`."""

import asyncio

import pytest

from tests.relay.http.test_forward import CALL, OK, POST, chunk
from tests.relay.stage import scripted, stage


@pytest.mark.parametrize("size", [1, 100, 10_000])
@scripted
async def test_a_request_body_arrives_in_any_segments(tmp_path, size):
    """H-04."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: %d\r\n\r\n" % len(CALL))
        for start in range(0, len(CALL), size):
            await client.send(CALL[start : start + size])
            await asyncio.sleep(0)
        assert await server.read(len(CALL)) == CALL
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert there.frames(1) == [CALL]
    assert there.frames(2) == [b"{}"]
    assert there.how() == {1: "eof", 2: "eof"}


@scripted
async def test_a_chunked_request_stays_chunked(tmp_path):
    """H-04."""
    async with stage(tmp_path) as there:
        client, server, head = await there.both(POST + b"Transfer-Encoding: chunked\r\nX-After: 1\r\n\r\n")
        assert b"json\r\nTransfer-Encoding: chunked\r\nX-After: 1\r\n\r\n" in head
        for part in (CALL[:10], CALL[10:]):
            await client.send(chunk(part))
            assert await server.read(len(chunk(part))) == chunk(part)
        await client.send(b"0\r\n\r\n")
        assert await server.read(5) == b"0\r\n\r\n"
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert there.frames(1) == [CALL]


@pytest.mark.parametrize("close", [False, True])
@scripted
async def test_an_answer_may_come_before_the_request_has_ended(tmp_path, close):
    """H-04: a 413 is forwarded at once; the upstream decides whether it reads the rest of the request."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 1000000\r\n\r\n" + CALL)
        await server.read(len(CALL))
        refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
        closing = refusal.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        await server.send(closing if close else refusal)
        assert await client.head() == (closing if close else refusal)
        if not close:
            client.close()
        await server.gone()
    assert there.how() == {1: "abort" if close else "reset", 2: "eof"}


@scripted
async def test_a_client_that_is_answered_early_ends_its_request_and_asks_again(tmp_path):
    """H-04: a 401 comes before the body, which HTTP clients of Python send separately; the connection stays open."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n")
        refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
        await server.send(refusal)
        assert await client.head() == refusal
        await client.send(CALL)
        assert await server.read(46) == CALL
        await client.send(POST + b"Authorization: x\r\nContent-Length: 46\r\n\r\n" + CALL)
        assert b"Authorization: x\r\n" in await server.head()
        assert await server.read(46) == CALL
        await server.send(OK)
        assert await client.until(b"{}") == OK
    assert there.frames(1) == there.frames(3) == [CALL]
    assert set(there.how().values()) == {"eof"}


@scripted
async def test_100_continue_passes_both_ways(tmp_path):
    """H-14: the upstream answers the expectation."""
    async with stage(tmp_path) as there:
        client, server, head = await there.both(POST + b"Content-Length: 46\r\nExpect: 100-continue\r\n\r\n")
        assert b"\r\nExpect: 100-continue\r\n" in head
        await server.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(CALL)
        assert await server.read(46) == CALL
        await server.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", OK)
        assert await client.head() == b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        assert await client.until(b"{}") == OK
    assert there.frames(1) == [CALL]


@scripted
async def test_an_expectation_that_is_refused_leaves_the_body_unsent(tmp_path):
    """H-14."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\nExpect: 100-continue\r\n\r\n")
        refusal = b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
        await server.send(refusal)
        assert await client.head() == refusal
