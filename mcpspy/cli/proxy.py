"""`mcpspy proxy`: proxy and record HTTP traffic between clients and one or several servers."""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Sequence

from mcpspy.capture.location import printable_name, refuse_compressed
from mcpspy.cli.access import access_of
from mcpspy.cli.gates import compiled, recorded_answers
from mcpspy.cli.output import say
from mcpspy.clients import routes
from mcpspy.clients.drafts import moves, write
from mcpspy.clients.places import Machine, find
from mcpspy.clients.routes import refused
from mcpspy.clients.table import Client, client
from mcpspy.errors import ConfigError, UsageError
from mcpspy.process.ports import bound, bound_path, listening_place, on_ending_signal, to_dial
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.host_guard import Guard, arrives_at, is_loopback
from mcpspy.relay.http.listener import Relay
from mcpspy.relay.http.route import HttpRoute, Upstream
from mcpspy.secrets.redactor import shown
from mcpspy.text import capture_limit

DESCRIPTORS = 32
"""The lowest limit on open files: the relay itself takes 10, a client two, and a module that is loaded late two."""


def run(options: argparse.Namespace) -> int:
    """Relay until a signal arrives."""
    _refuse_few_descriptors()
    place = options.listen.removeprefix("unix:") if options.listen.startswith("unix:") else None
    host, port = ("localhost", 0) if place else listening_place(options.listen, 6278)
    access = access_of(options)
    addresses = _addresses(options)
    refuse_compressed(options.output)
    if options.output and len(addresses) > 1:
        raise UsageError("-o names one file, and each route has a capture of its own: use --capture-dir")
    if options.unix and len(addresses) > 1:
        raise UsageError("--unix names the socket of one server, and there are several routes")
    if place and options.unix and os.path.realpath(place) == os.path.realpath(options.unix):
        raise UsageError(f"{options.unix} is this proxy itself: choose another path with --listen unix:PATH")
    if place and options.clients:
        raise UsageError("the URLs that 'install' writes have a port: with --from, --listen takes HOST:PORT")
    if options.output and options.folder:
        raise UsageError("-o names the file and --capture-dir its directory: give one of them")
    limit = capture_limit(options.limit)
    gates = compiled(options.gate, "http")
    answerers = recorded_answers(gates)
    upstreams = [Upstream(address, access) for address in addresses.values()]
    if place:
        listener = bound_path(place)
    else:
        listener = _on_a_port(options.clients, addresses, host, port)
        port = listener.getsockname()[1]
    served = []
    for (name, address), upstream in zip(addresses.items(), upstreams, strict=True):
        served.append(HttpRoute(address, upstream, _recording(options, name, address, limit)))
    served.sort(key=lambda route: not route.address.prefix)
    relay = Relay(
        served,
        Guard(host, options.allow_host),
        say,
        options.rewrite_oauth,
        gates=gates,
        answerers=answerers,
        control=options.control,
    )
    if not is_loopback(host):
        say(f"listening on {host}: anyone who can reach this machine can use these servers through it")
    urls = {name: _own_url(address, place, f"{to_dial(host)}:{port}") for name, address in addresses.items()}
    lines = [url if len(urls) == 1 else f"{name} {url}" for name, url in urls.items()]
    try:
        asyncio.run(_serve(relay, listener, lines))
    finally:
        if place:
            os.unlink(place)
    return 0


def _on_a_port(clients: Sequence[str], addresses: dict[str, Address], host: str, port: int) -> socket.socket:
    """Return a listening socket, and write its port into the files of clients."""
    option = "--listen"
    if clients:
        option += f" {to_dial(host)}:{port + 1}, which is then written into the client's file"
    listener = bound(host, port, option)
    own, port = listener.getsockname()[:2]
    if clients and not arrives_at("127.0.0.1", own):
        raise UsageError(
            f"the URLs that 'install' writes point to 127.0.0.1: with --from use --listen 127.0.0.1:{port}"
        )
    _refuse_to_relay_to_ourselves(addresses, own, port)
    for chosen in clients:
        _move(client(chosen), port)
    return listener


def _own_url(address: Address, place: str | None, authority: str) -> str:
    """Return the URL for the client: on a Unix socket, in the form of VS Code."""
    target = f"{address.prefix}{address.target}"
    if place:
        return f"unix://{os.path.abspath(place)}#{target}"
    return f"{'ws' if address.websocket else 'http'}://{authority}{target}"


