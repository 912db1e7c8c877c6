"""`mcpspy mitm` with gates that are already compiled: `gated_mitm.py GATES mitm ...`.

GATES is a JSON array of compiled gates; `told.py` describes names with a special meaning.
"""

import json
import sys

import told

from mcpspy import cli
from mcpspy.relay.mitm import master

if __name__ == "__main__":
    told.install()
    gates, run = json.loads(sys.argv.pop(1)), master.run
    master.run = lambda *given, **named: run(*given, **(named | {"gates": gates}))
    sys.exit(cli.main())
