"""`mcpspy verify`: where its scripted peers stand, and how they are started."""

import os
import sys

HERE = os.path.join(os.path.dirname(__file__), "..", "..", "peers", "verify")
PYTHON = [sys.executable, "-I", "-S"]
"""Starts quickly, and takes nothing from its environment."""
SERVER = os.path.join(HERE, "server.py")
WRAPPER = os.path.join(HERE, "wrapper.py")
