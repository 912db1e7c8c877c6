"""A client's session with servers that replace one another: it decides where each line is sent, and which lines wait.

Each line arrives in the thread that read it. A lock guards the state; no thread holds it while it writes. There are
four modes for the client's lines: they pass (`RUNNING`); requests wait until running calls have ended (`IDLING`); all
lines wait for the next server (`HOLDING`); requests are answered with the reason of a failure (`FAILED`). The steps
that replace a server write to the peers. They run one after another in the turning thread, so the main thread never
waits for a peer.

A server that is being ended may still answer. When it has exited, we answer its open calls (`Handover`).
"""

from collections.abc import Callable
from threading import Lock

from mcpspy.capture.format import RELOAD
from mcpspy.gate.gate import PASS, Drop, Send
from mcpspy.gate.messages import Envelope, json_of, read
from mcpspy.relay.reload.handover import Carried, Handover
from mcpspy.relay.reload.server import LineSink, ReloadableServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.gate.messages import Key
    from mcpspy.recording.recording import Channel

RUNNING, IDLING, HOLDING, FAILED = "running", "idling", "holding", "failed"
HELD_LINES, HELD_BYTES = 1000, 16 << 20
"""The most lines and bytes of the client that wait; further requests are answered with the reason."""
REST = 0.25
"""Seconds to wait for what a server that has exited left in its pipes."""


class _Waiting:
    """A line of the client that waits, with its number in the capture."""

    __slots__ = ("held", "messages", "raw")

    def __init__(self, raw: bytes, messages: tuple[Envelope, ...], held: int) -> None:
        self.raw = raw
        self.messages = messages
        self.held = held


