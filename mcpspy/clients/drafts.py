"""Plans for all the files of a client, and their execution.

One file may contain several places (Claude Code's user and local servers), so the plans for it build on one another,
and it is written once. What is remembered of a file are its bytes before the first edit by mcpspy. They are restored if
undoing the edits gives the same values and no other program has written to the file in between. Otherwise only the
edits are undone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcpspy.clients import plan
from mcpspy.clients.apply import Config, Memory, check_writable, forget, load, recall, remember, replace
from mcpspy.clients.formats import read
from mcpspy.clients.launcher import COMMAND
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.routes import Route, ours, ports_of
from mcpspy.clients.table import USER
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Draft:
    """A configuration, and its new content."""

    config: Config
    form: str
    memory: Memory | None
    """Its content before the first edit by mcpspy; None if it contains no such edit."""
    content: bytes
    """The new content."""
    steps: list[plan.Step]
    servers: list[str]
    """The names of all its servers."""
    routes: Mapping[str, Route]
    notes: tuple[str, ...] = ()
    """Notes for the user about the file."""

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.content != self.config.raw

    def write(self) -> None:
        """Write the new content, after keeping the original; delete the original when it is no longer needed."""
        back = self.memory is not None and self.content == self.memory.original
        if self.changes:
            if self.memory is None:
                remember(self.config, self.config.raw, self.content)
            elif self.memory.unchanged(self.config) and not back:
                remember(self.config, self.memory.original, self.content)
            replace(self.config, self.content)
        if back or not ours(self.content.decode(), ports_of(self.routes)):
            forget(self.config)


def installs(
    places: Sequence[Found],
    machine: Machine,
    names: Sequence[str],
    launcher: Sequence[str],
    routes: Mapping[str, Route],
) -> tuple[list[Draft], Mapping[str, Route]]:
    """Return the drafts of `install` for the files of `places`, and the routes that it needs. Raises ConfigError."""
    drafts = []
    for config, own in _files(places):
        text, steps, servers = config.text, [], []
        for found in own:
            planned = _located(config, plan.install, text, found, machine, names, launcher, routes)
            text, routes = planned.text, planned.routes
            steps += planned.steps
            servers += planned.servers
        drafts.append(
            Draft(
                config, own[0].place.form, _memory(config, routes), text.encode(), steps, servers, routes, _notes(own)
            )
        )
    return drafts, routes


def uninstalls(
    places: Sequence[Found], machine: Machine, names: Sequence[str], routes: Mapping[str, Route]
) -> list[Draft]:
    """Return the drafts of `uninstall` for the files of `places`. Raises ConfigError."""
    drafts = []
    for config, own in _files(places):
        memory, form = _memory(config, routes), own[0].place.form
        before = memory.original.decode() if memory else None
        text, steps, servers = config.text, [], []
        for found in own:
            planned = _located(config, plan.uninstall, text, found, machine, names, routes, before)
            text = planned.text
            steps += planned.steps
            servers += planned.servers
        if memory and before and memory.unchanged(config) and plain(read(text, form)) == plain(read(before, form)):
            text = before
        drafts.append(Draft(config, form, memory, text.encode(), steps, servers, routes))
    return drafts


def agents(
    places: Sequence[Found], machine: Machine, routes: Mapping[str, Route], launcher: Sequence[str] | None
) -> list[Draft]:
    """Return the drafts that add the server for agents to the first place, or remove it without a `launcher`.

    Raises ConfigError.
    """
    drafts = []
    for config, own in _files([_first(places)] if launcher else places):
        memory, found, form = _memory(config, routes), own[0], own[0].place.form
        if launcher:
            planned = _located(config, plan.add_agent, config.text, found, machine, [*launcher, COMMAND])
        else:
            planned = _located(config, plan.remove_agent, config.text, found, machine)
        text, before = planned.text, memory.original.decode() if memory else None
        if before is not None and memory and memory.unchanged(config) and not launcher:
            text = before if plain(read(text, form)) == plain(read(before, form)) else text
        drafts.append(Draft(config, form, memory, text.encode(), planned.steps, planned.servers, routes))
    return drafts


def _first(places: Sequence[Found]) -> Found:
    """Return the place for a new server: a file of the client itself, preferably the user's."""
    own = [found for found in places if not found.place.foreign] or list(places)
    return next((found for found in own if found.place.scope == USER), own[0])


def moves(places: Sequence[Found], machine: Machine, routes: Mapping[str, Route], port: int) -> list[Draft]:
    """Return the drafts that change the port of the proxy in the files of `places`. Raises ConfigError."""
    drafts = []
    for config, own in _files(places):
        text, steps, servers = config.text, [], []
        for found in own:
            planned = _located(config, plan.move, text, found, machine, routes, port)
            text = planned.text
            steps += planned.steps
            servers += planned.servers
        memory = _memory(config, routes)
        drafts.append(Draft(config, own[0].place.form, memory, text.encode(), steps, servers, routes))
    return drafts


def write(drafts: Iterable[Draft]) -> None:
    """Write all drafts that change something, if all can be written.

    Raises ConfigError, which names the files that were changed before the error.
    """
    drafts = list(drafts)
    for draft in drafts:
        if draft.changes:
            check_writable(draft.config)
    changed: list[str] = []
    for draft in drafts:
        try:
            draft.write()
        except ConfigError as error:
            before = f"; changed before that: {', '.join(changed)}" if changed else ""
            raise ConfigError(f"{error}{before}") from error
        changed += [draft.config.path] if draft.changes else []


def _notes(own: Sequence[Found]) -> tuple[str, ...]:
    return tuple(found.place.note.format(name=found.client.name) for found in own if found.place.note)


def _files(places: Sequence[Found]) -> list[tuple[Config, list[Found]]]:
    """Return each file once, with its places."""
    files: dict[str, tuple[Config, list[Found]]] = {}
    for found in places:
        config = load(found.path)
        files.setdefault(config.real, (config, []))[1].append(found)
    return list(files.values())


def _memory(config: Config, routes: Mapping[str, Route]) -> Memory | None:
    """Return what is remembered, unless all edits by mcpspy are gone: then it is out of date."""
    return recall(config) if ours(config.text, ports_of(routes)) else None


def _located(config: Config, make: Callable[..., plan.Plan], *arguments: object) -> plan.Plan:
    """Return a plan; its errors name the file."""
    try:
        return make(*arguments)
    except ConfigError as error:
        raise type(error)(f"{config.path}: {error}") from error
