"""The relay of `wrap` with a gate between the read and the write: when it comes into force, and each direction then.

The rules:

- A line is forwarded when it is complete, according to the gate's verdict, and recorded after that.
- Lines that the gate does not name pass byte for byte. Such lines of one read are forwarded in one write.
- A line of more than 1 MiB passes undecided; after the first 1 MiB it is forwarded as it arrives.
- Held frames wait in a `FrameOrder`. A second thread, the timekeeper, forwards them when they are due.
- Reading pauses while many frames are held, and while many of our answers wait for a peer that does not read. The other
  direction continues meanwhile.

The pump's lock is the only lock of a direction. A thread that holds it takes frames from those that wait, writes whole
lines, and records them. So the records of a channel have the order of the wire. A thread of the other direction, or one
that releases a held frame, never takes the lock: it leaves a note for the timekeeper and continues. So no thread ever
waits for both peers.

The timekeeper may write before the pump has handed over, once it knows that the pump waits in a read. A direction is
never handed back to the pump: if no gate is left, lines pass with little more work.

Both directions share a `GatedSession`. A request of a viewer has an id of ours, a string that begins with `mcpspy-`.
Its response is recognised by that id. It is recorded and not forwarded, because the client did not send the request.

Imported on the `wrap` path if a gate may come: no heavy imports here.
"""

import os
import time
from _thread import allocate_lock, start_new_thread

from mcpspy.capture.format import OWN_ID, VIEWER
from mcpspy.gate.gate import LIMIT, PASS, CloseStream, Exit, Hold, Pass, Refuse, Reply, Send
from mcpspy.gate.messages import json_of, read
from mcpspy.gate.order import BYTES, FRAMES, FrameOrder, GatedFrame
from mcpspy.relay.control import HOLDING, INTERVAL, Control
from mcpspy.relay.stdio.pump import CHUNK, NEVER, wait_for
from mcpspy.wire.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import TypeAlias

    from mcpspy.gate.gate import Facts, Gate, Verdict
    from mcpspy.gate.messages import Key
    from mcpspy.recording.recording import Recording
    from mcpspy.relay.stdio.pump import Pump

    Gated: TypeAlias = "tuple[GatedSession, GatedLines]"
    """A gate in force, and its direction from client to server."""

_ESCAPE = b"\\u00"  # may encode a letter of the id


