"""`mcpspy doctor`: diagnose why no session appears."""

import argparse
from collections.abc import Iterable
from difflib import get_close_matches

from mcpspy.clients import routes
from mcpspy.clients.checks import PROBLEM, Check, of_captures, of_config, of_server
from mcpspy.clients.formats import JSON, TOML
from mcpspy.clients.places import Found, Machine, find, present
from mcpspy.clients.servers import Server, servers
from mcpspy.clients.table import BY_ID, client
from mcpspy.errors import ConfigError, UsageError
from mcpspy.text import plural, printable

_CORRECT = {
    JSON: "correct the file; the client reads nothing of it",
    TOML: "correct the file; if the client reads it, it is TOML 1.1, and mcpspy reads TOML 1.0",
}


def run(options: argparse.Namespace) -> int:
    """Print the checks; exit status 1 if there is a problem."""
    machine = Machine.here()
    problems = _print(of_captures(machine), "")
    for found, own, broken in _chosen(options.target, machine):
        print(f"{found.client.name}, {found.place.scope}: {printable(found.path, 4096)}")
        if broken:
            problems += _print([Check(PROBLEM, broken, _CORRECT.get(found.place.form, _CORRECT[JSON]))], "  ")
            continue
        problems += _print(of_config(found, machine), "  ")
        for server in own:
            print(f"  {printable(server.name, 100)}")
            problems += _print(of_server(server, machine, named=server.name == options.target), "    ")
    print(plural(problems, "problem") if problems else "no problems found")
    return 1 if problems else 0


def _chosen(target: str | None, machine: Machine) -> list[tuple[Found, list[Server], str]]:
    """Return the places to check, each with its servers, and with the reason if it cannot be read."""
    known = routes.load()
    if target in BY_ID:
        assert target
        places = find(client(target), machine)
        if not places:
            raise ConfigError(f"{BY_ID[target].name} has no configuration here; 'mcpspy status' lists all clients")
        return [_look(found, machine, known) for found in places]
    looked = [_look(found, machine, known) for found in present(machine)]
    if target is None:
        return looked
    named = [(found, [server for server in own if server.name == target], "") for found, own, _ in looked]
    if chosen := [place for place in named if place[1]]:
        return chosen
    names = [*BY_ID, *(server.name for _, own, _ in looked for server in own)]
    near = get_close_matches(target, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "'mcpspy status' lists them"
    raise UsageError(f"there is no client and no server {target!r}; {hint}")


def _look(found: Found, machine: Machine, known: dict[str, routes.Route]) -> tuple[Found, list[Server], str]:
    try:
        return found, servers(found, machine, known), ""
    except ConfigError as error:
        return found, [], str(error)


def _print(checks: Iterable[Check], margin: str) -> int:
    """Print the checks, and return the number of problems."""
    problems = 0
    for level, text, fix in checks:
        first, *more = text.split("\n")
        print(f"{margin}{level:<8} {printable(first, 1000)}", flush=True)
        for line in more:
            print(f"{margin}{'':<8} {printable(line, 1000)}")
        if fix:
            print(f"{margin}{'':<8} {'fix' if level == PROBLEM else 'advice'}: {printable(fix, 1000)}")
        problems += level == PROBLEM
    return problems
