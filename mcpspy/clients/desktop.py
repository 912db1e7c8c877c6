"""Where a client finds commands: the PATH of the desktop, of a shell, and what a script needs besides itself.

A program that is started from the desktop does not have the PATH of a shell. On Linux it has that of the systemd
instance of the user, on macOS that of launchd. Some clients then ask a login shell for its variables, which has what
its start-up files add (nvm, Homebrew), but not what only this shell has (an activated virtual environment).

A script may need another program: `#!/usr/bin/env node` needs `node` on PATH. A shim of a version manager (pyenv, asdf)
needs the manager, and chooses the version by the directory in which it is started.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from mcpspy.clients.places import Machine
from mcpspy.clients.table import Client
from mcpspy.foreign_file import open_foreign
from mcpspy.process.ending import KILL, signal_group
from mcpspy.transport.link import interrupts_wait

_DESKTOP = {
    "darwin": (["/bin/launchctl", "getenv", "PATH"], "/usr/bin:/bin:/usr/sbin:/sbin"),  # launchd.plist(5), path(5)
    "linux": (["systemctl", "--user", "show-environment"], "/usr/local/bin:/usr/bin:/bin"),  # systemd.exec(5)
}
"""By platform: the command that prints the PATH of the desktop, and what it is if the command tells nothing."""

_ACTIVATED = {"VIRTUAL_ENV": "bin", "CONDA_PREFIX": "bin"}
"""Variables of environments that one shell has activated, and the folder below each that is on its PATH."""

_USUAL = (
    "~/.local/bin", "~/.nvm/versions/node/*/bin", "~/.volta/bin", "~/.asdf/shims", "~/.local/share/mise/shims",
    "~/.pyenv/shims", "~/.cargo/bin", "~/.bun/bin", "~/.deno/bin", "~/go/bin", "/opt/homebrew/bin", "/usr/local/bin",
)  # fmt: skip
"""Where installers put commands."""

_SECONDS = 5.0  # for a program that tells a PATH, a version or a path
_LINE = 4096  # bytes of `#!` and the rest of the line
_DEEPEST = 4  # scripts that are interpreted by scripts


def search_path(client: Client, machine: Machine) -> str:
    """Return the PATH on which a client looks for commands, as far as that is known."""
    own = machine.environ.get("PATH", os.defpath)
    if machine.platform not in _DESKTOP or not client.desktop:
        return own
    return login_path(machine) if client.asks_shell else desktop_path(machine)


def login_path(machine: Machine) -> str:
    """Return the PATH of this shell without what was activated in it."""
    environ = machine.environ
    activated = {os.path.join(environ[name], below) for name, below in _ACTIVATED.items() if environ.get(name)}
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder.rstrip("/") not in activated)


def desktop_path(machine: Machine) -> str:
    """Return the PATH of programs that are started from the desktop."""
    command, default = _DESKTOP[machine.platform]
    printed = _output(command, machine)
    if machine.platform == "linux":
        line = re.search(r"(?m)^PATH=(?:\$')?([^'\n]+)", printed)
        printed = line[1] if line else ""
    return printed.strip() or default


def _output(command: list[str], machine: Machine) -> str:
    """Return what a program on the PATH of this shell prints; empty if it fails."""
    program = shutil.which(command[0], path=machine.environ.get("PATH", os.defpath))
    return (program and output([program, *command[1:]], machine.environ, machine.cwd, _SECONDS)) or ""


def output(command: Sequence[str], environ: Mapping[str, str] | None, cwd: str | None, seconds: float) -> str | None:
    """Return what a program prints to stdout; None if it cannot be started, fails, or needs more than `seconds`.

    Afterwards it has ended, with the processes that it started.
    """
    with ExitStack() as ending:
        try:
            with interrupts_wait():  # a signal while it is being started would leave it running
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=None if environ is None else dict(environ), cwd=cwd, start_new_session=True,
                )  # fmt: skip
                ending.enter_context(process)
                ending.callback(signal_group, process.pid, KILL)
            printed, _ = process.communicate(timeout=seconds)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return printed.decode(errors="replace") if process.returncode == 0 else None


class Need(NamedTuple):
    """What a script needs, and why it cannot be started."""

    line: str
    """Its first line."""
    program: str
    """The interpreter that is missing; empty if the line itself is wrong."""
    on_path: bool
    """Whether the interpreter is looked for on PATH."""


def lacking(program: str, path: str, deepest: int = _DEEPEST) -> Need | None:
    """Return what is missing to start a program by its `#!` line, with this PATH; None if nothing is."""
    line = first_line(program)
    if not line.startswith("#!"):
        return None
    if line.endswith("\r"):
        return Need(line.rstrip("\r"), "", on_path=False)
    interpreter, _, rest = line[2:].strip().partition(" ")
    if not os.path.exists(interpreter):
        return Need(line, interpreter, on_path=False)
    if os.path.basename(interpreter) != "env" or not (name := _named(rest)):
        return None
    found = shutil.which(name, path=path)
    if found is None:
        return Need(line, name, on_path=os.path.dirname(name) == "")
    return lacking(found, path, deepest - 1) if deepest else None


def first_line(program: str) -> str:
    """Return the first line of a file, without its line feed; empty if it cannot be read."""
    try:
        with open_foreign(program) as file:
            return os.fsdecode(file.readline(_LINE)).removesuffix("\n")
    except OSError:
        return ""


def _named(arguments: str) -> str:
    """Return the program that `env` starts with these arguments of a `#!` line; empty if that is not clear."""
    try:
        words = shlex.split(arguments.removeprefix("-S").strip())
    except ValueError:
        return ""
    return next((word for word in words if "=" not in word and not word.startswith("-")), "")


class FoundCommand(NamedTuple):
    """A command that is not on the PATH of a client, and how the client can still start it."""

    path: str
    """Where it is."""
    folder: str
    """What must be on PATH, too; empty if nothing is missing."""


def elsewhere(name: str, path: str, machine: Machine) -> FoundCommand | None:
    """Return where a command is that is not on `path`: on the PATH of this shell, or in a usual place."""
    shell = machine.environ.get("PATH", os.defpath)
    for folders in (shell, os.pathsep.join(_usual(machine))):
        if found := shutil.which(name, path=folders):
            real = chosen(found, machine) or found
            return FoundCommand(real, folder_of_need(real, path, machine))
    return None


def folder_of_need(program: str, path: str, machine: Machine) -> str:
    """Return the folder that must be on PATH so that a script finds its interpreter; empty if none is needed."""
    need = lacking(program, path)
    if need is None or not need.on_path:
        return ""
    places = os.pathsep.join([os.path.dirname(program), machine.environ.get("PATH", os.defpath), *_usual(machine)])
    found = shutil.which(need.program, path=places)
    return os.path.dirname((chosen(found, machine) or found) if found else "")


def _usual(machine: Machine) -> Iterator[str]:
    """Yield the usual folders of commands, the newest version of a program first."""
    for folder in _USUAL:
        place = os.path.join(glob.escape(machine.home), folder[2:]) if folder.startswith("~") else folder
        yield from sorted(glob.glob(place), key=_version, reverse=True)


def _version(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", path)]


def manager(program: str) -> str:
    """Return the version manager whose shim a program is, such as `pyenv` for `~/.pyenv/shims/python`; else empty."""
    folder = os.path.dirname(program)
    owner = os.path.basename(os.path.dirname(folder)).lstrip(".")
    return owner if os.path.basename(folder) == "shims" or (owner, os.path.basename(folder)) == ("volta", "bin") else ""


def chosen(shim: str, machine: Machine) -> str:
    """Return the program that a version manager runs for its shim in the working directory; empty if it cannot tell."""
    owner = manager(shim)
    if not owner:
        return ""
    root = os.path.dirname(os.path.dirname(shim))
    places = os.pathsep.join([os.path.join(root, "bin"), machine.environ.get("PATH", os.defpath)])
    command = shutil.which(owner, path=places)
    path = _output([command, "which", os.path.basename(shim)], machine).strip() if command else ""
    return path if os.path.isabs(path) and os.access(path, os.X_OK) and "\n" not in path else ""
