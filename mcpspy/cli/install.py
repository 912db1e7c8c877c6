"""`mcpspy install` and `mcpspy uninstall`: put mcpspy in front of the servers of an MCP client, and remove it again."""

import argparse
import difflib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby

from mcpspy.cli.installation import install_command
from mcpspy.cli.output import confirmed
from mcpspy.clients import routes
from mcpspy.clients.check import in_shell
from mcpspy.clients.checks import stale
from mcpspy.clients.drafts import Draft, agents, installs, uninstalls, write
from mcpspy.clients.entries import wrapped
from mcpspy.clients.launcher import fleeting, launcher
from mcpspy.clients.places import Found, Machine, candidates, find, in_file, present, sharing
from mcpspy.clients.plan import CANNOT, LEAVE, REFUSE, ROUTE, WRAP, Step
from mcpspy.clients.table import CLIENTS, PROJECT, SCOPES, Client, client
from mcpspy.clients.withheld import withheld
from mcpspy.errors import ConfigError, Unwrappable, UsageError
from mcpspy.text import plural, printable, suggestion

_WIDEST = 10_000  # characters of a line of the diff


def run(options: argparse.Namespace) -> int:
    """Show the plan, or with `--dry-run` the changes, and apply it. Without server names, ask first on a terminal."""
    machine, words = Machine.here(), launcher()
    if options.client is None:
        if options.config:
            raise UsageError("--config needs the client whose format the file has: mcpspy install CLIENT --config FILE")
        return _list(machine, words)
    chosen = client(options.client)
    places = _places(options, chosen, machine)
    if options.agent:
        return _add_agent(options, chosen, places, machine, words)
    drafts, needed = installs(places, machine, options.servers, words, routes.load())
    check_servers(drafts, options.servers, chosen)
    print_plan(drafts)
    _refuse_unknown(drafts, _named(options, chosen))
    left = 1 if _steps(drafts, CANNOT) else 0
    if options.dry_run:
        print_changes(drafts)
        return left
    if fleeting(words):
        print(
            f"note: {printable(words[0], 4096)} is in a cache that can be cleared; 'uv tool install mcpspy' "
            "installs it permanently"
        )
    if not any(draft.changes for draft in drafts):
        _save(needed)
        print("nothing to change")
        return left
    if not (options.yes or _agreed(asks=not options.servers)):
        print("nothing was changed")
        return left
    _save(needed)  # first: the original URL is stored nowhere else
    write(drafts)
    _print_advice(chosen, drafts, places, machine, needed)
    print(f"undo: mcpspy uninstall {_named(options, chosen)}")
    _print_notes(drafts, places)
    return left


def _places(options: argparse.Namespace, chosen: Client, machine: Machine) -> list[Found]:
    """Return the places that the options mean: those of the client that exist, or the file of `--config`."""
    if not options.config:
        return existing(chosen, machine, options.scope)
    if options.scope:
        raise UsageError("--config names the file and --scope the files of the client: give one of them")
    return [in_file(chosen, options.config)]


def _named(options: argparse.Namespace, chosen: Client) -> str:
    """Return the client, and the file of `--config`, as words of a command line."""
    return shlex.join([chosen.id, *(["--config", options.config] if options.config else [])])


def _add_agent(
    options: argparse.Namespace, chosen: Client, places: Sequence[Found], machine: Machine, words: Sequence[str]
) -> int:
    """Add the server for agents to the client's configuration, and change nothing else."""
    if options.servers:
        raise UsageError("--agent takes no servers: it adds 'mcpspy mcp' itself")
    drafts = agents(places, machine, routes.load(), words)
    print_plan(drafts)
    if options.dry_run:
        print_changes(drafts)
        return 0
    if not any(draft.changes for draft in drafts):
        print("nothing to change")
        return 0
    if not (options.yes or _agreed(asks=True)):
        print("nothing was changed")
        return 0
    write(drafts)
    print(f"\nagents in {chosen.name} can read captures with the tools of 'mcpspy'")
    print(f"  1. {chosen.advice.format(name=chosen.name)}\n  2. ask: why did my last tool call fail?")
    print(f"undo: mcpspy uninstall {_named(options, chosen)} --agent")
    if os.environ.get("MCPSPY_CAPTURE_DIR"):
        print("note: $MCPSPY_CAPTURE_DIR is set here; a client that does not have it reads ~/.mcpspy/captures")
    if find_spec("mcp") is None:
        print(f"note: the extra is missing here: {printable(install_command('agent'), 4096)}")
    return 0


