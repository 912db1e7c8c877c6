"""A WebSocket after its handshake: two byte streams, one per direction.

Without a gate, fragments and masks stay unchanged. Each direction reads what aiohttp's connection receives, forwards
it, and records it. The peers close the WebSocket themselves: their close frames are forwarded like all others. When one
peer closes its connection, we close the other.

With a gate, each message is decided on when it is complete. The rules:

- A message that no verdict changes is forwarded with its own fragments and masks. A message from the gate is sent in
  one frame, masked if it is sent to the server (RFC 6455, 5.3).
- Control frames pass as they arrive, before held messages. Only before a close frame, as at the end of the connection,
  are held messages released.
- An answer of a gate to a peer waits until a long message that is being forwarded to that peer has ended.
- A verdict that closes the stream ends both directions with a close frame of code 1001.
- While no gate is in force, bytes are forwarded as they arrive. Each direction switches to the gate between two
  messages.

The received bytes are split into messages for the gate (RFC 6455, 5) without a loss: all pieces together have exactly
the received bytes. Only control frames may change their place. A message becomes a piece when its last fragment is
complete; pings and pongs between its fragments are returned before it. These pass undecided, and the user gets one
notice, unless a message is only too long:

- a message that is too long, as it arrives from then on;
- a message whose payload an extension has changed; the relay lets no extension be negotiated, so no message is
  compressed;
- a message that the end of the stream or a close frame cuts off;
- everything after a close frame, or after a control frame that is too long to be valid.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter

from mcpspy.capture.format import VIEWER
from mcpspy.gate.gate import LIMIT, Reply
from mcpspy.recording.http_exchange import Body
from mcpspy.relay.http.gated_body import Piece
from mcpspy.relay.http.gated_channel import AT_ONCE, GatedChannel
from mcpspy.relay.http.route import RequestContext, say_once
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.websocket import BINARY, CLOSE, LONGEST_HEAD, TEXT, FrameHead, encode, op_of, parse_head, unmask

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


CLOSES = "close"
"""`Piece.op` of a close frame and of a message that it cuts off."""
_CONTROL = 125  # the longest payload of a control frame in bytes (RFC 6455, 5.5)


class MessagePieces:
    """Splits one direction of a WebSocket like `wire.websocket.Messages`, and keeps every byte."""

    def __init__(self, limit: int) -> None:
        """`limit` is the size in bytes of the longest payload that the gate decides on."""
        self._limit = limit
        self._pending = bytearray()
        self._raw: list[bytes] = []  # the fragments of the current message
        self._payload: list[bytes] = []
        self._size = self._raw_size = 0
        self._opcode: int | None = None  # of the current message
        self._long = False  # whether the current message passes as it arrives
        self._left = 0  # bytes that are missing from the current fragment
        self._final = False  # whether that fragment is the last one
        self._open = False  # whether all following bytes pass
        self._extended = False  # whether an extension has changed the current message
        self.fault: str | None = None
        """Why a message passes undecided, unless it is only too long."""

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """Accept the next bytes and yield the pieces that are complete; exhaust it before the next call."""
        self._pending += chunk
        goes_on = True
        while self._pending and goes_on:
            pieces: list[Piece] = []
            goes_on = self._step(pieces)
            yield from pieces

    def end(self) -> list[Piece]:
        """Return the bytes that the end of the stream cuts off."""
        rest = b"".join(self._raw) + self._take(len(self._pending))
        self._forget()
        return [Piece(rest)] if rest else []

    def _step(self, pieces: list[Piece]) -> bool:
        """Parse the next frame, or a part of a long one; return False if more bytes are needed."""
        if self._open:
            pieces.append(Piece(self._take(len(self._pending))))
            return False
        if self._left:
            pieces.append(self._go_on(self._take(min(self._left, len(self._pending)))))
            return not self._left
        head = parse_head(bytes(self._pending[:LONGEST_HEAD]))
        if head is None:
            return False
        if head.opcode >= CLOSE and head.length > _CONTROL:
            self.fault = "a WebSocket control frame is too long"
            self._open = True
            pieces += self.end()
            return False
        if head.opcode < CLOSE:
            self._opcode = head.opcode if self._opcode is None else self._opcode
            if self._long or self._exceeds(head):
                pieces.append(self._begin_long(head))
                return True
        if len(self._pending) < head.size + head.length:
            return False
        raw = self._take(head.size + head.length)
        if head.opcode >= CLOSE:
            self._control(head, raw, pieces)
        else:
            self._fragment(head, raw, pieces)
        return True

    def _exceeds(self, head: FrameHead) -> bool:
        """Return whether this fragment makes the message too long; many empty fragments do as well."""
        raw_size = self._raw_size + head.size + head.length
        return self._size + head.length > self._limit or raw_size > 2 * self._limit

    def _begin_long(self, head: FrameHead) -> Piece:
        """Pass a fragment of a message that is too long, together with the fragments kept before it."""
        first, self._long = not self._long, True
        raw = b"".join(self._raw) + self._take(head.size)
        self._raw, self._payload = [], []
        self._left, self._final = head.length, head.final
        return self._go_on(raw + self._take(min(self._left, len(self._pending))), len(raw), undecided=first)

    def _go_on(self, raw: bytes, before: int = 0, *, undecided: bool = False) -> Piece:
        """Return a part of a long message; its first `before` bytes are not payload of this fragment."""
        self._left -= len(raw) - before
        more = self._left > 0 or not self._final
        if not more:
            self._forget()
        return Piece(raw, undecided=undecided, more=more)

    def _control(self, head: FrameHead, raw: bytes, pieces: list[Piece]) -> None:
        if head.opcode == CLOSE:
            pieces.append(Piece(b"".join([*self._raw, raw]), op=CLOSES))
            self._forget()
            self._open = True
        elif self._long:
            pieces.append(Piece(raw, more=True))  # stays between the fragments
        else:
            pieces.append(Piece(raw, unmask(raw[head.size :], head.mask, 0), op=op_of(head.opcode), control=True))

    def _fragment(self, head: FrameHead, raw: bytes, pieces: list[Piece]) -> None:
        self._raw.append(raw)
        self._raw_size += len(raw)
        self._payload.append(unmask(raw[head.size :], head.mask, 0))
        self._size += head.length
        self._extended = self._extended or head.reserved
        if not head.final:
            return
        passes, opcode = b"".join(self._raw), self._opcode or 0
        if self._extended:
            self.fault = "a WebSocket message uses an extension that was not negotiated"
            pieces.append(Piece(passes, undecided=True))
        else:
            pieces.append(Piece(passes, b"".join(self._payload), op=op_of(opcode)))
        self._forget()

    def _forget(self) -> None:
        """Reset the state: the message has ended."""
        self._raw, self._payload = [], []
        self._size = self._raw_size = 0
        self._opcode = None
        self._long = self._extended = False

    def _take(self, size: int) -> bytes:
        taken = bytes(self._pending[:size])
        del self._pending[:size]
        return taken


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
