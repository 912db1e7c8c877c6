"""The client of `session.txt`: `client.py -- COMMAND ARG...` starts COMMAND, speaks and closes its stdin.

Like the SDKs' clients, it passes only a few variables of its environment to COMMAND.
"""

import os
import subprocess
import sys

from play import play

environ = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
with subprocess.Popen(sys.argv[2:], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
    play(b">", b"<", server.stdout, server.stdin)
sys.exit(server.returncode)