def _list(machine: Machine, words: Sequence[str]) -> int:
    """Print the clients on this machine, and what `install` would do with their servers."""
    there, known = present(machine), routes.load()
    for one, places in groupby(there, key=lambda found: found.client):
        print(f"{one.name}: mcpspy install {one.id}")
        for found in places:
            try:
                print_plan(installs([found], machine, (), words, known)[0], "  ")
            except ConfigError as error:
                print(f"  {printable(str(error), 1000)}")
    if not there:
        print(
            f"no configuration of an MCP client found here; the known clients are {', '.join(c.name for c in CLIENTS)}"
        )
    else:
        print("\nnothing was changed")
    return 0


def _steps(drafts: Sequence[Draft], action: str) -> list[tuple[Draft, Step]]:
    return [(draft, step) for draft in drafts for step in draft.steps if step.action == action]


def _refuse_unknown(drafts: Sequence[Draft], named: str) -> None:
    """Raise Unwrappable if an entry has an unknown form. The error lists the servers that can be wrapped."""
    refused = _steps(drafts, REFUSE)
    if not refused:
        return
    draft, step = refused[0]
    others = [other.server for action in (WRAP, ROUTE) for _, other in _steps(drafts, action)]
    hint = f"; to wrap the others: mcpspy install {named} {in_shell(*others)}" if others else ""
    raise Unwrappable(f"{draft.config.path}: {step.server}: {step.detail}; nothing was changed{hint}")


def _save(needed: Mapping[str, routes.Route]) -> None:
    if needed != routes.load():
        routes.save(needed)


def existing(chosen: Client, machine: Machine, scope: str | None) -> list[Found]:
    """Return the places of a client that exist. If there are none, raises an Error that lists the paths searched."""
    if scope is not None and scope not in SCOPES:
        raise UsageError(f"there is no scope {scope!r}; the scopes are {', '.join(SCOPES)}")
    if places := find(chosen, machine, scope):
        return places
    looked = [place for place in chosen.places if scope in (None, place.scope)]
    if not looked:
        scopes = sorted({place.scope for place in chosen.places}, key=SCOPES.index)
        raise UsageError(f"{chosen.name} has no {scope} scope, only {', '.join(scopes)}")
    paths = dict.fromkeys(path for place in looked for path in candidates(place, machine)[:1])
    raise ConfigError(f"{chosen.name} has no configuration here; looked for {', '.join(paths)}")


def check_servers(drafts: Sequence[Draft], names: Sequence[str], chosen: Client) -> None:
    """Raise an Error for a named server that does not exist, or that cannot be changed."""
    steps = [step for draft in drafts for step in draft.steps]
    for name in names:
        own = [step for step in steps if step.server == name]
        if not own:
            raise ConfigError(_missing(name, drafts, chosen))
        if all(step.action in (REFUSE, CANNOT) for step in own):
            where = next(draft.config.path for draft in drafts if own[0] in draft.steps)
            raise Unwrappable(f"{where}: {name}: {own[0].detail}; nothing was changed")


def _missing(name: str, drafts: Sequence[Draft], chosen: Client) -> str:
    there = sorted({server for draft in drafts for server in draft.servers})
    hint = suggestion(name, there, f"its servers are {', '.join(there) or 'none'}")
    return f"{chosen.name} has no server {name!r} in {', '.join(draft.config.path for draft in drafts)}; {hint}"


