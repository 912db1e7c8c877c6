"""Viewers set gates on a running proxy, and decide on held frames: every transport, byte by byte."""

import asyncio
import json
import os
import signal
import sys

import pytest

from mcpspy.capture.live import live_directory
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Release
from mcpspy.wire.websocket import TEXT, encode, unmask
from tests.relay.http.test_forward import CALL, GET, LAST, POST, STREAM, chunk
from tests.relay.http.test_tunnel import ASK as HANDSHAKE
from tests.relay.http.test_tunnel import GRANT as SWITCH
from tests.relay.stage import scripted, stage
from tests.relay.viewer import HOLD, viewing

ASK = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
EDITED = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"edited":true}}'
CALLS = {"from": "client", "method": "tools/call"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
OTHER = b'data: {"jsonrpc":"2.0","method":"notifications/other"}\r\n\r\n'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
ANSWERED = LAST.replace(b"Connection: close\r\n", b"")
LOOKS = 0.12  # seconds; a relay has looked for changes after this time


def directories(folder):
    """Return the paths in a folder whose names begin with a dot."""
    return [entry.path for entry in os.scandir(folder) if entry.name.startswith(".")]


async def passes(there):
    """Make an exchange that is forwarded unchanged."""
    client, server, _ = await there.both(ASK)
    assert await server.read(len(CALL)) == CALL
    await server.send(LAST)
    assert await client.until(b"{}") == ANSWERED
    client.close()


async def looked():
    """Wait until the relay looks for changes at the next head."""
    await asyncio.sleep(LOOKS)


@scripted
async def test_a_gate_is_in_force_from_the_next_head_on_and_a_held_request_is_edited(tmp_path):
    async with stage(tmp_path) as there:
        await passes(there)
        assert Capture(str(there.path)).header.control
        with viewing(there.path) as viewer:
            gates = viewer.gate(HOLD, **CALLS)
            await looked()
            client = await there.client()
            await client.send(ASK)
            (frame,) = await viewer.holds()
            assert (frame.raw, frame.held, frame.by) == (CALL, 1, "gate g")
            assert there.arrived.empty()
            viewer.release(1, "edited", EDITED)
            server = await there.server()
            await server.head()
            assert await server.read(len(EDITED) + 11) == chunk(EDITED.encode()) + b"0\r\n\r\n"
            await server.send(LAST)
            assert await client.until(b"{}") == ANSWERED
            viewer.set_gates([])
            await looked()
            await passes(there)
        folder = live_directory(str(there.path), Capture(str(there.path)).header.id)
        assert folder in directories(tmp_path)
    assert folder not in directories(tmp_path)
    (release,) = there.records(Release)
    assert (release.held, release.how, release.sent, release.by) == (1, "edited", EDITED.encode(), "gate g")
    assert [(list(it.gates), it.by) for it in there.records(Gates)] == [(gates, "viewer"), ([], "viewer")]


@pytest.mark.parametrize(
    ("how", "frame", "answer"),
    [
        ("continued", None, None),
        ("dropped", None, b"HTTP/1.1 202 Accepted\r\n"),
        ("answered", RESULT.decode(), b"HTTP/1.1 200 OK\r\n"),
    ],
)
@scripted
async def test_what_is_decided_on_a_held_request(tmp_path, how, frame, answer):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **CALLS)
            await looked()
            client = await there.client()
            await client.send(ASK)
            await viewer.holds()
            viewer.release(1, how, frame)
            if answer is None:
                server = await there.server()
                await server.head()
                assert await server.read(len(CALL) + 11) == chunk(CALL) + b"0\r\n\r\n"
                await server.send(LAST)
                assert await client.until(b"{}") == ANSWERED
            else:
                assert (await client.head()).startswith(answer)
                assert there.arrived.empty()
                if frame:
                    assert await client.read(len(frame)) == frame.encode()
    assert [it.how for it in there.records(Release)] == [how]


@scripted
async def test_a_response_of_json_is_held_and_edited(tmp_path):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **{"from": "server", "method": "tools/call"})
            await looked()
            client, server, _ = await there.both(ASK)
            await server.send(JSON % len(RESULT) + RESULT)
            (frame,) = await viewer.holds()
            assert frame.raw == RESULT
            viewer.release(1, "answered", RESULT.decode())  # is refused for a response
            edited = RESULT.replace(b"{}", b'{"a":1}')
            viewer.release(1, "edited", edited.decode())
            await client.head()
            assert await client.until(b"0\r\n\r\n") == chunk(edited) + b"0\r\n\r\n"
    assert there.stderr.count(b"frame 1 is not a request") == 1


