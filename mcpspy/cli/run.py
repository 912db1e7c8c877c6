"""`mcpspy run`: start a client that connects through `mcpspy mitm` and trusts its certificate authority."""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

from mcpspy.cli.output import say
from mcpspy.errors import SpawnError, UsageError
from mcpspy.foreign_file import open_foreign
from mcpspy.process.command_line import command_line
from mcpspy.process.ports import listening_place, to_dial
from mcpspy.relay.mitm.authority import default, through
from mcpspy.secrets.redactor import shown

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
    environ = _environment_of_client()
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


def _environment_of_client() -> dict[str, str]:
    """Return the environment of this process, with our own variables: the client may start `mcpspy wrap`."""
    own = {name: value for name, value in os.environ.items() if name.startswith("MCPSPY_")}
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment().items()} | own


def _proxy(place: str) -> str:
    """Return the URL of the proxy at an address. Raises UsageError if nothing listens there."""
    host, port = listening_place(place.removeprefix("http://").removesuffix("/"), 6279, "--proxy")
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
