"""Which frames of a capture match the gates of a file: the marks of `mcpspy show --gate`.

The frames pass through a gate that never acts, so a mark shows where a relay with this file would have acted. The
settings `chance`, `after` and `times` are ignored.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcpspy.cli.output import say
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import PASS, Facts, Gate
from mcpspy.timeline import Row, Streamed

if TYPE_CHECKING:
    from mcpspy.gate.gate import Verdict

_FRAMES = frozenset(("request", "notification", "result", "error", "invalid"))
"""The kinds of rows that are frames and pass through gates."""


class _Watching(DeclaredGate):
    """A gate that only notes whether it would act."""

    def __init__(self, gate: dict[str, Any]) -> None:
        super().__init__({"name": gate["name"], "when": gate["when"], "action": {"drop": True}})
        self.name: str = gate["name"]
        self.acted = False

    def decide(self, frame: bytes, facts: Facts, t: int) -> "Verdict":
        self.acted = super().decide(frame, facts, t) is not PASS
        return PASS


class GateMarks:
    """The names of the gates that match the frames of one capture. Rows must be passed in order."""

    def __init__(self, gates: Sequence[dict[str, Any]]) -> None:
        self._watching = [_Watching(gate) for gate in gates]
        self._gate = Gate(self._watching, say)
        self._facts: dict[tuple[str, Hashable], Facts] = {}
        self._n = 0
        self._names: list[str] = []

    def watch(self, found: Iterable[Streamed]) -> Iterator[Streamed]:
        """Yield everything unchanged, and pass the frames of the rows to the gates."""
        for it in found:
            if isinstance(it, Row) and it.n != self._n:  # the messages of a batch are one frame
                self._n, self._names = it.n, self._match(it)
            yield it

    def of(self, row: Row) -> list[str]:
        """Return the names of the gates that match the frame of the latest row."""
        return self._names if row.n == self._n else []

    def _match(self, row: Row) -> list[str]:
        if row.kind not in _FRAMES or row.sender == "mcpspy":
            return []
        key = row.sender, row.session
        if key not in self._facts:
            self._facts[key] = self._gate.facts(row.sender, "lines", row.session)
        for gate in self._watching:
            gate.acted = False  # a frame that is too long is not passed to any gate
        self._gate.decide(row.raw, self._facts[key], row.t)
        return [gate.name for gate in self._watching if gate.acted]
