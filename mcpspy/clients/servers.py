"""The servers of this machine's clients, as `status` and `doctor` need them: without mcpspy, and with their state.

Reads configurations and changes none. Each client writes variables in its own way. Some clients do not start the
servers of a directory that they do not trust: for that, their own files are read. A file that cannot be read counts as
empty, because the client itself reports that. If a client has no directory in the home, it was never started, and
nothing is reported. Each rule was observed in the version of the client in its row of `clients.table`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpspy.capture.records import Header
from mcpspy.clients.apply import load
from mcpspy.clients.entries import Entry, Refusal, entries, launch, only_switched, remote, unknown, wrapped
from mcpspy.clients.formats import JSON, TOML, read
from mcpspy.clients.launcher import is_agent
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.routes import PORT, Route, routed
from mcpspy.clients.table import BRACES, DOLLAR, ENV, HOME, IN_BRACES, PROJECT, Client
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError
from mcpspy.secrets.redactor import Redactor
from mcpspy.spec.client_limits import BY_CLIENT

_VARIABLE = re.compile(r"\$\{(?P<name>[^}]*)\}")
_BRACES = re.compile(r"\{(?P<name>(?:env|file):[^}]*)\}")
_BARE = re.compile(r"\$(?P<bare>[A-Za-z_]\w*)")
_DOLLAR = re.compile(f"{_VARIABLE.pattern}|{_BARE.pattern}")
_OF_ENVIRONMENT = re.compile(r"[A-Za-z_]\w*(?::-.*)?", re.DOTALL)
_LIKE = re.compile(
    r"\$\{[A-Za-z_][\w.]{0,99}(?::[^{}]{0,99})?\}|\$\{\{ ?[\w.]{1,99} ?\}\}"
    r"|(?<![${])\{env:[A-Za-z_]\w{0,99}\}|\$env:[A-Za-z_]\w*"
    r"|(?<!\S)\$[A-Z][A-Z0-9_]{2,99}(?![^\s/\\])|%[A-Z_]{3,99}%"  # of a shell: $HOME/x, %APPDATA%
)
_OWN = ("userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/", "execPath", "cwd")


def expanded(text: str, client: Client, machine: Machine) -> str:
    """Return `text` with the variables that this client replaces; variables without a known value stay."""

    def value(match: re.Match[str]) -> str:
        name, _, default = _variable(match).removeprefix("env:").partition(":-")
        known = {
            "userHome": machine.home,
            "workspaceFolder": machine.cwd,
            "workspaceFolderBasename": machine.paths.basename(machine.cwd),
            "/": machine.paths.sep,
            "pathSeparator": machine.paths.sep,
        }
        return machine.environ.get(name) or (ENV in client.forms and known.get(name)) or default or match[0]

    if HOME in client.forms and (text == "~" or text.startswith(("~/", "~\\"))):
        text = machine.home + text[1:]
    parts, place = [], 0
    for match in _variables(text, client):
        parts += [text[place : match.start()], value(match)]
        place = match.end()
    return "".join([*parts, text[place:]])


def unresolved(text: str, client: Client, machine: Machine) -> list[str]:
    """Return the names of the variables that stay."""
    return [_variable(match) for match in _variables(expanded(text, client, machine), client)]


def unexpanded(text: str, client: Client) -> list[str]:
    """Return what looks like variables in `text`, in forms of other clients: this client leaves them as they are."""
    own = {match.start() for match in _variables(text, client)}
    return [match[0] for match in _LIKE.finditer(text) if match.start() not in own]


def has_variable(text: str, client: Client) -> bool:
    """Return whether this client replaces something in `text`, or would if the variable were known."""
    begins = HOME in client.forms and text.startswith("~")
    return begins or any(True for _ in _variables(text, client))


def _variables(text: str, client: Client) -> Iterator[re.Match[str]]:
    """Yield the variables in `text`, in the forms of this client.

    Behind the last closing brace, no opening one is looked at: each would be compared with the whole rest.
    """
    forms, last = client.forms, text.rfind("}") + 1
    if IN_BRACES in forms:
        yield from _BRACES.finditer(text, 0, last)
    else:
        form = _DOLLAR if DOLLAR in forms else _VARIABLE
        yield from (match for match in form.finditer(text, 0, last) if _replaces(match, forms))
    if DOLLAR in forms:
        yield from _BARE.finditer(text, last)


def _replaces(match: re.Match[str], forms: tuple[str, ...]) -> bool:
    """Return whether a client with these forms replaces a variable in braces, or a bare one."""
    name = match["name"]
    if name is None:
        return True
    if _OF_ENVIRONMENT.fullmatch(name):
        return BRACES in forms or (ENV in forms and name in _OWN)
    return ENV in forms


def _variable(match: re.Match[str]) -> str:
    """Return the name in a match; a bare name is always an environment variable."""
    groups = match.groupdict()
    return f"env:{groups['bare']}" if groups.get("bare") is not None else groups["name"]


TRUST_IT = "start it there once and trust the folder"


def untrusted(found: Found, machine: Machine) -> str:
    """Return why the client starts no server of this place in the working directory; empty if it does.

    It is also empty if that is not known.
    """
    trusts = _TRUSTS.get(found.client.id)
    of_project = found.place.scope == PROJECT
    if not trusts or (found.client.id in ("codex", "copilot") and not of_project):  # these ignore only project files
        return ""
    home = _home(found.client.id, machine)
    if not os.path.isdir(home) or trusts(home, machine):
        return ""
    what = "this file" if of_project else "its servers, the user's too"
    return f"{found.client.name} does not trust {machine.cwd}, and ignores {what}"


def _home(client: str, machine: Machine) -> str:
    """Return the directory where a client keeps its state."""
    environ, join = machine.environ, os.path.join
    if client == "gemini-cli":
        return join(environ.get("GEMINI_CLI_HOME") or machine.home, ".gemini")
    variable, folder = {"qwen": ("QWEN_HOME", ".qwen"), "codex": ("CODEX_HOME", ".codex")}.get(
        client, ("COPILOT_HOME", ".copilot")
    )
    return environ.get(variable) or join(machine.home, folder)


def _gemini(home: str, machine: Machine) -> bool:
    told = machine.environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    return told == "true" or (told != "false" and _by_rules(home, machine, "GEMINI_CLI", asks=True))


def _qwen(home: str, machine: Machine) -> bool:
    return _by_rules(home, machine, "QWEN_CODE", asks=False)


def _by_rules(home: str, machine: Machine, prefix: str, *, asks: bool) -> bool:
    """Apply the rules of Gemini CLI and its descendants: the longest path with a rule decides.

    `asks` is the default of the setting.
    """
    if _member(_values(os.path.join(home, "settings.json"), JSON), asks, "security", "folderTrust", "enabled") is False:
        return True
    path = machine.environ.get(f"{prefix}_TRUSTED_FOLDERS_PATH") or os.path.join(home, "trustedFolders.json")
    longest, trusted = -1, False
    for rule, level in _values(path, JSON).items():
        root = os.path.dirname(rule) if level == "TRUST_PARENT" else rule
        if len(rule) > longest and _inside(machine.cwd, [root]):
            longest, trusted = len(rule), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def _codex(home: str, machine: Machine) -> bool:
    """Return whether Codex trusts the directory itself, or the git working tree around it."""
    values = _values(os.path.join(home, "config.toml"), TOML)
    folders = [folder for folder in (machine.cwd, machine.repository, machine.main) if folder]
    return any(_member(values, "", "projects", folder, "trust_level") == "trusted" for folder in folders)


def _copilot(home: str, machine: Machine) -> bool:
    values = _values(os.path.join(home, "config.json"), JSON)
    folders = [_member(values, [], key) for key in ("trustedFolders", "trusted_folders")]
    return machine.environ.get("COPILOT_ALLOW_ALL") == "true" or any(
        _inside(machine.cwd, some) for some in folders if isinstance(some, list)
    )


_TRUSTS = {"gemini-cli": _gemini, "qwen": _qwen, "codex": _codex, "copilot": _copilot}


def _inside(folder: str, roots: Iterable[Any]) -> bool:
    real = os.path.join(os.path.realpath(folder), "")
    return any(real.startswith(os.path.join(os.path.realpath(root), "")) for root in roots if isinstance(root, str))


def _member(values: Any, default: Any, *keys: str) -> Any:
    """Return the value at a path of keys."""
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return default
        values = values[key]
    return values


def _values(path: str, form: str) -> Mapping[str, Any]:
    """Return the values in a file of a client; an empty mapping if it is missing or unreadable."""
    try:
        values = plain(read(load(path).text, form))
    except ConfigError:
        return {}
    return values if isinstance(values, dict) else {}


@dataclass(slots=True)
class Server:
    """One server of one configuration."""

    found: Found
    name: str
    label: str
    """The name of its captures."""
    words: list[str] = field(default_factory=list)
    """Its own command line; empty for a remote server."""
    launcher: list[str] = field(default_factory=list)
    """What starts mcpspy in front of it; empty if it is not wrapped."""
    url: str | None = None
    """The URL of a remote server, without mcpspy if that is known."""
    route: str | None = None
    """The route of a remote server through the proxy."""
    port: int = PORT
    """The port of the proxy for that route."""
    environ: dict[str, str] = field(default_factory=dict)
    """The variables that the configuration adds to its environment."""
    env_file: str | None = None
    """The path of a file with more variables."""
    cwd: str | None = None
    begin: float | None = None
    """Seconds until the client stops waiting for its first response, if that is known."""
    disabled: bool = False
    problem: str = ""
    """What is wrong with the entry, if it could not be parsed."""
    members: Mapping[str, Any] = field(default_factory=dict)
    """Its entry as plain values; what an object in it holds about the server stands beside the rest."""

    @property
    def state(self) -> str:
        """wrapped, routed, not wrapped, not routed, for agents (`mcpspy mcp` itself) or broken."""
        if self.problem:
            return "broken"
        if is_agent(self.words):
            return "for agents"
        if self.words:
            return "wrapped" if self.launcher else "not wrapped"
        return "routed" if self.route else "not routed"


def servers(found: Found, machine: Machine, routes: Mapping[str, Route]) -> list[Server]:
    """Return the servers at a place. Raises ConfigError, with the file, if it cannot be read."""
    text = load(found.path).text
    try:
        listed = entries(read(text, found.place.form), found, machine, text)
    except ConfigError as error:
        raise ConfigError(f"{found.path}: {error}") from error
    return [_server(found, entry, routes) for entry in listed if not _switch(entry)]


def _switch(entry: Entry) -> bool:
    try:
        return only_switched(entry)
    except Refusal:
        return False


def _server(found: Found, entry: Entry, routes: Mapping[str, Route]) -> Server:
    server = Server(found, entry.name, entry.label)
    try:
        server.disabled = entry.disabled
        server.members = plain(entry.node) | plain(entry.body)
        waits = BY_CLIENT.get(found.client.id)
        server.begin = waits.begin_of(entry.scalar) if waits else None
        launched = launch(entry)
        if launched:
            behind = wrapped(launched.words)
            server.words = behind.words if behind else launched.words
            server.launcher = behind.launcher if behind else []
            if not server.words or not server.words[0]:
                raise Refusal("its command is empty")
        elif target := remote(entry):
            server.url = target.node.value
            if ours := routed(target.node.value, routes):
                server.route, server.port = ours.name, ours.port
                server.url = routes[ours.name].origin + ours.rest if ours.name in routes else None
        else:
            raise unknown(entry)
        holder, key = plain(launched.holder if launched else entry.body), found.client.env
        environ = plain(entry.body).get(key) or holder.get(key)
        if isinstance(environ, dict):
            server.environ = {key: str(value) for key, value in environ.items() if value is not None}
        server.cwd = holder["cwd"] if isinstance(holder.get("cwd"), str) else None
        server.env_file = holder["envFile"] if isinstance(holder.get("envFile"), str) else None
    except Refusal as refusal:
        server.problem = str(refusal)
    return server


def wrote(server: Server, header: Header) -> bool:
    """Return whether a capture is of a server: its header has the same name, and the same command line or route."""
    if server.url or server.route:
        return header.transport == "http" and header.name == server.route
    if header.name != server.label or len(header.argv) != len(server.words):
        return False
    words = zip(server.words, Redactor().argv(server.words), header.argv, strict=True)
    client = server.found.client
    return all(has_variable(word, client) or clean == recorded for word, clean, recorded in words)
