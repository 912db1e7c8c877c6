"""Every command but `wrap`: what it takes, and the module that does it."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from mcpspy import __version__
from mcpspy.errors import Error, UsageError
from mcpspy.secrets.redactor import shown

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
        words = [shown(word) if "@" in word else word for word in message.split(" ")]  # it may repeat what was given
        raise UsageError(f"{' '.join(words)}; see '{self.prog} --help'")


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
    server = []
    if arguments[0] in ("replay", "run") and "--" in arguments:  # argparse would take options of the server's for ours
        place = list(arguments).index("--")
        arguments, server = arguments[:place], list(arguments[place + 1 :])
    options = parser.parse_args(arguments, argparse.Namespace(server=server))
    module = importlib.import_module(f"mcpspy.cli.{options.command}")
    try:
        status: int = module.run(options)
    except (Error, OSError):
        raise
    except Exception as error:
        from mcpspy.cli.faults import sentence  # it reads captures, which most commands do not fail over

        raise Error(sentence(error, options)) from error
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

    proxy = commands.add_parser(
        "proxy",
        help="stand between HTTP clients and a server and record what is said",
        description="Stand between HTTP clients and one or several MCP servers, and record what is said.",
        epilog="It prints the URL to put into the client. Ctrl-C ends it.",
    )
    proxy.add_argument("url", nargs="?", metavar="URL", help="the server's URL, as the client has it now")
    proxy.add_argument(
        "--listen", default="127.0.0.1:6278", metavar="HOST:PORT", help="default: %(default)s; 0: any port"
    )
    proxy.add_argument("--name", metavar="NAME", help="what to call the server (default: its host)")
    proxy.add_argument("-o", dest="output", metavar="FILE", help="write the capture to FILE, replacing a finished one")
    proxy.add_argument("--capture-dir", dest="folder", metavar="DIR", help="write it into DIR")
    proxy.add_argument(
        "--max-capture", dest="limit", metavar="SIZE", help="go on in a new file from this size on: 500MB"
    )
    proxy.add_argument(
        "--route", action="append", default=[], metavar="NAME=URL", help="let /NAME/ lead to a server; repeatable"
    )
    proxy.add_argument(
        "--from",
        dest="clients",
        action="append",
        default=[],
        metavar="CLIENT",
        help="serve the routes that 'install CLIENT' made; repeatable",
    )
    proxy.add_argument(
        "--allow-host", action="append", default=[], metavar="HOST", help="accept HOST in Host and Origin; repeatable"
    )
    proxy.add_argument("--preserve-host", action="store_true", help="forward the client's Host and Origin as they are")
    proxy.add_argument("--ca", metavar="FILE", help="also trust the certificates in FILE")
    proxy.add_argument("--insecure", action="store_true", help="accept any certificate")
    proxy.add_argument(
        "--rewrite-oauth",
        action="store_true",
        help="let the server's OAuth metadata name this proxy; helps some logins",
    )

    mitm = commands.add_parser(
        "mitm",
        help="stand between clients and HTTPS servers whose URL cannot be changed",
        description="Be the proxy of clients that dial an HTTPS server themselves, and record what of it is MCP.",
        epilog="It prints its own URL. Ctrl-C ends it. Each server gets a capture of its own.",
    )
    mitm.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="HOST",
        help="decrypt what goes to HOST, '*.example.com' or HOST:PORT; all else passes untouched; repeatable",
    )
    mitm.add_argument(
        "--listen", default="127.0.0.1:6279", metavar="HOST:PORT", help="default: %(default)s; 0: any port"
    )
    mitm.add_argument(
        "--mode",
        default="regular",
        metavar="MODE",
        help="regular (default), upstream:URL behind another proxy, reverse:URL, socks5, local or local:PROGRAM",
    )
    mitm.add_argument("--all-http", action="store_true", help="record what is not MCP too")
    mitm.add_argument("--ca", metavar="FILE", help="also trust the certificates in FILE, of servers")
    mitm.add_argument("--insecure", action="store_true", help="accept any certificate of a server")
    mitm.add_argument("--capture-dir", dest="folder", metavar="DIR", help="write the captures into DIR")
    mitm.add_argument(
        "--max-capture", dest="limit", metavar="SIZE", help="go on in a new file from this size on: 500MB"
    )

    client = commands.add_parser(
        "run",
        help="start a client that goes through 'mcpspy mitm'",
        usage="mcpspy run [--proxy HOST:PORT] -- COMMAND [ARG...]",
        description="Start a client with the environment that leads it through 'mcpspy mitm', and lets it trust it.",
    )
    client.add_argument(
        "--proxy", default="127.0.0.1:6279", metavar="HOST:PORT", help="where mitm listens (default: %(default)s)"
    )
    client.add_argument("without_dashes", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    authority = commands.add_parser(
        "ca",
        help="the certificate authority of 'mitm'",
        description="The certificate authority of 'mcpspy mitm', in ~/.mcpspy/ca; the system's store is left alone.",
    )
    what = authority.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=_Parser)
    export = what.add_parser("export", help="its certificate as PEM", description="Print its certificate as PEM.")
    export.add_argument("file", nargs="?", metavar="FILE", help="write it to FILE")
    what.add_parser(
        "env", help="what makes clients trust it", description="Print the variables that make clients trust it."
    )
    what.add_parser(
        "status", help="what there is", description="Say where it is, until when, and who can read its key."
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
    tui.add_argument(
        "--web",
        nargs="?",
        const="127.0.0.1:6280",
        metavar="HOST:PORT",
        help="in a browser (default: 127.0.0.1:6280); needs the extra mcpspy[web]",
    )

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
    show.add_argument("--filter", metavar="EXPR", help="only what fits: 'status:error latency:>1s' (docs/filters.md)")

    check = commands.add_parser(
        "check",
        help="find what is wrong in captures",
        description="Find what client and server did wrong, by the revision of MCP that they speak.",
    )
    check.add_argument("captures", nargs="+", metavar="CAPTURE|DIR", help="of a directory: its *.jsonl")
    check.add_argument(
        "--as", dest="revision", metavar="REVISION", help="judge by another revision: what a migration has to change"
    )
    check.add_argument(
        "--fail-on", default="error", metavar="SEVERITY", help="exit 1 from error, warning or info on; never"
    )
    check.add_argument("--ignore", action="append", default=[], metavar="RULE", help="or 'group/*'; repeatable")
    check.add_argument("--waivers", metavar="FILE", help="findings that are accepted, and why (TOML)")
    check.add_argument("--format", default="text", metavar="FORMAT", help="text, json, junit, sarif or github")
    check.add_argument("--output", metavar="FILE", help="write the report to FILE")
    check.add_argument("--follow", action="store_true", help="print findings as they come while a capture is live")

    rules = commands.add_parser(
        "rules", help="what is checked", description="List the rules, or explain one of them with examples."
    )
    rules.add_argument("rule", nargs="?", metavar="RULE")

    prune = commands.add_parser(
        "prune", help="delete old captures", description="Delete old captures; never a live one."
    )
    prune.add_argument("directory", nargs="?", metavar="DIR", help="default: where wrap writes them")
    prune.add_argument("--older", metavar="AGE", help="those older than this: 90m, 12h, 30d, 8w")
    prune.add_argument("--keep", metavar="SIZE", help="the oldest, until the rest takes at most this: 500MB, 2GB")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")

    bring = commands.add_parser(
        "import",
        help="make captures of what mitmproxy, a browser, the Inspector, … recorded",
        description="Make a capture for each server of a file that another program recorded, and print where it lies.",
        epilog="What it reads: docs/import.md.",
    )
    bring.add_argument("file", metavar="FILE")
    bring.add_argument("--capture-dir", dest="folder", metavar="DIR", help="write the captures into DIR")
    bring.set_defaults(command="import_")  # `import` is no name of a module

    mock = commands.add_parser(
        "mock",
        help="be the server that a capture has recorded",
        description="Be the server that captures have recorded, on stdin and stdout or over HTTP.",
        epilog="Exit status 1: the client asked what was not recorded, or answered otherwise.",
    )
    mock.add_argument("captures", nargs="+", metavar="CAPTURE")
    mock.add_argument("--listen", metavar="HOST:PORT", help="over HTTP, until Ctrl-C; it prints the URL; 0: any port")
    mock.add_argument(
        "--pace", choices=("fast", "recorded"), default="fast", help="answer at once (default), or as slowly as then"
    )
    mock.add_argument("--loose", action="store_true", help="where params differ, go by method and name; said each time")

    replay = commands.add_parser(
        "replay",
        help="be the client that a capture has recorded, and compare",
        usage="mcpspy replay CAPTURE [OPTION...] (--url URL | -- COMMAND [ARG...])",
        description="Say to a server what the client of a capture said, and compare what it answers.",
        epilog="Options may also stand in NAME.replay.toml beside NAME.jsonl. Exit status 1: something differs.",
    )
    replay.add_argument("capture", metavar="CAPTURE")
    replay.add_argument("--url", metavar="URL", help="the server's URL, instead of its command")
    replay.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent with each request")
    replay.add_argument("-o", dest="new", metavar="FILE", help="keep the new session as a capture")
    replay.add_argument(
        "--ignore", action="append", default=[], metavar="POINTER", help="'[METHOD [NAME]] /POINTER', * for any step"
    )
    replay.add_argument("--learn", type=int, metavar="N", help="run N times, and propose what to ignore")
    replay.add_argument("--shape", action="store_true", help="compare the structure of the answers alone")
    replay.add_argument("--read-only", action="store_true", help="skip calls of tools without readOnlyHint")
    replay.add_argument("--strict", action="store_true", help="compare log messages too")
    replay.add_argument("--update", action="store_true", help="accept: let the new session be the capture")
    replay.add_argument("--format", choices=("text", "json", "junit", "github"), default="text")
    replay.add_argument("--output", metavar="FILE", help="write the report to FILE")

    compare = commands.add_parser(
        "diff",
        help="what changed from one capture to another",
        description="Compare two captures of a server: what it offers, what it answered, how long it took.",
        epilog="Exit status 1: something differs.",
    )
    compare.add_argument("old", metavar="A")
    compare.add_argument("new", metavar="B")
    compare.add_argument(
        "--ignore", action="append", default=[], metavar="POINTER", help="'[METHOD [NAME]] /POINTER', * for any step"
    )
    compare.add_argument("--format", choices=("text", "json"), default="text")

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

    install = commands.add_parser(
        "install",
        help="wrap the servers of an MCP client",
        description="Put mcpspy in front of servers in the configuration of an MCP client; 'uninstall' undoes it.",
    )
    uninstall = commands.add_parser(
        "uninstall",
        help="undo 'install'",
        description="Take mcpspy away from servers in the configuration of an MCP client.",
    )
    for command, verb in ((install, "wrap"), (uninstall, "unwrap")):
        command.add_argument("client", metavar="CLIENT", help="cursor, claude-desktop, claude-code, vscode, …")
        command.add_argument("servers", nargs="*", default=[], metavar="SERVER", help=f"what to {verb} (default: all)")
        command.add_argument("--scope", metavar="SCOPE", help="only the servers of the user, project or local scope")
        command.add_argument("--dry-run", action="store_true", help="only print the changes")

    status = commands.add_parser(
        "status",
        help="which servers of which clients are wrapped",
        description="List the servers of all MCP clients, whether they are wrapped, and their captures.",
    )
    status.add_argument("--json", action="store_true", help="one JSON object a line")

    doctor = commands.add_parser(
        "doctor",
        help="find out why nothing appears",
        description="Do what an MCP client would do with its servers, and say what does not work and what to do.",
    )
    doctor.add_argument("target", nargs="?", metavar="CLIENT|SERVER", help="default: every client that is there")
    return parser, list(commands.choices)
