"""The gate of a relay: several gates in a row, the facts about a frame that they get, and their verdicts.

It keeps some rules whatever the gates do:

- The first verdict that is not `Pass` is the verdict.
- If a gate raises, the frame passes, and the fault is reported once.
- A frame of more than 1 MiB passes undecided.
- `ping`, its response, and cancellations overtake held frames, unless a gate names them.

A response has neither method nor name, so a gate on the responses of `tools/call` finds them with the requests that
have no response yet (`InFlight`), by session, sender and id. Their number is limited: a new request replaces the oldest
one of its session and sender, and a new session the oldest session. A response to a forgotten request matches no method
and no name.

The `by` of each verdict except `Pass` names who decided it, as in the capture: `gate NAME`. Frames in a verdict have no
delimiter; the relay that writes them adds it. Times are nanoseconds since the capture started.
"""

from itertools import count

from mcpspy.gate.messages import CANCELLED, Envelope, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Protocol, TypeAlias

    from mcpspy.gate.messages import Key

    AtOnce: TypeAlias = "Pass | Send | Drop | Reply | CloseStream | Refuse | Exit"
    """A verdict that needs no waiting."""
    Verdict: TypeAlias = "AtOnce | Hold"

    class GateEntry(Protocol):
        """One part of the gate, such as `DeclaredGate`."""

        @property
        def by(self) -> str:
            """The name of the gate, as the capture shows it."""

        @property
        def follows(self) -> bool:
            """Whether it needs the method or name of a response's request."""

        @property
        def waits(self) -> bool:
            """Whether it may make frames wait."""

        def wants(self, facts: "Facts") -> bool:
            """Test quickly whether it may need the requests of this frame when their responses arrive."""

        def decide(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
            """Return the verdict on a frame that was read at `t`."""

    class FrameHolder(Protocol):
        """An object that holds frames: one direction of a relay."""

        def release(self, held: int, how: str, message: bytes | None = None) -> object:
            """Release the held frame with that number, as `FrameOrder.release` does."""


REQUESTS = 4096
"""The most requests that are kept for one session and sender."""
SENDERS = 2048
"""The most pairs of session and sender that are kept."""
_LONGEST = 1024  # characters of id, method and name together; longer ones are not kept, to limit memory


class InFlight:
    """The method and name of requests without a response."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: dict[tuple[Hashable, str], dict[Key, tuple[str, str | None]]] = {}

    def note(self, session: "Hashable", sender: str, request: "Envelope") -> None:
        """Keep a request."""
        if request.id is None or request.method is None:
            return
        if len(request.id[1]) + len(request.method) + len(request.name or "") > _LONGEST:
            return
        ids = self._requests.get((session, sender))
        if ids is None:
            if len(self._requests) >= SENDERS:
                del self._requests[next(iter(self._requests))]
            ids = self._requests[session, sender] = {}
        if len(ids) >= REQUESTS and request.id not in ids:
            del ids[next(iter(ids))]
        ids[request.id] = request.method, request.name

    def find(self, session: "Hashable", sender: str, key: "Key | None") -> tuple[str | None, str | None]:
        """Return method and name of a request of that sender; twice None if it is not kept."""
        ids = self._requests.get((session, sender))
        return ids.get(key, (None, None)) if ids and key else (None, None)

    def forget(self, session: "Hashable", sender: str, key: "Key | None") -> None:
        """Forget a request that was answered."""
        ids = self._requests.get((session, sender))
        if ids and key:
            ids.pop(key, None)
            if not ids:
                del self._requests[session, sender]

    def any(self, session: "Hashable", sender: str) -> bool:
        """Return whether a request of that sender waits for a response."""
        return (session, sender) in self._requests


class Facts:
    """The facts of one direction of one session; a frame is decoded once for all gates."""

    __slots__ = ("_in_flight", "_read", "escaped", "frame", "framing", "lower", "requester", "sender", "session")

    def __init__(self, sender: str, framing: str, session: "Hashable", in_flight: "InFlight") -> None:
        self.sender = sender
        """`client` or `server`."""
        self.framing = framing
        """`lines`, `sse`, `body` or `message`."""
        self.session = session
        """Identifies the session, for example by its id; None on stdio."""
        self.requester = "server" if sender == "client" else "client"
        """The sender of the requests that the responses of this direction answer."""
        self._in_flight = in_flight
        self.lower = b""
        """The frame in lower case, to search words in it without regard to case."""
        self.escaped = False
        """Whether the frame may contain ASCII letters as escapes, so that a search for words is not possible."""
        self.frame = b""
        """The frame itself."""
        self._read: tuple[Envelope, ...] | None = None

    def begin(self, frame: bytes) -> None:
        """Begin with another frame."""
        self.frame, self._read = frame, None
        self.lower = frame.lower()
        self.escaped = _ESCAPE in frame

    def end(self) -> None:
        """Discard the frame."""
        self.frame = self.lower = b""
        self._read = None

    @property
    def decoded(self) -> bool:
        """Whether the messages were decoded."""
        return self._read is not None

    @property
    def messages(self) -> tuple[Envelope, ...]:
        """The messages of the frame."""
        if self._read is None:
            self._read = read(self.frame, self.framing)
        return self._read

    @property
    def may_answer(self) -> bool:
        """Whether the frame may have a response to a request that is kept."""
        if not self._in_flight.any(self.session, self.requester):
            return False
        return self.escaped or b'"result"' in self.frame or b'"error"' in self.frame

    def about(self, message: Envelope) -> tuple[str | None, str | None]:
        """Return method and name of a message; for a response, those of its request."""
        if message.answers:
            return self._in_flight.find(self.session, self.requester, message.id)
        return message.method, message.name


_ESCAPE = b"\\u00"  # begins the escape of a letter below U+0100


class Pass:
    """Forward the frame unchanged."""

    __slots__ = ("cancels", "overtakes", "undecided")

    def __init__(self, *, overtakes: bool = False, cancels: "Key | None" = None, undecided: bool = False) -> None:
        self.overtakes = overtakes
        """Whether it is forwarded before held frames."""
        self.cancels = cancels
        """The id of the request that a cancellation names."""
        self.undecided = undecided
        """Whether the frame is too long for a decision."""


class Send:
    """Forward these frames instead, in order."""

    __slots__ = ("by", "frames")

    def __init__(self, frames: tuple[bytes, ...], by: str) -> None:
        self.frames = frames
        self.by = by


class Drop:
    """Forward nothing."""

    __slots__ = ("by",)

    def __init__(self, by: str) -> None:
        self.by = by


class Reply:
    """Forward nothing, and send `frame`, a JSON-RPC response, back to the sender."""

    __slots__ = ("by", "frame")

    def __init__(self, frame: bytes, by: str) -> None:
        self.frame = frame
        self.by = by


class CloseStream:
    """Forward nothing, and end the stream that the frame belongs to."""

    __slots__ = ("by",)

    def __init__(self, by: str) -> None:
        self.by = by


class Refuse:
    """Forward nothing, and answer the HTTP request of the frame with a status."""

    __slots__ = ("by", "status")

    def __init__(self, status: int, by: str) -> None:
        self.status = status
        self.by = by


class Exit:
    """Forward nothing, and kill the server; the relay ends with this exit status."""

    __slots__ = ("by", "code")

    def __init__(self, code: int, by: str) -> None:
        self.code = code
        self.by = by


class Hold:
    """Wait until the time `until`, unless the frame is released earlier; then apply the verdict `then`."""

    __slots__ = ("by", "how", "reorder", "then", "until")

    def __init__(self, until: int, by: str, how: str, then: "AtOnce", *, reorder: bool = False) -> None:
        self.until = until
        self.by = by
        self.how = how
        """The `how` of its release record at the time `until`: `expired` or `delayed`."""
        self.then = then
        self.reorder = reorder
        """Whether frames behind it are released before it."""


PASS = Pass()
UNDECIDED = Pass(undecided=True)


LIMIT = 1 << 20
"""The size in bytes of the longest frame that is decided on."""


class Gate:
    """All gates of one relay. One thread at a time may use it."""

    def __init__(self, gates: "Sequence[GateEntry]", report: "Callable[[str], None]") -> None:
        """`report` gets one sentence for each gate that fails."""
        self.numbers = count(1)
        """The numbers of held frames, unique in a capture."""
        self.holders: dict[int, FrameHolder] = {}
        """By number: the object that holds the frame; the relay maintains this."""
        self._given = tuple(gates)
        self.set_live(())
        self._report = report
        self._reported: set[GateEntry] = set()
        self._in_flight = InFlight()

    def set_live(self, gates: "Sequence[GateEntry]") -> None:
        """Put these gates before those of the constructor; they replace the gates of an earlier call."""
        self._gates = (*gates, *self._given)
        self._waits = any(gate.waits for gate in self._gates)

    def facts(self, sender: str, framing: str, session: "Hashable" = None) -> Facts:
        """Return the `Facts` that `decide` needs; each channel has its own object."""
        return Facts(sender, framing, session, self._in_flight)

    def decide(self, frame: bytes, facts: Facts, t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`; never raises."""
        if len(frame) > LIMIT:
            return UNDECIDED
        facts.begin(frame)
        verdict: Verdict = PASS
        for gate in self._gates:
            try:
                verdict = gate.decide(frame, facts, t)
            except Exception as error:
                self._fail(gate, error)
            if verdict is not PASS:
                break
        else:
            if self._waits or self.holders:
                verdict = _overtaking(frame, facts)
        self._follow(frame, facts)
        facts.end()
        return verdict

    def _follow(self, frame: bytes, facts: Facts) -> None:
        """Keep requests whose responses a gate may need, and pings; forget those that are answered."""
        if (self._waits and b'"ping"' in frame) or any(self._follows(gate, facts) for gate in self._gates):
            for message in facts.messages:
                if message.kind == "request":
                    self._in_flight.note(facts.session, facts.sender, message)
        if facts.decoded:
            for message in facts.messages:
                if message.answers:
                    self._in_flight.forget(facts.session, facts.requester, message.id)

    def _follows(self, gate: "GateEntry", facts: Facts) -> bool:
        try:
            return gate.follows and gate.wants(facts)
        except Exception as error:
            self._fail(gate, error)
            return False

    def _fail(self, gate: "GateEntry", error: Exception) -> None:
        if gate not in self._reported:
            self._reported.add(gate)
            self._report(f"{gate.by} failed ({type(error).__name__}: {error}); such frames pass unchanged")


def _overtaking(frame: bytes, facts: Facts) -> Pass:
    """Return the verdict on a frame that no gate names."""
    if (b'"ping"' in frame or b"cancelled" in frame or facts.may_answer) and len(facts.messages) == 1:
        message = facts.messages[0]
        if message.method == CANCELLED:
            return Pass(overtakes=True, cancels=message.cancels)
        if facts.about(message)[0] == "ping":
            return Pass(overtakes=True)
    return PASS
