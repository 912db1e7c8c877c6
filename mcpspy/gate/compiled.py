"""A gate as plain data: the frames that it names, and its action on them.

    {"name": "slow search",
     "when": {"from": "client", "kind": "request", "method": "tools/call", "name": "search*"},
     "action": {"delay": 2000000000, "drop": true},
     "after": 10, "times": 1, "chance": 0.2, "seed": 7, "reorder": true}

`when` is described in `mcpspy.gate.terms`, `action` in `mcpspy.gate.actions`. `after` skips the first matches, and
`times` limits the number of actions. `chance` depends only on the seed, the name and the number of the match, so it is
the same in every run. With `reorder`, frames behind a waiting frame do not wait for it.
"""

from _blake2 import blake2b  # the `hash` of a text differs from run to run

from mcpspy.gate.actions import GateAction
from mcpspy.gate.check import NAME, OBJECT, TRUE, bounded, check, fault_of, size_fault_of
from mcpspy.gate.gate import PASS
from mcpspy.gate.terms import When

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcpspy.gate.check import Allowed
    from mcpspy.gate.gate import Facts, Verdict

    Answerers = Mapping[str, Callable[[bytes], bytes | None]]
    """By the name of a gate: a function that returns the response to a request, or None to let the request pass."""


class DeclaredGate:
    """One gate. It counts its matches, so each relay needs its own object."""

    def __init__(self, gate: "dict[str, Any]", answerers: "Answerers | None" = None) -> None:
        """Raises ValueError for an unknown key and for an invalid value."""
        gate = {"name": None, "when": {}, "action": None} | gate
        self._name = gate["name"]
        self.by = f"gate {self._name}"
        check(self.by, "", gate, _KEYS)
        fault = size_fault_of(gate["when"]) or fault_of(gate["when"])
        if fault:
            raise ValueError(f"{self.by}: {fault}")
        self._when = When(self.by, gate["when"])
        self.follows = self._when.follows
        """Whether a response may match by the method or name of its request."""
        self.waits = not {"hold", "delay", "throttle"}.isdisjoint(gate["action"] or ())
        """Whether this gate may make frames wait."""
        self._action = GateAction(self.by, gate["action"], (answerers or {}).get(self._name), reorder="reorder" in gate)
        self._after, self._times = gate.get("after", 0), gate.get("times")
        self._chance, self._seed = gate.get("chance"), gate.get("seed", 0)
        self._matched = self._acted = 0
        fault = fault_of(gate)
        if fault:
            raise ValueError(f"{self.by}: {fault}")

    def wants(self, facts: "Facts") -> bool:
        """Return whether the frame has every word that this gate requires in its method and name."""
        return self._when.wants(facts)

    def matches(self, facts: "Facts") -> bool:
        """Return whether the gate names the frame; the number of its actions so far does not matter."""
        return self._when.fits(facts)

    def decide(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`. Raises ValueError if the action cannot be applied."""
        if not self._when.fits(facts):
            return PASS
        self._matched += 1
        spent = self._times is not None and self._acted >= self._times
        if spent or self._matched <= self._after or not self._drawn():
            return PASS
        self._acted += 1
        return self._action.verdict(frame, facts, t)

    def _drawn(self) -> bool:
        """Return whether chance selects this match."""
        if self._chance is None:
            return True
        drawn = blake2b(f"{self._seed} {self._matched} {self._name}".encode("utf-8", "replace"), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < float(self._chance) * (1 << 32)


_SEED = bounded("seed")
_KEYS: "dict[str, Allowed]" = {
    "name": NAME,
    "when": OBJECT,
    "action": OBJECT,
    "after": bounded("after"),
    "times": bounded("times"),
    "chance": ((lambda value: type(value) in (int, float) and 0 <= value <= 1), "a number from 0 to 1"),
    "seed": (
        (lambda value: type(value) is str or _SEED[0](value)),
        "a whole number or a text; a number has at most 63 bits",
    ),
    "reorder": TRUE,
}
