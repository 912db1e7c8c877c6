"""`mcpspy mitm`: proxy and record HTTPS traffic of servers whose URL cannot be changed."""

import argparse
import asyncio
from types import ModuleType
from urllib.parse import urlsplit

from mcpspy.cli.extras import install_command
from mcpspy.cli.gates import compiled, recorded_answers
from mcpspy.cli.output import say
from mcpspy.errors import UsageError
from mcpspy.process.ports import listening_place, to_dial
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.host_guard import is_loopback
from mcpspy.relay.mitm.allowlist import Hosts
from mcpspy.relay.mitm.authority import default
from mcpspy.text import capture_limit

DEFAULT_PORT = 6279


def run(options: argparse.Namespace) -> int:
    """Relay until a signal arrives."""
    mitm = interceptor()
    host, port = listening_place(options.listen, DEFAULT_PORT)
    target = mitm.target(options.mode)
    allowed = options.allow or ([target[0]] if target else [])
    if not allowed:
        raise UsageError(
            "mitm decrypts only the hosts that you name: give --allow HOST, such as --allow mcp.example.com"
        )
    hosts = Hosts(allowed)
    limit = capture_limit(options.limit)
    gates = compiled(options.gate, "mitm")
    answerers = recorded_answers(gates)
    if target and not hosts.named(target[0], port=target[1]):
        raise UsageError(
            f"nothing would be recorded: --mode {options.mode} leads to {to_dial(target[0])}:{target[1]}, which --allow"
            f" {' --allow '.join(allowed)} does not name; leave --allow out, or name it too"
        )
    authority = default()
    if authority.exists():
        authority.pem()  # fail now, before clients are told to trust an unusable certificate
    settings = mitm.MitmSettings(host, port, options.mode, hosts, options.all_http, options.ca, options.insecure)

    def begin(url: str, clock: Clock) -> Recording:
        recording = Recording(say, clock)
        recording.begin("mitm", urlsplit(url).netloc, url=url, folder=options.folder, limit=limit, control=True)
        return recording

    def ready(port: int | None) -> None:
        address = _address(options.mode, host, port)
        try:
            print(address, flush=True)
        except OSError as error:  # mitmproxy would not report the error
            say(f"cannot write the output, which is {address}: {error.strerror}")
        if not is_loopback(host):
            say(f"listening on {host}: anyone who can reach this machine can use it as a proxy")
        say(f"recording the MCP traffic of {', '.join(allowed)}{_next(options.mode, host, port)}")

    relaying = mitm.run(
        settings, authority, begin, ready, say, gates=gates, answerers=answerers, control=options.control
    )
    asyncio.run(relaying)
    return 0


def interceptor() -> ModuleType:
    """Return the module that runs mitmproxy. Raises UsageError if mitmproxy is not installed."""
    try:
        from mcpspy.relay.mitm import master as mitm
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mitmproxy":
            raise
        command = install_command("mitm")
        raise UsageError(
            f"this needs mitmproxy, which is not installed: {command}, in an environment of its own "
            "(docs/how-to/tls.md)"
        ) from None
    return mitm


def _address(mode: str, host: str, port: int | None) -> str:
    """Return the setting that a client needs."""
    if port is None:
        return mode
    return f"{'socks5' if mode == 'socks5' else 'http'}://{to_dial(host)}:{port}"


def _next(mode: str, host: str, port: int | None) -> str:
    """Return the next step for the user, at the client."""
    address = f"{to_dial(host)}:{port}"
    if mode.startswith("reverse"):
        return f"; in the client's URL put http://{address} in place of {mode.partition(':')[2]}"
    if not mode.startswith(("regular", "upstream")):
        return "; the client has to trust it: 'mcpspy ca env' says how"
    place = "" if address == f"127.0.0.1:{DEFAULT_PORT}" else f"--proxy {address} "
    return f"; start the client with 'mcpspy run {place}-- CLIENT'"
