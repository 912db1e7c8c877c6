"""`mcpspy rules`: list the rules, or explain one."""

import argparse

from mcpspy.cli.output import line_width
from mcpspy.errors import UsageError
from mcpspy.report.catalogue import explanation, overview
from mcpspy.report.waivers import no_rule
from mcpspy.rules import RULES, current

_WIDEST = 100  # maximum width of prose on a terminal, in columns


def run_rules(options: argparse.Namespace) -> int:
    """Print the table, or the requested rule."""
    width = min(line_width(0), _WIDEST)
    if options.rule is None:
        print(overview(width), end="")
        return 0
    name = current(options.rule)
    if name not in RULES:
        raise UsageError(no_rule(name))
    print(explanation(RULES[name], width), end="")
    return 0
