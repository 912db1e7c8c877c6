"""A WebSocket after its handshake: two byte streams, one per direction, with fragments and masks unchanged.

Each direction reads what aiohttp's connection receives, forwards it, and records it. The peers close the WebSocket
themselves: their close frames are forwarded like all others. When one peer closes its connection, we close the other.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter

from mcpspy.recording.http_exchange import Body

_HIGH = 1 << 18  # bytes received and not yet forwarded, above which reading pauses
_LAST = 1.0  # seconds to forward the last bytes of a peer that has disconnected


class Received:
    """The bytes that one peer sends; aiohttp calls this class in place of a parser of WebSocket frames."""

    def __init__(self, protocol: BaseProtocol) -> None:
        self._protocol = protocol
        self._chunks: list[bytes] = []
        self._size = 0
        self._paused = False
        self.ended = False
        self._arrived = asyncio.Event()
        parser: Any = self
        receiver: Any = protocol
        if isinstance(protocol, ResponseHandler):
            receiver.set_parser(parser, None)
        else:
            receiver.set_parser(parser)

    def feed_data(self, chunk: bytes) -> tuple[bool, bytes]:
        """Called by aiohttp with received bytes."""
        self._chunks.append(bytes(chunk))
        self._size += len(chunk)
        if self._size > _HIGH and not self._paused and self._protocol.transport:
            self._paused = True
            self._protocol.transport.pause_reading()
        self._arrived.set()
        return False, b""

    def feed_eof(self) -> None:
        """Called by aiohttp when the connection is closed."""
        self.ended = True
        self._arrived.set()

    async def read(self) -> bytes:
        """Wait for bytes and return what has arrived; empty at the end."""
        while not self._chunks and not self.ended:
            self._arrived.clear()
            await self._arrived.wait()
        chunk = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if self._paused and self._protocol.transport:
            self._paused = False
            self._protocol.transport.resume_reading()
        return chunk


async def pump(source: Received, sink: BaseProtocol, channel: Body, now: Callable[[], int]) -> str:
    """Forward one direction; return how it ended."""
    writer = StreamWriter(sink, asyncio.get_running_loop())
    while chunk := await source.read():
        t = now()
        try:
            await writer.write(chunk)
        except ConnectionError:
            return "abort"
        finally:
            channel.feed(chunk, t)
    return "eof"


Pump = Callable[[Received, BaseProtocol, Body, Callable[[], int]], Coroutine[Any, Any, str]]


async def tunnel(
    client: BaseProtocol,
    server: BaseProtocol,
    from_client: Body,
    from_server: Body,
    now: Callable[[], int],
    cut: Callable[[], str],
    pump: Pump = pump,
) -> None:
    """Forward bytes between two connections until one of them ends.

    Each direction is recorded in its channel. `cut` returns the `close.how` of a direction that we ended ourselves.
    A relay with a gate passes a `pump` of its own.
    """
    directions = ((client, server, from_client), (server, client, from_server))
    sources = [Received(source) for source, _, _ in directions]
    pumps = [
        asyncio.create_task(pump(received, sink, channel, now))
        for received, (_, sink, channel) in zip(sources, directions, strict=True)
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for received, task, (_, _, channel) in zip(sources, pumps, directions, strict=True):
            if received.ended:
                await asyncio.wait([task], timeout=_LAST)
            task.cancel()
            await asyncio.wait([task])
            channel.end(now(), cut() if task.cancelled() else task.result())
        for protocol in (client, server):
            if protocol.transport:
                protocol.transport.close()
