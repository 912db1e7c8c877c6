"""How remote servers reach `mcpspy proxy`: each has a route, a name that stands for an origin.

`install` turns `https://host/mcp?x` into `http://127.0.0.1:6278/NAME/mcp?x`, and `proxy --from CLIENT` serves NAME.
A route once given is never given to another origin and never forgotten: the configuration that names it may be one in
a project that comes and goes, and its way back is nowhere else.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from mcpspy.capture.place import home, printable_name
from mcpspy.clients.apply import write_private
from mcpspy.errors import ConfigError

PORT = 6278
PROXY = f"http://127.0.0.1:{PORT}"

_URL = re.compile(r"(?P<origin>https?://[^/?#]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a route leads, and for which clients (their ids) it was made."""

    origin: str
    clients: tuple[str, ...]


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


def assign(routes: Mapping[str, Route], server: str, origin: str, client: str) -> tuple[str, dict[str, Route]]:
    """The route of a server, named after it, and all routes with it."""
    base, number = printable_name(server), 1
    name = base
    while name in routes and routes[name].origin != origin:
        number += 1
        name = f"{base}-{number}"
    known = routes.get(name, Route(origin, ()))
    clients = known.clients if client in known.clients else (*known.clients, client)
    return name, {**routes, name: replace(known, clients=clients)}


def routes_of(client: str) -> list[tuple[str, str]]:
    """The routes, as name and origin, that the configurations of a client (its id) were given."""
    return [(name, route.origin) for name, route in load().items() if client in route.clients]


def load() -> dict[str, Route]:
    """All routes; raises ConfigError if the file of them is damaged."""
    try:
        with open(_path(), encoding="utf-8") as file:
            fields = json.load(file)
        return {name: Route(route["origin"], tuple(route["clients"])) for name, route in fields.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {_path()}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{_path()} is damaged: it holds the routes of 'mcpspy install'; repair it") from error


def save(routes: Mapping[str, Route]) -> None:
    """Put all routes in their file, at once."""
    path = _path()
    fields = {name: {"origin": route.origin, "clients": route.clients} for name, route in routes.items()}
    write_private(path, json.dumps(fields, indent=1).encode() + b"\n")


def _path() -> str:
    return os.path.join(home(), "routes.json")
