"""`mcpspy proxy` with gates of a file that is compiled already: `gated_proxy.py GATES proxy ...`.

GATES is a JSON array of compiled gates.
"""

import functools
import json
import sys

from mcpspy import cli
from mcpspy.cli import proxy
from mcpspy.relay.http.listener import Relay

if __name__ == "__main__":
    proxy.Relay = functools.partial(Relay, gates=json.loads(sys.argv.pop(1)))
    sys.exit(cli.main())
