"""`mcpspy mitm`, `mcpspy ca` and `mcpspy run`: HTTPS traffic of servers whose URL cannot be changed.

`mitm` proxies and records it. `ca` shows its certificate authority, and how to make a client trust it. `run` starts a
client that connects through `mitm` and trusts the authority.
"""

import argparse
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from types import ModuleType
from urllib.parse import urlsplit

from mcpspy.cli.access import access_of
from mcpspy.cli.gates import compiled, recorded_answers
from mcpspy.cli.installation import missing
from mcpspy.cli.output import explain, say
from mcpspy.errors import SpawnError, UsageError
from mcpspy.foreign_file import open_foreign
from mcpspy.network.proxies import ForwardProxy, proxy_for
from mcpspy.process.command_line import command_line
from mcpspy.process.ports import listening_place, to_dial
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.host_guard import is_loopback
from mcpspy.relay.mitm.allowlist import Hosts
from mcpspy.relay.mitm.authority import ADDING, REPLACING, Authority, default, through
from mcpspy.secrets.redactor import shown
from mcpspy.text import capture_limit

DEFAULT_PORT = 6279
_SOME_HOST = "host.invalid"  # stands for all hosts


def run(options: argparse.Namespace) -> int:
    """Relay until a signal arrives."""
    mitm = interceptor()
    host, port = listening_place(options.listen, DEFAULT_PORT)
    by_variables = options.mode == "upstream"
    target = None if by_variables else mitm.target(options.mode)
    allowed = options.allow or ([target[0]] if target else [])
    if not allowed:
        raise UsageError(
            "mitm decrypts only the hosts that you name: give --allow HOST, such as --allow mcp.example.com"
        )
    hosts = Hosts(allowed)
    forward = _forward_proxy(allowed) if by_variables else None
    mode = f"upstream:{forward.url}" if forward else options.mode
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
    if mode == "regular":
        _warn_of_a_proxy(allowed)
    login = forward.login if forward else None
    settings = mitm.MitmSettings(host, port, mode, hosts, options.all_http, access_of(options), login)

    def begin(url: str, clock: Clock) -> Recording:
        recording = Recording(say, clock)
        recording.begin("mitm", urlsplit(url).netloc, url=url, folder=options.folder, limit=limit, control=True)
        return recording

    def ready(port: int | None) -> None:
        address = _address(mode, host, port)
        try:
            print(address, flush=True)
        except OSError as error:  # mitmproxy would not report the error
            say(f"cannot write the output, which is {address}: {error.strerror}")
        if not is_loopback(host):
            say(f"listening on {host}: anyone who can reach this machine can use it as a proxy")
        say(f"recording the MCP traffic of {', '.join(allowed)}{_next(mode, host, port)}")

    relaying = mitm.run(
        settings, authority, begin, ready, say, gates=gates, answerers=answerers, control=options.control
    )
    import asyncio  # neither `run` nor `ca` needs it

    asyncio.run(relaying)
    return 0


def _forward_proxy(allowed: list[str]) -> ForwardProxy:
    """Return the proxy that the variables name for all of these hosts. Raises UsageError."""
    proxies = [_proxy_to(host) for host in allowed]
    if None in proxies:
        raise UsageError(
            f"--mode upstream needs a proxy, and the variables name none for {allowed[proxies.index(None)]}: set "
            "https_proxy, or take the host out of no_proxy"
        )
    (proxy, *_) = filter(None, proxies)
    if proxy.login is not None and proxy.login.startswith(":"):
        raise UsageError(f"{proxy.variable} has a password without a user: write http://USER:PASSWORD@HOST:PORT")
    return proxy


def _warn_of_a_proxy(allowed: list[str]) -> None:
    """Tell the user if the variables name a proxy, which the mode `regular` does not use."""
    try:
        found = next(filter(None, map(_proxy_to, allowed)), None)
    except UsageError:  # it could not be used anyway
        return
    if found:
        say(f"{found.variable} names a proxy, which servers are reached without: if that fails, use --mode upstream")


def _proxy_to(host: str) -> ForwardProxy | None:
    """Return the proxy to a host as `--allow` names it."""
    return proxy_for(f"https://{host.lstrip('*.') or _SOME_HOST}", os.environ)


def interceptor() -> ModuleType:
    """Return the module that runs mitmproxy. Raises UsageError if mitmproxy is not installed."""
    try:
        from mcpspy.relay.mitm import master as mitm
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mitmproxy":
            raise
        sentence = missing("this needs", "mitmproxy", "mitm")
        raise UsageError(f"{sentence}, in an environment of its own (docs/how-to/tls.md)") from None
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


def run_ca(options: argparse.Namespace) -> int:
    """Run the action `options.what`. `status` exits 1 if there is no authority, or if other users can read its key."""
    authority = default()
    if options.what == "status":
        return _status(authority)
    if not authority.exists():
        interceptor().make(authority)
    if options.what == "export":
        _export(authority, options.file)
    else:
        _environment(authority)
    return 0


