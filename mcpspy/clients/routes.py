"""How remote servers reach `mcpspy proxy`: each has a route, a name that stands for an origin.

`install` turns `https://host/mcp?x` into `http://127.0.0.1:6278/NAME/mcp?x`, and `proxy --from CLIENT` serves NAME.
A route once given is never given to another origin and never forgotten: the configuration that names it may be one in
a project that comes and goes, and its way back is nowhere else. It is served while a configuration names it.
"""

import ipaddress
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.capture.location import home, make_directory, printable_name
from mcpspy.clients.apply import write_private
from mcpspy.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PORT = 6278
PROXY = f"http://127.0.0.1:{PORT}"

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?")  # RFC 1123, 2.1, and the '_' that people use
_URL = re.compile(r"(?P<origin>https?://[^/?#]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a route leads, and for which configurations of which clients (their ids) it was made."""

    origin: str
    paths: Mapping[str, tuple[str, ...]]


class Url(NamedTuple):
    """A URL of a server: scheme and authority, and all that follows."""

    origin: str
    rest: str


def split(url: str) -> Url | None:
    """The two parts of an http or https URL; None for any other."""
    match = _URL.fullmatch(url)
    return Url(match["origin"], match["rest"]) if match else None


def routed(url: str) -> tuple[str, str] | None:
    """The route that a URL of ours names, and the rest; None for any other URL."""
    match = re.fullmatch(rf"{re.escape(PROXY)}/(?P<name>[\w.-]+)(?P<rest>(?:[/?#].*)?)", url, re.DOTALL)
    return (match["name"], match["rest"]) if match else None


def refused(origin: str) -> str:
    """Why the proxy cannot relay to an origin; empty if it can."""
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
    """Whether an origin that is not `refused` is on this machine."""
    host = urlsplit(origin).hostname or ""
    if not _is_address(host):
        return host.rstrip(".") == "localhost" or host.endswith(".localhost")
    address = ipaddress.ip_address(host)
    return address.is_loopback or address.is_unspecified


def _is_address(host: str) -> bool:
    """Whether it is an IP address; one with a zone is of one machine's interface, and no URL has it (RFC 9844)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def assign(
    routes: Mapping[str, Route], server: str, origin: str, client: str, path: str
) -> tuple[str, dict[str, Route]]:
    """The route of a server in the configuration of a client, named after the server, and all routes with it."""
    base, number = printable_name(server), 1
    name = base
    while name in routes and routes[name].origin != origin:
        number += 1
        name = f"{base}-{number}"
    return name, known(routes, name, origin, client, path)


def known(routes: Mapping[str, Route], name: str, origin: str, client: str, path: str) -> dict[str, Route]:
    """All routes, the one called `name` also for a configuration of a client."""
    paths = dict(routes[name].paths) if name in routes else {}
    paths[client] = tuple(dict.fromkeys((*paths.get(client, ()), path)))
    return {**routes, name: Route(origin, paths)}


def routes_of(client: str, there: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The routes, as name and origin, that configurations of a client (its id) name now.

    `there` are the paths of those that lie here; the routes in one may have been made for another client that reads it.
    """
    there = list(there)
    return [
        (name, route.origin)
        for name, route in load().items()
        if any(_names(path, name) for path in dict.fromkeys((*route.paths.get(client, ()), *there)))
    ]


def _names(path: str, name: str) -> bool:
    """Whether a URL in the file at `path` begins with the route."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return re.search(rf"{re.escape(PROXY)}/{re.escape(name)}(?![\w.-])", file.read()) is not None
    except OSError:
        return False


def load() -> dict[str, Route]:
    """All routes; raises ConfigError if the file of them is damaged."""
    try:
        with open(_path(), encoding="utf-8") as file:
            fields = json.load(file)
        return {
            name: Route(route["origin"], {client: tuple(paths) for client, paths in route["paths"].items()})
            for name, route in fields.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {_path()}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{_path()} is damaged: it holds the routes of 'mcpspy install'; repair it") from error


def save(routes: Mapping[str, Route]) -> None:
    """Add these routes to those in the file, where another `install` may have put some meanwhile."""
    with _alone():
        merged = load()
        for name, route in routes.items():
            if name in merged and merged[name].origin != route.origin:
                raise ConfigError(f"another install has just taken the route {name!r}; try again")
            for client, paths in route.paths.items():
                for path in paths:
                    merged = known(merged, name, route.origin, client, path)
        fields = {name: {"origin": route.origin, "paths": route.paths} for name, route in merged.items()}
        write_private(_path(), json.dumps(fields, indent=1).encode() + b"\n")


@contextmanager
def _alone() -> Iterator[None]:
    """Nobody else changes the routes meanwhile."""
    folder = home()
    try:
        make_directory(folder)
        fd = os.open(folder, os.O_RDONLY) if fcntl else -1
    except OSError as error:
        raise ConfigError(f"cannot write {_path()}: {error.strerror}") from error
    try:
        if fcntl:
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        if fcntl:
            os.close(fd)


def _path() -> str:
    return os.path.join(home(), "routes.json")
