"""Responses pass a gate: a JSON body as a whole, an event stream event by event."""

import asyncio

import pytest

from mcpspy.capture.records import Frame, Release
from mcpspy.gate.order import FRAMES
from mcpspy.relay.http.encoders import coded
from mcpspy.wire.content_coding import Decoder
from tests.relay.http.test_forward import CALL, GET, POST, STREAM, chunk
from tests.relay.stage import scripted, stage
from tests.wire.test_content_coding import flushed

ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
RESULTS = {"from": "server", "kind": "result", "method": "tools/call"}
NOTES = {"from": "server", "method": "notifications/message"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n'
OTHER = b'data: {"jsonrpc":"2.0","method":"notifications/other"}\n'


def gate(action, **when):
    return [{"name": "g", "when": when, "action": action}]


async def answered(there, body=RESULT):
    """Answer the request of a client with JSON, and return the client."""
    client, server, _ = await there.both(ASK)
    await server.read(len(CALL))
    server.writer.write(JSON % len(body) + body)
    return client


@pytest.mark.parametrize("body", [RESULT, b'{"a":"%b"}' % (b"x" * (2 << 20))], ids=["short", "too long"])
@scripted
async def test_json_that_no_gate_names_passes_as_it_came(tmp_path, body):
    async with stage(tmp_path, gates=gate({"drop": True}, method="never")) as there:
        client = await answered(there, body)
        assert await client.head() == JSON % len(body)
        assert await client.read(len(body)) == body
    assert [frame.undecided for frame in there.records(Frame)] == [False, body != RESULT]


@pytest.mark.parametrize(("action", "sent"), [({"send": "[]"}, b"[]"), ({"drop": True}, None)])
@scripted
async def test_json_is_changed_by_the_method_of_its_request(tmp_path, action, sent):
    async with stage(tmp_path, gates=gate(action, **RESULTS)) as there:
        client = await answered(there)
        assert b"Content-Length" not in await client.head()
        expected = (chunk(sent) if sent else b"") + b"0\r\n\r\n"
        assert await client.read(len(expected)) == expected
    frame = there.records(Frame)[1]
    assert (frame.raw, frame.sent, frame.dropped, frame.by) == (RESULT, sent, sent is None, "gate g")


@scripted
async def test_json_is_delayed_and_the_client_waits(tmp_path):
    async with stage(tmp_path, gates=gate({"delay": 20_000_000}, **RESULTS)) as there:
        client = await answered(there)
        await client.head()
        assert await client.until(b"0\r\n\r\n") == chunk(RESULT) + b"0\r\n\r\n"
    frame, (release,) = there.records(Frame)[1], there.records(Release)
    assert (frame.held, release.how) == (1, "delayed")
    assert release.t - frame.t >= 20_000_000


@scripted
async def test_events_are_dropped_and_others_pass_byte_for_byte(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM)
        assert await client.head() == STREAM
        odd = b"\r\n: ping\r\r" + OTHER + b"\r\n"
        await server.send(chunk(NOTE + b"\n" + odd), chunk(b"data: cu"), b"0\r\n\r\n")
        got = await client.until(b"0\r\n\r\n")
        assert b"".join(part.split(b"\r\n", 1)[1] for part in unchunked(got)) == odd + b"data: cu"
    frames = there.records(Frame)
    assert next((frame.raw, frame.dropped) for frame in frames) == (NOTE, True)
    assert [frame.raw for frame in frames][1:] == [b": ping\r", OTHER, b"data: cu"]


def unchunked(body):
    """Return the chunks of a body, each with its size line."""
    found = []
    while body != b"0\r\n\r\n":
        line, rest = body.split(b"\r\n", 1)
        size = int(line, 16)
        found.append(line + b"\r\n" + rest[:size])
        body = rest[size + 2 :]
    return found


@scripted
async def test_several_events_go_in_place_of_one(tmp_path):
    async with stage(tmp_path, gates=gate({"repeat": 2}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(NOTE + b"\n"))
        await client.head()
        expected = chunk((NOTE + b"\n") * 2)
        assert await client.read(len(expected)) == expected
    first, second = there.records(Frame)
    assert (first.raw, first.sent, first.by) == (NOTE, NOTE, "gate g")
    assert (second.raw, second.sender, second.by) == (NOTE, "mcpspy", "gate g")


@scripted
async def test_held_events_keep_their_order_and_the_stream_open(tmp_path):
    """Also if the upstream ends the stream in the meantime."""
    async with stage(tmp_path, gates=gate({"delay": 30_000_000}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(NOTE + b"\n" + OTHER + b"\n"), b"0\r\n\r\n")
        await client.head()
        assert await client.until(b"0\r\n\r\n") == chunk(NOTE + b"\n" + OTHER + b"\n") + b"0\r\n\r\n"
    assert [frame.held for frame in there.records(Frame)] == [1, 2]
    assert [(it.held, it.how) for it in there.records(Release)] == [(1, "delayed"), (2, "delayed")]


@scripted
async def test_a_closing_gate_breaks_the_stream_off(tmp_path):
    async with stage(tmp_path, gates=gate({"close": True}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(OTHER + b"\n"), chunk(NOTE + b"\n"))
        await client.head()
        assert await client.rest() == chunk(OTHER + b"\n")
    assert there.records(Frame)[-1].by == "gate g"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@scripted
async def test_a_compressed_stream_is_compressed_again(tmp_path, name):
    async with stage(tmp_path, gates=gate({"send": "1"}, **NOTES)) as there:
        client, server, _ = await there.both(GET)
        coding = b"\r\nContent-Encoding: %b\r\n\r\n" % name.encode()
        await server.send(STREAM.replace(b"\r\n\r\n", coding))
        await client.head()
        decoder = Decoder(name)
        events = [OTHER + b"\n", NOTE + b"\n", OTHER + b"\n"]
        for coded, plain in zip(flushed(name, events), [events[0], b"data: 1\n\n", events[2]], strict=True):
            await server.send(chunk(coded))
            size = int((await client.until(b"\r\n")).strip(), 16)
            assert b"".join(decoder.feed(await client.read(size))) == plain
            await client.read(2)
    frames = there.records(Frame)
    assert [frame.raw for frame in frames] == [OTHER, NOTE, OTHER]
    assert (frames[1].sent, frames[1].by) == (b"data: 1\n", "gate g")


@scripted
async def test_a_server_cannot_be_answered_over_http_and_that_is_said_once(tmp_path):
    request = b'data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}\n\n'
    async with stage(tmp_path, gates=gate({"answer": '{"result":{}}'}, **{"from": "server"})) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(request + request))
        await client.head()
        assert await client.read(len(chunk(request * 2))) == chunk(request * 2)
    assert there.stderr.count(b"cannot answer a server over HTTP") == 1


@pytest.mark.parametrize("keep_alive", [b"", b"Connection: keep-alive\r\n"])
@pytest.mark.parametrize("action", [{"send": "[]"}, {"delay": 20_000_000}], ids=["changed", "delayed"])
@scripted
async def test_json_to_a_client_of_http_1_0_ends_with_the_connection(tmp_path, action, keep_alive):
    """RFC 9112, 6.3 and 9.3: such a client does not know chunks."""
    async with stage(tmp_path, gates=gate(action, **RESULTS)) as there:
        asked = ASK.replace(b"HTTP/1.1\r\n", b"HTTP/1.0\r\n" + keep_alive)
        client, server, _ = await there.both(asked)
        await server.read(len(CALL))
        await server.send(JSON % len(RESULT), RESULT)
        head = await client.head()
        assert (b"Content-Length" in head, b"Transfer-Encoding" in head) == (False, False)
        assert head.count(b"Connection:") == head.count(b"Connection: close") == 1
        assert await client.rest() == (b"[]" if "send" in action else RESULT)
    assert ["Content-Length", None] in there.opens()[1].sent["headers"]
    assert there.how() == {1: "eof", 2: "eof"}


@scripted
async def test_what_is_unchanged_keeps_its_length_for_a_client_of_http_1_0(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, method="never")) as there:
        client, server, _ = await there.both(ASK.replace(b"HTTP/1.1", b"HTTP/1.0"))
        await server.read(len(CALL))
        await server.send(JSON % len(RESULT), RESULT)
        assert b"Content-Length: %d\r\n" % len(RESULT) in await client.head()
        assert await client.read(len(RESULT)) == RESULT


@scripted
async def test_events_to_a_client_of_http_1_0_end_with_the_connection(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, **NOTES)) as there:
        events = NOTE + b"\n" + OTHER + b"\n"
        client, server, _ = await there.both(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
        length = b"Content-Length: %d\r\n\r\n" % len(events)
        await server.send(STREAM.replace(b"Transfer-Encoding: chunked\r\n\r\n", length), events)
        assert b"Content-Length" not in await client.head()
        assert await client.rest() == OTHER + b"\n"
    assert there.how()[2] == "eof"


@scripted
async def test_a_content_coding_that_is_unknown_passes_and_is_said_once(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, **RESULTS)) as there:
        for _ in range(2):
            client, server, _ = await there.both(ASK)
            await server.read(len(CALL))
            await server.send(
                JSON.replace(b"\r\n\r\n", b"\r\nContent-Encoding: exi\r\nConnection: close\r\n\r\n") % len(RESULT),
                RESULT,
            )
            assert await client.until(RESULT[-1:] * 2) != b""
    assert there.stderr.count(b"a response has a content coding that cannot be decoded") == 1


@scripted
async def test_json_that_is_too_long_once_it_is_decoded_passes_undecided(tmp_path):
    async with stage(tmp_path, gates=gate({"drop": True}, **RESULTS)) as there:
        body = b'{"a":"%b"}' % (b"x" * (2 << 20))
        packed = coded(body, "gzip")
        client, server, _ = await there.both(ASK)
        await server.read(len(CALL))
        await server.send(JSON.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") % len(packed), packed)
        await client.head()
        assert await client.read(len(packed)) == packed
    answer = next(it for it in there.records(Frame) if it.ch == 2)
    assert (answer.raw, answer.undecided, answer.by) == (body, True, None)


@scripted
async def test_no_more_events_wait_than_may_although_a_small_chunk_has_many(tmp_path):
    hold = gate({"hold": 60_000_000_000}, **NOTES)
    async with stage(tmp_path, gates=hold) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
        await client.head()
        await server.send(chunk(b"".join(flushed("gzip", [(NOTE + b"\n") * 10_000]))))
        while len(there.records(Frame)) < FRAMES:  # noqa: ASYNC110 (the capture is a file)
            await asyncio.sleep(0)
        other, _, _ = await there.both(GET)  # the proxy relays this after the work in progress
        other.abort()
        assert len(there.records(Frame)) == FRAMES
        client.abort()


@scripted
async def test_a_stream_of_json_texts_is_not_collected(tmp_path):
    """This holds for both directions."""
    async with stage(tmp_path, gates=gate({"drop": True}, **{"from": "server"})) as there:
        kind = b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        client, server, _ = await there.both(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + kind + chunk(b"{}\n"))
        assert await server.until(b"{}\n\r\n") == chunk(b"{}\n")
        await server.send(b"HTTP/1.1 200 OK\r\n" + kind, chunk(b"[]\n"))
        await client.head()
        assert await client.until(b"[]\n\r\n") == chunk(b"[]\n")
        client.abort()