def _export(authority: Authority, file: str | None) -> None:
    certificate = authority.pem()
    if file is None:
        print(certificate)
        return
    try:
        with open(file, "w", encoding="ascii") as out:
            out.write(certificate + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from None


def _environment(authority: Authority) -> None:
    windows = os.name == "nt"
    form = "$env:{} = {}" if windows else "export {}={}"
    for name, value in authority.trust(os.environ).items():
        print(form.format(name, quote_for_powershell(value) if windows else shlex.quote(value)))
    notes = (  # not meant for the shell: an interactive zsh does not accept comments
        *(f"# {name} names no file: {os.environ[name]} is left out" for name in authority.left_out(os.environ)),
        f"# Python (httpx, requests) and curl read {', '.join(REPLACING)}; Node reads {ADDING}.",
        f"# Electron and browsers read the system's store: put {authority.certificate} there, if you want that.",
    )
    explain(*notes)


def quote_for_powershell(value: str) -> str:
    """Return a value as a PowerShell literal."""
    return "'" + value.replace("'", "''") + "'"


def _status(authority: Authority) -> int:
    if not authority.exists():
        print(f"no authority in {authority.folder}: 'mcpspy mitm' or 'mcpspy ca export' creates it")
        return 1
    fingerprint, until = authority.describe()
    print(f"certificate  {authority.certificate}")
    print(f"sha256       {fingerprint}")
    print(f"valid until  {until}")
    names = [name for name in (*REPLACING, ADDING) if authority.is_trusted_by(os.environ.get(name, ""))]
    print(f"this shell   {'has ' + ', '.join(names) if names else 'does not trust it: mcpspy run, or mcpspy ca env'}")
    exposed = authority.exposed()
    for path in exposed:
        print(f"problem      others can reach {path}: chmod go= {shlex.quote(path)}")
    return 1 if exposed else 0


if sys.platform == "win32":
    from mcpspy.process.child_windows import environment
else:
    from mcpspy.process.child import environment

_NODE = ("node", "npx", "npm", "pnpm", "yarn", "tsx")


def run_client(options: argparse.Namespace) -> int:
    """Replace this process by the client. Returns an exit status only if that is impossible."""
    argv = options.server
    if options.without_dashes:
        raise UsageError(f"put '--' before the client's command: mcpspy run -- {shown(options.without_dashes[0])} ...")
    if not argv:
        raise UsageError("run needs the client's command after '--': mcpspy run -- COMMAND [ARG...]")
    proxy = _proxy(options.proxy)
    authority = default()
    if not authority.exists():
        raise UsageError(f"there is no authority in {authority.folder} to trust: start 'mcpspy mitm', which creates it")
    environ = _clients_environment()
    for name in authority.left_out(environ):
        say(f"{name} is replaced: {environ[name]} is not a file of certificates")
    for name, value in (through(proxy) | authority.trust(environ)).items():
        if not value and environ.pop(name, ""):
            say(f"{name} is not passed on: traffic to its hosts would bypass mcpspy")
        if value:
            environ[name] = value
    warning = _ignores_proxies(argv[0])
    if warning:
        say(warning)
    return _become(argv, environ)


def _clients_environment() -> dict[str, str]:
    """Return the environment of this process, with our own variables: the client may start `mcpspy wrap`."""
    own = {name: value for name, value in os.environ.items() if name.startswith("MCPSPY_")}
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment().items()} | own


def _proxy(place: str) -> str:
    """Return the URL of the proxy at an address. Raises UsageError if nothing listens there."""
    host, port = listening_place(place.removeprefix("http://").removesuffix("/"), DEFAULT_PORT, "--proxy")
    try:
        socket.create_connection((host, port), 5).close()
    except (OSError, UnicodeError):  # UnicodeError: not a valid host name
        advice = "start 'mcpspy mitm --allow HOST' first, or name where it listens with --proxy"
        raise UsageError(f"nothing listens on {place}: {advice}") from None
    return f"http://{to_dial(host)}:{port}"


def _ignores_proxies(command: str) -> str | None:
    """Return a warning if the client runs on a version of Node that ignores proxies."""
    path = shutil.which(command)
    if path is None:
        return None
    name = os.path.basename(path).partition(".")[0]
    node = path if name == "node" else "node"
    try:
        if name not in _NODE and not _is_script_of_node(path):
            return None
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.match(r"v(\d+)\.(\d+)", said)
    if version is None or heeds_proxies(int(version[1]), int(version[2])):
        return None
    return (
        f"Node {version[0][1:]} ignores HTTPS_PROXY, so this client may bypass mcpspy: use Node 22.21 or newer, or put"
        " the URL of 'mcpspy proxy' or of 'mcpspy mitm --mode reverse:https://HOST' into the client"
    )


def _is_script_of_node(path: str) -> bool:
    with open_foreign(path) as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"node" in first


def heeds_proxies(major: int, minor: int) -> bool:
    """Return whether a version of Node obeys NODE_USE_ENV_PROXY (Node docs, "Enterprise network configuration")."""
    return major >= 24 or (major == 22 and minor >= 21)


def _become(argv: list[str], environ: dict[str, str]) -> int:
    try:
        if sys.platform == "win32":  # here exec starts a second process, and both would share the terminal
            program = shutil.which(argv[0], path=environ.get("PATH")) or argv[0]
            return subprocess.call(command_line(argv, environ, program), env=environ)
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the client would inherit that through exec
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        found = not isinstance(error, FileNotFoundError | NotADirectoryError)
        say(f"cannot start {argv[0]!r}: {'it cannot be executed' if found else 'the command was not found'}")
        return SpawnError.NOT_EXECUTABLE if found else SpawnError.NOT_FOUND
