"""The parser of a command, made from its table: it reports mistakes as UsageError, and prints the help."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from mcpspy.cli.options import Command, Option, Positional
from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import shown
from mcpspy.text import series, suggestion

_INVALID = re.compile(r"argument WHAT: invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for a mistake: one line, exit code 2. Options cannot be abbreviated."""

    def __init__(self, command: Command, prog: str = "") -> None:
        broken = "\n" in command.description + command.epilog
        super().__init__(
            prog=prog or f"mcpspy {command.name}",
            usage=command.usage or None,
            description=command.description,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter if broken else argparse.HelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.color = False  # Python 3.14 colours the help, and a terminal gets only our own colours
        self._command = command
        for positional in command.positionals:
            self._add_positional(positional)
        for option in command.options:
            self._add_option(option)
        if command.subcommands:
            subcommands = self.add_subparsers(dest="what", metavar="WHAT", required=True)
            for inner in command.subcommands:
                subcommands.add_parser(inner.name, help=_help(inner.text), command=inner)

    def _add_positional(self, it: Positional) -> None:
        self.add_argument(it.dest, metavar=it.placeholder, nargs=it.many or None, help=_help(it.text))

    def _add_option(self, it: Option) -> None:
        text = _help(it.text)
        if it is self._command.help:
            self.add_argument(*it.names, action="help", help=text)
            return
        default = [] if it.many else it.default
        if not it.placeholder:
            action = "append_const" if it.many else "store_const"
            self.add_argument(*it.names, dest=it.dest, action=action, const=it.const, default=default, help=text)
            return
        self.add_argument(
            *it.names,
            dest=it.dest,
            action="append" if it.many else "store",
            nargs=None if it.const is None else "?",
            const=it.const,
            type=_chosen(it) if it.choices else it.convert,
            default=default,
            required=it.required,
            metavar=it.placeholder,
            help=text,
        )

    def parse(self, arguments: Sequence[str], given: argparse.Namespace) -> argparse.Namespace:
        """Parse, and allow options anywhere, unless some words belong to a subcommand or to another program."""
        try:
            return self.parse_intermixed_args(arguments, given)
        except TypeError:
            return self.parse_args(arguments, given)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage."""
        sentence = self._plain(message)
        # the message may quote the arguments
        said = " ".join(shown(word) if "@" in word else word for word in sentence.split(" "))
        raise UsageError(f"{said}{'' if said.endswith('?') else ';'} see '{self.prog} --help'")

    def _plain(self, message: str) -> str:
        """Return the message of argparse in plain words, with the nearest valid name."""
        kind, _, rest = message.partition(": ")
        if kind == "unrecognized arguments":
            option = next((word for word in rest.split() if word.startswith("-")), "")
            name = option.partition("=")[0]
            if not name:
                return f"unexpected argument {rest}"
            near = suggestion(name, self._command.named_options, "")
            return f"there is no option {name!r}" + (f"; {near}" if near else "")
        if kind == "the following arguments are required":
            optional = {it.placeholder for it in self._command.positionals if it.many == "?"}
            names = series([it for it in rest.split(", ") if it not in optional])
            return f"{self.prog.removeprefix('mcpspy ')} needs {names}"
        found = _INVALID.fullmatch(message)
        if found is None:
            return message
        known = [word.strip(" '") for word in found[2].split(",")]
        hint = suggestion(found[1], known, f"the subcommands are {', '.join(known)}")
        return f"there is no subcommand {found[1]!r}; {hint}"


def _help(text: str | None) -> str:
    """Return a text as `argparse` takes it."""
    return argparse.SUPPRESS if text is None else text.replace("%", "%%")


def _chosen(option: Option) -> Callable[[str], str]:
    """Return what checks the value of an option with fixed values."""

    def chosen(value: str) -> str:
        if value in option.choices:
            return value
        hint = suggestion(value, option.choices, f"it takes {', '.join(option.choices)}")
        raise UsageError(f"{option.names[0]} cannot be {value!r}; {hint}")

    return chosen
