"""How commands declare their arguments: a parser that reports mistakes as UsageError, and options with fixed values."""

import argparse
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import shown

_INVALID = re.compile(r"argument WHAT: invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for a mistake: one line, exit code 2. Options cannot be abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.color = False  # Python 3.14 colours the help, and a terminal gets only our own colours

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
            near = get_close_matches(name, self._option_string_actions, n=1)
            return f"there is no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        if kind == "the following arguments are required":
            optional = {it.metavar for it in self._actions if not it.required}
            names = " and ".join(it for it in rest.split(", ") if it not in optional)
            return f"{self.prog.removeprefix('mcpspy ')} needs {names}"
        found = _INVALID.fullmatch(message)
        if found is None:
            return message
        known = [word.strip(" '") for word in found[2].split(",")]
        near = get_close_matches(found[1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the subcommands are {', '.join(known)}"
        return f"there is no subcommand {found[1]!r}; {hint}"


def choice(
    parser: argparse.ArgumentParser,
    option: str,
    known: Sequence[str],
    text: str,
    metavar: str,
    *,
    required: bool = False,
) -> None:
    """Add an option with a fixed set of values. The first is the default, unless the option is `required`.

    `text` is its help.
    """

    def chosen(value: str) -> str:
        if value in known:
            return value
        near = get_close_matches(value, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
        raise UsageError(f"{option} cannot be {value!r}; {hint}")

    names = ", ".join(known) + ("" if required else f" (default: {known[0]})")
    default = None if required else known[0]
    action = parser.add_argument(
        option, type=chosen, default=default, required=required, metavar=metavar, help=f"{text}: {names}"
    )
    offer(action, dict.fromkeys(known, ""))


def offer(action: argparse.Action, names: Mapping[str, str]) -> None:
    """Set the values that shells complete for an argument, with their meanings. The command validates the argument."""
    vars(action)["offered"] = names


def offered(action: argparse.Action) -> Mapping[str, str] | None:
    """Return the completion values of an argument, if it has any."""
    names: Mapping[str, str] | None = vars(action).get("offered")
    return names
