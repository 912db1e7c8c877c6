"""Where the configurations of clients are on a machine.

Their paths depend on the home, the platform, the environment and the working directory. Everything except `find`,
`in_file`, `present` and `sharing` is a pure function of a `Machine`, so the paths of every platform can be computed,
and tested, on any platform.
"""

import glob
import ntpath
import os
import posixpath
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import NamedTuple

from mcpspy.clients.apply import load
from mcpspy.clients.formats import JSON, TOML, YAML, read
from mcpspy.clients.table import CLIENTS, Client, Place
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError, UsageError
from mcpspy.foreign_file import read_foreign


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, and one working directory on it. Pure: everything is in its fields."""

    home: str
    platform: str
    """A value of `sys.platform`: darwin, win32, linux."""
    environ: Mapping[str, str]
    cwd: str
    repository: str = ""
    """The root of the git working tree that contains the working directory; empty if there is none."""
    main: str = ""
    """The root of the main working tree, if `repository` was added by `git worktree`."""

    @classmethod
    def here(cls) -> "Machine":
        """Return the machine that runs mcpspy."""
        home = os.path.realpath(os.path.expanduser("~"))  # resolved like the working directory
        try:
            cwd = os.getcwd()
        except OSError:  # deleted
            cwd = home
        return cls(home, sys.platform, os.environ, cwd, *repository(cwd))

    @property
    def paths(self) -> ModuleType:
        """The `os.path` of the platform."""
        return ntpath if self.platform == "win32" else posixpath


def repository(folder: str) -> tuple[str, str]:
    """Return the root of the git working tree around `folder`, and of its main one; empty strings if there is none.

    A `.git` of another user is ignored, as in git itself (`safe.directory`), because files beside it are theirs.
    """
    while not os.path.lexists(git := os.path.join(folder, ".git")):
        if (above := os.path.dirname(folder)) == folder:
            return "", ""
        folder = above
    try:
        if sys.platform != "win32" and os.stat(git).st_uid != os.geteuid():
            return "", ""
        return folder, folder if os.path.isdir(git) else _main(git, folder)
    except (OSError, ValueError):
        return "", ""


def _main(git: str, folder: str) -> str:
    """Return the main working tree if `.git` is a file (git-worktree, "DETAILS"); for a submodule, the tree itself."""
    link = os.path.join(folder, _first_line(git).removeprefix("gitdir:").strip())
    try:
        common = os.path.normpath(os.path.join(link, _first_line(os.path.join(link, "commondir")).strip()))
    except FileNotFoundError:
        return folder
    return os.path.dirname(common) if os.path.basename(common) == ".git" else folder


def _first_line(path: str) -> str:
    return read_foreign(path).decode().partition("\n")[0]


class Found(NamedTuple):
    """A place of a client on this machine."""

    client: Client
    place: Place
    path: str


def candidates(place: Place, machine: Machine) -> list[str]:
    """Return the possible paths of the file of a place, the nearest first; an empty list on some platforms."""
    paths = machine.paths
    for variable, below in place.variables:
        if value := machine.environ.get(variable, "").strip():
            return [paths.normpath(paths.join(machine.cwd, value, below))]
    template = place.path if isinstance(place.path, str) else place.path.get(machine.platform)
    return paths_of(template, machine) if template is not None else []


def paths_of(template: str, machine: Machine, name: str = "") -> list[str]:
    """Return the paths that a template of the table stands for, the nearest first; `name` is that of a server."""
    paths = machine.paths
    folders = [folder.rstrip("/") for folder in projects(machine)] if "{project}" in template else [""]
    names = {"home": machine.home, "name": name, **_settings(machine)}
    if "*" in template:  # a pattern: the names themselves are literal
        names, folders = {name: glob.escape(path) for name, path in names.items()}, [*map(glob.escape, folders)]
    return [paths.normpath(template.format(**names, project=folder)) for folder in folders]


def projects(machine: Machine) -> Iterator[str]:
    """Yield the working directory, and its parents that are in the home or in the same git working tree."""
    paths, folder = machine.paths, machine.cwd
    yield folder
    inside = [paths.join(machine.home, "")]
    if machine.repository:
        inside.append(paths.join(machine.repository, ""))
    while (above := paths.dirname(folder)) != folder and (
        above == machine.repository or above.startswith(tuple(inside))
    ):
        folder = above
        yield folder


def _settings(machine: Machine) -> dict[str, str]:
    """Return the directories for a user's settings; on Windows, `local` are those that do not roam."""
    paths, home, environ = machine.paths, machine.home, machine.environ
    xdg = environ.get("XDG_CONFIG_HOME", "").strip() or paths.join(home, ".config")
    data = environ.get("XDG_DATA_HOME", "").strip() or paths.join(home, ".local", "share")
    cache = environ.get("XDG_CACHE_HOME", "").strip() or paths.join(home, ".cache")
    config, local = xdg, ""
    if machine.platform == "win32":
        config = environ.get("APPDATA", paths.join(home, "AppData", "Roaming"))
        local = environ.get("LOCALAPPDATA", paths.join(home, "AppData", "Local"))
    elif machine.platform == "darwin":
        config, cache = (paths.join(home, "Library", folder) for folder in ("Application Support", "Caches"))
    return {"config": config, "local": local, "xdg": xdg, "data": data, "cache": cache}


def find(client: Client, machine: Machine, scope: str | None = None) -> list[Found]:
    """Return the places of a client whose files exist, each once, in the order of the table; `scope` None means all."""
    found: dict[tuple[str, tuple[str, ...]], Found] = {}
    for place in client.places:
        there = [existing for path in candidates(place, machine) if (existing := _existing(path))]
        for path in (path for paths in (there if place.every else there[:1]) for path in paths):
            found.setdefault((os.path.realpath(path), place.root), Found(client, place, path))
    return [one for one in found.values() if scope in (None, one.place.scope)]


def in_file(client: Client, path: str) -> Found:
    """Return the file at `path` as a place of a client, of the form whose list of servers it has. Raises Error."""
    form = {".toml": TOML, ".yaml": YAML, ".yml": YAML}.get(os.path.splitext(path)[1].lower(), JSON)
    places = [place for place in client.places if place.form == form]
    if not places:
        raise UsageError(f"{client.name} has no configurations in {form.upper()}, so it cannot read {path}")
    try:
        keys = plain(read(load(path).text, form))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}" if path not in str(error) else str(error)) from error
    fits = [place for place in places if isinstance(keys, dict) and place.root[0] in keys]
    return Found(client, replace([*fits, *places][0], note=""), os.path.abspath(path))


def present(machine: Machine) -> list[Found]:
    """Return the places of all clients that are on this machine, as their own files show."""
    found = [find(client, machine) for client in CLIENTS]
    return [place for places in found if not all(one.place.foreign for one in places) for place in places]


def _existing(path: str) -> list[str]:
    if "*" in path:
        return sorted(glob.glob(path))
    return [path] if os.path.lexists(path) else []


def sharing(found: Found, machine: Machine) -> list[str]:
    """Return the names of the other clients that read the same servers from the same file."""
    real, root = os.path.realpath(found.path), found.place.root
    others = [other for candidate in CLIENTS if candidate is not found.client for other in find(candidate, machine)]
    same = [other for other in others if os.path.realpath(other.path) == real and other.place.root == root]
    return [other.client.name for other in same]
