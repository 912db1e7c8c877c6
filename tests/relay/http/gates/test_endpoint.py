"""Legacy HTTP+SSE: the endpoint event is rewritten if necessary, and nothing else is changed (H-08)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Frame
from mcpspy.gate.gate import PASS, Gate
from mcpspy.relay.http.gated_body import FirstEvent
from mcpspy.relay.http.own_gates import EndpointGate
from mcpspy.wire.content_coding import Decoder
from tests.limits import proportionate
from tests.relay.http.test_forward import STREAM, chunk
from tests.relay.stage import scripted, stage
from tests.wire.test_content_coding import flushed

GET = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip\r\n\r\n"


class Stream:
    """A stream through the gate; `rewritten` is the event that was recorded as changed, as received and as sent."""

    def __init__(self, encoding, mapped):
        self.body = FirstEvent(Gate([EndpointGate(mapped)], raised), encoding, raised)
        self.rewritten = None
        self.recorded = b""

    def feed(self, chunk):
        return self._record(self.body.feed(chunk, 0))

    def end(self):
        return self._record(self.body.end(0))

    def _record(self, out):
        for entry in self.body.recorded():
            self.recorded += entry.raw
            if entry.whole:
                assert self.rewritten is None
                assert entry.gated["by"] == "endpoint"
                self.rewritten = entry.raw, entry.gated["sent"]
        return out


def raised(sentence):
    raise AssertionError(sentence)


def mapped(reference):
    """Return another URL for every URL that names the upstream, and None for all others."""
    return reference.replace("http://up:1/", "http://us:2/x/") if reference.startswith("http://up:1/") else None


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("before", ["", ": hello{0}{0}", "id: 1{0}", "retry: 5{0}{0}"])
def test_only_the_url_changes(end, before):
    """H-08: the framing, the query and the session id stay byte for byte."""
    stream = before.format(end) + f"event: endpoint{end}data: http://up:1/m/?s=%7e&t=é{end}{end}data: {{}}{end}{end}"
    expected = stream.replace("http://up:1/m/", "http://us:2/x/m/").encode()
    for size in (1, 7, 1000):
        gate = Stream("", mapped)
        parts = [stream.encode()[i : i + size] for i in range(0, len(stream.encode()), size)]
        assert b"".join(gate.feed(part) for part in parts) == expected
        raw, sent = gate.rewritten
        assert raw in stream.encode()
        assert sent == raw.replace(b"http://up:1/m/", b"http://us:2/x/m/")


@pytest.mark.parametrize(
    "stream",
    [
        b"event: endpoint\ndata: /messages/?session_id=1\n\n",
        b"event: endpoint\ndata: http://other/m\n\n",
        b"data: http://up:1/m\n\n",
        b"event: message\ndata: {}\n\n",
        b"event: endpoint\n\n: no data\n\n",
        b": only a comment\n\n",
        b"event: endpoint\ndata: http://up:1/m",
        b"",
    ],
)
def test_what_needs_no_change_passes_as_it_is(stream):
    for size in (1, 1000):
        gate = Stream("", mapped)
        parts = [stream[i : i + size] for i in range(0, len(stream), size)]
        out = b"".join(gate.feed(part) for part in parts)
        assert out + gate.end() == stream
        assert gate.rewritten is None


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_comments_that_keep_a_stream_alive_are_not_held(end):
    """H-04: a client that receives nothing may time out on any stream."""
    gate = Stream("", mapped)
    ping = b": ping" + end + end
    for _ in range(3):
        assert gate.feed(ping[:3]) + gate.feed(ping[3:]) == ping
    event = b"event: endpoint" + end + b"data: http://up:1/m" + end + end
    assert gate.feed(event[:9]) == b""
    assert gate.feed(event[9:]) == event.replace(b"up:1/", b"us:2/x/")


def test_a_first_event_that_comes_byte_by_byte_takes_no_longer_for_it():
    """Bytes that have been examined are not examined again."""
    gate = Stream("", mapped)
    stream = b"data: " + b"a" * 60_000
    with proportionate(5):
        for byte in stream:
            gate.feed(bytes([byte]))


def test_an_event_that_does_not_end_is_not_held_for_ever():
    gate = Stream("", mapped)
    stream = b"data: " + b"a" * 70_000
    assert gate.feed(stream) == stream
    assert gate.feed(b"a") == b"a"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_stream_is_compressed_again_event_by_event(name):
    """H-08: each chunk that is sent decodes to the event that was received."""
    events = [b"event: endpoint\ndata: http://up:1/m?s=1\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    gate, decoder = Stream(name, mapped), Decoder(name)
    out = [b"".join(decoder.feed(gate.feed(coded))) for coded in flushed(name, events)]
    assert out == [events[0].replace(b"up:1/", b"us:2/x/"), *events[1:]]
    assert b"".join(decoder.feed(gate.end())) == b""


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_a_compressed_stream_that_needs_no_change_passes_byte_for_byte(name):
    coded = flushed(name, [b"event: endpoint\ndata: /m\n\n", b"data: 1\n\n"])
    gate = Stream(name, mapped)
    assert b"".join(gate.feed(part) for part in coded) == b"".join(coded)


@given(st.lists(st.binary(max_size=50)), st.sampled_from(["", "gzip", "br", "exi", "gzip, br"]))
def test_whatever_comes_goes_out_unless_it_is_rewritten(chunks, encoding):
    gate = Stream(encoding, lambda _: None)
    out = b"".join(gate.feed(part) for part in chunks)
    assert out + gate.end() == b"".join(chunks)


def test_only_the_first_event_with_data_is_decided_on():
    """H-08: only the verdict determines which bytes are sent, and their `by`."""
    gate = EndpointGate(mapped)
    event = b"event: endpoint\ndata: http://up:1/m\n"
    assert gate.decide(b": comment\n", None, 0) is PASS
    verdict = gate.decide(event, None, 0)
    assert (verdict.frames, verdict.by) == ((event.replace(b"up:1/", b"us:2/x/"),), "endpoint")
    assert gate.decide(event, None, 0) is PASS


ENDPOINTS = {
    "absolute": (
        b"http://127.0.0.1:%(up)d/api/v1/m/?s=1&t=%%7e",
        b"http://127.0.0.1:%(us)d/%(p)b/api/v1/m/?s=1&t=%%7e",
    ),
    "root-relative": (b"/api/v1/m/?s=1", b"/%(p)b/api/v1/m/?s=1"),
    "path-relative": (b"m/?s=1", b"m/?s=1"),
    "query alone": (b"?s=1", b"?s=1"),
    "another origin": (b"https://elsewhere.example/m?s=1", b"https://elsewhere.example/m?s=1"),
}


@pytest.mark.parametrize("prefix", [b"", b"mem"])
@pytest.mark.parametrize("name", ENDPOINTS)
@scripted
async def test_the_endpoint_leads_back_to_us(tmp_path, name, prefix):
    """H-08, H-09."""
    options = ("--route", "mem=http://127.0.0.1:{port}/api/v1/sse?tenant=a", "-o", str(tmp_path / "capture.jsonl"))
    async with stage(tmp_path, *(options if prefix else ()), path="/api/v1/sse?tenant=a") as there:
        base = b"/mem" if prefix else b""
        assert there.urls[0].removeprefix("mem ").endswith(f"{base.decode()}/api/v1/sse?tenant=a")
        client, server, head = await there.both(GET % (base + b"/api/v1/sse?tenant=a", there.port))
        assert head.startswith(b"GET /api/v1/sse?tenant=a HTTP/1.1\r\n")
        assert b"\r\nAccept-Encoding: identity\r\n" in head
        names = {b"up": there.upstream, b"us": there.port, b"p": prefix}
        sent, expected = (
            template.replace(b"/%(p)b", b"/" + prefix if prefix else b"") % names for template in ENDPOINTS[name]
        )
        if name == "another origin":
            sent, expected = (template for template in ENDPOINTS[name])
        event = b"event: endpoint\r\ndata: %b\r\n\r\n"
        await server.send(STREAM, chunk(event % sent))
        await client.head()
        assert await client.until(b"\r\n\r\n\r\n") == chunk(event % expected)
        await server.send(chunk(b"event: message\r\ndata: http://127.0.0.1:%d/x\r\n\r\n" % there.upstream))
        assert b"data: http://127.0.0.1:%d/x\r\n" % there.upstream in await client.until(b"\r\n\r\n\r\n")
    first = there.records(Frame)[0]
    assert first.raw == (event % sent)[:-2]
    if sent == expected:
        assert (first.sent, first.by) == (None, None)
    else:
        assert (first.sent, first.by) == ((event % expected)[:-2], "endpoint")
    assert there.opens()[0].by == "host,encoding"


@scripted
async def test_a_server_that_compresses_all_the_same_is_understood(tmp_path):
    """H-08: the endpoint is found in a compressed stream."""
    async with stage(tmp_path, path="/api/v1/sse?tenant=a") as there:
        client, server, _ = await there.both(GET % (b"/api/v1/sse?tenant=a", there.port))
        await server.send(STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
        await client.head()
        event = b"event: endpoint\ndata: http://127.0.0.1:%d/api/v1/m?session_id=1\n\n"
        decoder = Decoder("gzip")
        for coded, expected in zip(
            flushed("gzip", [event % there.upstream, b"data: {}\n\n"]),
            [event % there.port, b"data: {}\n\n"],
            strict=True,
        ):
            await server.send(chunk(coded))
            size = int((await client.until(b"\r\n")).strip(), 16)
            assert b"".join(decoder.feed(await client.read(size))) == expected
            await client.read(2)
        post = b"POST /api/v1/m?session_id=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
        _, other, head = await there.both(post)
        assert head.startswith(b"POST /api/v1/m?session_id=1 HTTP/1.1\r\n")
        await other.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted")
    frames = there.records(Frame)
    assert frames[0].raw == (event % there.upstream)[:-1]
    assert frames[0].sent == (event % there.port)[:-1]
    assert frames[1].raw == b"data: {}\n"


@pytest.mark.parametrize("field", [b"Mcp-Session-Id: 1", b"MCP-Protocol-Version: 2025-06-18"])
@scripted
async def test_a_stream_of_streamable_http_is_left_alone(tmp_path, field):
    """H-08."""
    async with stage(tmp_path) as there:
        client, server, head = await there.both(
            (GET % (b"/mcp", there.port)).replace(b"\r\n\r\n", b"\r\n" + field + b"\r\n\r\n")
        )
        assert b"\r\nAccept-Encoding: gzip\r\n" in head
        event = b"event: endpoint\ndata: http://127.0.0.1:%d/m\n\n" % there.upstream
        await server.send(STREAM, chunk(event))
        await client.head()
        assert await client.until(b"\n\n\r\n") == chunk(event)
