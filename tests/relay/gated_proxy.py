"""`mcpspy proxy` with a gate, which the command line does not offer yet: `gated_proxy.py GATES proxy ...`.

GATES is a JSON array of compiled gates.
"""

import functools
import json
import sys

from mcpspy import cli
from mcpspy.cli import proxy
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate
from mcpspy.relay.http.listener import Relay


def say(sentence):
    print(f"mcpspy: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    gate = Gate([DeclaredGate(it) for it in json.loads(sys.argv[1])], say)
    proxy.Relay = functools.partial(Relay, gate=gate)
    del sys.argv[1]
    sys.exit(cli.main())
