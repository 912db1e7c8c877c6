"""Which program started this process: the command line of the client, and when its process started. Linux only.

A client often starts a server through another program: `sh -c`, `npx`, `uv run`. Such a launcher does not say who the
client is, so the first ancestor counts that is not one. A shell without a command or a script is no launcher: a person
types into it, and is the client.

On the `wrap` path: no heavy imports.
"""

import os

_ANCESTORS = 8  # maximum number of processes examined
_LONGEST = 4096  # bytes of a command line
_SHELLS = frozenset("sh bash dash zsh fish ksh ash busybox".split())
_LAUNCHERS = frozenset(
    "npx npm pnpm pnpx yarn bunx uv uvx pipx poetry pdm hatch rye mise direnv env sudo doas nice timeout setsid nohup"
    " stdbuf xargs tini dumb-init".split()
)
_INTERPRETERS = ("python", "node")  # the launcher may be their script: `node /usr/bin/npx`
_SUFFIXES = ("-cli.js", ".js")
_PARENT, _START = 1, 19  # fields of /proc/PID/stat after the name


def client_command(process: int) -> list[str]:
    """Return the command line of the first program from `process` upwards that is not a launcher.

    If all of them are launchers, or an ancestor cannot be read, it is that of `process`; empty if that is unknown.
    """
    first: list[str] = []
    for _ in range(_ANCESTORS):
        words = _command(process) if process > 1 else []  # an orphan has the parent 1, which is not its client
        if not words:
            break
        if not _is_launcher(words):
            return words
        first = first or words
        process = _status(process, _PARENT) or 0
    return first


def start_of(process: int) -> int | None:
    """Return when a process started, in clock ticks since the system started; None if that is unknown."""
    return _status(process, _START)


def _command(process: int) -> list[str]:
    """Return the words of a command line. A word that is not whole is left out, because it may end inside a secret."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            raw = file.read(_LONGEST)
    except OSError:
        return []
    text = os.fsdecode(raw.strip(b"\0"))
    words = text.split("\0") if "\0" in text else text.split()  # a program that sets its title has one text
    return words[:-1] if len(raw) == _LONGEST else words


def _is_launcher(words: list[str]) -> bool:
    name, arguments = os.path.basename(words[0].lstrip("-")), words[1:]  # a login shell is `-bash`
    if name.startswith(_INTERPRETERS) and arguments:
        name = os.path.basename(arguments[0])
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
    if name in _SHELLS:
        return any(not word.startswith("-") for word in arguments)
    return name in _LAUNCHERS


def _status(process: int, field: int) -> int | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[field])
    except (OSError, ValueError, IndexError):
        return None
