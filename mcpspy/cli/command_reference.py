"""The reference of all commands and their options, as Markdown: `scripts/write-rules` writes it to docs/commands.md.

It is made from the parsers. The help of `argparse` differs between versions of Python, so the tables are made here.
"""

import argparse
from collections.abc import Iterator

from mcpspy.cli.commands import GROUPS
from mcpspy.cli.completion_table import declared_actions, help_of, parser_of
from mcpspy.cli.wrap import HELP

_TITLE = """\
# Commands

Every command with all its options. `mcpspy COMMAND --help` prints the same. `scripts/write-rules` writes
this page; do not edit it.

`tui`, `show` and `check` use the newest capture if you give none, and print its path on stderr. Captures go to
`-o FILE`, to `--capture-dir`, to `$MCPSPY_CAPTURE_DIR`, or to `~/.mcpspy/captures`.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | findings at or above `--fail-on`, a stale waiver, differences, or requests that a mock had no answer for |
| 2 | wrong usage, unreadable input, or a bug in mcpspy that stopped a check |

With exit status 2, stderr has one line with the reason.

`wrap` ends like the server: with its exit status, or by its signal. 127 means that the command was not found, 126 that
it cannot be executed. `wrap` writes nothing to stdout. It writes to stderr only if the capture cannot be written or got
another name, if the command cannot be started, or if `--check` or `--reload` has something to report.
"""
_OWN_HELP = ("-h", "--help")


def document() -> str:
    """The page."""
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
    """The synopsis, the description and the options of a command, then of its subcommands."""
    actions = list(declared_actions(parser))
    options = [it for it in actions if it.option_strings and it.option_strings[0] not in _OWN_HELP]
    inner = next((it for it in actions if it.nargs == argparse.PARSER), None)
    yield f"```text\n{_synopsis(parser, options, actions)}\n```\n"
    if parser.description:
        yield parser.description + "\n"
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
    words = [parser.prog, *(["[OPTION]..."] if options else [])]
    words += [_placeholder(action) for action in actions if not action.option_strings]
    if parser.get_default("server") is not None:
        words.append("[-- COMMAND...]")
    return " ".join(words)


def _placeholder(action: argparse.Action) -> str:
    """A positional argument, such as `[CAPTURE]...`."""
    name = "SUBCOMMAND" if action.nargs == argparse.PARSER else str(action.metavar or action.dest).upper()
    form = {"?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}
    return form.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {action.metavar or action.dest.upper()}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
