"""`mcpspy mitm` with gates of a file that is compiled already: `gated_mitm.py GATES mitm ...`.

GATES is a JSON array of compiled gates; one called `raises` has a bug, one called `refuses 503` answers with a status.
"""

import functools
import json
import sys

from mcpspy import cli
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.verdicts import Refuse, Reply
from mcpspy.relay import live_gate
from mcpspy.relay.mitm import master


class Told(DeclaredGate):
    """A gate whose name says what it does besides."""

    def __init__(self, gate, answerers=None):
        super().__init__(gate)
        self._told = gate["name"].split()

    def decide(self, frame, facts, t):
        if self._told[0] == "raises":
            raise RuntimeError("a bug")
        verdict = super().decide(frame, facts, t)
        refuses = self._told[0] == "refuses" and isinstance(verdict, Reply)
        return Refuse(int(self._told[1]), verdict.by) if refuses else verdict


if __name__ == "__main__":
    live_gate.DeclaredGate = Told
    master.run = functools.partial(master.run, gates=json.loads(sys.argv.pop(1)))
    sys.exit(cli.main())
