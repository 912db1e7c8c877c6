"""The MCP clients that are known, as data: where each keeps its servers, and how it writes them.

Adding a client is adding a row here and a fixture in `tests/clients/fixtures`. Everything but `find` is a pure function
of a `Machine`, so that the paths of every platform can be told, and tested, on any.

A path is a template: `{home}`, `{config}` (where programs of the platform keep their settings), `{local}` (Windows: the
same, not roaming), `{project}` (the working directory, and then each directory above it that is in the home: elsewhere
it may be somebody else's).
"""

import glob
import ntpath
import os
import posixpath
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import NamedTuple

from mcpspy.clients.formats import JSONC, STRICT, TOML, YAML
from mcpspy.errors import UsageError

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")
"""All of the user's work; one project, shared with others; one project, for this user alone."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the places of configurations depend on."""

    home: str
    platform: str
    """As `sys.platform`: darwin, win32, linux."""
    environ: Mapping[str, str]
    cwd: str

    @classmethod
    def here(cls) -> "Machine":
        """The one that we run on."""
        home = os.path.realpath(os.path.expanduser("~"))  # as the working directory is told
        try:
            cwd = os.getcwd()
        except OSError:  # deleted
            cwd = home
        return cls(home, sys.platform, os.environ, cwd)

    @property
    def paths(self) -> ModuleType:
        """The `os.path` of the platform."""
        return ntpath if self.platform == "win32" else posixpath


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a client, or one place in it, where servers are listed."""

    scope: str
    path: str | Mapping[str, str]
    """A template, or one for each platform that has such a place; a `*` stands for any name."""
    form: str
    """A format of `clients.formats`."""
    root: tuple[str, ...] = ("mcpServers",)
    """The keys that lead to the servers; `{project}` is the key that names the nearest project."""
    variable: tuple[str, str] | None = None
    """An environment variable that moves the file, and the path (template) below its value."""


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    id: str
    name: str
    places: tuple[Place, ...]
    source: str
    """Where this is documented."""
    checked: str
    """When that was read."""
    remote: tuple[str, ...] = ("url",)
    """The keys of a remote server's URL."""
    desktop: bool = True
    """Started from the desktop, so with the desktop's PATH and not with a shell's."""
    expands: str = ""
    """What it replaces beside `${…}`: `~` at the beginning of a word by the home, `$` with a name by the variable."""
    advice: str = "restart the server in {name}"
    """What makes the client read its configuration again."""


_CHECKED = "2026-11-20"

CLIENTS = (
    Client(
        "cursor",
        "Cursor",
        (Place(USER, "{home}/.cursor/mcp.json", JSONC), Place(PROJECT, "{project}/.cursor/mcp.json", JSONC)),
        "https://cursor.com/docs/mcp.md",
        _CHECKED,
        advice="restart the server in Cursor (Settings, MCP)",
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        (
            Place(USER, "{config}/Claude/claude_desktop_config.json", STRICT),
            # Installed as an MSIX package it reads its own copy (anthropics/claude-code#26073).
            Place(
                USER,
                {"win32": "{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json"},
                STRICT,
            ),
        ),
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        _CHECKED,
        advice="quit Claude Desktop and start it again",
    ),
    Client(
        "claude-code",
        "Claude Code",
        (
            Place(USER, "{home}/.claude.json", STRICT, variable=("CLAUDE_CONFIG_DIR", ".claude.json")),
            Place(
                LOCAL,
                "{home}/.claude.json",
                STRICT,
                ("projects", "{project}", "mcpServers"),
                ("CLAUDE_CONFIG_DIR", ".claude.json"),
            ),
            Place(PROJECT, "{project}/.mcp.json", STRICT),
        ),
        "https://code.claude.com/docs/en/mcp",
        _CHECKED,
        desktop=False,
        advice="start Claude Code again; one that was running may write its file anew",
    ),
    Client(
        "vscode",
        "VS Code",
        (
            Place(USER, "{config}/Code/User/mcp.json", JSONC, ("servers",)),
            Place(PROJECT, "{project}/.vscode/mcp.json", JSONC, ("servers",)),
            Place(PROJECT, "{project}/.mcp.json", JSONC),
            Place(USER, "{home}/.copilot/mcp-config.json", JSONC),
        ),
        "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        _CHECKED,
        expands="~",  # microsoft/vscode, extHostMcpNode.ts
        advice="restart the server in VS Code (MCP: List Servers)",
    ),
    Client(
        "windsurf",
        "Windsurf",
        (Place(USER, "{home}/.codeium/windsurf/mcp_config.json", JSONC),),
        "https://docs.windsurf.com/windsurf/cascade/mcp",
        _CHECKED,
        remote=("serverUrl", "url"),
        advice="refresh the servers in Windsurf (Cascade, MCP)",
    ),
    Client(
        "cline",
        "Cline",
        (
            Place(
                USER,
                "{home}/.cline/data/settings/cline_mcp_settings.json",
                JSONC,
                variable=("CLINE_MCP_SETTINGS_PATH", ""),
            ),
            Place(
                USER,
                "{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                JSONC,
            ),
        ),
        "https://docs.cline.bot/mcp/mcp-overview",
        _CHECKED,
    ),
    Client(
        "zed",
        "Zed",
        (
            Place(
                USER,
                {
                    "darwin": "{home}/.config/zed/settings.json",
                    "linux": "{config}/zed/settings.json",
                    "win32": "{config}/Zed/settings.json",
                },
                JSONC,
                ("context_servers",),
            ),
            Place(PROJECT, "{project}/.zed/settings.json", JSONC, ("context_servers",)),
        ),
        "https://zed.dev/docs/ai/mcp",
        _CHECKED,
    ),
    Client(
        "continue",
        "Continue",
        (
            Place(USER, "{home}/.continue/config.yaml", YAML),
            Place(PROJECT, "{project}/.continue/mcpServers/*.yaml", YAML),
            Place(PROJECT, "{project}/.continue/mcpServers/*.json", JSONC),
        ),
        "https://docs.continue.dev/customize/deep-dives/mcp",
        _CHECKED,
    ),
    Client(
        "librechat",
        "LibreChat",
        (Place(PROJECT, "{project}/librechat.yaml", YAML, variable=("CONFIG_PATH", "")),),
        "https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers",
        _CHECKED,
        desktop=False,
        advice="restart LibreChat",
    ),
    Client(
        "gemini-cli",
        "Gemini CLI",
        (Place(USER, "{home}/.gemini/settings.json", JSONC), Place(PROJECT, "{project}/.gemini/settings.json", JSONC)),
        "https://geminicli.com/docs/tools/mcp-server",
        _CHECKED,
        remote=("httpUrl", "url"),
        desktop=False,
        expands="$",
        advice="start Gemini CLI again",
    ),
    Client(
        "codex",
        "Codex CLI",
        (
            Place(USER, "{home}/.codex/config.toml", TOML, ("mcp_servers",), ("CODEX_HOME", "config.toml")),
            Place(PROJECT, "{project}/.codex/config.toml", TOML, ("mcp_servers",)),
        ),
        "https://developers.openai.com/codex/mcp",
        _CHECKED,
        desktop=False,
        advice="start Codex again",
    ),
)