class GatedSession:
    """A gate in force; `end_server` kills the server, and `wrap` then ends with the given status."""

    def __init__(self, gate: "Gate", report: "Callable[[str], None]", end_server: "Callable[[int], None]") -> None:
        self.gate = gate
        self.report = report
        self.end_server = end_server
        self.deciding = allocate_lock()
        """Hold it to use the gate."""
        self._asked: set[Key] = set()  # the ids of requests of viewers that have no response yet
        self._reported: set[str] = set()

    def decide(self, line: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a line that was read at `t`; never raises."""
        try:
            with self.deciding:
                verdict = self.gate.decide(line, facts, t)
        except Exception as error:
            self._report_once(f"the gate failed ({type(error).__name__}: {error}); traffic passes unchanged")
            return PASS
        if verdict is PASS:
            return PASS
        action = verdict.then if isinstance(verdict, Hold) else verdict
        if isinstance(action, Refuse):
            self._report_once(f"{action.by}: status works over HTTP only; frames on stdio pass unchanged")
            return PASS
        return verdict

    def asks(self, frame: bytes) -> bytes | None:
        """Return a viewer's request in one line; if its id is not one of ours, report that and return None."""
        messages = read(frame, "lines")
        key = messages[0].id if len(messages) == 1 and messages[0].kind == "request" else None
        if key is None or key[0] != "string" or not key[1].startswith(OWN_ID):
            what = "it must be one JSON-RPC request, its id a string"
            self._report_once(f"a viewer's request was not sent: {what} {OWN_ID}…")
            return None
        self._asked.add(key)
        return one_line(frame)

    def is_answer(self, line: bytes) -> bool:
        """Return whether a line is the response to a viewer's request; true only once per request."""
        if not self._asked or not (OWN_ID.encode() in line or _ESCAPE in line):
            return False
        messages = read(line, "lines")
        if len(messages) != 1 or not messages[0].answers or messages[0].id not in self._asked:
            return False
        self._asked.discard(messages[0].id)
        return True

    def begins_answer(self, start: bytes) -> bool:
        """Return whether a long line that begins with `start` is the response to a viewer's request.

        The id is found only if it precedes the result or error.
        """
        head = min(start.partition(b'"result"')[0], start.partition(b'"error"')[0], key=len)
        found = [key for key in list(self._asked) if b'"id":' + json_of(key) in head.replace(b'"id": ', b'"id":')]
        self._asked.difference_update(found)
        return bool(found)

    def _report_once(self, sentence: str) -> None:
        if sentence not in self._reported:
            self._reported.add(sentence)
            self.report(sentence)


def signal(lock: "LockType") -> None:
    """Wake the thread that waits for the lock."""
    try:
        lock.release()
    except RuntimeError:  # it was released already
        pass


def one_line(message: bytes) -> bytes:
    """Replace the line ends of a JSON text by spaces; its strings contain none."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ")


_STEP = 0.005  # seconds between two checks of a pump that has not handed over yet


class GatedLines:
    """The lines of one pump; `other` is the opposite direction."""

    other: "GatedLines"

    def __init__(self, pump: "Pump", sender: str, session: "GatedSession") -> None:
        self._pump = pump
        self._session = session
        self._facts: Facts = session.gate.facts(sender, "lines")
        self._answers = sender == "server"  # whether responses to requests of viewers come in this direction
        self._holders = session.gate.holders
        self._waiting = FrameOrder(session.gate.numbers, "lines")
        self._lines = Lines()
        self._parts: list[bytes] = []  # the pieces of a line so far
        self._size = 0
        self._passing: list[bytes] = []  # the pieces of lines of one read that pass unchanged
        self._muted = False  # whether the long line that is passing is recorded only, and not forwarded
        self._replies: list[tuple[bytes, str]] = []  # for the sink, while no line is being forwarded
        self._owed = 0  # their bytes, without requests of viewers
        self._counting = allocate_lock()  # guards both; never held for long
        self._releasing = allocate_lock()  # held to record that a frame is held, or its release
        self._released: list[tuple[int, str, bytes | None]] = []  # the arguments of `release`
        self._how = ""  # why nothing more is forwarded; empty while frames are forwarded
        self._hurry = self._running = self._done = False
        self._wake, self._room = allocate_lock(), allocate_lock()  # locked until there is something to do
        self._wake.acquire()
        self._room.acquire()

    @property
    def busy(self) -> bool:
        """Whether something is not forwarded yet."""
        replying = bool(self._replies) and not self._pump.inside and not self._how
        return bool(self._waiting) or self._pump.lock.locked() or replying

    @property
    def owes_much(self) -> bool:
        """Whether so many replies wait for the sink that nothing should be read that causes more."""
        return not self._how and (len(self._replies) >= FRAMES or self._owed >= BYTES)

    def release(self, held: int, how: str, message: bytes | None = None) -> None:
        """Release the held frame with that number, as `FrameOrder.release` does; return at once."""
        self._released.append((held, how, message if message is None else one_line(message)))
        signal(self._wake)

    def hasten(self) -> None:
        """Release all held frames, and hold no more; return at once."""
        self._hurry = True
        signal(self._wake)

    def wake(self) -> None:
        """Wake the timekeeper, which may have something to do; return at once."""
        signal(self._wake)

    def look_again(self) -> None:
        """Wake the reader of this direction, which may have room again; return at once."""
        signal(self._room)

    def reader_left(self) -> None:
        """Forward nothing more, because nobody reads it; return at once."""
        self._stop("abort")

    def abandon(self) -> None:
        """Forward nothing more, and record the release of each held frame (A-19)."""
        self._stop("exit")
        self._let_go(lambda: self._waiting.end("closed"), timeout=0.01)  # the lock's holder may be blocked in a write
        with self._releasing:
            holding = [held for held, holder in self._holders.items() if holder is self]
        for held in holding:
            self._record_release(self._pump.now(), held, "closed", {"sent": None})

    def run(self, chunk: bytes, t: int) -> str:
        """Forward the chunk that was read at `t`, if it is not empty, and all that follows; return how it ended."""
        self._running = True
        if chunk:
            self.take(chunk, t)
        while True:
            self._pump.reading = False
            self._wait(lambda: not self._waiting.full)
            if self._how:
                return self._how
            try:
                chunk = os.read(self._pump.source, CHUNK)
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                if self._pump.reader_gone:
                    return "abort"
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
            if self._pump.stop or self._how not in ("", "abort"):  # what cannot be forwarded is recorded
                return "exit"
            self._pump.reads += 1
            if t >= self._pump.due:
                self._pump.look(t)
            self.take(chunk, t)

    def end(self, how: str) -> str:
        """Forward held frames and replies before the sink is closed; return how the direction ended."""
        if how == "abort":
            self._end()
        self._let_go(lambda: self._waiting.end("closed"))
        self._flush_replies()
        self._stop(how)
        self._done = True
        signal(self._wake)
        return self._how

    def take(self, chunk: bytes, t: int) -> None:
        """Decide on the lines of the chunk that was read at `t`, and forward them."""
        between = self._lines.between and not self._parts and not self._pump.inside
        if between and chunk.find(b"\n") == len(chunk) - 1:
            self._line(chunk[:-1], t, [chunk])  # the case of almost every read
        else:
            for raw, more, _ in self._lines.feed(chunk):
                self._piece(raw, t, more=more)
        self._let_pass(t)
        self._pump.passed()

    def _end(self) -> None:
        """Forward held frames in order, and then a last line without a newline."""
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
        """Process a line, or a piece of a long one."""
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
        """Forward another piece of a line that is too long, or that began before the gate was in force."""
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
        """Decide on a line and apply the verdict, or keep it for `_let_pass`; `parts` are `raw` and its newline."""
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
            with self._releasing:
                if self._how:
                    return [frame]
                going = self._waiting.feed(frame)
                if frame.held is not None:
                    self._holders[frame.held] = self
                    long = {"undecided": True} if isinstance(verdict, Pass) and verdict.undecided else {}
                    self._pump.channel().record(raw, t, {"by": frame.by, "held": frame.held} | long, cut=cut)
            if self._waiting:
                signal(self._wake)
            return going

        self._let_go(feed)

    def _let_pass(self, t: int) -> None:
        """Forward, in one write, the lines that passed since the last call, and record them.

        So one read causes one write, however many lines it has.
        """
        if self._passing:
            lines = self._passing[0] if len(self._passing) == 1 else b"".join(self._passing)
            self._passing = []
            with self._pump.lock:
                self._write(lines)
                self._pump.channel().feed(lines, t)

    def _let_go(self, take: "Callable[[], list[GatedFrame]]", timeout: float = -1) -> None:
        """Apply the verdicts on the due frames, which `take` returns; do nothing if the lock is not free in time."""
        if self._pump.lock.acquire(timeout=timeout):
            try:
                for frame in take():
                    self._carry_out(frame)
            finally:
                self._pump.lock.release()
            self.look_again()

    def _carry_out(self, frame: GatedFrame) -> None:
        """Write according to the verdict, and record the frame, or its release."""
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
            self._record_release(t, frame.held, frame.how, rest)
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

    def _record_release(self, t: int, held: int, how: str, rest: dict[str, object]) -> None:
        """Record the release of a held frame, unless another thread has recorded it."""
        with self._releasing:
            if self._holders.pop(held, None):
                self._pump.channel().release(t, held, how, rest)

    def reply(self, frame: bytes, by: str) -> None:
        """Queue a frame of ours for the sink, to be written while no line is being forwarded; return at once."""
        if self._done:
            self._not_sent(by)
            return
        with self._counting:
            self._replies.append((frame, by))
            self._owed += len(frame) if by != VIEWER else 0
        signal(self._wake)

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
        """Write frames, with `cut` the last one without a newline; return how many were written."""
        for number, frame in enumerate(frames, 1):
            if not self._write(frame if cut and number == len(frames) else frame + b"\n"):
                return number - 1
        return len(frames)

    def _write(self, line: bytes) -> bool:
        """Write to the sink, if it is open; return whether that succeeded."""
        sink = self._pump.sink
        if self._how or sink < 0:
            return False
        try:
            written = os.write(sink, line)
        except OSError:
            written = 0  # `forward` finds the reason
        if written == len(line) or self._pump.forward(line[written:]):
            return True
        self._stop("abort")
        return False

    def _stop(self, how: str) -> None:
        """Forward nothing more, and wake the waiting threads."""
        self._how = self._how or how
        self.look_again()
        self.other.look_again()

    def _wait(self, ready: "Callable[[], bool]") -> None:
        """Wait until `ready` returns true, or nothing more is forwarded."""
        while not ready() and not self._how:
            self._room.acquire()

    def keep_time(self) -> None:
        """Run the timekeeper: forward due frames, write replies, and check for orders while frames are held."""
        self._wake.acquire()  # waits until the gate is in force
        while self._pump.reading and not self._running and not self._done:
            time.sleep(_STEP)  # the pump writes its last chunk itself
        signal(self._wake)  # for what was queued meanwhile
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
        """Return the waiting frames that are due."""
        going: list[GatedFrame] = []
        while self._released:
            held, how, message = self._released.pop(0)
            try:
                going += self._waiting.release(held, how, message)
            except ValueError as error:
                self._session.report(f"held frame {held} was not {how} ({error}); it is still held")
        return going + (self._waiting.end("closed") if self._hurry else self._waiting.expire(self._pump.now()))


def gate_lines(there: "Pump", back: "Pump", session: "GatedSession") -> tuple[GatedLines, GatedLines]:
    """Put a gate into force in both directions, whether they run already or not.

    Returns the directions to the server and back. Raises RuntimeError, with no effect, if no thread can be started.
    """
    pair = GatedLines(there, "client", session), GatedLines(back, "server", session)
    pair[0].other, pair[1].other = pair[1], pair[0]
    for gated in pair:
        start_new_thread(gated.keep_time, ())
    there.gated, back.gated = pair
    for gated in pair:
        gated.wake()
    return pair


IDLE, CONTROLLED = 1.0, 0.1  # seconds between two checks while nothing passes: without and with a viewer


class Watch:
    """Watches the live directory at `path` for a relay with these pumps; `gated` returns its gate."""

    def __init__(
        self, path: str, recording: "Recording", pumps: "tuple[Pump, Pump]", gated: "Callable[[], Gated]"
    ) -> None:
        self._path = path
        self._recording = recording
        self._pumps = pumps
        self._gated = gated
        self._session: GatedSession | None = None
        self._control: Control | None = None
        self._looking = allocate_lock()
        self._due = 0
        self._ended = False

    def start(self) -> None:
        """Begin to check."""
        for pump in self._pumps:
            pump.look, pump.due = self.look, 0
        try:
            start_new_thread(self._look_when_idle, ())
        except RuntimeError:  # no thread can be started: then checks are made only before writes
            pass

    def look(self, t: int) -> None:
        """Apply changes of viewers if a check is due; `t` is the current time. Never raises or waits for a peer."""
        with self._looking:
            try:
                if self._control is None and self._due <= t < NEVER:
                    self._due = t + INTERVAL
                    if os.path.lexists(self._path):
                        self._begin()
                if self._control and self._session:
                    with self._session.deciding:
                        self._control.look(t)
                    self._due = self._control.due
            except Exception as error:
                self._due = NEVER
                self._recording.report(
                    f"this session cannot be controlled ({type(error).__name__}: {error}); traffic goes on"
                )
            for pump in self._pumps:
                pump.due = NEVER if self._ended else self._due

    def end(self) -> None:
        """Stop checking."""
        with self._looking:
            self._ended = True
            self._control, self._due = None, NEVER
            for pump in self._pumps:
                pump.due = NEVER

    def remove(self) -> None:
        """Remove the live directory at the end of the session."""
        if os.path.lexists(self._path):
            from mcpspy.capture.live import LiveFolder

            LiveFolder(self._path).remove()

    def _begin(self) -> None:
        from mcpspy.capture.live import LiveFolder

        recording = self._recording
        self._session, there = self._gated()

        def send(frame: bytes, _: str | None) -> None:
            assert self._session
            request = self._session.asks(frame)
            if request is not None:
                there.reply(request, VIEWER)

        self._control = Control(
            LiveFolder(self._path),
            self._session.gate,
            recording.report,
            lambda gates: recording.gates(recording.clock.now(), gates, "viewer"),
            send,
        )

    def _look_when_idle(self) -> None:
        while not self._ended:
            time.sleep(CONTROLLED if self._control else IDLE)
            self.look(self._recording.clock.now())
