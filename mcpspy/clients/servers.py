"""The servers of this machine's clients, as `status` and `doctor` need them: without mcpspy, and with their state.

Reads configurations and changes none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpspy.clients.agent import is_agent
from mcpspy.clients.apply import load
from mcpspy.clients.entries import Entry, Refusal, entries, launch, only_switched, remote, unknown, wrapped
from mcpspy.clients.formats import read
from mcpspy.clients.machine import Machine
from mcpspy.clients.places import Found
from mcpspy.clients.routes import PORT, Route, routed
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError
from mcpspy.spec.client_limits import BY_CLIENT


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
