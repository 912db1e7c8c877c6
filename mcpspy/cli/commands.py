"""The table of commands, and how to run one. The module of a command is imported only when the command runs.

The module has `arguments(parser)`, which declares the arguments, and `run(options)`, which returns the exit status.
`wrap` parses its few options itself and does not use this module (`mcpspy.cli`).
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcpspy import __version__
from mcpspy.capture.location import directory
from mcpspy.errors import McpspyError, UsageError

if TYPE_CHECKING:
    from types import ModuleType


class Subcommand(NamedTuple):
    """One command: its name, a short description, and its module in `mcpspy.cli` if that has another name."""

    name: str
    help: str
    module: str | None = None


GROUPS = {
    "Record": (
        Subcommand("wrap", "run a stdio server and record its traffic"),
        Subcommand("proxy", "proxy and record HTTP traffic"),
        Subcommand("mitm", "decrypt and record HTTPS traffic of clients whose URL is fixed"),
        Subcommand("run", "start a client behind 'mcpspy mitm'"),
    ),
    "Look": (
        Subcommand("tui", "browse captures in the terminal; 'mcpspy' alone lists all"),
        Subcommand("why", "say what failed, and why"),
        Subcommand("show", "print a capture as a timeline"),
        Subcommand("ls", "list captures"),
        Subcommand("stats", "count what servers, tools and clients do"),
        Subcommand("sql", "query captures with SQL"),
        Subcommand("mcp", "serve captures to agents as an MCP server"),
        Subcommand("prune", "delete old captures"),
        Subcommand("demo", "run a sample session"),
    ),
    "Check": (
        Subcommand("check", "find protocol violations in captures"),
        Subcommand("verify", "prove that mcpspy is transparent in front of a server"),
        Subcommand("rules", "list the rules of 'check', or explain one"),
        Subcommand("lock", "write a lock file of what servers offer"),
        Subcommand("schema", "print and compare the message schemas of MCP revisions"),
    ),
    "Replay": (
        Subcommand("mock", "serve a capture as a mock server"),
        Subcommand("replay", "replay a capture against a server and report differences"),
        Subcommand("diff", "compare two captures of a server"),
    ),
    "Share": (
        Subcommand("share", "write a capture as one HTML page without secrets"),
        Subcommand("scrub", "remove secrets and personal data from a capture"),
        Subcommand("import", "make captures from recordings of other programs", "import_"),
        Subcommand("export", "convert captures: HAR, Mermaid, Perfetto, CSV, Parquet"),
        Subcommand("otel", "send captures to an OpenTelemetry collector"),
    ),
    "Set up": (
        Subcommand("install", "wrap the servers of an MCP client"),
        Subcommand("uninstall", "undo 'install'"),
        Subcommand("status", "list the servers of all MCP clients"),
        Subcommand("doctor", "diagnose why no session appears"),
        Subcommand("completion", "print the completion script of bash, zsh or fish"),
        Subcommand("ca", "manage the certificate authority of 'mitm'"),
    ),
}
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
        "\n".join([f"{title}:", *(f"  {command.name:<{width}}  {command.help}" for command in group)])
        for title, group in GROUPS.items()
    ]
    return "\n".join([_HEAD, *(f"{group}\n" for group in groups), _FOOT])


def run(arguments: Sequence[str]) -> int:
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
    return _run(name, importlib.import_module(f"mcpspy.cli.{COMMANDS[name].module or name}"), rest)


def _unknown(name: str) -> str:
    """Return the error for a first word that is neither a command nor a global option."""
    import shlex  # only a mistake needs these two
    from difflib import get_close_matches

    kind, known, otherwise = "command", tuple(COMMANDS), f"the commands are {', '.join(COMMANDS)}"
    if name.startswith("-"):
        kind, known, otherwise = "option", ("--help", "--version"), "see 'mcpspy --help'"
    elif os.path.isfile(name):
        return f"there is no {kind} {name!r}; to open this file: mcpspy tui {shlex.quote(name)}"
    near = get_close_matches(name, known, n=1)
    return f"there is no {kind} {name!r}; {f'did you mean {near[0]!r}?' if near else otherwise}"


def _installation() -> str:
    from mcpspy.cli.versions import report  # imported here, so that '--version' stays fast

    return report()


def _run(name: str, module: "ModuleType", arguments: Sequence[str]) -> int:
    import argparse  # imported here: the help of all commands does not need it

    from mcpspy.cli.arguments import Parser

    parser = Parser(prog=f"mcpspy {name}")
    module.arguments(parser)
    given = argparse.Namespace(command=name)
    if parser.get_default("server") is not None and "--" in arguments:  # the rest is another program's command line
        place = arguments.index("--")
        given.server, arguments = list(arguments[place + 1 :]), arguments[:place]
    options = parser.parse(arguments, given)
    try:
        status: int = module.run(options)
    except (McpspyError, OSError):
        raise
    except Exception as error:
        from mcpspy.cli.faults import sentence  # it imports the reader of captures, which most commands do not need

        raise McpspyError(sentence(error, options)) from error
    return status
