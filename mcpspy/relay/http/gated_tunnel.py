"""A WebSocket of a relay with a gate: each message is decided on when it is complete.

The rules:

- A message that no verdict changes is forwarded with its own fragments and masks. A message from the gate is sent in
  one frame, masked if it is sent to the server (RFC 6455, 5.3).
- Control frames pass as they arrive, before held messages. Only before a close frame, as at the end of the connection,
  are held messages released.
- An answer of a gate to a peer waits until a long message that is being forwarded to that peer has ended.
- A verdict that closes the stream ends both directions with a close frame of code 1001.
- While no gate is in force, bytes are forwarded as they arrive. Each direction switches to the gate between two
  messages.
- Messages that `gated_messages` returns as undecided pass. The user gets one notice, unless a message is only too long.
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
from mcpspy.recording.http_exchange import Body
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
        """`client` and `server` are the connections to the two peers."""
        session = object()  # identifies this connection for the gate
        from_client = _GatedDirection(exchange, gate, "client", session, server, self._close)
        from_server = _GatedDirection(exchange, gate, "server", session, client, self._close)
        from_client.other, from_server.other = from_server, from_client
        self._by_sink = {server: from_client, client: from_server}
        self._from_client = from_client

    async def pump(self, source: Received, sink: BaseProtocol, _: Body, now: Callable[[], int]) -> str:
        """Forward one direction; return how it ended."""
        return await self._by_sink[sink].run(source, now)

    def send(self, frame: bytes) -> None:
        """Send a request of a viewer to the server, as a text message."""
        self._from_client.add(Reply(frame, VIEWER))

    def _close(self) -> None:
        """End both directions, because a verdict closes the stream."""
        for direction in self._by_sink.values():
            direction.stop()


class _GatedDirection:
    """Forwards what the peer `sender` sends to the connection `sink`."""

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
        """Forward a frame of our own in this direction."""
        self._go_over()
        self._gated_channel.add(reply)

    async def run(self, source: Received, now: Callable[[], int]) -> str:
        """Forward until the source ends or a verdict ends the stream; return how it ended."""
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
        """Release held frames, and read nothing more."""
        if not self._stopping:
            self._go_over()
            self._stopping = asyncio.create_task(self._hasten())
            if self._source:
                self._source.feed_eof()

    def _go_over(self) -> bool:
        """Switch to the gate if no message is incomplete; return whether it has switched."""
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
        with contextlib.suppress(ConnectionError):  # the reading task gets this error, too
            await self._gated_channel.end()

    async def _take(self, chunk: bytes, t: int) -> None:
        """Forward what a chunk completes, in few writes; other tasks run between them."""
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
        """Send an answer of the gate back to the peer that sends in this direction."""
        self.other.add(reply)

    async def _end(self) -> None:
        """Send a close frame, if that is possible now; do not wait until it is sent."""
        if not (self._gated_channel.sealed or self._gated_channel.inside):
            self._gated_channel.seal()
            await self._write(self._encoded(_GOING_AWAY, CLOSE))

    def _render(self, frame: bytes, piece: Piece) -> bytes:
        return self._encoded(frame, _OPCODES.get(piece.op, BINARY))

    def _encoded(self, payload: bytes, opcode: int) -> bytes:
        return encode(payload, opcode, os.urandom(4) if self._masked else b"")
