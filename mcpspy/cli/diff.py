"""`mcpspy diff`: the differences between two captures."""

import argparse

from mcpspy.cli.arguments import choice
from mcpspy.cli.progress import ProgressBar, size_of
from mcpspy.replay.compare.sessions import Ignored
from mcpspy.replay.script.load import script_of
from mcpspy.report.changes import FORMATS, examine


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.description = "Compare two captures of a server: its tools, prompts and resources, its answers, its latency."
    parser.epilog = "Exit status 1: something differs."
    parser.add_argument("old", metavar="A")
    parser.add_argument("new", metavar="B")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="POINTER",
        help="ignore differences at this JSON pointer, such as /result/content/*/text (docs/replay.md); repeatable",
    )
    choice(parser, "--format", tuple(FORMATS), "format of the report", "FORMAT")


def run(options: argparse.Namespace) -> int:
    """Compare and report. Returns 1 if there is a difference."""
    ignore = [Ignored.parse(text) for text in options.ignore]
    paths = options.old, options.new
    with ProgressBar("reading", sum(map(size_of, paths))) as bar:
        old, new = (script_of(path, bar.advance) for path in paths)
    report = examine(old, new, ignore)
    print(FORMATS[options.format](report), end="")
    return 1 if report.differs else 0
