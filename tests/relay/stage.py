"""A scripted upstream, the real `mcpspy proxy` in front of it, and raw clients: the test sends every byte."""

import asyncio
import functools
import json
import re
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open
from tests.limits import LIMIT
from tests.peers import warm
from tests.relay.harness import until

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

GATED = str(Path(__file__).with_name("gated_proxy.py"))  # as a path: importing `tests` takes half a second


def scripted(test):
    """Decorate a test that is a coroutine, so that it runs with a time limit."""

    @functools.wraps(test)
    def run(*args, **options):
        asyncio.run(asyncio.wait_for(test(*args, **options), LIMIT))

    return run


@dataclass
class Peer:
    """One connection of a test, to the proxy or from it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def head(self) -> bytes:
        """Return the next head, with its empty line."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def read(self, count: int) -> bytes:
        return await self.reader.readexactly(count)

    async def rest(self) -> bytes:
        return await self.reader.read()

    async def until(self, end: bytes) -> bytes:
        return await self.reader.readuntil(end)

    async def gone(self) -> str:
        """Wait until the other side has closed the connection, and return how: `eof` or `reset`."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            return "reset"
        return "eof"

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        """Close the connection with a reset."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


@dataclass
class Stage:
    """A running proxy between a test's client and its upstream."""

    process: asyncio.subprocess.Process
    urls: list[str]
    path: Path
    upstream: int
    """The port of the upstream."""
    arrived: "asyncio.Queue[Peer]" = field(default_factory=asyncio.Queue)
    peers: list[Peer] = field(default_factory=list)
    stderr: bytes = b""

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.urls[0])[1])

    async def client(self) -> Peer:
        """Connect a new client to the proxy."""
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22))
        self.peers.append(peer)
        return peer

    async def server(self) -> Peer:
        """Return the next connection that the proxy opens."""
        return await self.arrived.get()

    async def both(self, request: bytes) -> tuple[Peer, Peer, bytes]:
        """Send the head of a request; return the client, the server, and the head that the server received."""
        client = await self.client()
        await client.send(request)
        server = await self.server()
        return client, server, await server.head()

    async def end(self) -> int:
        """Send SIGINT and return the exit status."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        self.stderr += await self.process.stderr.read()
        return await self.process.wait()

    async def captured(self) -> list:
        """End the process, and return all records of the capture."""
        assert await self.end() == 0
        return self.records()

    async def recorded(self, wanted) -> None:
        """Wait until the capture has a record for which `wanted` is true."""
        await asyncio.to_thread(until, lambda: self.written() and any(map(wanted, self.records())), "a record")

    def written(self) -> bytes:
        """Return what the capture has so far."""
        return self.path.read_bytes() if self.path.exists() else b""

    def said(self) -> str:
        """Return what the process has written to stderr."""
        return self.stderr.decode()

    def records(self, kind=None) -> list:
        found = list(Capture(str(self.path)).records(1 << 62))
        return [record for record in found if kind is None or isinstance(record, kind)]

    def opens(self) -> list[Open]:
        return self.records(Open)

    def frames(self, ch: int) -> list[bytes]:
        return [record.raw for record in self.records(Frame) if record.ch == ch]

    def how(self) -> dict[int, str]:
        """Return how each channel ended."""
        return {record.ch: record.how for record in self.records(Close)}

    def ended(self) -> bool:
        return any(isinstance(record, End) for record in self.records())


@asynccontextmanager
async def stage(
    tmp_path: Path, *options: str, path: str = "/mcp", url: str | None = None, tls=None, gates=None
) -> AsyncIterator[Stage]:
    """Start an upstream whose connections the test receives, and a proxy for it; `gates` are compiled gates."""
    arrived: asyncio.Queue[Peer] = asyncio.Queue()
    peers: list[Peer] = []

    async def accept(reader, writer):
        peer = Peer(reader, writer)
        peers.append(peer)
        await arrived.put(peer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 22, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    capture = tmp_path / "capture.jsonl"
    program = ["-m", "mcpspy"] if gates is None else [GATED, json.dumps(gates)]
    arguments = ["proxy", "--listen", "127.0.0.1:0", *options]
    if "--route" not in options:
        arguments += ["-o", str(capture), (url or "http://127.0.0.1:{port}" + path).format(port=port)]
    command = [*program, *(word.format(port=port) for word in arguments)]
    if warm.CAN:
        process = await warm.proxy(command)
    else:
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(sys.executable, *command, **pipes)
    there = None
    try:
        urls = [(await process.stdout.readline()).decode().strip() for _ in range(max(1, options.count("--route")))]
        if not urls[0]:
            raise AssertionError((await process.stderr.read()).decode())
        there = Stage(process, urls, capture, port, arrived, peers)
        yield there
        assert await there.end() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        for peer in peers:
            peer.writer.transport.abort()
        server.close()
    assert b"Traceback" not in there.stderr, there.stderr.decode()
