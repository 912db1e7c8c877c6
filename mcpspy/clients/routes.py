"""How remote servers reach `mcpspy proxy`: each has a route, which is a name for an origin.

`install` changes `https://host/mcp?x` to `http://127.0.0.1:6278/NAME/mcp?x`, and `proxy --from CLIENT` serves NAME. A
route is never assigned to another origin and never deleted: the configuration that names it may be in a project that is
not always on the machine, and the original URL is stored nowhere else. A route is served while a configuration names
it.

The port is 6278 unless it is in use: `proxy --from CLIENT --listen HOST:PORT` moves the client's routes to another one.
A route remembers every port that it had, so a URL with an old port is still recognised.
"""

import ipaddress
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.capture.location import home, make_directory, printable_name
from mcpspy.clients.apply import LARGEST, write_private
from mcpspy.errors import ConfigError
from mcpspy.foreign_file import read_foreign

try:
    import fcntl
except ImportError:  # Windows
    pass

PORT = 6278

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?")  # RFC 1123, 2.1, and the '_' that people use
_OURS = re.compile(
    r"(?P<base>http://127\.0\.0\.1:(?P<port>\d{1,5})/(?P<name>[\w.-]+))(?P<rest>(?:[/?#].*)?)", re.DOTALL
)
_URL = re.compile(r"(?P<origin>https?://[^/?#]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Route:
    """The origin of a route, and the configurations of clients (by their ids) that it was made for."""

    origin: str
    paths: Mapping[str, tuple[str, ...]]
    ports: tuple[int, ...] = (PORT,)
    """The ports in its URLs; the last one is the latest that `proxy` was given."""

    @property
    def port(self) -> int:
        """The port for new URLs."""
        return self.ports[-1]


class Routed(NamedTuple):
    """The parts of a URL that goes through the proxy: `http://127.0.0.1:6278/NAME`, its port, its name, the rest."""

    base: str
    port: int
    name: str
    rest: str


class Url(NamedTuple):
    """A URL of a server: scheme and authority, and the rest."""

    origin: str
    rest: str


def split(url: str) -> Url | None:
    """Return the two parts of an http or https URL; None for any other."""
    match = _URL.fullmatch(url)
    return Url(match["origin"], match["rest"]) if match else None


def base(name: str, port: int = PORT) -> str:
    """Return the URL that replaces the origin of a route."""
    return f"http://127.0.0.1:{port}/{name}"


def routed(url: str, routes: Mapping[str, Route]) -> Routed | None:
    """Return the parts of a URL that `install` wrote; None for any other URL."""
    match = _OURS.fullmatch(url)
    if not match or int(match["port"]) not in (PORT, *(routes[match["name"]].ports if match["name"] in routes else ())):
        return None
    return Routed(match["base"], int(match["port"]), match["name"], match["rest"])


def ours(text: str, routes: Mapping[str, Route]) -> bool:
    """Return whether a text may contain an edit by mcpspy."""
    ports = {PORT, *(port for route in routes.values() for port in route.ports)}
    return "mcpspy" in text.lower() or any(f"//127.0.0.1:{port}/" in text.replace("\\/", "/") for port in ports)


def refused(origin: str) -> str:
    """Return why the proxy cannot relay to an origin; empty if it can."""
    if "@" in origin:
        return "its URL holds a password: put that into a header, and it can be routed"
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "its URL has no valid host or port"
    if not (_NAME.fullmatch(host) or _is_address(host)):
        said = f", but {host!r}" if host else ""
        return f"its URL has no valid host{said}" + ("" if host.isascii() else ": write it in ASCII, as xn--…")
    if local(origin) and port == PORT:
        return f"it is behind a proxy already: port {PORT} is mcpspy's own"
    return ""


def local(origin: str) -> bool:
    """Return whether an origin that is not `refused` is on this machine."""
    host = urlsplit(origin).hostname or ""
    if not _is_address(host):
        return host.rstrip(".") == "localhost" or host.endswith(".localhost")
    address = ipaddress.ip_address(host)
    return address.is_loopback or address.is_unspecified


def _is_address(host: str) -> bool:
    """Return whether it is an IP address; one with a zone is specific to an interface and not valid here (RFC 9844)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def assign(
    routes: Mapping[str, Route], server: str, origin: str, client: str, path: str
) -> tuple[str, dict[str, Route]]:
    """Return the route of a server in a client's configuration, named after the server, and all routes including it."""
    plain, number = printable_name(server), 1
    name = plain
    while name in routes and routes[name].origin != origin:
        number += 1
        name = f"{plain}-{number}"
    if name not in routes:  # one proxy serves all routes of a client
        port = next((route.port for route in routes.values() if client in route.paths), PORT)
        routes = {**routes, name: Route(origin, {}, (port,))}
    return name, known(routes, name, origin, client, path)


def moved(route: Route, port: int) -> Route:
    """Return a route with another port for new URLs."""
    return replace(route, ports=(*(old for old in route.ports if old != port), port))


def known(routes: Mapping[str, Route], name: str, origin: str, client: str, path: str) -> dict[str, Route]:
    """Return all routes; the one called `name` also belongs to a configuration of a client."""
    paths = dict(routes[name].paths) if name in routes else {}
    paths[client] = tuple(dict.fromkeys((*paths.get(client, ()), path)))
    return {**routes, name: Route(origin, paths, routes[name].ports if name in routes else (PORT,))}


def routes_of(client: str, there: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the routes, as name and origin, that configurations of a client (its id) name now.

    `there` are the paths of its configurations on this machine; a route in one may have been made for another client
    that reads the same file.
    """
    there = list(there)
    return [
        (name, route.origin)
        for name, route in load().items()
        if any(_names(path, name, (PORT, *route.ports)) for path in {*route.paths.get(client, ()), *there})
    ]


def _names(path: str, name: str, ports: Iterable[int]) -> bool:
    """Return whether a URL in the file at `path` begins with the route, on one of these ports."""
    numbers = "|".join(map(str, ports)) or "none"
    try:
        text = read_foreign(path, LARGEST).decode(errors="replace")
    except OSError:
        return False
    return re.search(rf"//127\.0\.0\.1:(?:{numbers})/{re.escape(name)}(?![\w.-])", text) is not None


def names_other_port(path: str, names: Iterable[str], port: int) -> bool:
    """Return whether a URL in the file at `path` begins with one of these routes on a port other than `port`."""
    known = load()
    others = {name: [old for old in (PORT, *known[name].ports) if old != port] for name in names}
    return any(_names(path, name, ports) for name, ports in others.items())


def load() -> dict[str, Route]:
    """Return all routes. Raises ConfigError if their file is damaged."""
    try:
        fields = json.loads(read_foreign(_path(), LARGEST))
        return {
            name: Route(
                route["origin"],
                {client: tuple(paths) for client, paths in route["paths"].items()},
                tuple(map(int, route.get("ports", [PORT]))) or (PORT,),
            )
            for name, route in fields.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {_path()}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{_path()} is damaged: it holds the routes of 'mcpspy install'; repair it") from error


def save(routes: Mapping[str, Route]) -> None:
    """Add these routes to those in the file, to which another `install` may have added some meanwhile."""
    with _alone():
        merged = load()
        for name, route in routes.items():
            if name in merged and merged[name].origin != route.origin:
                raise ConfigError(f"another install has just taken the route {name!r}; try again")
            for client, paths in route.paths.items():
                for path in paths:
                    merged = known(merged, name, route.origin, client, path)
            if name in merged:
                merged[name] = replace(merged[name], ports=tuple(dict.fromkeys((*merged[name].ports, *route.ports))))
                merged[name] = moved(merged[name], route.port)
        fields = {
            name: {"origin": route.origin, "paths": route.paths, "ports": route.ports} for name, route in merged.items()
        }
        write_private(_path(), json.dumps(fields, indent=1).encode() + b"\n")


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock on the routes, so that no other process changes them."""
    folder = home()
    try:
        make_directory(folder)
        fd = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else -1
    except OSError as error:
        raise ConfigError(f"cannot write {_path()}: {error.strerror}") from error
    try:
        if sys.platform != "win32":
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        if sys.platform != "win32":
            os.close(fd)


def _path() -> str:
    return os.path.join(home(), "routes.json")
