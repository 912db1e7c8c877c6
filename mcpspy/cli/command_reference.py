"""The reference of all commands and their options, as Markdown: `scripts/write-rules` writes it to docs/commands.md.

The reference is made from the parsers. The help output of `argparse` differs between versions of Python, so the tables
are made here.
"""

import argparse
from collections.abc import Iterator

from mcpspy.cli.commands import GROUPS
from mcpspy.cli.completion_table import declared_actions, help_of, parser_of
from mcpspy.cli.wrap import HELP

_TITLE = """\
# Commands

Every command with all its options, as `mcpspy COMMAND --help` prints them. `mcpspy` alone shows the list of captures in
the terminal. `mcpspy --version --verbose` prints what belongs in a bug report. `scripts/write-rules` writes this page;
do not edit it.

A *frame* is one unit of the traffic as it was received: usually one message. An *exchange* is a request with its
response. `tui`, `show` and `check` use the newest capture if you give none, and print its path on stderr. Captures go
to the first of these that is given: `-o FILE`, `--capture-dir`, `$MCPSPY_CAPTURE_DIR`; otherwise to
`~/.mcpspy/captures`.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | see the next table |
| 2 | wrong usage, unreadable input, or a bug in mcpspy that stopped a check; stderr has the reason |
| 130 | interrupted by Ctrl-C |

| command | exit status 1 means |
|---|---|
| `check` | there is a finding at or above `--fail-on`, or a waiver that matches no finding |
| `diff`, `replay`, `verify` | something differs |
| `doctor` | there is a problem |
| `install`, `uninstall` | a server in the client's configuration could not be changed |
| `lock` | the servers differ from the lock file, and `--update` is not given |
| `mock` | a request of the client is not in the capture, or an answer of the client differs from it |
| `scrub --check` | there are secrets or personal data, or a waiver that matches none |
| `scrub`, `share` | you answered no, and nothing was written |
| `ca status` | there is no certificate authority yet, or others can read its key |

`wrap` exits with the exit status of the server, or ends by the same signal. 127 means that the command was not found,
126 that it cannot be executed. `wrap` adds nothing to the server's stdout. To stderr it writes only:

- errors in its options or in the gate file,
- that the command cannot be started,
- that the capture cannot be written, or has another name because the file of `-o` exists and is not a finished
  capture,
- the reports of `--check` and `--reload`.
"""
_OWN_HELP = ("-h", "--help")


def document() -> str:
    """Return the page."""
    parts = [_TITLE]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        for command in group:
            parts.append(f"### mcpspy {command.name}\n")
            if command.name == "wrap":  # wrap parses its options itself
                parts.append(f"```text\n{HELP.strip()}\n```\n")
            else:
                parts += _sections(parser_of(command.name))
    return "\n".join(parts)


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the synopsis, the description and the options of a command, then of its subcommands."""
    actions = list(declared_actions(parser))
    options = [it for it in actions if it.option_strings and it.option_strings[0] not in _OWN_HELP]
    inner = next((it for it in actions if it.nargs == argparse.PARSER), None)
    yield f"```text\n{_synopsis(parser, options, actions)}\n```\n"
    if parser.description:
        yield parser.description + "\n"
    if parser.epilog and inner is None:
        yield f"```text\n{parser.epilog.strip()}\n```\n" if "\n" in parser.epilog else parser.epilog + "\n"
    rows = [
        f"| `{_cell(_placeholder(it))}` | {_cell(help_of(it))} |" for it in actions if not it.option_strings and it.help
    ]
    rows += [f"| `{_cell(_option(it))}` | {_cell(help_of(it))} |" for it in options]
    if rows and inner is None:
        yield "\n".join(["| option | effect |", "|---|---|", *rows]) + "\n"
    if inner is not None and isinstance(inner.choices, dict):
        for name, subcommand in inner.choices.items():
            yield f"#### {parser.prog} {name}\n"
            yield from _sections(subcommand)


def _synopsis(parser: argparse.ArgumentParser, options: list[argparse.Action], actions: list[argparse.Action]) -> str:
    if parser.usage:
        return parser.usage.replace("\n       ", "\n")
    words = [parser.prog, *(["[OPTION]..."] if options else [])]
    words += [_placeholder(action) for action in actions if not action.option_strings]
    return " ".join(words)


def _placeholder(action: argparse.Action) -> str:
    """Return the text for a positional argument, such as `[CAPTURE]...`."""
    name = "SUBCOMMAND" if action.nargs == argparse.PARSER else str(action.metavar or action.dest).upper()
    form = {"?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}
    return form.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    value = action.metavar or action.dest.upper()
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
