"""The variables in a configuration, which each client writes differently. Pure."""

import re

from mcpspy.clients.machine import Machine
from mcpspy.clients.table import Client

_VARIABLE = re.compile(r"\$\{(?P<name>[^}]*)\}")
_BRACES = re.compile(r"\{(?P<name>(?:env|file):[^}]*)\}")
_DOLLAR = re.compile(rf"{_VARIABLE.pattern}|\$(?P<bare>[A-Za-z_]\w*)")


def expanded(text: str, client: Client, machine: Machine) -> str:
    """Return `text` with the variables that this client replaces; variables without a known value stay."""

    def value(match: re.Match[str]) -> str:
        name, _, default = _variable(match).removeprefix("env:").partition(":-")
        known = {"userHome": machine.home, "workspaceFolder": machine.cwd, "/": machine.paths.sep}
        return machine.environ.get(name) or known.get(name) or default or match[0]

    if "~" in client.expands and (text == "~" or text.startswith(("~/", "~\\"))):
        text = machine.home + text[1:]
    return _variables(client).sub(value, text)


def unknown(text: str, client: Client, machine: Machine) -> list[str]:
    """Return the names of the variables that stay."""
    return [_variable(match) for match in _variables(client).finditer(expanded(text, client, machine))]


def has_variable(text: str, client: Client) -> bool:
    """Return whether this client replaces something in `text`, or would if the variable were known."""
    begins = "~" in client.expands and text.startswith("~")
    return begins or _variables(client).search(text) is not None


def _variables(client: Client) -> re.Pattern[str]:
    return _DOLLAR if "$" in client.expands else _BRACES if "{" in client.expands else _VARIABLE


def _variable(match: re.Match[str]) -> str:
    """Return the name in a match; a bare name is always an environment variable."""
    groups = match.groupdict()
    return groups["name"] if groups["name"] is not None else f"env:{groups['bare']}"
