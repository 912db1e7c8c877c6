"""`mcpspy wrap` with gates that are already compiled, which looks for viewers all the time.

`gated_wrap.py GATES wrap -o CAPTURE -- COMMAND...`. GATES is a JSON array of compiled gates; viewers can set others. A
gate called `raises` raises an exception.
"""

import json
import os
import sys

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.process.child import environment, spawn
from mcpspy.relay import control
from mcpspy.relay.stdio import gated
from mcpspy.relay.stdio.relay import run

SOON = 0.01
decide = DeclaredGate.decide


def raising(gate, frame, facts, t):
    if gate.by == "gate raises":
        raise RuntimeError("a bug")
    return decide(gate, frame, facts, t)


def main(gates, _wrap, _output, capture, _end, *command):
    DeclaredGate.decide = raising
    control.INTERVAL = gated.INTERVAL = 0
    gated.IDLE = gated.CONTROLLED = SOON
    environ = environment()
    server = spawn(list(command), environ)
    options = {"name": None, "output": capture, "folder": None, "check": False}
    os._exit(run(server, list(command), environ, **options, gates=json.loads(gates), control=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
