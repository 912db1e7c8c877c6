"""`mcpspy diff`: what changed from one capture to another."""

import argparse

from mcpspy.replay.compare.sessions import Ignored
from mcpspy.replay.script.load import script_of
from mcpspy.report.changes import FORMATS, examine


def run(options: argparse.Namespace) -> int:
    """Compare and report; returns 1 if something differs."""
    ignore = [Ignored.parse(text) for text in options.ignore]
    report = examine(script_of(options.old), script_of(options.new), ignore)
    print(FORMATS[options.format](report), end="")
    return 1 if report.differs else 0
