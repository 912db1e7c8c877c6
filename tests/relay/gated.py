"""`mcpspy wrap` with a gate, which the command line does not offer yet: `gated.py CAPTURE GATES COMMAND...`.

GATES is a JSON array of compiled gates; one called `raises` has a bug.
"""

import json
import os
import sys

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate
from mcpspy.process.child import environment, spawn
from mcpspy.relay.stdio.relay import run, say_aside


class Raising(DeclaredGate):
    """A gate with a bug."""

    def decide(self, frame, facts, t):
        raise RuntimeError("a bug")


def main(capture, gates, *command):
    deciders = [(Raising if gate["name"] == "raises" else DeclaredGate)(gate) for gate in json.loads(gates)]
    environ = environment()
    server = spawn(list(command), environ)
    gate = Gate(deciders, say_aside)
    os._exit(run(server, list(command), environ, name=None, output=capture, folder=None, check=False, gate=gate))


if __name__ == "__main__":
    main(*sys.argv[1:])
