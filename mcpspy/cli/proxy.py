"""`mcpspy proxy`: stand between HTTP clients and one or several servers, and record what is said."""

import argparse
import asyncio
import errno
import os
import signal
import socket
import sys
import time

from mcpspy import __version__
from mcpspy.capture.place import printable_name
from mcpspy.capture.writer import create
from mcpspy.clients.routes import routes_of
from mcpspy.clients.table import client
from mcpspy.errors import UsageError
from mcpspy.ports import holder
from mcpspy.printable import printable
from mcpspy.redact import Redactor
from mcpspy.relay.heads import Address
from mcpspy.relay.http import Relay, Route
from mcpspy.relay.security import Guard, is_loopback
from mcpspy.relay.upstream import Upstream
from mcpspy.tap import Tap


def run(options: argparse.Namespace) -> int:
    """Relay until a signal ends it."""
    host, port = _listen(options.listen)
    addresses = _addresses(options)
    if options.output and len(addresses) > 1:
        raise UsageError("-o names one file, and each route has a capture of its own: use --capture-dir")
    if options.output and options.folder:
        raise UsageError("-o names the file and --capture-dir its directory: give one of them")
    upstreams = [Upstream(address, ca=options.ca, insecure=options.insecure) for address in addresses.values()]
    listener = _bind(host, port)
    port = listener.getsockname()[1]
    _refuse_to_relay_to_ourselves(addresses, host, port)
    routes = []
    for (name, address), upstream in zip(addresses.items(), upstreams, strict=True):
        routes.append(Route(address, upstream, *_capture(options, name, address)))
    routes.sort(key=lambda route: not route.address.prefix)
    relay = Relay(routes, Guard(host, options.allow_host), _say, options.rewrite_oauth)
    if not is_loopback(host):
        _say(f"listening on {host}: whoever reaches this machine can use these servers through it")
    urls = {
        name: f"http://{_client_host(host)}:{port}{address.prefix}{address.target}"
        for name, address in addresses.items()
    }
    lines = [url if len(urls) == 1 else f"{name} {url}" for name, url in urls.items()]
    asyncio.run(_serve(relay, listener, lines))
    return 0


async def _serve(relay: Relay, listener: socket.socket, lines: list[str]) -> None:
    """Print `lines` and relay."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: None)  # noqa: ARG005 (connections that break: the capture tells)
    stop = asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        try:
            loop.add_signal_handler(getattr(signal, name), stop.set)
        except (AttributeError, NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            continue
    server = await loop.create_server(relay.server(), sock=listener, backlog=1024)
    try:
        print(*lines, sep="\n", flush=True)
        await stop.wait()
    finally:
        server.close()
        await relay.end()


def _listen(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen takes HOST:PORT, such as 127.0.0.1:6278, not {value!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _addresses(options: argparse.Namespace) -> dict[str, Address]:
    """The upstream of each route, by its name."""
    found: dict[str, Address] = {}
    if options.client:
        chosen = client(options.client)
        for name, origin in routes_of(chosen.id):
            try:
                found[name] = Address(origin, f"/{name}", preserve_host=options.preserve_host)
            except UsageError:  # which may name a password
                _say(f"the route {name!r} cannot be relayed, and is left out; 'mcpspy uninstall {chosen.id}' undoes it")
        if not found:
            advice = f"'mcpspy install {chosen.id}' makes them where the client has remote servers"
            raise UsageError(f"{chosen.name} has no routes; {advice}")
    for route in options.route:
        name, equals, url = route.partition("=")
        if not equals or not name or printable_name(name) != name:
            raise UsageError(f"--route takes NAME=URL, NAME of letters, digits, '.', '_' and '-', not {route!r}")
        if name in found:
            raise UsageError(f"there are two routes called {name!r}")
        found[name] = Address(url, f"/{name}", preserve_host=options.preserve_host)
    if options.url:
        address = Address(options.url, preserve_host=options.preserve_host)
        found[options.name or printable_name(address.authority)] = address
    if not found:
        raise UsageError("proxy needs the URL of a server: mcpspy proxy http://127.0.0.1:8000/mcp")
    return found


def _bind(host: str, port: int) -> socket.socket:
    """A socket that is bound, and taken: a second proxy must not share the port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            who = holder(port)
            taken = f"{host}:{port} is taken" + (f" by {' '.join(who.words[:1])} (pid {who.pid})" if who else "")
            raise UsageError(f"{taken}: end that, or choose another port with --listen") from None
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def _refuse_to_relay_to_ourselves(addresses: dict[str, Address], host: str, port: int) -> None:
    for address in addresses.values():
        _, upstream, upstream_port = address.origin
        if upstream_port != port:
            continue
        try:
            there = {str(found[4][0]) for found in socket.getaddrinfo(upstream, port, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError):
            continue
        everywhere = host in ("0.0.0.0", "::") and any(is_loopback(name) for name in there)  # noqa: S104
        if host in there or everywhere:
            raise UsageError(f"{upstream}:{port} is this proxy itself: choose another port with --listen")


def _capture(options: argparse.Namespace, name: str, address: Address) -> tuple[Tap, int]:
    """The tap of a route, and when its capture started."""
    started, wall = time.monotonic_ns(), time.time_ns()
    scheme, _, _ = address.origin
    header: dict[str, object] = {
        "tool": f"mcpspy {__version__}",
        "transport": "http",
        "name": name,
        "url": Redactor().url(f"{scheme}://{address.authority}{address.target}"),
        "pid": os.getpid(),
        "ppid": os.getppid(),
    }
    writer = create(header, output=options.output, folder=options.folder, environ=dict(os.environ), wall=wall, say=_say)
    return Tap(writer, _say), started


def _client_host(host: str) -> str:
    """What a client on this machine has to dial."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _say(sentence: str) -> None:
    print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr, flush=True)
