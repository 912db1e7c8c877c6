"""The reference of all commands and their options, as Markdown: `scripts/write-rules` writes it to docs/commands.md.

The help output of `argparse` differs between versions of Python, so the page is made from the tables of the commands.
"""

from collections.abc import Iterator, Sequence

from mcpspy.cli.commands import GROUPS
from mcpspy.cli.options import Command, Option, Positional

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


def document() -> str:
    """Return the page."""
    parts = [_TITLE]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        for command in group:
            parts.append(f"### mcpspy {command.name}\n")
            parts += _sections(command, f"mcpspy {command.name}")
    return "\n".join(parts)


def _sections(command: Command, name: str) -> Iterator[str]:
    """Yield the synopsis, the description and the options of a command, then of its subcommands."""
    options = [it for it in command.options if it is not command.help and it.text is not None]
    positionals = [it for it in command.positionals if it.text is not None]
    yield f"```text\n{_synopsis(command, name, options, positionals)}\n```\n"
    for text in (command.description, command.epilog):
        if text:
            yield f"```text\n{text.strip()}\n```\n" if "\n" in text else text + "\n"
    rows = [f"| `{_cell(_placeholder(it))}` | {_cell(it.text)} |" for it in positionals if it.text]
    rows += [f"| `{_cell(_head(it))}` | {_cell(it.text or '')} |" for it in options]
    if rows:
        yield "\n".join(["| option | effect |", "|---|---|", *rows]) + "\n"
    for inner in command.subcommands:
        yield f"#### {name} {inner.name}\n"
        yield from _sections(inner, f"{name} {inner.name}")


def _synopsis(command: Command, name: str, options: Sequence[Option], positionals: Sequence[Positional]) -> str:
    if command.usage:
        return command.usage.replace("\n       ", "\n")
    words = [name, *(["[OPTION]..."] if options else []), *map(_placeholder, positionals)]
    return " ".join([*words, *(["SUBCOMMAND"] if command.subcommands else [])])


def _placeholder(it: Positional) -> str:
    """Return the text for a positional argument, such as `[CAPTURE]...`."""
    form = {"?": "[%s]", "*": "[%s]...", "+": "%s..."}
    return form.get(it.many, "%s") % it.placeholder


def _head(it: Option) -> str:
    names = ", ".join(it.names)
    if not it.placeholder:
        return names
    return f"{names} {it.placeholder}" if it.const is None else f"{names} [{it.placeholder}]"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