BY_ID = {client.id: client for client in CLIENTS}


class Found(NamedTuple):
    """A place of a client on this machine."""

    client: Client
    place: Place
    path: str


def client(name: str) -> Client:
    """The client called `name`, by id or by name; raises UsageError with the nearest."""
    plain = name.lower().replace(" ", "-").replace("_", "-")
    for candidate in CLIENTS:
        if plain in (candidate.id, candidate.name.lower().replace(" ", "-")):
            return candidate
    near = get_close_matches(plain, BY_ID, n=1, cutoff=0.5) or [other for other in BY_ID if other.startswith(plain)]
    raise UsageError(
        f"there is no client {name!r}; "
        + (f"did you mean {near[0]!r}?" if len(near) == 1 else f"the clients are {', '.join(BY_ID)}")
    )


def candidates(place: Place, machine: Machine) -> list[str]:
    """The paths where the file of a place may lie, the first that exists being the one; none on some platforms."""
    paths = machine.paths
    if place.variable and (value := machine.environ.get(place.variable[0])):
        return [paths.normpath(paths.join(machine.cwd, value, place.variable[1]))]
    template = place.path if isinstance(place.path, str) else place.path.get(machine.platform)
    if template is None:
        return []
    folders = [folder.rstrip("/") for folder in projects(machine)] if "{project}" in template else [""]
    config, local = _settings(machine)
    names = {"home": machine.home, "config": config, "local": local}
    if "*" in template:  # a pattern: what is in the names is meant as it stands
        names, folders = {name: glob.escape(path) for name, path in names.items()}, [*map(glob.escape, folders)]
    return [paths.normpath(template.format(**names, project=folder)) for folder in folders]


def projects(machine: Machine) -> Iterator[str]:
    """The working directory, and those above it that are in the home."""
    paths, folder = machine.paths, machine.cwd
    yield folder
    while (folder := paths.dirname(folder)).startswith(paths.join(machine.home, "")):
        yield folder


def _settings(machine: Machine) -> tuple[str, str]:
    """Where programs keep the user's settings, and on Windows those that do not roam."""
    paths, home, environ = machine.paths, machine.home, machine.environ
    if machine.platform == "win32":
        data = paths.join(home, "AppData")
        return environ.get("APPDATA", paths.join(data, "Roaming")), environ.get(
            "LOCALAPPDATA", paths.join(data, "Local")
        )
    if machine.platform == "darwin":
        return paths.join(home, "Library", "Application Support"), ""
    return environ.get("XDG_CONFIG_HOME") or paths.join(home, ".config"), ""


def find(client: Client, machine: Machine, scope: str | None = None) -> list[Found]:
    """The places of a client whose files exist, each once, in the order of the table; `scope` None is all."""
    found: dict[tuple[str, tuple[str, ...]], Found] = {}
    for place in client.places:
        there = (existing for path in candidates(place, machine) if (existing := _existing(path)))
        for path in next(there, []):
            found.setdefault((os.path.realpath(path), place.root), Found(client, place, path))
    return [one for one in found.values() if scope in (None, one.place.scope)]


def _existing(path: str) -> list[str]:
    if "*" in path:
        return sorted(glob.glob(path))
    return [path] if os.path.lexists(path) else []


def sharing(found: Found, machine: Machine) -> list[str]:
    """The names of the other clients that read the same servers from the same file."""
    real, root = os.path.realpath(found.path), found.place.root
    others = [other for candidate in CLIENTS if candidate is not found.client for other in find(candidate, machine)]
    same = [other for other in others if os.path.realpath(other.path) == real and other.place.root == root]
    return [other.client.name for other in same]
