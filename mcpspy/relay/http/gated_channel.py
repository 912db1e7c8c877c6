"""Pass one body, event stream or WebSocket direction through the gate of the relay.

The rules:

- A frame is forwarded when it is complete, according to the gate's verdict, and recorded after that.
- Held frames wait in a `FrameOrder`. A timer forwards them when they are due. The other direction is not blocked.
- While many frames are held, nothing more is read.
- A piece that passes undecided waits until no frame is held before it.
- When the sender ends, all held frames are released in order. If the receiver has disconnected, held frames are
  recorded as not sent. Frames after a verdict that ends the stream are recorded as not sent, too.
- Bytes that were written to the connection count as sent.

A frame of our own, such as an answer of the gate to the receiver, is queued here by the other direction, which then
continues at once. The timer forwards it. So no direction waits for both peers.

A body of JSON, of at most 1 MiB, is collected and decoded, and gets one decision (`CollectedBody`):

- Decoding stops as soon as the body is too long for a decision. The body then passes undecided. So does a body whose
  content coding cannot be decoded or cannot be encoded again.
- If a verdict replaces one frame by several, they are written into the same body, one after the other, and encoded
  together.
- A body that no verdict changes is forwarded with exactly the bytes that were received.

This module knows no HTTP library. The relay of a body opens its channel and writes the output.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mcpspy.gate.gate import LIMIT, PASS, UNDECIDED, CloseStream, Exit, Facts, Gate, Hold, Pass, Refuse, Reply, Send
from mcpspy.gate.order import BYTES, FRAMES, FrameOrder, GatedFrame
from mcpspy.recording.http_exchange import Body, Fields
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.gated_body import Piece, coded, encoder
from mcpspy.relay.http.heads import RawHeaders, first
from mcpspy.relay.live_gate import LiveGate
from mcpspy.wire.content_coding import Decoder

if TYPE_CHECKING:
    from mcpspy.gate.gate import Verdict
    from mcpspy.gate.messages import Key

AT_ONCE = 64
"""The most frames that are decided on and forwarded in one go; then other tasks run."""
_OVERTAKES = Pass(overtakes=True)


def terminated(frame: bytes, piece: Piece) -> bytes:
    """Return a frame with the delimiter of its piece."""
    return frame + piece.delimiter


class _Frame(GatedFrame):
    """A frame, and how it is forwarded."""

    __slots__ = ("piece",)

    def __init__(self, piece: Piece, t: int, verdict: "Verdict") -> None:
        super().__init__(piece.frame or b"", t, verdict)
        self.piece = piece


class GatedChannel:
    """Applies verdicts to the frames of one direction, and records them.

    `write` writes bytes without waiting; `drain` waits until the receiver has read enough of them. `render` returns the
    bytes to forward for a frame and the piece that it was received in. `reply` sends a frame back to the sender; if it
    is `None`, a frame with the verdict `Reply` passes. `refuse` answers the request in the frame; if it is `None`, a
    frame with the verdict `Refuse` passes.
    """

    def __init__(
        self,
        gate: LiveGate,
        facts: Facts,
        channel: Body,
        recording: Recording,
        write: Callable[[bytes], Awaitable[None]],
        say: Callable[[str], None],
        *,
        drain: Callable[[], Awaitable[None]] | None = None,
        render: Callable[[bytes, Piece], bytes] = terminated,
        reply: Callable[[Reply], Awaitable[None]] | None = None,
        refuse: Callable[[Refuse], Awaitable[None]] | None = None,
        first: Gate | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """`first` is a gate of the proxy itself and decides first; `close` is called if a verdict ends the stream."""
        self._gate = gate
        self._gates = [it for it in (first, gate) if it]
        self._facts = facts
        self._order = FrameOrder(gate.numbers, facts.framing)
        self._channel = channel
        self._recording = recording
        self._write = write
        self._drain = drain
        self._say = say
        self._render = render
        self._reply = reply
        self._refuse = refuse
        self._releases: list[tuple[int, str, bytes | None]] = []  # of held frames, not applied yet
        self._own_delimiter = b"\n" if facts.framing == "sse" else b""
        self._own_frames: list[Reply] = []  # forwarded as soon as possible
        self._own_size = 0  # their size in bytes
        self.sealed = False
        """Whether no frame of our own may be forwarded any more."""
        self.inside = False
        """Whether a frame is being forwarded in pieces."""
        self._writing = asyncio.Lock()
        self._close = close
        self._room, self._wake = asyncio.Event(), asyncio.Event()  # set whenever the held frames change
        self._timer: asyncio.Task[None] | None = None
        self.closed = False
        """Whether a verdict has ended the stream."""
        self._closer = ""  # the gate with that verdict

    async def feed(self, pieces: list[Piece], t: int) -> None:
        """Accept pieces that were read at `t`, and forward those that are due.

        Raises ConnectionError if the receiver has disconnected.
        """
        batch: list[_Frame | Piece] = []
        closing = self.closed
        for piece in pieces:
            if self._order.full and not piece.control:
                await self._forward(batch, t)
                batch = []
                await self.room()
            if len(batch) >= AT_ONCE:
                await self._forward(batch, t)
                batch = []
                await asyncio.sleep(0)
            if closing:
                batch.append(piece if piece.frame is None else _Frame(piece, t, PASS))
            elif piece.frame is not None:
                verdict = _OVERTAKES if piece.control else self._decide(piece.frame, t)
                if batch and (self._order or isinstance(verdict, Hold)):  # a held frame is recorded when it arrives
                    await self._forward(batch, t)
                    batch = []
                going = self._enqueue(piece, verdict, t)
                closing = any(isinstance(frame.verdict, CloseStream) for frame in going)
                batch += going
            elif piece.passes.strip(b"\r\n") and self._order:  # more than line ends between two events
                await self._forward(batch, t)
                batch = [piece]
                await self._until(lambda: not self._order)
            else:
                batch.append(piece)
        await self._forward(batch, t)

    async def room(self) -> None:
        """Wait while so much is held that no more should be read."""
        await self._until(lambda: not self._order.full)

    async def end(self) -> None:
        """Release all held frames, because the sender has ended."""
        await self._forward(self._own(self._order.end("closed")), self._recording.clock.now())

    def release(self, held: int, how: str, message: bytes | None = None) -> None:
        """Release the held frame with that number, as `FrameOrder.release` does."""
        self._releases.append((held, how, message))
        self._look()

    async def cancel(self, key: "Key") -> str:
        """Drop the request with that id if it is held and alone in its frame.

        Returns the name of the gate that held it, or an empty string.
        """
        frame = self._order.find(key)
        if frame is None or frame.held is None or len(frame.ids) != 1:
            return ""
        await self._forward(self._own(self._order.release(frame.held, "cancelled")), self._recording.clock.now())
        return frame.by

    def abandon(self) -> None:
        """Record held frames as not forwarded, because the receiver reads no more."""
        if self._timer:
            self._timer.cancel()
        self.seal()
        now = self._recording.clock.now()
        for frame in self._own(self._order.end("closed")):
            self._record(frame, now, written=False)

    async def take(self, piece: Piece, verdict: "Verdict", t: int) -> None:
        """Forward a frame with a verdict that is known already."""
        await self._forward(self._enqueue(piece, verdict, t), t)

    def add(self, reply: Reply) -> None:
        """Forward a frame of our own; if a frame is being forwarded in pieces, after that."""
        if not self.sealed:
            self._own_frames.append(reply)
            self._own_size += len(reply.frame)
            self._look()

    async def own_room(self) -> None:
        """Wait while so many frames of our own are queued that their source should read nothing more."""
        await self._until(lambda: len(self._own_frames) < FRAMES and self._own_size < BYTES)

    def seal(self) -> None:
        """Forward no more frames of our own: the stream ends."""
        self.sealed = True
        self._own_frames, self._own_size = [], 0
        self._room.set()

    async def drained(self) -> None:
        """Wait until all held frames, and those of our own that can be forwarded, are forwarded."""
        await self._until(lambda: not self._order and not self._adding)
        async with self._writing:
            pass

    def _decide(self, frame: bytes, t: int) -> "Verdict":
        verdict: Verdict = PASS
        for gate in self._gates:
            verdict = gate.decide(frame, self._facts, t)
            if not isinstance(verdict, Pass):
                break
        return verdict

    def _enqueue(self, piece: Piece, verdict: "Verdict", t: int) -> list[_Frame]:
        """Return the frames that are due after this one was added."""
        frame = _Frame(piece, t, verdict)
        if self._impossible(frame.verdict):
            frame.verdict = PASS
        going = self._own(self._order.feed(frame))
        if frame.held is not None:
            self._gate.holders[frame.held] = self
            self._gate.watch(self._recording.clock.now)
            self._channel.frame(frame.raw, t, op=piece.op, gated={"by": frame.by, "held": frame.held})
            self._look()
        return going

    def _impossible(self, verdict: "Verdict") -> bool:
        """Return whether a verdict cannot be applied here; if so, notify the user."""
        if isinstance(verdict, Reply) and self._reply is None:
            self._say(f"{verdict.by} cannot answer a server over HTTP; such frames pass unchanged")
        elif isinstance(verdict, Refuse) and self._refuse is None:
            self._say(f"{verdict.by} can answer only requests over HTTP with a status; other frames pass unchanged")
        elif isinstance(verdict, Exit):
            self._say(f"{verdict.by} cannot end a server over HTTP; such frames pass unchanged")
        else:
            return False
        return True

    def _own(self, frames: list[GatedFrame]) -> list[_Frame]:
        """Return the frames to forward now, and unregister those that were held."""
        self._look()
        for frame in frames:
            if frame.held is not None:
                self._gate.holders.pop(frame.held, None)
        return [frame for frame in frames if isinstance(frame, _Frame)]

    def _look(self) -> None:
        """Wake everything that waits for a change of the held frames."""
        self._room.set()
        self._wake.set()
        if (self._order or self._adding) and (self._timer is None or self._timer.done()):
            self._timer = asyncio.create_task(self._keep_time())

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not ready() and not self.closed:
            self._room.clear()
            await self._room.wait()

    @property
    def _adding(self) -> bool:
        """Whether a frame of our own can be forwarded now."""
        return bool(self._own_frames) and not self.inside and not self.closed

    async def _keep_time(self) -> None:
        while self._order or self._adding:
            self._wake.clear()
            until, now = self._order.until, self._recording.clock.now()
            if not self._adding and not self._releases:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), None if until is None else max(0, until - now) / 1e9)
            now = self._recording.clock.now()
            with contextlib.suppress(ConnectionError):  # the reading task gets this error, too
                while self._releases:
                    await self._forward(self._own(self._released(*self._releases.pop(0))), now)
                await self._forward(self._own(self._order.expire(now)), now)
        self._releases.clear()

    def _released(self, held: int, how: str, message: bytes | None) -> list[GatedFrame]:
        """Return the frames that are due after a viewer's decision on a held frame; none if it cannot be applied."""
        if how == "answered" and self._reply is None:
            self._say(f"frame {held} is not a request that can be answered over HTTP; it stays held")
            return []
        try:
            return self._order.release(held, how, message)
        except ValueError as error:
            self._say(f"frame {held} cannot be changed ({error}); it stays held")
            return []

    async def _forward(self, batch: Sequence["_Frame | Piece"], t: int) -> None:
        """Write a batch according to the verdicts, in one write, and then record it."""
        if not batch and not self._adding:
            return
        try:
            await self._writing.acquire()
        except asyncio.CancelledError:  # no other code records these frames
            for part in batch:
                self._record(part, t, written=False)
            raise
        try:
            closes = await self._write_out(batch, t)
        finally:
            self._writing.release()
        for part in batch:
            verdict = part.verdict if isinstance(part, _Frame) else None
            if isinstance(verdict, Reply) and self._reply:
                await self._reply(verdict)
            elif isinstance(verdict, Refuse) and self._refuse:
                await self._refuse(verdict)
        if closes:
            self._room.set()
            self._close()

    async def _write_out(self, batch: Sequence["_Frame | Piece"], t: int) -> bool:
        """Write and record while this task has the lock; return True if a verdict closes the stream."""
        closes = False
        out: list[bytes | None] = []  # one entry per part of the batch, up to the part that closes the stream
        for part in batch:
            if not self.closed:
                out.append(part.passes if isinstance(part, Piece) else self._sent(part))
                if isinstance(part, _Frame) and isinstance(part.verdict, CloseStream):
                    closes, self.closed, self._closer = True, True, part.verdict.by
        written = False
        try:
            going = [it for it in out if it is not None]
            if going:  # may be an empty body
                await self._write(b"".join(going))
            written = True
        finally:
            for at, part in enumerate(batch):
                self._record(part, t, written=written and at < len(out), behind=at >= len(out))
                self.inside = isinstance(part, Piece) and part.more
        await self._add_own_frames()
        if self._drain:
            await self._drain()
        return closes

    async def _add_own_frames(self) -> None:
        while self._adding:
            reply = self._own_frames.pop(0)
            self._own_size -= len(reply.frame)
            self._room.set()
            await self._write(self._render(reply.frame, Piece(b"", delimiter=self._own_delimiter)))
            gated: Fields = {"from": "mcpspy", "by": reply.by}
            self._channel.frame(reply.frame, self._recording.clock.now(), gated=gated)

    def _sent(self, frame: _Frame) -> bytes | None:
        """Return the bytes to forward for a frame; None for nothing."""
        if isinstance(frame.verdict, Pass):
            return frame.piece.passes
        if not isinstance(frame.verdict, Send):
            return None
        return b"".join(self._render(sent, frame.piece) for sent in frame.verdict.frames)

    def _record(self, part: "_Frame | Piece", t: int, *, written: bool, behind: bool = False) -> None:
        """Record a part; `behind` is set if it follows a verdict that ended the stream."""
        if isinstance(part, Piece):
            self._record_piece(part, t, behind=behind)
            return
        verdict, op = part.verdict, part.piece.op
        frames = verdict.frames if isinstance(verdict, Send) else ()
        rest: Fields = {}
        if not isinstance(verdict, Pass):
            rest = {"sent": frames[0] if frames and written else None, "by": verdict.by}
        elif behind:
            rest = {"sent": None, "by": self._closer}
        if part.held is None:
            if isinstance(verdict, Pass) and verdict.undecided:
                rest |= {"undecided": True}
            self._channel.frame(part.raw, part.t, op=op, gated=rest)
        else:
            self._recording.release(t, part.held, part.how, rest if written else rest | {"sent": None})
        for extra in frames[1:] if written else ():
            self._channel.frame(extra, t, op=op, gated={"from": "mcpspy", "by": rest["by"]})

    def _record_piece(self, piece: Piece, t: int, *, behind: bool) -> None:
        if piece.undecided:
            self._channel.undecided()
        if not behind or self._facts.framing != "sse":
            self._channel.feed(piece.passes, t)
        elif piece.passes.strip(b"\r\n"):
            self._channel.frame(piece.passes, t, cut=True, gated={"sent": None, "by": self._closer})


