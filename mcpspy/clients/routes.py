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
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.capture.location import home, make_directory, printable_name
from mcpspy.clients.apply import LARGEST, write_private
from mcpspy.errors import ConfigError
from mcpspy.foreign_file import read_foreign
from mcpspy.json_values import parsed

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
_NAMED = re.compile(r"//127\.0\.0\.1:(\d{1,5})/([\w.-]+)")
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


def ports_of(routes: Mapping[str, Route]) -> set[int]:
    """Return all ports that the URLs of routes may have."""
    return {PORT, *(port for route in routes.values() for port in route.ports)}


def ours(text: str, ports: Iterable[int]) -> bool:
    """Return whether a text may contain an edit by mcpspy, with one of these ports."""
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


class Assignment:
    """All routes, while the servers of one configuration of a client get theirs."""

    def __init__(self, routes: Mapping[str, Route], client: str, path: str) -> None:
        self.routes = dict(routes)
        """All routes, including those that were assigned."""
        self._client, self._path = client, path
        own = next((route.port for route in routes.values() if client in route.paths), None)
        self._port = own  # one proxy serves all routes of a client
        self._names: defaultdict[str, dict[str, str]] = defaultdict(dict)  # the name for each origin, by plain names
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))

    def assign(self, server: str, origin: str) -> str:
        """Return the route of a server, which is named after it."""
        plain = printable_name(server)
        names = self._names[plain]
        while origin not in names:  # it goes on where the search for another origin has stopped
            number = next(self._numbers[plain])
            name = plain if number == 1 else f"{plain}-{number}"
            self.routes.setdefault(name, Route(origin, {}, (self._port or PORT,)))
            names.setdefault(self.routes[name].origin, name)
        self.keep(names[origin])
        return names[origin]

    def keep(self, name: str) -> None:
        """Note that a route also belongs to this configuration."""
        self.routes[name] = _known(self.routes[name], self._client, self._path)
        self._port = self._port or self.routes[name].port


def moved(route: Route, port: int) -> Route:
    """Return a route with another port for new URLs."""
    return replace(route, ports=(*(old for old in route.ports if old != port), port))


def _known(route: Route, client: str, path: str) -> Route:
    """Return a route that also belongs to a configuration of a client."""
    paths = tuple(dict.fromkeys((*route.paths.get(client, ()), path)))
    return replace(route, paths={**route.paths, client: paths})


def routes_of(client: str, there: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the routes, as name and origin, that configurations of a client (its id) name now.

    `there` are the paths of its configurations on this machine; a route in one may have been made for another client
    that reads the same file.
    """
    there, named = list(there), cache(_named)
    return [
        (name, route.origin)
        for name, route in load().items()
        if any(_names(named(path), name, (PORT, *route.ports)) for path in {*route.paths.get(client, ()), *there})
    ]


def _named(path: str) -> frozenset[tuple[str, str]]:
    """Return the ports and the names of routes in the URLs of the file at `path`."""
    try:
        return frozenset(_NAMED.findall(read_foreign(path, LARGEST).decode(errors="replace")))
    except OSError:
        return frozenset()


def _names(named: Container[tuple[str, str]], name: str, ports: Iterable[int]) -> bool:
    """Return whether a URL begins with the route, on one of these ports."""
    return any((str(port), name) in named for port in ports)


def names_other_port(path: str, names: Iterable[str], port: int) -> bool:
    """Return whether a URL in the file at `path` begins with one of these routes on a port other than `port`."""
    routes, named = load(), _named(path)
    return any(_names(named, name, {PORT, *routes[name].ports} - {port}) for name in names)


def load() -> dict[str, Route]:
    """Return all routes. Raises ConfigError if their file is damaged."""
    try:
        fields = parsed(read_foreign(_path(), LARGEST))
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
            if name not in merged and not any(route.paths.values()):
                continue
            one = merged.get(name, Route(route.origin, {}))
            for client, path in ((client, path) for client, paths in route.paths.items() for path in paths):
                one = _known(one, client, path)
            one = replace(one, ports=tuple(dict.fromkeys((*one.ports, *route.ports))))
            merged[name] = moved(one, route.port)
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
