"""The table for shell completion, with the arguments of all commands: `scripts/write-rules` writes it to a file.

The table is made from the parsers, so everything that a command declares is completed. The kind of a value comes from
its placeholder (`CAPTURE`, `FILE`), or from the names that the command offers (`mcpspy.cli.arguments.offer`).
"""

import argparse
import importlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspy.cli.arguments import Parser, offered
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.complete import CAPTURES, DIRECTORIES, FILES, TERMS
from mcpspy.cli.wrap import HELP
from mcpspy.filters import KEYS
from mcpspy.filters.terms import KINDS, SENDERS, STATUSES
from mcpspy.rules import SEVERITIES
from mcpspy.spec.revisions import Revision

_PLACEHOLDERS = {
    "CAPTURE": CAPTURES,
    "CAPTURE|DIR": CAPTURES,
    "A": CAPTURES,
    "B": CAPTURES,
    "FILE": FILES,
    "PATH": FILES,
    "DIR": DIRECTORIES,
    "EXPR": TERMS,
}
_TERMS = {
    "from": SENDERS,
    "kind": KINDS,
    "status": STATUSES,
    "severity": SEVERITIES,
    "revision": [revision.value for revision in Revision],
}
_WIDEST = 80  # characters of a description
_OPTION = re.compile(r"^  (-.+?)(?:  +|\n {10,})(.+(?:\n {10,}.+)*)", re.MULTILINE)


def document() -> str:
    """Return the table as JSON, one line for each command."""
    commands = {name: _declared(name) | {"text": command.help} for name, command in COMMANDS.items()}
    lines = ",\n".join(f"{json.dumps(name)}:{_compact(node)}" for name, node in commands.items())
    options = {"-h": "show the commands", "--help": "show the commands", "--version": "show the version"}
    root = {"options": dict.fromkeys(options), "help": options, "terms": _terms()}
    return f'{_compact(root)[:-1]},\n"commands":{{\n{lines}\n}}}}\n'


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _terms() -> dict[str, str]:
    """Return the beginnings of filter terms, and the terms whose values are known."""
    values = (f"{key}:{value}" for key, known in _TERMS.items() for value in known)
    return dict.fromkeys([*(f"{key}:" for key in KEYS), *values], "")


def _declared(name: str) -> dict[str, Any]:
    if name == "wrap":  # wrap parses its options itself
        return _from_help(HELP)
    return _node(parser_of(name))


def parser_of(name: str) -> Parser:
    """Return the parser of a command with all its arguments; not for `wrap`, which has no parser."""
    parser = Parser(prog=f"mcpspy {name}")
    importlib.import_module(f"mcpspy.cli.{COMMANDS[name].module or name}").arguments(parser)
    return parser


def _from_help(text: str) -> dict[str, Any]:
    """Return the options in the help text of a command that starts a server. A lower-case placeholder is a value."""
    options: dict[str, Any] = {}
    texts = {}
    for head, words in _OPTION.findall(text):
        placeholder = head.split()[-1] if not head.split()[-1].startswith("-") else None
        for option in re.findall(r"(?<!\S)-[-\w]+", head):
            value = placeholder and ({placeholder: ""} if placeholder.islower() else _PLACEHOLDERS.get(placeholder, {}))
            options[option] = value
            texts[option] = _short(" ".join(words.split()))
    return {"options": options, "help": texts, "positionals": [], "many": False, "server": True}


def _node(parser: argparse.ArgumentParser) -> dict[str, Any]:
    node: dict[str, Any] = {"options": {}, "help": {}, "positionals": [], "many": False}
    for action in declared_actions(parser):
        if isinstance(action.choices, dict) and action.nargs == argparse.PARSER:
            node["commands"] = {
                name: _node(inner) | {"text": _short(inner.description or "")} for name, inner in action.choices.items()
            }
        elif action.option_strings:
            for option in action.option_strings:
                node["options"][option] = None if action.nargs in (0, "?") else _value(action)
                node["help"][option] = _short(help_of(action))
        else:
            node["positionals"].append(_value(action))
            node["many"] = action.nargs in ("*", "+")
    if parser.get_default("server") is not None:
        node["server"] = True
    return node


def declared_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser, without those hidden from its help."""
    yield from (action for action in parser._actions if action.help != argparse.SUPPRESS)  # noqa: SLF001


def _value(action: argparse.Action) -> str | Mapping[str, str]:
    names = offered(action)
    if names is not None:
        return {name: _short(text) for name, text in names.items()}
    return _PLACEHOLDERS.get(str(action.metavar), {})


def help_of(action: argparse.Action) -> str:
    """Return the help of an option or argument."""
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
