"""One direction of the relay of `wrap` with a gate between the read and the write.

The rules. A line is forwarded when it is whole, as the gate's verdict says, and then recorded. What the gate does not
name passes byte for byte; such lines of one read in one write. A line of more than 1 MiB passes undecided, from there
on as it arrives. Frames that are held wait in a `FrameOrder`; a second thread, the timekeeper, forwards them when their
time has come. While much waits, nothing more is read; nor while many of our answers wait for a peer that reads none.
The other direction goes on meanwhile.

The pump's lock is the one lock of a direction: who holds it takes from what waits, writes whole lines, and records
them. So the records of a channel have the order of the wire. A thread of the other direction, or one that releases a
held frame, never takes it: it leaves a note for the timekeeper and goes on. So no thread ever waits for two peers.

The timekeeper writes for others before the pump has handed over, once it knows that the pump waits in a read. A
direction is never handed back: where no gate is left, lines pass with little more to do.

Imported on the `wrap` path, if there is a gate: nothing heavy here.
"""

import os
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.capture.format import VIEWER
from mcpspy.gate.gate import LIMIT
from mcpspy.gate.order import BYTES, FRAMES, FrameOrder, GatedFrame
from mcpspy.gate.verdicts import CloseStream, Exit, Pass, Reply, Send
from mcpspy.relay.control import HOLDING
from mcpspy.relay.stdio.pump import CHUNK, NEVER, wait_for
from mcpspy.relay.stdio.session import one_line
from mcpspy.wire.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from mcpspy.gate.facts import Facts
    from mcpspy.relay.stdio.pump import Pump
    from mcpspy.relay.stdio.session import GatedSession

_STEP = 0.005  # seconds between two looks at a pump that has not handed over yet


