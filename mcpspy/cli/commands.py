"""The table of commands, and how to run one. The module of a command is imported only when the command runs.

Its function, which the table of its arguments names (`mcpspy.cli.options`), takes the options and returns the exit
status. `wrap` parses its few options itself and does not use this module (`mcpspy.cli`).
"""

import os
import sys

from mcpspy import __version__
from mcpspy.capture.location import directory
from mcpspy.cli.options import Command
from mcpspy.cli.options.check import CHECK
from mcpspy.cli.options.look import LOOK
from mcpspy.cli.options.record import RECORD
from mcpspy.cli.options.replay import REPLAY
from mcpspy.cli.options.set_up import SET_UP
from mcpspy.cli.options.share import SHARE
from mcpspy.errors import McpspyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = {"Record": RECORD, "Look": LOOK, "Check": CHECK, "Replay": REPLAY, "Share": SHARE, "Set up": SET_UP}
"""The commands by task, in the order of `mcpspy --help`."""
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
"""The commands by name."""

_HEAD = """\
usage: mcpspy [COMMAND] [ARGUMENT...]

See what an MCP client and an MCP server send to each other.

  client  <-->  mcpspy wrap  <-->  server     every byte is forwarded unchanged
                     |
                  capture                     one file for the live view, the
                                              bug report, the regression test
"""
_FOOT = """\
Options:
  -h, --help  show this help; 'mcpspy COMMAND --help' describes a command
  --version   show the version; '--version --verbose' adds all for a bug report
"""


def overview() -> str:
    """Return the output of `mcpspy --help`."""
    width = max(map(len, COMMANDS))
    groups = [
        "\n".join([f"{title}:", *(f"  {command.name:<{width}}  {command.text}" for command in group)])
        for title, group in GROUPS.items()
    ]
    return "\n".join([_HEAD, *(f"{group}\n" for group in groups), _FOOT])


def run(arguments: "Sequence[str]") -> int:
    """Run the command that `arguments` name, and return the exit status."""
    if not arguments:
        on_terminal = sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()
        arguments = ["tui", directory(None, os.environ)] if on_terminal else ["--help"]
    name, *rest = arguments
    if name in ("-h", "--help"):
        print(overview(), end="")
        return 0
    if name == "--version":
        print(_installation() if rest == ["--verbose"] else f"mcpspy {__version__}")
        return 0
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    return _run(COMMANDS[name], rest)


def _unknown(name: str) -> str:
    """Return the error for a first word that is neither a command nor a global option."""
    import shlex  # only a mistake needs these two

    from mcpspy.text import suggestion

    kind, known, otherwise = "command", tuple(COMMANDS), f"the commands are {', '.join(COMMANDS)}"
    if name.startswith("-"):
        kind, known, otherwise = "option", ("--help", "--version"), "see 'mcpspy --help'"
    elif os.path.isfile(name):
        return f"there is no {kind} {name!r}; to open this file: mcpspy tui {shlex.quote(name)}"
    return f"there is no {kind} {name!r}; {suggestion(name, known, otherwise)}"


def _installation() -> str:
    from mcpspy.cli.installation import report  # imported here, so that '--version' stays fast

    return report()


def _run(command: Command, arguments: "Sequence[str]") -> int:
    import argparse  # imported here: the help of all commands does not need these
    import importlib

    from mcpspy.capture.copies import report_damage
    from mcpspy.cli.arguments import Parser
    from mcpspy.cli.output import say

    given = argparse.Namespace(command=command.name)
    if command.server:
        given.server = []
        if "--" in arguments:  # the rest is another program's command line
            place = arguments.index("--")
            given.server, arguments = list(arguments[place + 1 :]), arguments[:place]
    options = Parser(command).parse(arguments, given)
    module = importlib.import_module(f"mcpspy.cli.{command.module}")
    if command.name != "tui":  # its screen shows the gap
        report_damage(say)
    try:
        status: int = getattr(module, command.function)(options)
    except (McpspyError, OSError):
        raise
    except Exception as error:
        from mcpspy.cli.faults import sentence  # it imports the reader of captures, which most commands do not need

        raise McpspyError(sentence(error, options)) from error
    return status
