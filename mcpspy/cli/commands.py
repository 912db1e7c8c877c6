"""Every command but `wrap`: what it takes, and the module that does it."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from mcpspy import __version__
from mcpspy.errors import UsageError

_DESCRIPTION = """\
See what an MCP client and an MCP server say to each other.

  client  <-->  mcpspy wrap  <-->  server        everything passes byte for byte
                     |
                  capture                        one file: live view, bug report, regression test
"""


class _Parser(argparse.ArgumentParser):
    """Reports a mistake as UsageError, so that it ends like every other: one line, exit code 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def run(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; returns the exit status."""
    parser, commands = _parsers()
    if not arguments:
        if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
            parser.print_help()
            return 0
        arguments = ["tui"]
    if not arguments[0].startswith("-") and arguments[0] not in commands:
        near = get_close_matches(arguments[0], commands, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(commands)}"
        raise UsageError(f"there is no command {arguments[0]!r}; {hint}")
    options = parser.parse_args(arguments)
    module = importlib.import_module(f"mcpspy.cli.{options.command}")
    status: int = module.run(options)
    return status


def _parsers() -> tuple[argparse.ArgumentParser, list[str]]:
    parser = _Parser(
        prog="mcpspy",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mcpspy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    commands.add_parser(
        "wrap",
        help="run a stdio server behind this process and record what is said",
        add_help=False,
    )

    commands.add_parser(
        "demo",
        help="see what this is for",
        description="Watch a small weather server and a client talk through 'mcpspy wrap'.",
    )

    tui = commands.add_parser(
        "tui",
        help="watch captures in the terminal (also without a command)",
        description="Watch captures in the terminal: the sessions of a directory, or one of them; live ones grow.",
    )
    tui.add_argument("targets", nargs="*", metavar="CAPTURE|DIR", help="default: where wrap writes them")

    ls = commands.add_parser(
        "ls",
        help="list the captures",
        description="List the captures of a directory, live ones first.",
    )
    ls.add_argument("directory", nargs="?", metavar="DIR", help="default: where wrap writes them")
    ls.add_argument("--json", action="store_true", help="one JSON object a line")

    show = commands.add_parser(
        "show", help="print a capture as a timeline", description="Print a capture as a timeline."
    )
    show.add_argument("capture", metavar="CAPTURE")
    show.add_argument("--json", action="store_true", help="one JSON object a line, each with the whole message")
    show.add_argument("--follow", action="store_true", help="go on while the capture is live")

    prune = commands.add_parser(
        "prune", help="delete old captures", description="Delete old captures; never a live one."
    )
    prune.add_argument("directory", nargs="?", metavar="DIR", help="default: where wrap writes them")
    prune.add_argument("--older", metavar="AGE", help="those older than this: 90m, 12h, 30d, 8w")
    prune.add_argument("--keep", metavar="SIZE", help="the oldest, until the rest takes at most this: 500MB, 2GB")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")

    schema = commands.add_parser(
        "schema",
        help="the message shapes of each revision, and what changed",
        description="The message shapes of each revision of MCP, and what changed between two of them.",
    )
    what = schema.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=_Parser)
    what.add_parser("list", help="the revisions", description="List the revisions.")
    shape = what.add_parser(
        "show", help="a revision as JSON Schema", description="Print a revision, or a definition of it, as JSON Schema."
    )
    shape.add_argument("revision", metavar="REVISION")
    shape.add_argument("definition", nargs="?", metavar="DEFINITION")
    diff = what.add_parser(
        "diff", help="what changed", description="Print what came, went and changed from one revision to another."
    )
    diff.add_argument("old", metavar="OLD")
    diff.add_argument("new", metavar="NEW")
    return parser, list(commands.choices)