def _refuse_few_descriptors() -> None:
    """Raise UsageError if the relay could not even start, or serve one client, or load what a response needs."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= limit < DESCRIPTORS:
        raise UsageError(
            f"only {limit} files may be open at the same time, and proxy needs at least {DESCRIPTORS}; "
            "raise the limit, for example with 'ulimit -n 1024'"
        )


async def _serve(relay: Relay, listener: socket.socket, lines: list[str]) -> None:
    """Print `lines` and relay."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: None)  # noqa: ARG005 (broken connections: the capture shows them)
    stop = asyncio.Event()
    on_ending_signal(loop, stop.set)
    server = await loop.create_server(relay.server(), sock=listener, backlog=1024)
    try:
        print(*lines, sep="\n", flush=True)
        await stop.wait()
    finally:
        server.close()
        await relay.end()


def _addresses(options: argparse.Namespace) -> dict[str, Address]:
    """Return the upstream of each route, by the name of the route."""
    found: dict[str, Address] = {}
    for chosen in map(client, options.clients):
        own = _routes_of(chosen, Machine.here())
        if not own:
            advice = f"'mcpspy install {chosen.id}' makes them if the client has remote servers"
            raise UsageError(f"{chosen.name} has no routes; {advice}")
        for name, origin in own:
            if reason := refused(origin):
                say(f"the route {name!r} is left out: {reason}; 'mcpspy uninstall {chosen.id}' undoes it")
            else:
                found[name] = Address(origin, f"/{name}", preserve_host=options.preserve_host)
    if options.clients and not found:
        raise UsageError("none of these routes can be used")
    for route in options.route:
        name, equals, url = route.partition("=")
        if not equals or not name or printable_name(name) != name:
            raise UsageError(f"--route takes NAME=URL, NAME of letters, digits, '.', '_' and '-', not {shown(route)!r}")
        if name in found:
            raise UsageError(f"there are two routes called {name!r}")
        found[name] = Address(url, f"/{name}", preserve_host=options.preserve_host)
    if options.url:
        address = Address(options.url, preserve_host=options.preserve_host)
        found[options.name or printable_name(address.authority)] = address
    if not found:
        raise UsageError("proxy needs the URL of a server: mcpspy proxy http://127.0.0.1:8000/mcp")
    return found


def _move(chosen: Client, port: int) -> None:
    """Change the files of a client to the port that we listen on, and report the changes."""
    machine, known = Machine.here(), routes.load()
    names = [name for name, _ in _routes_of(chosen, machine)]
    try:
        drafts = [draft for draft in moves(find(chosen, machine), machine, known, port) if draft.changes]
    except ConfigError as error:
        say(f"cannot look for URLs of another port: {error}")
        return
    for draft in drafts:
        for step in draft.steps:
            if step.edits:
                say(f"{draft.config.path}: {step.server} now leads to {step.detail}")
    if drafts:
        say(f"now {chosen.advice.format(name=chosen.name)}")
    if any(known[name].port != port for name in names):
        routes.save({name: routes.moved(known[name], port) for name in names})
    write(drafts)
    here = {there.path for there in find(chosen, machine)}
    for path in dict.fromkeys(path for name in names for path in known[name].paths.get(chosen.id, ())):
        if path not in here and routes.names_other_port(path, names, port):
            say(f"{path} names another port: run this command in its project to change it")


def _routes_of(chosen: Client, machine: Machine) -> list[tuple[str, str]]:
    return routes.routes_of(chosen.id, (there.path for there in find(chosen, machine)))


def _refuse_to_relay_to_ourselves(addresses: dict[str, Address], own: str, port: int) -> None:
    for address in addresses.values():
        _, upstream, upstream_port = address.origin
        if upstream_port != port:
            continue
        try:
            there = {str(found[4][0]) for found in socket.getaddrinfo(upstream, port, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError):
            continue
        if any(arrives_at(name, own) for name in there):
            raise UsageError(f"{upstream}:{port} is this proxy itself: choose another port with --listen")


def _recording(options: argparse.Namespace, name: str, address: Address, limit: int | None) -> Recording:
    """Start the recording of a route."""
    recording = Recording(say)
    url = f"{address.origin[0]}://{address.authority}{address.target}"
    recording.begin("http", name, url=url, output=options.output, folder=options.folder, limit=limit, control=True)
    return recording
