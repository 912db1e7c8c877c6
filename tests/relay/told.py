"""Gates whose name says what they do besides, for programs in this folder: `raises` and `refuses 503`."""

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.verdicts import Hold, Refuse, Reply
from mcpspy.relay import live_gate


class Told(DeclaredGate):
    """`raises` has a bug; `refuses` answers with a status what it would answer otherwise."""

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
    """Have relays use them."""
    live_gate.DeclaredGate = Told
