"""The checks of `doctor`, one function for each subject; each yields what it found, and a fix for each problem."""

import io
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcpspy.capture.location import directory, make_directory
from mcpspy.clients import desktop
from mcpspy.clients.apply import load
from mcpspy.clients.check import FINE, NOTE, PROBLEM, Check, as_member, in_shell
from mcpspy.clients.entries import debugger
from mcpspy.clients.formats import JSON, improper, read
from mcpspy.clients.launcher import is_agent
from mcpspy.clients.logs import of_log
from mcpspy.clients.mistakes import Start, of_entry, of_start, user_of
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.probe import PATIENCE, Answer, listening, routes_at, talk
from mcpspy.clients.remote import mistakes_of, of_request, transport_of
from mcpspy.clients.routes import PORT
from mcpspy.clients.servers import TRUST_IT, Server, expanded, unresolved, untrusted
from mcpspy.clients.table import PROJECT
from mcpspy.clients.tree import Node
from mcpspy.errors import ConfigError, SpawnError
from mcpspy.foreign_file import read_foreign
from mcpspy.json_values import member
from mcpspy.secrets.redactor import shown
from mcpspy.spec.client_limits import BY_CLIENT

_PASSED = "HOME LOGNAME PATH SHELL TERM USER".split()  # variables that SDK clients pass to a server
_PASSED_WINDOWS = (
    "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT"
    " TEMP USERNAME USERPROFILE"
).split()
_RUNTIMES = {
    "npx": "node",
    "npm": "node",
    "uvx": "uv",
    "node": "node",
    "uv": "uv",
    "python": "python",
    "docker": "docker",
}
_LONGEST_WAIT = 60.0  # maximum seconds for a first response, if the client waits longer
_IN_A_SHELL = "start its command in a shell until it stays and waits for input"


def of_config(found: Found, machine: Machine) -> Iterator[Check]:
    """Check a readable configuration from the client's point of view."""
    client = found.client
    if found.place.form == JSON and client.refuses and (why := improper(load(found.path).text, client.refuses)):
        yield Check(
            PROBLEM,
            f"{why}; {client.name} cannot read a file with that, and starts none of its servers",
            "take it out",
        )
    yield from _of_repeated(found)
    if why := untrusted(found, machine):
        yield Check(PROBLEM, why, TRUST_IT)
    if found.place.note:
        yield Check(NOTE, found.place.note.format(name=client.name))


def _of_repeated(found: Found) -> Iterator[Check]:
    """Check whether a server, or a member of its entry, is there twice; parsers keep the last one silently."""
    try:
        node = read(load(found.path).text, found.place.form)
    except ConfigError:
        return
    for key in found.place.root:
        member = node.value.get(key) if isinstance(node.value, dict) else None
        if member is None:
            return
        node = member.node
    names = _names(node)
    for name in dict.fromkeys((*node.repeated, *(name for name, times in Counter(names).items() if times > 1))):
        yield Check(PROBLEM, f"{name!r} is there twice, and only one of the two is started", "rename one of them")
    for name, entry in node.value.items() if isinstance(node.value, dict) else ():
        for key in dict.fromkeys(entry.node.repeated):
            yield Check(
                PROBLEM, f"{name!r} has {key!r} twice, and only the last one counts", "write its values into one"
            )


def _names(node: Node) -> list[str]:
    """Return the names in a list of servers."""
    entries = node.value if isinstance(node.value, list) else []
    names = [
        entry.value["name"].node.value for entry in entries if isinstance(entry.value, dict) and "name" in entry.value
    ]
    return [name for name in names if isinstance(name, str)]


