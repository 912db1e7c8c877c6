"""A client and a server for tests of gates, over every transport: both send scripted frames and keep what they receive.

The client calls a tool and then `sync`; all frames before the response to `sync` belong to the call. The server answers
every call with RESULT; over streams, a progress notification comes before it.
"""

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%b","arguments":{"n":1.10}}}'
SYNC = b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"sync"}}'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"sunny"}],"n":1.10}}'
SYNCED = b'{"jsonrpc":"2.0","id":8,"result":{}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
STDIO_SERVER = """
import json, sys
got = open(sys.argv[1], "ab", buffering=0)
for line in sys.stdin.buffer:
    line = line.rstrip(b"\\n")
    if line == SYNC:
        sys.stdout.buffer.write(SYNCED + b"\\n")
    else:
        got.write(line + b"\\n")
        try:
            answers = json.loads(line)["id"] == 7
        except (ValueError, KeyError):
            answers = False
        sys.stdout.buffer.write(PROGRESS + b"\\n" + RESULT + b"\\n" if answers else b"")
    sys.stdout.buffer.flush()
"""


def stdio_server():
    """Return the source of the stdio server; it appends the frames that it receives to the file in its argument."""
    given = {"SYNC": SYNC, "SYNCED": SYNCED, "PROGRESS": PROGRESS, "RESULT": RESULT}
    return "".join(f"{name} = {value!r}\n" for name, value in given.items()) + STDIO_SERVER


def answers(message):
    """Return the messages that the server sends in reply to a message; the last one is the response."""
    if message == SYNC:
        return [SYNCED]
    try:
        return [PROGRESS, RESULT] if json.loads(message)["id"] == 7 else []
    except (ValueError, KeyError, TypeError):
        return []


class Upstream:
    """The server over HTTP: `/json`, `/sse` (answers as events), `/legacy` and `/messages` (HTTP+SSE), `/ws`."""

    def __init__(self):
        self.got = []
        self.streams = {}

    async def post(self, request):
        message = await request.read()
        if message != SYNC:
            self.got.append(message)
        parts = answers(message)
        if not parts:
            return web.Response(status=202)
        if request.path == "/json":
            return web.Response(body=parts[-1], content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in parts:
            await response.write(b"event: message\ndata: " + part + b"\n\n")
        return response

    async def stream(self, request):
        session = str(len(self.streams))
        response = self.streams[session] = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages?session_id=" + session.encode() + b"\n\n")
        await asyncio.Event().wait()

    async def message(self, request):
        message = await request.read()
        if message != SYNC:
            self.got.append(message)
        for part in answers(message):
            with contextlib.suppress(ConnectionError):  # a gate has closed the stream
                await self.streams[request.query["session_id"]].write(b"event: message\ndata: " + part + b"\n\n")
        return web.Response(status=202)

    async def socket(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            raw = message.data.encode() if isinstance(message.data, str) else message.data
            if raw != SYNC:
                self.got.append(raw)
            for part in answers(raw):
                await socket.send_str(part.decode())
        return socket


@asynccontextmanager
async def upstream():
    """Run a server over HTTP; yield it and its port."""
    there = Upstream()
    app = web.Application()
    app.add_routes([web.post("/json", there.post), web.post("/sse", there.post), web.get("/ws", there.socket)])
    app.add_routes([web.get("/legacy", there.stream), web.post("/messages", there.message)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield there, runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Came:
    """What a client received for one call."""

    def __init__(self):
        self.frames = []
        self.status = None
        """The status of the HTTP response to the call."""
        self.closed = False
        """Whether the stream ended before the response to `sync`."""


def events(raw):
    """Return the data of each event in a stream."""
    blocks = raw.replace(b"\r\n", b"\n").split(b"\n\n")
    lines = [[line for line in block.split(b"\n") if line.startswith(b"data:")] for block in blocks]
    return [b"\n".join(line[5:].removeprefix(b" ") for line in found) for found in lines if found]


async def post(session, url, message):
    """POST one message; return what the client received."""
    came = Came()
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    try:
        async with session.post(url, data=message, headers=headers) as response:
            came.status, is_stream = response.status, response.content_type == "text/event-stream"
            raw = b""
            try:
                async for part in response.content.iter_any():
                    raw += part
            finally:
                came.frames = events(raw) if is_stream else [raw] if raw else []
    except aiohttp.ClientError:
        came.closed = True
    return came


async def over_legacy(session, base, message):
    """Make a call in a session of HTTP+SSE."""
    came = Came()
    async with session.get(f"{base}/legacy", headers={"Accept": "text/event-stream"}) as stream:
        raw = b""
        while b"\n\n" not in raw:
            raw += await stream.content.readany()
        place = events(raw)[0].decode()
        url = place if "://" in place else base + place
        raw = b""
        came.status = (await post(session, url, message)).status
        await post(session, url, SYNC)
        try:
            while SYNCED not in raw:
                part = await stream.content.readany()
                if not part:
                    came.closed = True
                    break
                raw += part
        except aiohttp.ClientError:
            came.closed = True
    came.frames = [frame for frame in events(raw) if frame != SYNCED]
    return came


async def over_websocket(session, base, message, count):
    """Make a call over a WebSocket, after an offer to compress; `count` is as for `over_stdio`."""
    came, synced = Came(), False
    async with session.ws_connect(f"{base}/ws", autoping=True, compress=15) as socket:
        came.compressed = bool(socket.compress)
        await socket.send_str(message.decode())
        try:
            await socket.send_str(SYNC.decode())
        except aiohttp.ClientError:
            pass
        while not synced or len(came.frames) < count:
            found = await socket.receive()
            if found.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                came.closed = True
                break
            raw = found.data.encode() if isinstance(found.data, str) else found.data
            if raw == SYNCED:
                synced = True
            else:
                came.frames.append(raw)
    return came


async def over_stdio(process, message, count):
    """Make a call over stdio and wait for `count` frames: the relay's own response may come after that to `sync`."""
    came, synced = Came(), False
    process.stdin.write(message + b"\n" + SYNC + b"\n")
    while not synced or len(came.frames) < count:
        line = await process.stdout.readline()
        if not line:
            came.closed = True
            break
        if line == SYNCED + b"\n":
            synced = True
        else:
            came.frames.append(line.removesuffix(b"\n"))
    return came
