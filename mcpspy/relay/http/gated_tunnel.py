"""A WebSocket of a relay that has a gate: each message is decided on when it is whole.

The rules. A message that no verdict changes goes on in the fragments and with the masks that it came in; a message of
the gate's goes in one frame, masked if it goes to the server (RFC 6455, 5.3). Control frames pass as they come, before
messages that are held; a close frame, like the end of the connection, lets what is held go before it. An answer of a
gate to one peer waits until a long message on its way to that peer has ended. A verdict that closes the stream ends
both directions with a close frame of code 1001. While no gate is in force bytes go on as they come; each direction
goes over to the gate between two messages. What `gated_messages` says cannot be decided on passes, and the user
is told once unless it is only too long.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import Callable

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_writer import StreamWriter

from mcpspy.capture.format import VIEWER
from mcpspy.gate.gate import LIMIT
from mcpspy.gate.verdicts import Reply
from mcpspy.recording.http_body import Body
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.gated_channel import AT_ONCE, GatedChannel
from mcpspy.relay.http.gated_messages import CLOSES, MessagePieces
from mcpspy.relay.http.route import RequestContext, say_once
from mcpspy.relay.http.tunnel import Received
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.websocket import BINARY, CLOSE, TEXT, encode

_GOING_AWAY = (1001).to_bytes(2, "big")  # RFC 6455, 7.4.1
_OPCODES = {None: TEXT, "binary": BINARY}


class GatedTunnel:
    """Both directions of one WebSocket."""

    def __init__(self, exchange: RequestContext, gate: LiveGate, client: BaseProtocol, server: BaseProtocol) -> None:
        """`client` and `server` are the connections to them."""
        session = object()  # what tells this connection apart for the gate
        from_client = _GatedDirection(exchange, gate, "client", session, server, self._close)
        from_server = _GatedDirection(exchange, gate, "server", session, client, self._close)
        from_client.other, from_server.other = from_server, from_client
        self._by_sink = {server: from_client, client: from_server}
        self._from_client = from_client

    async def pump(self, source: Received, sink: BaseProtocol, _: Body, now: Callable[[], int]) -> str:
        """Forward one direction; returns how it ended."""
        return await self._by_sink[sink].run(source, now)

    def send(self, frame: bytes) -> None:
        """Have a request of a viewer sent to the server, as a text message."""
        self._from_client.add(Reply(frame, VIEWER))

    def _close(self) -> None:
        """A verdict ends the stream."""
        for direction in self._by_sink.values():
            direction.stop()


class _GatedDirection:
    """What one peer sends, `sender`, on its way to the connection `sink`."""

    other: "_GatedDirection"

    def __init__(
        self,
        exchange: RequestContext,
        gate: LiveGate,
        sender: str,
        session: object,
        sink: BaseProtocol,
        close: Callable[[], None],
    ) -> None:
        self._say = functools.partial(say_once, exchange)
        self._gate = gate
        self._channel = exchange.recorded.sockets[sender]
        self._masked = sender == "client"
        self._messages = MessagePieces(LIMIT)
        self._source: Received | None = None
        self._stopping: asyncio.Task[None] | None = None
        writer = StreamWriter(sink, asyncio.get_running_loop())
        self._write = functools.partial(writer.write, drain=False)
        self._drain = writer.drain
        self._gated_channel = GatedChannel(
            gate,
            gate.facts(sender, "message", session),
            self._channel,
            exchange.route.recording,
            self._write,
            self._say,
            drain=writer.drain,
            render=self._render,
            reply=self._reply,
            close=close,
        )
        self._gated = gate.in_force
        self._gated_channel.inside = not self._gated

    def add(self, reply: Reply) -> None:
        """Have a frame of our own forwarded in this direction."""
        self._go_over()
        self._gated_channel.add(reply)

    async def run(self, source: Received, now: Callable[[], int]) -> str:
        """Forward until the source ends or a verdict ends the stream; returns how."""
        self._source = source
        try:
            while not self._stopping and (chunk := await source.read()):
                t = now()
                if not (self._gated or (self._gate.look(t) and self._go_over())):
                    await self._pass_on(chunk, t)
                    continue
                await self._take(chunk, t)
                if self._messages.fault:
                    self._say(f"{self._messages.fault}; no gate decides on it, and it passes unchanged")
            await self._gated_channel.end()
            if self._stopping:
                await self._gated_channel.drained()
                await self._end()
                return "shutdown"
            await self._gated_channel.feed(self._messages.end(), now())
        except ConnectionError:
            return "abort"
        finally:
            self._gated_channel.abandon()
            if self._stopping:
                self._stopping.cancel()
        return "eof"

    def stop(self) -> None:
        """Let what is held go, and take nothing more."""
        if not self._stopping:
            self._go_over()
            self._stopping = asyncio.create_task(self._hasten())
            if self._source:
                self._source.feed_eof()

    def _go_over(self) -> bool:
        """From now on decide on messages, if the last one has ended; False where it has not."""
        if not self._gated and self._channel.between:
            self._gated, self._gated_channel.inside = True, False
        return self._gated

    async def _pass_on(self, chunk: bytes, t: int) -> None:
        """Forward bytes unchanged: no gate is in force."""
        try:
            await self._write(chunk)
        finally:
            self._channel.feed(chunk, t)
        await self._drain()

    async def _hasten(self) -> None:
        with contextlib.suppress(ConnectionError):  # who reads finds out, too
            await self._gated_channel.end()

    async def _take(self, chunk: bytes, t: int) -> None:
        """Forward what a chunk completes: few writes, and other connections have their turn between them."""
        batch: list[Piece] = []
        for piece in self._messages.feed(chunk):
            if piece.op == CLOSES or len(batch) == AT_ONCE:
                await self._forward(batch, t)
                batch = []
                await asyncio.sleep(0)
            if piece.op == CLOSES and not self._gated_channel.closed:
                await self._gated_channel.end()
                self._gated_channel.seal()
            batch.append(piece)
        await self._forward(batch, t)

    async def _forward(self, batch: list[Piece], t: int) -> None:
        await self.other._gated_channel.own_room()  # noqa: SLF001 (one class)
        await self._gated_channel.feed(batch, t)

    async def _reply(self, reply: Reply) -> None:
        """Have an answer of the gate sent to the peer that sends here."""
        self.other.add(reply)

    async def _end(self) -> None:
        """Send a close frame, if that is possible now; nobody waits until it has been taken."""
        if not (self._gated_channel.sealed or self._gated_channel.inside):
            self._gated_channel.seal()
            await self._write(self._encoded(_GOING_AWAY, CLOSE))

    def _render(self, frame: bytes, piece: Piece) -> bytes:
        return self._encoded(frame, _OPCODES.get(piece.op, BINARY))

    def _encoded(self, payload: bytes, opcode: int) -> bytes:
        return encode(payload, opcode, os.urandom(4) if self._masked else b"")