@scripted
async def test_a_stream_that_is_open_goes_over_to_the_gate_between_two_events(tmp_path):
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(GET)
        await server.send(STREAM, chunk(b"\xef\xbb\xbf" + OTHER + NOTE[:20]))
        await client.head()
        assert await client.read(len(chunk(OTHER + NOTE[:20])) + 3)
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, method="notifications/message")
            await looked()
            await server.send(chunk(NOTE[20:]))  # the rest of the event that was open
            assert await client.read(len(chunk(NOTE[20:]))) == chunk(NOTE[20:])
            await server.send(chunk(NOTE + OTHER))
            first, second = await viewer.holds(2)
            assert [first.raw, second.raw] == [NOTE[:-1], OTHER[:-2]]
            edited = '{"jsonrpc":"2.0","method":"edited"}'
            viewer.release(1, "edited", edited)
            expected = chunk(b"data: %b\n\n" % edited.encode() + OTHER)
            assert await client.read(len(expected)) == expected
            viewer.set_gates([])
            await looked()
            await server.send(chunk(NOTE), b"0\r\n\r\n")
            assert await client.until(b"0\r\n\r\n") == chunk(NOTE) + b"0\r\n\r\n"
    frames = there.records(Frame)
    assert [it.raw for it in frames] == [b"\xef\xbb\xbf" + OTHER[:-2], NOTE[:-1], NOTE[:-1], OTHER[:-2], NOTE[:-1]]
    assert [it.held for it in frames] == [None, None, 1, 2, None]


@pytest.mark.parametrize("inside", [False, True])
@scripted
async def test_a_request_of_http_and_sse_is_answered_on_a_stream_that_is_older_than_the_gate(tmp_path, inside):
    """Nothing has arrived on the stream since; if an event is incomplete, the reply waits for its end."""
    get = b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    endpoint = b"event: endpoint\ndata: /messages/?session_id=abc\n\n"
    ask = POST.replace(b"/mcp", b"/messages/?session_id=abc") + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
    answer = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    event = chunk(b"event: message\ndata: %b\n\n" % answer)
    begun, rest = (chunk(NOTE[:20]), chunk(NOTE[20:])) if inside else (b"", chunk(NOTE))
    async with stage(tmp_path, path="/sse") as there:
        stream, server, _ = await there.both(get)
        await server.send(STREAM, chunk(endpoint))
        await stream.head()
        await stream.until(b"abc\n\n\r\n")
        await server.send(begun)
        assert await stream.read(len(begun)) == begun
        with viewing(there.path) as viewer:
            viewer.gate({"answer": '{"result":{}}'}, **CALLS)
            await looked()
            client = await there.client()
            await client.send(ask)
            assert (await client.head()).startswith(b"HTTP/1.1 202 ")
            if not inside:
                assert await stream.read(len(event)) == event
            await server.send(rest)
            assert await stream.read(len(rest)) == rest
            if inside:
                assert await stream.read(len(event)) == event
            await client.send(ask)
            assert await stream.read(len(event)) == event
            await server.send(b"0\r\n\r\n")
            assert await stream.until(b"0\r\n\r\n") == b"0\r\n\r\n"
    own = [it for it in there.records(Frame) if it.sender == "mcpspy"]
    assert [(it.raw, it.by) for it in own] == [(b"event: message\ndata: %b\n" % answer, "gate g")] * 2
    assert [it.raw for it in there.records(Frame) if it.raw == NOTE[:-1]] == [NOTE[:-1]]


@scripted
async def test_the_responses_of_http_and_sse_are_known_by_their_requests(tmp_path):
    """The stream began before the gate was set, and before the session id was known."""
    get = b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    endpoint = b"event: endpoint\ndata: /messages/?session_id=abc\n\n"
    post = ASK.replace(b"/mcp", b"/messages/?session_id=abc")
    answer = b"event: message\ndata: %b\n\n" % RESULT
    async with stage(tmp_path, path="/sse") as there:
        client, server, _ = await there.both(get)
        await server.send(STREAM, chunk(endpoint))
        await client.head()
        assert await client.read(len(chunk(endpoint))) == chunk(endpoint)
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **{"from": "server", "method": "tools/call"})
            await looked()
            await there.both(post)
            await server.send(chunk(answer))
            (frame,) = await viewer.holds()
            assert frame.raw == answer[:-1]
            viewer.release(1, "continued")
            assert await client.read(len(chunk(answer))) == chunk(answer)


@scripted
async def test_a_client_that_leaves_while_its_request_is_held_drops_it(tmp_path):
    async with stage(tmp_path) as there:
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **CALLS)
            await looked()
            client = await there.client()
            await client.send(ASK)
            await viewer.holds()
            client.abort()
            await asyncio.to_thread(viewer.gone)
            viewer.release(1, "continued")
            await looked()
            assert there.arrived.empty()
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("closed", True)]


