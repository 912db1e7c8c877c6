"""`mcpspy verify`: the paths of its scripted peers, and the command that starts them."""

import os
import sys

HERE = os.path.join(os.path.dirname(__file__), "..", "..", "peers", "verify")
PYTHON = [sys.executable, "-I", "-S"]
"""This Python, started quickly and without influence of the environment."""
SERVER = os.path.join(HERE, "server.py")
WRAPPER = os.path.join(HERE, "wrapper.py")