def print_plan(drafts: Sequence[Draft], margin: str = "") -> None:
    """Print each file with the planned action for each of its servers."""
    for draft in drafts:
        print(f"{margin}{printable(draft.config.path, 4096)}")
        for note in draft.notes:
            print(f"{margin}  note: {printable(note, 400)}")
        for step in draft.steps:
            said = step.detail if step.action == LEAVE else f"{_WORDS[step.action]}: {step.detail}".removesuffix(": ")
            behind = wrapped(step.becomes) if step.action == LEAVE else None
            if behind and (reason := stale(behind.launcher)):
                said += f" by {behind.launcher[0]}, which {reason}: uninstall it by name, then install it again"
            print(f"{margin}  {printable(step.server, 24):<24}  {printable('; '.join((said, *step.notes)), 400)}")
        if not draft.steps:
            print(f"{margin}  no servers")


def print_changes(drafts: Sequence[Draft]) -> None:
    """Print the changes as a unified diff, without secrets, and without context lines, which may contain secrets."""
    for draft in drafts:
        path = draft.config.path
        old, new = (withheld(content.decode(), draft.form).split("\n") for content in (draft.config.raw, draft.content))
        for line in difflib.unified_diff(old, new, path, path, n=0, lineterm=""):
            print(printable(line.removesuffix("\r").replace("\t", "    "), _WIDEST))


def changed_servers(drafts: Sequence[Draft]) -> str:
    """Return how many servers were changed, in words."""
    return plural(sum(len(step.edits) > 0 for draft in drafts for step in draft.steps), "server")


def _agreed(*, asks: bool) -> bool:
    """Return whether the user agrees. Without a terminal, raises UsageError unless there is `--yes`."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal to ask on, so nothing was changed; run it again with --yes")
    return not asks or confirmed("Change it?")


def _print_advice(
    chosen: Client,
    drafts: Sequence[Draft],
    places: Sequence[Found],
    machine: Machine,
    needed: Mapping[str, routes.Route],
) -> None:
    others = sorted({name for found in places for name in sharing(found, machine)})
    also = f" (and of {', '.join(others)}, which read the same file)" if others else ""
    print(f"\n{changed_servers(drafts)} of {chosen.name}{also} now behind mcpspy")
    steps = [f"{chosen.advice.format(name=chosen.name)}", "use a tool of the server", "look at its traffic: mcpspy"]
    if _steps(drafts, ROUTE):
        port = next(route.port for route in needed.values() if chosen.id in route.paths)
        listen = f" --listen 127.0.0.1:{port}" if port != routes.PORT else ""
        steps.insert(
            0, f"start 'mcpspy proxy --from {chosen.id}{listen}', or restart it if it runs: remote servers need it"
        )
    for number, step in enumerate(steps, 1):
        print(f"  {number}. {step}")


def _print_notes(drafts: Sequence[Draft], places: Sequence[Found]) -> None:
    for draft in drafts:
        if draft.changes and any(found.place.scope == PROJECT and found.path == draft.config.path for found in places):
            print(f"note: {printable(draft.config.path, 4096)} belongs to the project: do not commit the change")
    if os.environ.get("MCPSPY_CAPTURE_DIR"):
        print("note: $MCPSPY_CAPTURE_DIR is set here; a client that does not have it records to ~/.mcpspy/captures")


_WORDS = {action: action for action in (WRAP, ROUTE, "undo", "add")} | {
    REFUSE: "cannot be wrapped", CANNOT: "cannot be changed",
}  # fmt: skip


def run_uninstall(options: argparse.Namespace) -> int:
    """Undo what `install` did, byte for byte if the file has not been changed by others since."""
    chosen, machine = client(options.client), Machine.here()
    places = _places(options, chosen, machine)
    if options.agent:
        if options.servers:
            raise UsageError("--agent takes no servers: it removes 'mcpspy mcp' itself")
        drafts = agents(places, machine, routes.load(), None)
    else:
        drafts = uninstalls(places, machine, options.servers, routes.load())
    check_servers(drafts, options.servers, chosen)
    print_plan(drafts)
    if options.dry_run:
        print_changes(drafts)
        return 0
    write(drafts)
    if not any(draft.changes for draft in drafts):
        print("nothing to change")
    else:
        print(f"\n{changed_servers(drafts)} of {chosen.name} now without mcpspy")
        print(f"now: {chosen.advice.format(name=chosen.name)}")
    return 1 if any(step.action == CANNOT for draft in drafts for step in draft.steps) else 0