class ReloadSession:
    """The session; `there` is the channel of the client, `back` that of the servers.

    `now` returns the nanoseconds since the capture started, `say` gets a sentence for the user, and `wake` wakes the
    main thread.
    """

    def __init__(
        self,
        there: "Channel",
        back: "Channel",
        now: Callable[[], int],
        say: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self.client = LineSink(1, back)
        self.client_left = False
        """Whether the client has stopped sending."""
        self.reader_left = False
        """Whether the client has stopped reading; it may still send."""
        self.server: ReloadableServer | None = None
        self._there, self._back = there, back
        self._now, self._say, self._wake = now, say, wake
        self._lock = Lock()
        self._handover = Handover()
        self._mode = RUNNING
        self._reason, self._facts = "", dict[str, object]()  # why requests are refused or were left unanswered
        self._waiting: list[_Waiting] = []
        self._size = 0
        self._held = 0

    @property
    def idle(self) -> bool:
        """Whether no request is open."""
        with self._lock:
            return self._handover.idle

    @property
    def waits(self) -> bool:
        """Whether lines of the client wait for a server."""
        with self._lock:
            return bool(self._waiting)

    @property
    def served(self) -> bool:
        """Whether any server has answered a request of the client."""
        return self._handover.served

    # Called by the main thread; these write nothing.

    def set_mode(self, mode: str, reason: str, facts: dict[str, object]) -> None:
        """Set the mode for the client's lines, with the reason for it."""
        with self._lock:
            self._mode, self._reason, self._facts = mode, reason, facts
            self._server.leaving = mode == HOLDING

    # Called with lines, in the threads that read them.

    def from_client(self, raw: bytes, t: int, *, whole: bool = True) -> None:
        """Forward a line of the client, hold it, or answer its requests."""
        messages = read(raw, "lines")
        requests = [it for it in messages if it.kind == "request" and it.id]
        replies: list[bytes] = []
        with self._lock:
            mode, server = self._mode, self._server
            passes = mode == RUNNING or (mode == IDLING and not requests)
            if passes:
                carried = self._to_server(raw, messages)
            elif self._drop_waiting(messages, raw, t) or (
                mode != FAILED and not _pings(requests) and self._hold(raw, messages, t)
            ):
                return
            else:
                replies = self._refusals(requests)
                if messages and not requests:
                    self._handover.repeats.sent(messages[0], raw)
        if not passes:
            self._there.record(raw, t, {"sent": None, "by": RELOAD}, cut=not whole)
            self._tell(replies)
        elif isinstance(carried, (Send, Drop)):
            frames = carried.frames if isinstance(carried, Send) else ()
            written = bool(frames) and server.stdin.write(frames)
            self._there.record(raw, t, {"sent": frames[0] if written else None, "by": RELOAD}, cut=not whole)
        elif not server.stdin.forward(raw, t, whole=whole):
            self._there.record(raw, t, {"sent": None, "by": RELOAD}, cut=not whole)

    def client_ends(self) -> bool:
        """Note that the client sends nothing more; return whether stdin of the server was closed."""
        with self._lock:
            self.client_left = True
            closing = self.server if self._mode in (RUNNING, IDLING) else None
        if closing:
            closing.stdin.close()
        self._wake()
        return closing is not None

    def end_reading(self) -> None:
        """Note that the client reads nothing more; never blocks. The main thread then ends the server's stdout."""
        self.reader_left = True
        self._wake()

    def from_server(self, server: ReloadableServer, raw: bytes, whole: bool, t: int) -> None:
        """Forward a line of a server to the client."""
        messages = read(raw, "lines")
        more: list[bytes] = []
        with self._lock:
            carried: Carried = Drop(RELOAD)
            if not server.over and (whole or self._mode in (RUNNING, IDLING)):
                carried, more = self._to_client(raw, messages)
            rest = self._mode == IDLING and self._handover.idle
        if not isinstance(carried, Drop) and any(it.kind in ("result", "error") for it in messages):
            server.settle(t)
        server.answered.set()
        if isinstance(carried, (Send, Drop)):
            frames = carried.frames if isinstance(carried, Send) else ()
            written = bool(frames) and self.client.write(frames)
            self._back.record(raw, t, {"sent": frames[0] if written else None, "by": RELOAD}, cut=not whole)
        elif not self.client.forward(raw, t, whole=whole):
            self._back.record(raw, t, {"sent": None, "by": RELOAD}, cut=not whole)
            if server.ready:
                server.stdout.reader_left()
            self.end_reading()
        self._tell(more)
        if rest:
            self._wake()

    # Steps from one server to the next, in the turning thread.

    def leave(self, server: ReloadableServer, *, keep: bool, reason: str, facts: dict[str, object]) -> None:
        """Close the requests that are open with a server that has exited; with `keep` a next server follows."""
        server.wait_for_rest(REST)
        with self._lock:
            server.over = True
            frames = self._handover.leave(reason, facts, keep=keep)
        server.stdin.close(REST)
        self._tell(frames)

    def begin(self, server: ReloadableServer) -> None:
        """Repeat the handshake with a new server, release waiting lines, and notify the client of the changes.

        Sets the server's `fault` if that fails.
        """
        with self._lock:
            again = self._handover.resent(handshake=True)
            repeats = self._handover.repeats
        notices: list[bytes] = []
        if again:
            self._send(server, again)
            if not self._await(server, lambda: not self._handover.shaking):
                return
        elif repeats.handshake:
            response = self._ask(server, repeats.handshake)
            if response is None:
                return
            try:
                notices, sentences = repeats.compare(response)
            except ValueError as error:
                server.fault = str(error)
                server.exited.set()
                self._wake()
                return
            if repeats.initialized:
                self._send(server, [repeats.initialized])
            self._send(server, [self._own(raw)[1] for raw in repeats.requests()])
            for sentence in sentences:
                self._say(sentence)
        server.began = self._now()
        with self._lock:
            subscriptions = self._handover.resent(handshake=False)
        self._send(server, subscriptions)
        self._tell(notices)
        self._release(server)

    def fail(self, server: ReloadableServer, reason: str, facts: dict[str, object]) -> None:
        """Answer waiting and further requests with the reason why a server has exited, until the next one starts."""
        with self._lock:
            if not server.leaving:
                self._mode, self._reason, self._facts = FAILED, reason, facts
        self.leave(server, keep=server.leaving, reason=reason, facts=facts)
        with self._lock:
            if self._mode != FAILED:
                return
            waiting, self._waiting, self._size = self._waiting, [], 0
            replies = [self._refusals([it for it in line.messages if it.kind == "request"]) for line in waiting]
        for line, frames in zip(waiting, replies, strict=True):
            how = "answered" if frames else "dropped"
            self._there.release(self._now(), line.held, how, {"sent": None, "by": RELOAD})
            self._tell(frames)

    def _ask(self, server: ReloadableServer, request: bytes) -> bytes | None:
        """Send a request of the client as one of our own; return the response, or None if the server exits."""
        key, frame = self._own(request)
        self._send(server, [frame])
        answered = self._await(server, lambda: self._handover.answer(key) is not None)
        return self._handover.answer(key) if answered else None

    def _await(self, server: ReloadableServer, come: Callable[[], bool]) -> bool:
        """Wait until `come` is true after something a server sent; return False if the server exits."""
        while True:
            server.answered.clear()
            with self._lock:
                if come():
                    return True
            if server.exited.is_set():
                return False
            server.answered.wait()

    def _release(self, server: ReloadableServer) -> None:
        """Forward the waiting lines in order, then let all lines pass."""
        while True:
            with self._lock:
                if server.leaving or server.exited.is_set():
                    return
                if not self._waiting:
                    self._mode = RUNNING
                    server.ready = True
                    left = self.client_left
                    break
                line = self._waiting.pop(0)
                self._size -= len(line.raw)
                carried = self._to_server(line.raw, line.messages)
            frames = carried.frames if isinstance(carried, Send) else () if isinstance(carried, Drop) else (line.raw,)
            written = bool(frames) and server.stdin.write(frames)
            rest: dict[str, object] = {} if written else {"sent": None, "by": RELOAD}
            if written and frames[0] is not line.raw:
                rest = {"sent": frames[0], "by": RELOAD}
            self._there.release(self._now(), line.held, "delayed" if written else "dropped", rest)
        if left:
            server.stdin.close(REST)
        self._wake()

    # Helpers; those that need the lock state it.

    @property
    def _server(self) -> ReloadableServer:
        assert self.server
        return self.server

    def _to_server(self, raw: bytes, messages: tuple[Envelope, ...]) -> Carried:
        """Call `Handover.to_server`, with the lock held; if it raises, the line passes."""
        try:
            return self._handover.to_server(raw, messages)
        except Exception as error:
            self._say(f"a line of the client is forwarded unchanged ({type(error).__name__}: {error})")
            return PASS

    def _to_client(self, raw: bytes, messages: tuple[Envelope, ...]) -> tuple[Carried, list[bytes]]:
        """Call `Handover.to_client`, with the lock held; if it raises, the line passes."""
        try:
            return self._handover.to_client(raw, messages)
        except Exception as error:
            self._say(f"a line of the server is forwarded unchanged ({type(error).__name__}: {error})")
            return PASS, []

    def _own(self, raw: bytes) -> "tuple[Key, bytes]":
        with self._lock:
            return self._handover.own(raw)

    def _hold(self, raw: bytes, messages: tuple[Envelope, ...], t: int) -> bool:
        """Hold a line, with the lock held; return False if too much waits."""
        if len(self._waiting) >= HELD_LINES or self._size + len(raw) > HELD_BYTES:
            return False
        self._held += 1
        self._waiting.append(_Waiting(raw, messages, self._held))
        self._size += len(raw)
        self._there.record(raw, t, {"by": RELOAD, "held": self._held})
        return True

    def _drop_waiting(self, messages: tuple[Envelope, ...], raw: bytes, t: int) -> bool:
        """Drop a cancellation and the request that it cancels, if that request waits; with the lock held."""
        cancelled = messages[0].cancels if len(messages) == 1 else None
        for line in self._waiting if cancelled else ():
            if len(line.messages) == 1 and line.messages[0].kind == "request" and line.messages[0].id == cancelled:
                self._waiting.remove(line)
                self._size -= len(line.raw)
                self._there.record(raw, t, {"sent": None, "by": RELOAD})
                self._there.release(t, line.held, "cancelled", {"sent": None, "by": RELOAD})
                return True
        return False

    def _refusals(self, requests: list[Envelope]) -> list[bytes]:
        """Return our responses to requests that no server gets, with the lock held; pings get a result."""
        if _pings(requests):
            return [b'{"jsonrpc":"2.0","id":' + json_of(it.id) + b',"result":{}}' for it in requests if it.id]
        return [self._handover.refuse(it.id, self._reason, self._facts) for it in requests if it.id]

    def _send(self, server: ReloadableServer, frames: list[bytes]) -> None:
        """Send our own frames to a server, and record them."""
        for frame in frames:
            t = self._now()
            if server.stdin.write((frame,)):
                self._there.record(frame, t, {"from": "mcpspy", "by": RELOAD})

    def _tell(self, frames: list[bytes]) -> None:
        """Send our own frames to the client, and record them."""
        for frame in frames:
            t = self._now()
            if self.client.write((frame,)):
                self._back.record(frame, t, {"from": "mcpspy", "by": RELOAD})


def _pings(requests: list[Envelope]) -> bool:
    return bool(requests) and all(it.method == "ping" for it in requests)
