"""`mcpspy status` and `mcpspy doctor`: list the servers of all MCP clients; diagnose why no session appears."""

import argparse
import os
import re
import time
from collections.abc import Iterable, Sequence
from textwrap import fill

import orjson

from mcpspy.capture.listing import Listed, captures
from mcpspy.capture.location import directory
from mcpspy.cli.output import line_width
from mcpspy.clients import routes
from mcpspy.clients.check import PROBLEM, Check
from mcpspy.clients.checks import of_captures, of_config, of_names, of_server, resolves, stale
from mcpspy.clients.formats import JSON, TOML
from mcpspy.clients.places import Found, Machine, find, present
from mcpspy.clients.servers import Server, has_variable, servers, untrusted, wrote
from mcpspy.clients.table import BY_ID, client
from mcpspy.errors import ConfigError, UsageError
from mcpspy.text import age_text, plural, printable, suggestion
from mcpspy.transport.link import signals_interrupt


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    machine, known = Machine.here(), routes.load()
    recorded = captures(directory(None, os.environ))
    places = present(machine)
    for found in places:
        try:
            own, problem = servers(found, machine, known), ""
        except ConfigError as error:
            own, problem = [], str(error)
        if not options.json:
            print(f"{found.client.name}, {found.place.scope}: {printable(found.path, 4096)}")
            for line in filter(None, (found.place.note.format(name=found.client.name), untrusted(found, machine))):
                print(f"  note: {printable(line, 400)}")
        if problem:
            print(_broken_json(found, problem) if options.json else f"  {printable(problem, 400)}")
        for server in own:
            print(_json(server, recorded, machine) if options.json else _line(server, recorded))
    if not places and not options.json:
        print("no configuration of an MCP client found here")
    return 0


def _of(server: Server, recorded: Sequence[Listed]) -> list[Listed]:
    """Return the captures of a server, newest first."""
    own = [listed for listed in recorded if wrote(server, listed.capture.header)]
    return sorted(own, key=lambda listed: -listed.started)


def _resolves(server: Server) -> bool | None:
    """Return whether the server's own command is found on this machine; None if that is unknown."""
    if not server.words:
        return None
    command = server.words[0]
    if os.path.dirname(command):
        command = os.path.join(server.cwd or "", command)
        if not os.path.isabs(command):  # only the client knows the directory, or the `~`, to which it is relative
            return None
    return None if has_variable(command, server.found.client) else resolves(command)


def _json(server: Server, recorded: Sequence[Listed], machine: Machine) -> str:
    own = _of(server, recorded)
    fields = {
        "client": server.found.client.id,
        "scope": server.found.place.scope,
        "path": server.found.path,
        "server": server.name,
        "state": server.state,
        "disabled": server.disabled,
        "resolves": _resolves(server),
        "stale": server.launcher[0] if stale(server.launcher) else None,
        "captures": len(own),
        "latest": own[0].capture.path if own else None,
        "problem": server.problem or None,
        "untrusted": untrusted(server.found, machine) or None,
    }
    return _dumps(fields)


def _broken_json(found: Found, problem: str) -> str:
    return _dumps(
        {"client": found.client.id, "scope": found.place.scope, "path": found.path, "server": None, "problem": problem}
    )


def _dumps(fields: dict[str, object]) -> str:
    safe = {k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for k, v in fields.items()}
    return orjson.dumps(safe).decode()


def _line(server: Server, recorded: Sequence[Listed]) -> str:
    own = _of(server, recorded)
    said = [plural(len(own), "capture") + f", the last {age_text(time.time() - own[0].started)}"] if own else []
    if server.disabled:
        said.append("disabled in the client")
    if _resolves(server) is False:
        said.append(f"{server.words[0]} is not found")
    if reason := stale(server.launcher):
        said.append(f"stale: {server.launcher[0]} {reason}")
    said += [server.problem] if server.problem else []
    return f"  {printable(server.name, 24):<24}  {server.state:<11}  {printable('; '.join(said), 400)}".rstrip()


_CORRECT = {
    JSON: "correct the file; the client reads nothing of it",
    TOML: "correct the file; if the client reads it, it is TOML 1.1, and mcpspy reads TOML 1.0",
}


def run_doctor(options: argparse.Namespace) -> int:
    """Print the checks; exit status 1 if there is a problem. A signal ends what was started, too."""
    with signals_interrupt():
        return _doctor(options)


def _doctor(options: argparse.Namespace) -> int:
    machine = Machine.here()
    problems = _print(of_captures(machine), "")
    chosen = _chosen(options.target, machine)
    for found, own, broken in chosen:
        print(f"{found.client.name}, {found.place.scope}: {printable(found.path, 4096)}")
        if broken:
            problems += _print([Check(PROBLEM, broken, _CORRECT.get(found.place.form, _CORRECT[JSON]))], "  ")
            continue
        problems += _print(of_config(found, machine), "  ")
        problems += _print(of_names([(place, theirs) for place, theirs, _ in chosen], found), "  ")
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
    hint = suggestion(target, names, "'mcpspy status' lists them")
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
        lines = [first, *more, *([f"{'fix' if level == PROBLEM else 'advice'}: {fix}"] if fix else [])]
        for number, line in enumerate(lines):
            label = level if not number else ""
            print(_folded(f"{margin}{label:<8} ", printable(line, 1000)), flush=True)
        problems += level == PROBLEM
    return problems


_QUOTED = re.compile(r'"[^"]*"')


def _folded(label: str, line: str) -> str:
    """Return a line behind its label, on a terminal folded at its blanks, but not at those of text to be copied."""
    width = line_width(0)
    if not width or len(label) + len(line) <= width:
        return label + line
    kept = _QUOTED.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), line)
    margin = " " * len(label)
    folded = fill(kept, width, initial_indent=label, subsequent_indent=margin, break_long_words=False,
                  break_on_hyphens=False)  # fmt: skip
    return folded.replace("\N{NO-BREAK SPACE}", " ")
