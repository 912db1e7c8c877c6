"""How the text of a configuration changes with another port of the proxy: the port in each URL of mcpspy. Pure."""

from collections.abc import Mapping

from mcpspy.clients.entries import Entry, Refusal, remote
from mcpspy.clients.machine import Machine
from mcpspy.clients.places import Found
from mcpspy.clients.plan import LEAVE, ROUTE, Plan, Step, listed_in, other_origin, proved
from mcpspy.clients.routes import Route, base, routed


def move(text: str, found: Found, machine: Machine, routes: Mapping[str, Route], port: int) -> Plan:
    """Change the port of every route in `text`. Raises ConfigError."""
    listed = listed_in(text, found, machine)
    steps = [_other_port(text, entry, routes, port) for entry in listed]
    return Plan(proved(text, (), steps, found, machine), steps, [entry.name for entry in listed])


def _other_port(text: str, entry: Entry, routes: Mapping[str, Route], port: int) -> Step:
    try:
        target = remote(entry)
    except Refusal:
        target = None
    through = routed(target.node.value, routes) if target else None
    if not target or not through or through.port == port or through.name not in routes:
        return Step(entry.name, LEAVE, "not moved")
    new = base(through.name, port)
    edit = other_origin(text, target.node, through.base, new, through.rest)
    return Step(entry.name, ROUTE, f"{new}, before {through.base}", (new + through.rest,), (edit,))
