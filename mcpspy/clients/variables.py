"""The variables in a configuration, which each client writes differently. Pure."""

import re
from collections.abc import Iterator

from mcpspy.clients.machine import Machine
from mcpspy.clients.table import Client

_VARIABLE = re.compile(r"\$\{(?P<name>[^}]*)\}")
_BRACES = re.compile(r"\{(?P<name>(?:env|file):[^}]*)\}")
_BARE = re.compile(r"\$(?P<bare>[A-Za-z_]\w*)")
_DOLLAR = re.compile(f"{_VARIABLE.pattern}|{_BARE.pattern}")


def expanded(text: str, client: Client, machine: Machine) -> str:
    """Return `text` with the variables that this client replaces; variables without a known value stay."""

    def value(match: re.Match[str]) -> str:
        name, _, default = _variable(match).removeprefix("env:").partition(":-")
        known = {"userHome": machine.home, "workspaceFolder": machine.cwd, "/": machine.paths.sep}
        return machine.environ.get(name) or known.get(name) or default or match[0]

    if "~" in client.expands and (text == "~" or text.startswith(("~/", "~\\"))):
        text = machine.home + text[1:]
    parts, place = [], 0
    for match in _variables(text, client):
        parts += [text[place : match.start()], value(match)]
        place = match.end()
    return "".join([*parts, text[place:]])


def unresolved(text: str, client: Client, machine: Machine) -> list[str]:
    """Return the names of the variables that stay."""
    return [_variable(match) for match in _variables(expanded(text, client, machine), client)]


def has_variable(text: str, client: Client) -> bool:
    """Return whether this client replaces something in `text`, or would if the variable were known."""
    begins = "~" in client.expands and text.startswith("~")
    return begins or any(True for _ in _variables(text, client))


def _variables(text: str, client: Client) -> Iterator[re.Match[str]]:
    """Yield the variables in `text`.

    Behind the last closing brace, no opening one is looked at: each would be compared with the whole rest.
    """
    last = text.rfind("}") + 1
    if "$" in client.expands:
        yield from _DOLLAR.finditer(text, 0, last)
        yield from _BARE.finditer(text, last)
    else:
        yield from (_BRACES if "{" in client.expands else _VARIABLE).finditer(text, 0, last)


def _variable(match: re.Match[str]) -> str:
    """Return the name in a match; a bare name is always an environment variable."""
    groups = match.groupdict()
    return f"env:{groups['bare']}" if groups.get("bare") is not None else groups["name"]