async def cancel(held: list[tuple[str, GatedChannel]], session: str, key: "Key") -> str:
    """Drop the request with that id if it is held in that session.

    Returns the name of the gate that held it, or an empty string.
    """
    for holder, gated_channel in list(held):
        if holder == session and (by := await gated_channel.cancel(key)):
            return by
    return ""


def decodable(encoding: str) -> bool:
    """Return whether the content codings of a Content-Encoding value can be decoded and encoded again."""
    decoder = Decoder(encoding)
    return decoder.plain or (decoder.fault is None and encoder(encoding) is not None)


def announces_too_much(headers: RawHeaders) -> bool:
    """Return whether the Content-Length is too large for a decision on the body."""
    length = first(headers, b"content-length") or b""
    return length.isdigit() and int(length[:20]) > LIMIT


def keeps_body(verdict: "Verdict") -> bool:
    """Return whether a body is forwarded unchanged: passed or only delayed. A viewer may still override a delay."""
    if isinstance(verdict, Hold):
        return verdict.how == "delayed" and isinstance(verdict.then, Pass)
    return isinstance(verdict, Pass)


class CollectedBody:
    """A whole body: `raw` is as received, `plain` is without its content coding."""

    def __init__(self, raw: bytes, encoding: str) -> None:
        """`encoding` is the value of Content-Encoding."""
        self.raw = raw
        self.plain = b""
        """The decoded body; empty if the gate cannot decide on it."""
        self.undecided = len(raw) > LIMIT
        """Whether the body is too long for a decision."""
        self.damaged = not decodable(encoding)
        """Whether the body cannot be decoded."""
        self._encoding = encoding
        if not self.damaged and not self.undecided:
            self._decode()

    def decide(self, gate: Gate, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on the body, whose end was read at `t`."""
        if self.undecided:
            return UNDECIDED
        return gate.decide(self.plain, facts, t) if self.plain else PASS

    def forwarded(self, frames: Iterable[bytes]) -> bytes:
        """Return the body with these frames as content, encoded; the received bytes if nothing changes."""
        plain = b"".join(frames)
        return self.raw if plain == self.plain else coded(plain, self._encoding)

    def gated_channel(
        self,
        gate: LiveGate,
        facts: "Facts",
        channel: Body,
        recording: Recording,
        write: Callable[[bytes], Awaitable[None]],
        say: Callable[[str], None],
        *,
        drain: Callable[[], Awaitable[None]] | None = None,
        reply: Callable[[Reply], Awaitable[None]] | None = None,
        refuse: Callable[[Refuse], Awaitable[None]] | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> GatedChannel:
        """Return the `GatedChannel` that applies the verdict. It calls `write` with the whole body, at most once.

        The channel must be open.
        """

        async def write_coded(plain: bytes) -> None:
            await write(self.forwarded([plain]))

        channel.decoded()
        return GatedChannel(
            gate, facts, channel, recording, write_coded, say, drain=drain, reply=reply, refuse=refuse, close=close
        )

    async def carry_out(self, gated_channel: GatedChannel, verdict: "Verdict", t: int) -> None:
        """Apply the verdict, with its delays and holds. Raises ConnectionError if the receiver has disconnected."""
        try:
            await gated_channel.take(Piece(self.plain, self.plain), verdict, t)
            await gated_channel.drained()
        finally:
            gated_channel.abandon()

    def _decode(self) -> None:
        decoder, parts, size = Decoder(self._encoding), [], 0
        for part in decoder.feed(self.raw):
            parts.append(part)
            size += len(part)
            if size > LIMIT:
                self.undecided = True
                return
        decoder.end()
        self.damaged = decoder.fault is not None
        if not self.damaged:
            self.plain = b"".join(parts)
