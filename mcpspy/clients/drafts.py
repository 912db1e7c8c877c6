"""Plans over all the files of a client, and their execution.

One file may be several places (Claude Code's user and local servers), so plans for it are made one upon the other, and
it is written once.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcpspy.clients import plan
from mcpspy.clients.apply import Config, check_writable, forget, load, recall, remember, replace
from mcpspy.clients.routes import Route
from mcpspy.clients.table import Found, Machine, find
from mcpspy.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Draft:
    """A configuration, and what it will be."""

    config: Config
    original: bytes
    """The configuration without any edit of ours."""
    content: bytes
    """As it will be."""
    steps: list[plan.Step]
    servers: list[str]
    """The names of all its servers."""

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.content != self.config.raw

    def write(self) -> None:
        """Put it in place, the way back first."""
        if self.content != self.original:
            remember(self.config, self.original, self.content)
        replace(self.config, self.content)
        if self.content == self.original:
            forget(self.config)


def installs(
    places: Sequence[Found],
    machine: Machine,
    names: Sequence[str],
    launcher: Sequence[str],
    routes: Mapping[str, Route],
) -> tuple[list[Draft], Mapping[str, Route]]:
    """What `install` makes of the files of `places`, and the routes that it needs. Raises ConfigError."""
    drafts = []
    for config, own in _files(places):
        text, steps, servers = config.text, [], []
        for found in own:
            planned = _located(config, plan.install, text, found, machine, names, launcher, routes)
            text, routes = planned.text, planned.routes
            steps += planned.steps
            servers += planned.servers
        original, _ = _original(config, own[0], machine, routes)
        drafts.append(Draft(config, original, text.encode(), steps, servers))
    return drafts, routes


def uninstalls(
    places: Sequence[Found], machine: Machine, names: Sequence[str], routes: Mapping[str, Route]
) -> list[Draft]:
    """What `uninstall` makes of the files of `places`. Raises ConfigError."""
    drafts = []
    for config, own in _files(places):
        original, bare = _original(config, own[0], machine, routes)
        text, steps, servers = _undone(config, own, machine, names, routes)
        drafts.append(Draft(config, original, original if text == bare else text.encode(), steps, servers))
    return drafts


def write(drafts: Iterable[Draft]) -> None:
    """Write all that changes, if all of it can be written; raises ConfigError."""
    changed = [draft for draft in drafts if draft.changes]
    for draft in changed:
        check_writable(draft.config)
    for draft in changed:
        draft.write()


def _files(places: Sequence[Found]) -> list[tuple[Config, list[Found]]]:
    """Each file once, with its places."""
    files: dict[str, tuple[Config, list[Found]]] = {}
    for found in places:
        config = load(found.path)
        files.setdefault(config.real, (config, []))[1].append(found)
    return list(files.values())


def _original(config: Config, found: Found, machine: Machine, routes: Mapping[str, Route]) -> tuple[bytes, str]:
    """A configuration without any edit of ours: byte for byte, if it is as we left it, and as the edits tell."""
    own = [place for place in find(found.client, machine) if os.path.realpath(place.path) == config.real]
    bare, _, _ = _undone(config, own, machine, (), routes)
    memory = recall(config)
    return memory.original if memory and memory.unchanged(config) else bare.encode(), bare


def _undone(
    config: Config, places: Sequence[Found], machine: Machine, names: Sequence[str], routes: Mapping[str, Route]
) -> tuple[str, list[plan.Step], list[str]]:
    memory = recall(config)
    before = memory.original.decode() if memory else None
    text, steps, servers = config.text, [], []
    for found in places:
        planned = _located(config, plan.uninstall, text, found, machine, names, routes, before)
        text = planned.text
        steps += planned.steps
        servers += planned.servers
    return text, steps, servers


def _located(config: Config, make: Callable[..., plan.Plan], *arguments: object) -> plan.Plan:
    """A plan; its errors say of which file."""
    try:
        return make(*arguments)
    except ConfigError as error:
        raise ConfigError(f"{config.path}: {error}") from error
