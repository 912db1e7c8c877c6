"""`mcpspy diff`: the differences between two captures."""

import argparse

from mcpspy.cli.output import ProgressBar, size_of
from mcpspy.replay.script import script_of
from mcpspy.replay.sessions import Ignored
from mcpspy.report.differences import CHANGE_FORMATS, examine


def run_diff(options: argparse.Namespace) -> int:
    """Compare and report. Returns 1 if there is a difference."""
    ignore = [Ignored.parse(text) for text in options.ignore]
    paths = options.old, options.new
    with ProgressBar("reading", sum(map(size_of, paths))) as bar:
        old, new = (script_of(path, bar.advance) for path in paths)
    report = examine(old, new, ignore)
    print(CHANGE_FORMATS[options.format](report), end="")
    return 1 if report.differs else 0
