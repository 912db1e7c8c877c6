"""A session from practice: Cursor and a mem0 server over HTTP+SSE (H-08), replayed byte for byte."""

import json

from mcpspy.capture.records import Frame
from mcpspy.wire.sse import parse_event
from tests.peers.field.mem0 import ACCEPTED, ENDPOINT, PING, SESSION, STREAM, exchanges, message
from tests.relay.http.test_forward import chunk
from tests.relay.stage import scripted, stage


@scripted
async def test_a_session_of_cursor_with_a_mem0_server(tmp_path):
    """H-04, H-08: all bytes are forwarded unchanged; responses come on the stream, pings are comments."""
    async with stage(tmp_path, path="/sse") as there:
        listener, server, head = await there.both(
            b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n\r\n"
            % there.port
        )
        assert b"Host: 127.0.0.1:%d\r\n" % there.upstream in head
        await server.send(STREAM, chunk(ENDPOINT))
        assert await listener.head() == STREAM.replace(b"connection: keep-alive\r\n", b"")
        assert await listener.until(b"\r\n\r\n\r\n") == chunk(ENDPOINT)
        sent = [ENDPOINT]
        poster = await there.client()
        accepting = None
        for said, answer in exchanges():
            await poster.send(
                b"POST /messages/?session_id=%b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (SESSION, there.port, len(said), said)
            )
            accepting = accepting or await there.server()
            assert (await accepting.head()).startswith(b"POST /messages/?session_id=%b HTTP/1.1\r\n" % SESSION)
            assert await accepting.read(len(said)) == said
            await accepting.send(ACCEPTED)
            assert await poster.until(b"\r\n\r\nAccepted") == ACCEPTED
            for event in (PING, message(answer)) if answer else ():
                sent.append(event)
                await server.send(chunk(event))
                assert await listener.until(b"\r\n\r\n\r\n") == chunk(event)
    assert there.frames(2) == [event[:-2] for event in sent]
    assert [parse_event(raw).name for raw in there.frames(2)][:2] == ["endpoint", "message"]
    posts = [record for record in there.opens() if record.role == "request"][1:]
    assert [json.loads(there.frames(post.ch)[0]).get("id", "none") for post in posts] == [0, "none", 1, 3]
    assert all(SESSION.decode() in post.head["target"] for post in posts)
    assert [frame.raw for frame in there.records(Frame)].count(b"Accepted") == 4
