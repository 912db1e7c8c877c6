"""`mcpspy tui`: watch captures in the terminal, live ones growing."""

import argparse
import os

from mcpspy.capture.place import directory
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError
from mcpspy.tui.app import run as run_app


def run(options: argparse.Namespace) -> int:
    """Show the given captures and directories, or the capture directory."""
    for target in options.targets:
        if not os.path.exists(target):
            raise CaptureError(f"{target} does not exist; 'mcpspy ls' lists the captures there are")
        if not os.path.isdir(target):
            Capture(target)  # says what is wrong with it
    return run_app(options.targets or [directory(None, os.environ)])
