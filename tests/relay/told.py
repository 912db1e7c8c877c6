"""Gates with an extra effect that their name selects (`raises`, `refuses 503`), for the programs in this folder."""

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Hold, Refuse, Reply
from mcpspy.relay import control, live_gate


class Told(DeclaredGate):
    """A compiled gate; `raises` raises an exception, and `refuses` refuses with an HTTP status instead of a reply."""

    def __init__(self, gate, answerers=None):
        super().__init__(gate)
        self._told = gate["name"].split()

    def decide(self, frame, facts, t):
        if self._told[0] == "raises":
            raise RuntimeError("a bug")
        verdict = super().decide(frame, facts, t)
        if self._told[0] == "refuses" and isinstance(verdict, Hold):
            verdict.then = Refuse(int(self._told[1]), verdict.by)
        elif self._told[0] == "refuses" and isinstance(verdict, Reply):
            verdict = Refuse(int(self._told[1]), verdict.by)
        return verdict


def install():
    """Make relays use these gates, and look for viewers before each head and frame."""
    control.INTERVAL = 0
    live_gate.DeclaredGate = Told