class GatedLines:
    """The lines of one pump; `other` is the opposite direction."""

    other: "GatedLines"

    def __init__(self, pump: "Pump", sender: str, session: "GatedSession") -> None:
        self._pump = pump
        self._session = session
        self._facts: Facts = session.gate.facts(sender, "lines")
        self._answers = sender == "server"  # whether responses to viewers' requests come this way
        self._holders = session.gate.holders
        self._waiting = FrameOrder(session.gate.numbers, "lines")
        self._lines = Lines()
        self._parts: list[bytes] = []  # of a line of more than one piece
        self._size = 0
        self._passing: list[bytes] = []  # lines of one read that go as they are, in pieces
        self._muted = False  # the long line that passes as it arrives is for nobody but the capture
        self._replies: list[tuple[bytes, str]] = []  # for the sink, once no line is being forwarded
        self._owed = 0  # bytes of these, but for what viewers send
        self._counting = allocate_lock()  # guards both, and is never held for long
        self._released: list[tuple[int, str, bytes | None]] = []  # the arguments of `release`
        self._how = ""  # why nothing more is forwarded
        self._hurry = self._running = self._done = False
        self._wake, self._room = allocate_lock(), allocate_lock()  # taken, until there is something to look at
        self._wake.acquire()
        self._room.acquire()

    @property
    def busy(self) -> bool:
        """Whether something is still to be forwarded."""
        replying = bool(self._replies) and not self._pump.inside and not self._how
        return bool(self._waiting) or self._pump.lock.locked() or replying

    @property
    def owes_much(self) -> bool:
        """Whether so many replies wait for the sink that nobody who asks for more should be read."""
        return not self._how and (len(self._replies) >= FRAMES or self._owed >= BYTES)

    def release(self, held: int, how: str, message: bytes | None = None) -> None:
        """Let the held frame with that number go, as of `FrameOrder.release`; returns at once."""
        self._released.append((held, how, message if message is None else one_line(message)))
        _signal(self._wake)

    def hasten(self) -> None:
        """Let all go that is held, and hold nothing more; returns at once."""
        self._hurry = True
        _signal(self._wake)

    def wake(self) -> None:
        """There may be something to do for the timekeeper; returns at once."""
        _signal(self._wake)

    def look_again(self) -> None:
        """There may be room for what this direction reads; returns at once."""
        _signal(self._room)

    def abandon(self) -> None:
        """Record that what is held will not be forwarded: nobody is there to take it."""
        self._stop("exit")
        self._let_go(lambda: self._waiting.end("closed"), timeout=0.01)  # its holder may be stuck in a write

    def run(self, chunk: bytes, t: int) -> str:
        """Forward the chunk that was read at `t`, if it has bytes, and all that comes; returns how that ended."""
        self._running = True
        if chunk:
            self._take(chunk, t)
        while True:
            self._pump.reading = False
            self._wait(lambda: not self._waiting.full)
            if self._how:
                return self._how
            try:
                chunk = os.read(self._pump.source, CHUNK)
            except BlockingIOError:  # somebody who shares the descriptor made it so
                wait_for(self._pump.source, "read")
                continue
            except OSError:
                self._end()
                return "reset"
            t = self._pump.now()
            self._pump.reading = True
            if not chunk:
                self._end()
                return "eof"
            if self._pump.stop or self._how:
                return "exit"
            self._pump.reads += 1
            if t >= self._pump.due:
                self._pump.look(t)
            self._take(chunk, t)

    def end(self, how: str) -> str:
        """Forward what is held, and the replies, before the sink is closed; returns how the direction ended."""
        self._let_go(lambda: self._waiting.end("closed"))
        self._flush_replies()
        self._stop(how)
        self._done = True
        _signal(self._wake)
        return self._how

    def _take(self, chunk: bytes, t: int) -> None:
        between = self._lines.between and not self._parts and not self._pump.inside
        if between and chunk.find(b"\n") == len(chunk) - 1:
            self._line(chunk[:-1], t, [chunk])  # what almost every read is
        else:
            for raw, more, _ in self._lines.feed(chunk):
                self._piece(raw, t, more=more)
        self._let_pass(t)
        self._pump.passed()

    def _end(self) -> None:
        """Forward what waits, in its order, and a last line without its newline."""
        t = self._pump.now()
        self._let_go(lambda: self._waiting.end("closed"))
        rest = b"".join(self._parts + [raw for raw, _, _ in self._lines.end()])
        if not rest:
            return
        if self._pump.inside:
            self._through(rest, t, more=True)
            return
        self._flush_replies()
        with self._pump.lock:
            self._pump.inside = True  # the line has no newline: no reply may follow it
        self._line(rest, t, [rest], cut=True)
        self._let_pass(t)

    def _piece(self, raw: bytes, t: int, *, more: bool) -> None:
        """Take a line, or a piece of a long one."""
        if self._pump.inside:
            self._through(raw, t, more=more)
            return
        self._parts.append(raw)
        self._size += len(raw)
        if more and self._size <= LIMIT:
            return
        parts, self._parts, self._size = self._parts, [], 0
        line = b"".join(parts)
        if not more:
            self._line(line, t, [*parts, b"\n"])
            return
        self._let_pass(t)
        self._wait(lambda: not self._waiting)
        self._muted = self._answers and self._session.begins_answer(line)
        with self._pump.lock:
            self._pump.inside = True
            if not self._muted:
                self._write(line)
            rest: dict[str, object] = {"sent": None, "by": VIEWER} if self._muted else {"undecided": True}
            self._pump.channel().record(line, t, rest, ended=False)

    def _through(self, raw: bytes, t: int, *, more: bool) -> None:
        """Forward a further piece of a line that is too long to decide on, or was begun before there was a gate."""
        piece = raw if more else raw + b"\n"
        with self._pump.lock:
            if not self._muted:
                self._write(piece)
            self._pump.channel().feed(piece, t)
            self._pump.inside = more
        if not more:
            self._muted = False
            self._flush_replies()

    def _line(self, raw: bytes, t: int, parts: list[bytes], *, cut: bool = False) -> None:
        """Ask the gate about a line, and do as it says, but see `_let_pass`; `parts` are `raw` and its newline."""
        if self.other.owes_much:
            self._let_pass(t)
            self._wait(lambda: not self.other.owes_much)
        if self._answers and self._session.is_answer(raw):
            self._let_pass(t)
            with self._pump.lock:
                self._pump.channel().record(raw, t, {"sent": None, "by": VIEWER}, cut=cut)
            return
        verdict = self._session.decide(raw, self._facts, t)
        if isinstance(verdict, Pass) and not verdict.undecided and not self._waiting:
            self._passing += parts
            return
        self._let_pass(t)
        frame = GatedFrame(raw, t, verdict, cut=cut)

        def feed() -> list[GatedFrame]:
            going = self._waiting.feed(frame)
            if frame.held is not None:
                self._holders[frame.held] = self
                long = {"undecided": True} if isinstance(verdict, Pass) and verdict.undecided else {}
                self._pump.channel().record(raw, t, {"by": frame.by, "held": frame.held} | long, cut=cut)
            if self._waiting:
                _signal(self._wake)
            return going

        self._let_go(feed)

    def _let_pass(self, t: int) -> None:
        """Forward the lines that no gate has named since the last call, at once, and record them.

        So one read makes one write, however many lines it brings.
        """
        if self._passing:
            lines = self._passing[0] if len(self._passing) == 1 else b"".join(self._passing)
            self._passing = []
            with self._pump.lock:
                self._write(lines)
                self._pump.channel().feed(lines, t)

    def _let_go(self, take: "Callable[[], list[GatedFrame]]", timeout: float = -1) -> None:
        """Carry out the verdicts on the frames that `take` says go now; do nothing if the lock is not had in time."""
        if self._pump.lock.acquire(timeout=timeout):
            try:
                for frame in take():
                    self._carry_out(frame)
            finally:
                self._pump.lock.release()
            self.look_again()

    def _carry_out(self, frame: GatedFrame) -> None:
        """Write what the verdict says, and record the frame, or its release."""
        verdict, t, channel = frame.verdict, self._pump.now(), self._pump.channel()
        frames = (frame.raw,) if isinstance(verdict, Pass) else verdict.frames if isinstance(verdict, Send) else ()
        written = self._write_frames(frames, cut=frame.cut)
        rest: dict[str, object] = {}
        if not isinstance(verdict, Pass):
            rest = {"sent": frames[0] if written else None, "by": verdict.by}
        elif frame.held is not None and not written:
            rest = {"sent": None}
        elif frame.held is None and verdict.undecided:
            rest = {"undecided": True}
        if frame.held is None:
            channel.record(frame.raw, frame.t, rest, cut=frame.cut)
        else:
            self._holders.pop(frame.held, None)
            channel.release(t, frame.held, frame.how, rest)
        for extra in frames[1:written]:
            channel.record(extra, t, {"from": "mcpspy", "by": rest["by"]})
        if isinstance(verdict, Reply):
            self.other.reply(verdict.frame, verdict.by)
        elif isinstance(verdict, CloseStream):
            self._stop("shutdown")
            t = self._pump.now()
            self._pump.close_sink()
            channel.end(t, "shutdown")
        elif isinstance(verdict, Exit):
            self._session.end_server(verdict.code)

    def reply(self, frame: bytes, by: str) -> None:
        """Write a frame of ours to the sink, when no line is being forwarded there; returns at once."""
        if self._done:
            self._not_sent(by)
            return
        with self._counting:
            self._replies.append((frame, by))
            self._owed += len(frame) if by != VIEWER else 0
        _signal(self._wake)

    def _flush_replies(self) -> None:
        with self._pump.lock:
            while self._replies and not self._pump.inside:
                with self._counting:
                    frame, by = self._replies.pop(0)
                    self._owed -= len(frame) if by != VIEWER else 0
                self.other.look_again()
                if self._write(frame + b"\n"):
                    self._pump.channel().record(frame, self._pump.now(), {"from": "mcpspy", "by": by})
                else:
                    self._not_sent(by)

    def _not_sent(self, by: str) -> None:
        if by == VIEWER:
            self._session.report("a viewer's request was not sent: the server's stdin is closed")

    def _write_frames(self, frames: tuple[bytes, ...], *, cut: bool) -> int:
        """Write frames, with `cut` the last one without a newline; returns how many have been written."""
        for number, frame in enumerate(frames, 1):
            if not self._write(frame if cut and number == len(frames) else frame + b"\n"):
                return number - 1
        return len(frames)

    def _write(self, line: bytes) -> bool:
        """Write to the sink, as long as there is one."""
        sink = self._pump.sink
        if self._how or sink < 0:
            return False
        try:
            written = os.write(sink, line)
        except OSError:
            written = 0  # the slow way finds out why
        if written == len(line) or self._pump.forward(line[written:]):
            return True
        self._stop("abort")
        return False

    def _stop(self, how: str) -> None:
        """Forward nothing more; nobody waits for that any longer."""
        self._how = self._how or how
        self.look_again()
        self.other.look_again()

    def _wait(self, ready: "Callable[[], bool]") -> None:
        """Wait until there is room, or nothing more is forwarded."""
        while not ready() and not self._how:
            self._room.acquire()

    def keep_time(self) -> None:
        """Be the timekeeper: let go what is due, write replies, and look for orders while something is held."""
        self._wake.acquire()  # until the gate is in force
        while self._pump.reading and not self._running and not self._done:
            time.sleep(_STEP)  # the pump writes a last chunk itself
        _signal(self._wake)  # for what came meanwhile
        while not self._done:
            self._let_go(self._due)
            self._flush_replies()
            with self._pump.lock:
                until, looks = self._waiting.until, bool(self._waiting) and self._pump.due < NEVER
            wait = -1 if until is None else max(0.0, (until - self._pump.now()) / 1e9)
            if looks:
                wait = HOLDING / 1e9 if until is None else min(wait, HOLDING / 1e9)
            self._wake.acquire(timeout=min(wait, 3600.0))
            if looks:
                self._pump.look(self._pump.now())

    def _due(self) -> list[GatedFrame]:
        """What goes now of what waits."""
        going: list[GatedFrame] = []
        while self._released:
            held, how, message = self._released.pop(0)
            try:
                going += self._waiting.release(held, how, message)
            except ValueError as error:
                self._session.report(f"held frame {held} was not {how} ({error}); it is still held")
        return going + (self._waiting.end("closed") if self._hurry else self._waiting.expire(self._pump.now()))


def gate_lines(there: "Pump", back: "Pump", session: "GatedSession") -> tuple[GatedLines, GatedLines]:
    """Put a gate into force in both directions, from client to server and back, whether they run already or not.

    Raises RuntimeError where no thread can be had; then nothing has changed.
    """
    pair = GatedLines(there, "client", session), GatedLines(back, "server", session)
    pair[0].other, pair[1].other = pair[1], pair[0]
    for gated in pair:
        start_new_thread(gated.keep_time, ())
    there.gated, back.gated = pair
    for gated in pair:
        gated.wake()
    return pair


def _signal(lock: "LockType") -> None:
    """Let the one who waits for the lock look again."""
    try:
        lock.release()
    except RuntimeError:  # it has been told already
        pass
