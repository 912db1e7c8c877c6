"""A real terminal, in tmux."""

import os
import shlex
import subprocess
import sys

from tests.limits import LIMIT
from tests.relay.harness import until

SHELL = "sh"


class Terminal:
    """A terminal of 100 by 24 cells with a shell. It types keys and returns the screen. It has its own tmux server."""

    def __init__(self, folder):
        self._tmux = ["tmux", "-L", f"mcpspy-{os.getpid()}", "-f", os.devnull]
        home = {"HOME": str(folder), "TMUX_TMPDIR": str(folder)}
        self._environ = home | {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self._run("new-session", "-d", "-x", "100", "-y", "24", "env", "PS1=ready ", "ENV=", SHELL)

    def _run(self, *arguments, check=True):
        command = [*self._tmux, *arguments]
        done = subprocess.run(command, capture_output=True, check=check, env=self._environ, timeout=LIMIT)
        return done.stdout.decode()

    def type(self, *keys):
        self._run("send-keys", *keys)

    def screen(self):
        return self._run("capture-pane", "-p")

    def shows(self, text):
        until(lambda: text in self.screen(), repr(text))

    def resize(self, width, height):
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def vanish(self):
        self._run("kill-pane")

    def alternate(self):
        return self._run("display-message", "-p", "#{alternate_on}").strip() == "1"

    def close(self):
        self._run("kill-server", check=False)


def mcpspy(*arguments, env=()):
    """Return a shell line that runs mcpspy."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return shlex.join(["env", f"PYTHONPATH={root}", *env, sys.executable, "-m", "mcpspy", *map(str, arguments)])