KILLED = """
import sys
from tests.relay.viewer import Viewer
viewer = Viewer(sys.argv[1])
viewer.gate({"hold": 1_500_000_000}, method="tools/call")
print("set", flush=True)
sys.stdin.read()
"""


@scripted
async def test_ten_requests_of_a_viewer_that_is_killed_go_on_at_their_limit(tmp_path):
    async with stage(tmp_path) as there:
        command = [sys.executable, "-c", KILLED, str(there.path)]
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        killed = await asyncio.create_subprocess_exec(*command, **pipes)
        try:
            assert await killed.stdout.readline() == b"set\n"
            await looked()
            for _ in range(10):
                client = await there.client()
                await client.send(ASK)
            with viewing(there.path) as viewer:
                await viewer.holds(10)
        finally:
            killed.send_signal(signal.SIGKILL)
            await killed.wait()
        for _ in range(10):
            server = await there.server()
            await server.head()
            assert await server.read(len(CALL) + 11) == chunk(CALL) + b"0\r\n\r\n"
            await server.send(LAST)
        await passes(there)
    assert [it.how for it in there.records(Release)] == ["expired"] * 10
    assert [len(it.gates) for it in there.records(Gates)] == [1, 0]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
@scripted
async def test_a_directory_that_may_not_be_used_is_told_once(tmp_path):
    async with stage(tmp_path) as there:
        folder = live_directory(str(there.path), Capture(str(there.path)).header.id)
        (tmp_path / "elsewhere").mkdir()
        os.symlink(tmp_path / "elsewhere", folder)
        (tmp_path / "elsewhere" / "1.order.json").write_text(json.dumps({"send": "{}"}))
        for _ in range(3):
            await passes(there)
            await looked()
    assert there.stderr.count(b"is not a directory; no gate is taken from there") == 1
    assert folder in directories(tmp_path)


@scripted
async def test_each_route_has_gates_of_its_own(tmp_path):
    """All routes have the gates of the file, and each route counts its own matches."""
    once = {"name": "once", "when": CALLS, "action": {"drop": True}, "times": 1}
    folder = ("--capture-dir", str(tmp_path))
    routes = ("--route", "a=http://127.0.0.1:{port}/mcp", "--route", "b=http://127.0.0.1:{port}/mcp", *folder)
    async with stage(tmp_path, *routes, gates=[once]) as there:
        await there.client()  # the port is that of the first URL
        for name in (b"a", b"b"):
            ask = ASK.replace(b"/mcp", b"/%b/mcp" % name)
            client = await there.client()
            await client.send(ask)
            assert (await client.head()).startswith(b"HTTP/1.1 202 ")
            await client.send(ask)
            server = await there.server()
            await server.head()
            await server.send(LAST)
            await client.until(b"{}")
        paths = sorted(tmp_path.glob("*.jsonl"))
    assert len(paths) == 2
    for path in paths:
        (gates,) = [it for it in Capture(str(path)).records() if isinstance(it, Gates)]
        assert (list(gates.gates), gates.by) == ([once], "file")


@scripted
async def test_a_websocket_that_is_open_goes_over_to_the_gate_between_two_messages(tmp_path):
    """Each direction switches separately, and messages that match no gate keep their bytes."""
    mask = b"\x12\x34\x56\x78"
    call, other = encode(CALL, TEXT, mask), encode(b'{"method":"other"}', TEXT, mask)
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(HANDSHAKE)
        await server.send(SWITCH)
        await client.head()
        await client.send(call, call[:9])
        assert await server.read(len(call) + 9) == call + call[:9]
        with viewing(there.path) as viewer:
            viewer.gate(HOLD, **CALLS)
            await looked()
            await client.send(call[9:], other)  # the rest of the open message; the gate decides on none before its end
            assert await server.read(len(call) - 9 + len(other)) == call[9:] + other
            await client.send(call, other)
            first, second = await viewer.holds(2)
            assert (first.raw, first.by) == (CALL, "gate g")
            await server.send(encode(RESULT, TEXT))
            assert await client.read(len(encode(RESULT, TEXT))) == encode(RESULT, TEXT)
            viewer.release(first.held, "edited", EDITED)
            got = await server.read(6 + len(EDITED) + len(other))
            assert unmask(got[6 : -len(other)], got[2:6], 0) == EDITED.encode()
            assert got[-len(other) :] == other
    assert [(it.held, it.how) for it in there.records(Release)] == [(1, "edited"), (second.held, "delayed")]
