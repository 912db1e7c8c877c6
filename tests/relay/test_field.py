"""A session as the field has it: Cursor and a mem0 server over HTTP+SSE (FIELD-TRAFFIC), played byte for byte."""

import json

from mcpspy.record import Frame
from mcpspy.wire.sse import parse_event
from tests.relay.stage import scripted, stage
from tests.relay.test_exchange import chunk

SESSION = "0f3a9c51d2b84e67a1c09f6e5d7b8a42"
STREAM = (
    b"HTTP/1.1 200 OK\r\ndate: Wed, 12 Mar 2025 08:16:08 GMT\r\nserver: uvicorn\r\ncache-control: no-store\r\n"
    b"connection: keep-alive\r\nx-accel-buffering: no\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nserver: uvicorn\r\ncontent-length: 8\r\n\r\nAccepted"
CAPABILITIES = {"tools": True, "prompts": False, "resources": True, "logging": False, "roots": {"listChanged": False}}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NAMES = ("add_coding_preference", "get_all_coding_preferences", "search_coding_preferences")
EXCHANGES = [
    (
        {
            "method": "initialize",
            "params": {
                "protocolVersion": "2024-11-05",
                "capabilities": CAPABILITIES,
                "clientInfo": {"name": "cursor-vscode", "version": "1.0.0"},
            },
            "jsonrpc": "2.0",
            "id": 0,
        },
        {
            "protocolVersion": "2024-11-05",
            "capabilities": {
                "experimental": {},
                **{name: {"listChanged": False} for name in ("prompts", "resources", "tools")},
            },
            "serverInfo": {"name": "mem0-mcp", "version": "1.3.0"},
        },
    ),
    ({"method": "notifications/initialized", "jsonrpc": "2.0"}, None),
    (
        {"method": "tools/list", "jsonrpc": "2.0", "id": 1},
        {"tools": [{"name": name, "description": name.replace("_", " "), "inputSchema": SCHEMA} for name in NAMES]},
    ),
    (
        {
            "method": "tools/call",
            "params": {"name": NAMES[2], "arguments": {"query": "style"}},
            "jsonrpc": "2.0",
            "id": 3,
        },
        {"content": [{"type": "text", "text": "[]"}], "isError": False},
    ),
]


@scripted
async def test_a_session_of_cursor_with_a_mem0_server(tmp_path):
    """FIELD-TRAFFIC; H-04, H-08: relayed untouched, answers on the stream, pings as comments."""
    async with stage(tmp_path, path="/sse") as there:
        listener, server, head = await there.both(
            b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n\r\n"
            % there.port
        )
        assert b"Host: 127.0.0.1:%d\r\n" % there.upstream in head
        sent = [b"event: endpoint\r\ndata: /messages/?session_id=%b\r\n\r\n" % SESSION.encode()]
        await server.send(STREAM, chunk(sent[0]))
        assert await listener.head() == STREAM.replace(b"connection: keep-alive\r\n", b"")
        assert await listener.until(b"\r\n\r\n\r\n") == chunk(sent[0])
        poster = await there.client()
        accepting = None
        for message, result in EXCHANGES:
            body = json.dumps(message, separators=(",", ":")).encode()
            await poster.send(
                b"POST /messages/?session_id=%b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (SESSION.encode(), there.port, len(body), body)
            )
            accepting = accepting or await there.server()
            assert (await accepting.head()).startswith(b"POST /messages/?session_id=%b HTTP/1.1\r\n" % SESSION.encode())
            assert await accepting.read(len(body)) == body
            await accepting.send(ACCEPTED)
            assert await poster.until(b"\r\n\r\nAccepted") == ACCEPTED
            if result is not None:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                sent.append(b"event: message\r\ndata: %b\r\n\r\n" % json.dumps(answer).encode())
                sent.append(b": ping - 2025-03-12 08:16:23.071429+00:00\r\n\r\n")
                for event in sent[-2:]:
                    await server.send(chunk(event))
                    assert await listener.until(b"\r\n\r\n\r\n") == chunk(event)
    assert there.frames(2) == [event[:-2] for event in sent]
    assert [parse_event(raw).name for raw in there.frames(2)][:2] == ["endpoint", "message"]
    posts = [record for record in there.opens() if record.role == "request"][1:]
    assert [json.loads(there.frames(post.ch)[0]).get("id", "none") for post in posts] == [0, "none", 1, 3]
    assert all(SESSION in post.head["target"] for post in posts)
    assert [frame.raw for frame in there.records(Frame)].count(b"Accepted") == 4
