"""`mcpspy proxy` with gates that are already compiled: `gated_proxy.py GATES proxy ...`.

GATES is a JSON array of compiled gates; `told.py` describes names with a special meaning.
"""

import json
import sys

import told

from mcpspy import cli
from mcpspy.cli import proxy
from mcpspy.relay.http.listener import Relay

if __name__ == "__main__":
    told.install()
    gates = json.loads(sys.argv.pop(1))
    proxy.Relay = lambda *given, **named: Relay(*given, **(named | {"gates": gates}))
    sys.exit(cli.main())
