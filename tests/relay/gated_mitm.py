"""`mcpspy mitm` with a gate, which the command line does not offer yet: `gated_mitm.py GATES mitm ...`.

GATES is a JSON array of compiled gates; one called `raises` has a bug.
"""

import functools
import json
import sys

from mcpspy import cli
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate
from mcpspy.relay.mitm import master


class Raising(DeclaredGate):
    """A gate with a bug."""

    def decide(self, frame, facts, t):
        raise RuntimeError("a bug")


def say(sentence):
    print(f"mcpspy: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    gates = json.loads(sys.argv.pop(1))
    gate = Gate([(Raising if it["name"] == "raises" else DeclaredGate)(it) for it in gates], say)
    master.run = functools.partial(master.run, gate=gate)
    sys.exit(cli.main())
