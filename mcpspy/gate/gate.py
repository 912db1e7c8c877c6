"""The gate of a relay: it consists of several gates in a row, and keeps some rules whatever they do.

- The first verdict that is not `Pass` is the verdict.
- If a gate raises, the frame passes, and the fault is reported once.
- A frame of more than 1 MiB passes undecided.
- `ping`, its response, and cancellations overtake held frames, unless a gate names them.
"""

from itertools import count

from mcpspy.gate.facts import Facts
from mcpspy.gate.in_flight import InFlight
from mcpspy.gate.messages import CANCELLED
from mcpspy.gate.verdicts import PASS, UNDECIDED, Pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Protocol

    from mcpspy.gate.verdicts import Verdict

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

        def wants(self, facts: Facts) -> bool:
            """Test quickly whether it may need the requests of this frame when their responses arrive."""

        def decide(self, frame: bytes, facts: Facts, t: int) -> "Verdict":
            """Return the verdict on a frame that was read at `t`."""

    class FrameHolder(Protocol):
        """An object that holds frames: one direction of a relay."""

        def release(self, held: int, how: str, message: bytes | None = None) -> object:
            """Release the held frame with that number, as `FrameOrder.release` does."""


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