def of_captures(machine: Machine) -> Iterator[Check]:
    """Check whether captures can be written where `wrap` writes them if a client starts it."""
    folder = directory(None, {})
    try:
        make_directory(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield Check(FINE, f"captures can be written to {folder}")
    except OSError as error:
        yield Check(PROBLEM, f"captures cannot be written to {folder}: {error.strerror}", "make it writable")
    if machine.environ.get("MCPSPY_CAPTURE_DIR"):
        yield Check(NOTE, "$MCPSPY_CAPTURE_DIR is set here, and most clients do not pass it on: look in both places")


def of_server(server: Server, machine: Machine, *, named: bool) -> Iterator[Check]:
    """Check everything about one server; `named` means that the user named it."""
    if server.problem:
        yield Check(PROBLEM, server.problem, "correct the entry")
    elif server.url or server.route:
        yield from _of_remote(server, named, machine)
    else:
        try:
            yield from _held_back(server, named, "start") or _of_stdio(server, machine)
        except ValueError as error:  # a NUL, an unpaired surrogate, a name with '='
            yield Check(PROBLEM, f"it cannot be started: {error}", "correct its command, its env, or its cwd")
        yield from of_log(server, machine)


def of_names(chosen: Iterable[tuple[Found, Iterable[Server]]], found: Found) -> Iterator[Check]:
    """Check whether the servers at a place have the names of others of the same client, in another scope."""
    chosen = list(chosen)
    own = {server.name for place, servers in chosen if place == found for server in servers}
    for place, servers in chosen:
        if place.client is found.client and place.place.scope != found.place.scope:
            for name in (server.name for server in servers if server.name in own):
                yield Check(
                    NOTE, f"{name!r} is in {place.path} too, and {found.client.name} starts only one of the two",
                    "rename one of them, or remove it",
                )  # fmt: skip


def _held_back(server: Server, named: bool, verb: str) -> list[Check]:
    """Return why a server is not started, or not asked; someone else may have written the configuration."""
    client, again = server.found.client.name, f"to {verb} it: mcpspy doctor {in_shell(server.name)}"
    if sys.platform != "win32" and os.stat(server.found.path).st_uid != os.geteuid():
        return [Check(NOTE, f"the configuration belongs to another user, so it was not {verb}ed")]
    if server.disabled and not named:
        return [Check(NOTE, f"it is disabled in {client}, so it was not {verb}ed", again)]
    if server.found.place.scope == PROJECT and not named:
        return [Check(NOTE, f"the configuration is the project's, so it was not {verb}ed", again)]
    return []


def _of_remote(server: Server, named: bool, machine: Machine) -> Iterator[Check]:
    mistakes = [*mistakes_of(server, machine)]
    yield from mistakes
    if server.route:
        yield from _of_route(server)
        return
    install = f"mcpspy install {server.found.client.id} {in_shell(server.name)}" if transport_of(server) else ""
    yield Check(NOTE, f"it is a remote server and not wrapped: {shown(server.url or '')}", install)
    if held := _held_back(server, named, "ask"):
        yield from held
    elif any(check.level == PROBLEM for check in mistakes):
        yield Check(NOTE, "nothing was sent to it because of these mistakes")
    else:
        yield from of_request(server, machine)


def _of_route(server: Server) -> Iterator[Check]:
    if not server.url:
        yield Check(
            NOTE,
            f"'mcpspy install' knows no route {server.route!r}",
            f"unless you put it there for a proxy of your own on port {PORT}, put the server's own URL there",
        )
    listen = f" --listen 127.0.0.1:{server.port}" if server.port != PORT else ""
    start = f"start 'mcpspy proxy --from {server.found.client.id}{listen}'"
    port = server.port
    if not listening(port):
        yield Check(PROBLEM, f"no proxy listens on port {port}", start)
    elif server.route in routes_at(port):
        yield Check(FINE, f"the proxy on port {port} serves the route {server.route!r}")
    else:
        yield Check(
            PROBLEM, f"on port {port} listens {user_of(port)}, which does not serve the route {server.route!r}",
            f"end it, and {start}; with several --from it serves several clients. Or take another port:"
            f" mcpspy proxy --from {server.found.client.id} --listen 127.0.0.1:{port + 1}",
        )  # fmt: skip


def _of_stdio(server: Server, machine: Machine) -> Iterator[Check]:
    client = server.found.client
    environ = _environment(machine) | {"PATH": desktop.search_path(client, machine)}
    if server.disabled:
        yield Check(NOTE, f"it is disabled in {client.name}")
    if server.launcher:
        yield from _of_launcher(server, environ)
    elif is_agent(server.words):
        yield Check(NOTE, "it is mcpspy itself, for agents")
    elif debugger(server.members.get("dev")) in client.debugs:
        yield Check(NOTE, "it is not wrapped, and cannot be wrapped while its entry has dev.debug")
    else:
        yield Check(NOTE, "it is not wrapped", f"mcpspy install {client.id} {in_shell(server.name)}")
    texts = [*server.words, *server.environ.values(), server.cwd or "", server.env_file or ""]
    if unset := {name for text in texts for name in unresolved(text, client, machine)}:
        yield from _of_unknown(unset, server)
        return
    if server.env_file:
        place = expanded(server.env_file, client, machine)
        try:
            environ |= _assignments(place)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            yield Check(PROBLEM, f"its envFile cannot be read: {place}: {why}", "correct envFile")
            return
    own = {key: expanded(value, client, machine) for key, value in server.environ.items()}
    command = [expanded(word, client, machine) for word in server.words]
    start = Start(server, command, own, _cwd(server, machine), machine)
    yield from of_entry(start)
    blocked = [*of_start(start)]
    yield from blocked
    if blocked:
        return
    if client.appends_path and "PATH" in own:
        own["PATH"] = os.pathsep.join([environ.get("PATH", os.defpath), own["PATH"]])
    yield from _of_process(start, environ | own)


def _of_process(start: Start, environ: Mapping[str, str]) -> Iterator[Check]:
    """Start a server as its client does, and check what comes of it."""
    server, command, cwd = start.server, start.command, start.cwd
    named = os.path.join(cwd, command[0]) if os.path.dirname(command[0]) else command[0]
    path = shutil.which(named, path=environ.get("PATH"))
    if path is None:
        yield _not_found(command[0], start, environ.get("PATH", os.defpath))
        return
    if need := desktop.lacking(path, environ.get("PATH", os.defpath)):
        yield _of_need(need, command[0], path, start, environ.get("PATH", os.defpath))
        return
    yield from _of_command(start, named, path)
    try:
        answer = talk([path, *command[1:]], environ, cwd, patience(server))
    except SpawnError as error:
        yield Check(PROBLEM, f"it cannot be started in {cwd}: {error.why}", "correct its command, or its cwd")
        return
    yield from of_answer(answer)
    yield from of_time(answer, server)


def patience(server: Server) -> float:
    """Return how long to wait for a first response: as long as the client does, up to a limit."""
    return max(PATIENCE, min(server.begin or 0, _LONGEST_WAIT))


def of_time(answer: Answer, server: Server) -> Iterator[Check]:
    """Check whether the client waits long enough for a server that has answered."""
    client = server.found.client
    waits = BY_CLIENT.get(client.id)
    if not answer.method or not server.begin or answer.seconds < server.begin / 2:
        return
    text = f"{client.name} gives up after {server.begin:g} s, and this took {answer.seconds:.1f} s"
    fix = "install the server instead of fetching it at each start"
    if waits and waits.setting:
        fix += f", or {waits.setting}"
    yield Check(PROBLEM if answer.seconds > server.begin else NOTE, text, fix)


def _of_unknown(names: set[str], server: Server) -> Iterator[Check]:
    """Explain why a server with these variables was not started."""
    unset = sorted(name for name in names if name.startswith("env:"))
    if unset:
        variables = ", ".join(name.removeprefix("env:") for name in unset)
        yield Check(
            PROBLEM,
            f"not set here: {variables}; so it was not started",
            f"set that where {server.found.client.name} is started, and here",
        )
    if others := ", ".join(f"${{{name}}}" for name in sorted(names) if name not in unset):
        yield Check(NOTE, f"only {server.found.client.name} knows what {others} stands for, so it was not started")


def _assignments(path: str) -> dict[str, str]:
    """Return the variables of an envFile: `KEY=value` in lines, with optional quotes and comments. Raises OSError."""
    text = io.StringIO(read_foreign(path).decode(), newline=None)
    lines = [line.strip().removeprefix("export ") for line in text]
    pairs = [line.partition("=") for line in lines if "=" in line and not line.startswith("#")]
    return {key.strip(): _unquoted(value.strip()) for key, _, value in pairs}


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _not_found(command: str, start: Start, path: str) -> Check:
    client = start.server.found.client
    if command.startswith("~"):
        return Check(PROBLEM, f"{command} is not there: a shell would replace '~'", "write the path in full")
    if " " in command and not os.path.isabs(command):
        return Check(PROBLEM, f"there is no command {command!r}", "put its arguments into args, word by word")
    if os.path.dirname(command):
        where = "" if os.path.isabs(command) else f" in {start.cwd}"
        return Check(PROBLEM, f"{command} is not there{where}, or not executable", "correct the command")
    there = desktop.elsewhere(command, path, start.machine)
    if there is None:
        return Check(PROBLEM, f"{command} is not on PATH", "install it, or write its absolute path")
    fix = f"write {as_member('command', there.path)}"
    if there.folder:
        fix += f" and {_with_path(start, there.folder, path)}"
    return Check(PROBLEM, f"{command} is not on the PATH with which {client.name} starts servers: {path}", fix)


def _with_path(start: Start, folder: str, path: str) -> str:
    """Return what to write so that the client has a folder on PATH."""
    return f'{as_member("PATH", os.pathsep.join([folder, path]))} into its "{start.server.found.client.env}"'


def _of_need(need: desktop.Need, command: str, program: str, start: Start, path: str) -> Check:
    """Return why a script cannot be started by its first line."""
    begins = f"{command} begins with {need.line!r}"
    if not need.program:
        return Check(PROBLEM, f"{begins} and a carriage return, which belongs to the name then", "write LF line ends")
    if not need.on_path:
        return Check(PROBLEM, f"{begins}, but {need.program} does not exist", "install it again")
    text = f"{begins}, but {need.program} is not on the PATH with which {start.server.found.client.name} starts servers"
    folder = desktop.folder_of_need(program, path, start.machine)
    fix = f"write {_with_path(start, folder, path)}" if folder else f"install {need.program}"
    return Check(PROBLEM, f"{text}: {path}", fix)


def _of_launcher(server: Server, environ: Mapping[str, str]) -> Iterator[Check]:
    again = f"install it again, after: mcpspy uninstall {server.found.client.id} {in_shell(server.name)}"
    if reason := stale(server.launcher, environ.get("PATH")):
        yield Check(PROBLEM, f"it is wrapped by {server.launcher[0]}, which {reason}", again)
        return
    printed = desktop.output([*server.launcher, "--version"], environ, os.path.abspath(os.sep), PATIENCE)
    version = (printed or "").strip()
    if version:
        yield Check(FINE, f"wrapped by {version}, {server.launcher[0]}")
    else:
        yield Check(PROBLEM, f"it is wrapped by {' '.join(server.launcher)}, which does not run", again)


def stale(launcher: Sequence[str], path: str | None = None) -> str:
    """Return why mcpspy cannot be started any more by its launcher; empty if it can, or without a launcher."""
    found = _which(launcher[0], path) if launcher else ""
    if found is None:
        return "no longer exists"
    line = desktop.first_line(found)
    interpreter = line.removeprefix("#!").split()[:1] if line.startswith("#!") else []
    return (
        f"needs {interpreter[0]}, which no longer exists" if interpreter and not os.path.exists(interpreter[0]) else ""
    )


def resolves(command: str) -> bool:
    """Return whether a command is found."""
    return _which(command, None) is not None


def _which(command: str, path: str | None) -> str | None:
    """Return the path of a command, on `path` instead of the current PATH if it is given."""
    try:
        return shutil.which(command, path=path)
    except ValueError:  # a NUL, an unpaired surrogate
        return None


def _of_command(start: Start, command: str, path: str) -> Iterator[Check]:
    client, machine = start.server.found.client, start.machine
    runtime = _RUNTIMES.get(_stem(command))
    yield Check(FINE, (f"{command} is {path}" if command != path else f"{path} is there") + _version(runtime, path))
    if owner := desktop.manager(path):
        real = desktop.chosen(path, machine)
        yield Check(
            NOTE, f"{path} is a shim of {owner}, which chooses the version by the directory: {start.cwd}",
            f"for one version everywhere write {as_member('command', real)}" if real else "",
        )  # fmt: skip
    if not client.desktop or command == path or machine.platform not in ("darwin", "linux"):
        return
    shell = shutil.which(command, path=machine.environ.get("PATH"))
    if not client.asks_shell and shell and os.path.realpath(shell) != os.path.realpath(path):
        yield Check(
            NOTE, f"this shell starts another one: {shell}{_version(runtime, shell)}",
            f"if {client.name} is to start that, write {as_member('command', desktop.chosen(shell, machine) or shell)}",
        )  # fmt: skip
    elif client.asks_shell and not shutil.which(command, path=desktop.desktop_path(machine)):
        yield Check(
            NOTE,
            f"{command} is on the PATH of this shell, perhaps not on that of programs started from the desktop",
            f"if {client.name} does not find it, write {as_member('command', path)}",
        )


def _stem(command: str) -> str:
    """Return the name of a program without its version: `python` for `/usr/bin/python3.11`."""
    return re.sub(r"[\d.]+(?:exe|cmd)?\Z", "", os.path.basename(command))


def _version(runtime: str | None, path: str) -> str:
    """Return the version of the runtime of a server: that of the program itself, or of the one beside its launcher."""
    if not runtime:
        return ""
    beside = os.path.join(os.path.dirname(path), runtime)
    program = path if _stem(path) == runtime else beside if os.path.exists(beside) else runtime
    printed = desktop.output([program, "--version"], None, None, PATIENCE)
    if printed is None:
        return f", but {runtime} does not run"
    return f", {runtime} {printed.strip().split(chr(10))[0].removeprefix('Python ')}"


def of_answer(answer: Answer) -> Iterator[Check]:
    """Check the response of a server that was started."""
    said = "".join(f"\n    stderr: {line}" for line in answer.stderr)
    if answer.method:
        yield Check(FINE, f"{answer.method} was answered after {answer.seconds:.1f} s{_identity(answer)}")
    elif answer.exit is not None:
        how = f"signal {-answer.exit}" if answer.exit < 0 else f"status {answer.exit}"
        yield Check(PROBLEM, f"it ended after {answer.seconds:.1f} s with {how}, without an answer{said}", _IN_A_SHELL)
    elif answer.error:
        yield Check(PROBLEM, f"it rejected initialize: {answer.error}{said}", _IN_A_SHELL)
    else:
        yield Check(
            PROBLEM,
            f"it sent nothing for {answer.seconds:.0f} s{said}",
            "is it an MCP server, and does it speak stdio?",
        )
    if answer.noise:
        yield Check(
            PROBLEM,
            f"its stdout has a line that is not a message: {answer.noise[0][:200]!r}",
            "let it write to stderr; strict clients end the session",
        )


def _identity(answer: Answer) -> str:
    """Return name, version and revisions of a server, as far as they are texts."""
    result = answer.result
    server = result.get("serverInfo") or member(result, "_meta", "io.modelcontextprotocol/serverInfo")
    revisions = result.get("protocolVersion") or result.get("supportedVersions")
    named = [member(server, "name"), member(server, "version")]
    spoken = revisions if isinstance(revisions, list) else [revisions]
    parts = (" ".join(_texts(named)), ", ".join(_texts(spoken)))
    return "".join(f", {part}" for part in parts if part)


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _environment(machine: Machine) -> dict[str, str]:
    passed = _PASSED_WINDOWS if machine.platform == "win32" else _PASSED
    return {name: machine.environ[name] for name in passed if name in machine.environ}


def _cwd(server: Server, machine: Machine) -> str:
    """Return where the client starts the server; desktop programs may start anywhere, so their base is the root."""
    in_project = server.found.place.scope == PROJECT or not server.found.client.desktop
    base = machine.cwd if in_project or sys.platform == "win32" else "/"
    if server.found.client.beside:
        base = os.path.dirname(server.found.path)
    return os.path.join(base, expanded(server.cwd, server.found.client, machine)) if server.cwd else base
