"""Mistakes in the entry of a stdio server that can be seen without starting it.

Each check is a function of a `Start`: the server, and what its client would start. Most of these mistakes come from
copied examples: a variable in the form of another client, a placeholder, two words in one argument, a path that is
relative to another directory.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcpspy.clients.check import NOTE, PROBLEM, Check, as_member, in_shell
from mcpspy.clients.entries import debugger
from mcpspy.clients.places import Machine
from mcpspy.clients.probe import listening
from mcpspy.clients.servers import Server, unexpanded
from mcpspy.clients.table import BRACES, DOLLAR, ENV, IN_BRACES, PROJECT
from mcpspy.process.ports import holder
from mcpspy.secrets.redactor import Withheld, is_secret_name
from mcpspy.secrets.tokens import placeholder

DEBUG_PORT = 9230  # microsoft/vscode, mcpDevMode.ts
_CONTAINERS = ("docker", "podman", "nerdctl")
_SWITCHES = {
    "--detach", "--init", "--interactive", "--no-healthcheck", "--oom-kill-disable", "--privileged", "--publish-all",
    "--quiet", "--read-only", "--rm", "--sig-proxy", "--tty", "--use-api-socket",
}  # fmt: skip
"""The options of `docker run` that take no value."""
_SHORT_SWITCHES = "diPqt"
_SHELLS = re.compile(r"(?:ba|z|da|fi|k)?sh|cmd(?:\.exe)?|powershell(?:\.exe)?|pwsh")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SCRIPT = re.compile(r"[\w.-][^:=]*\.(?:py|js|mjs|cjs|ts|jar|sh|rb|exe)|\.{1,2}[/\\].*")
_WORDS_IN_ONE = re.compile(r"--?[A-Za-z][\w-]*\s+\S.*", re.DOTALL)
_QUOTED = re.compile(r"'.+'|\"[/~.\w-][^\"]*\"", re.DOTALL)
_PORT = re.compile(r"(?:[\d.]+:)?(\d{1,5}):\d{1,5}(?:/tcp)?")


@dataclass(frozen=True, slots=True)
class Start:
    """A server, and how its client starts it."""

    server: Server
    command: Sequence[str]
    """The command line, with the variables that the client replaces."""
    environ: Mapping[str, str]
    """The variables of the entry, likewise."""
    cwd: str
    machine: Machine


def of_entry(start: Start) -> Iterator[Check]:
    """Check what the server gets to see; the client starts it with these mistakes too."""
    for check in (_of_variables, _of_placeholders, _of_words, _of_homes, _of_relative_paths, _of_ports):
        yield from check(start)


def of_start(start: Start) -> Iterator[Check]:
    """Check what keeps the client from starting the server, or from talking to it; then it need not be tried."""
    for check in (_of_env, _of_project_variables, _of_debugger, _of_container):
        yield from check(start)


def of_texts(texts: Mapping[str, str], server: Server) -> Iterator[Check]:
    """Check texts of an entry for variables that the client does not replace; the keys are where each stands."""
    client = server.found.client
    for where, text in texts.items():
        for variable in dict.fromkeys(unexpanded(text, client)):
            name = _NAME.search(variable.removeprefix("$env:").removeprefix("${env:").removeprefix("{env:"))
            yield Check(
                PROBLEM,
                f"{where}: {client.name} does not replace {variable}, so the server gets it as it is",
                _instead(client.forms, name[0] if name else "NAME"),
            )


def _instead(forms: Sequence[str], name: str) -> str:
    """Return how to write a variable for a client with these forms."""
    for form in (BRACES, ENV, IN_BRACES, DOLLAR):
        if form in forms:
            return f"write {form.replace('NAME', name)}"
    return "write the value itself: this client replaces no variables"


def placeholders(values: Mapping[str, str]) -> Iterator[Check]:
    """Yield a problem for each value that was to be replaced; the keys are where each stands."""
    for where, value in values.items():
        for word in value.split():
            kind = placeholder(word)
            if kind == "example" or (kind == "no value" and is_secret_name(where)):
                yield Check(PROBLEM, f"{where} is the placeholder {word}", "write your own value")


def _of_variables(start: Start) -> Iterator[Check]:
    texts = dict(start.environ)
    for number, word in enumerate(start.command[1:], 1):
        if not _is_code(start.command, number):
            texts[f"argument {number}"] = word
    texts |= {"its command": start.command[0], "its cwd": start.server.cwd or ""}
    yield from of_texts(texts, start.server)


def _of_placeholders(start: Start) -> Iterator[Check]:
    yield from placeholders(start.environ)
    before = ""
    for number, word in enumerate(start.command[1:], 1):
        name, equals, value = word.partition("=")
        where = name if equals else before or f"argument {number}"
        yield from placeholders({where: value if equals else word})
        before = word if word.startswith("-") else ""


def _of_words(start: Start) -> Iterator[Check]:
    """Check arguments that a shell would have split, or whose quotes it would have removed."""
    for number, word in enumerate(start.command[1:], 1):
        if _is_code(start.command, number):
            continue
        shown = " ".join(Withheld().argv(word.split()))
        if _WORDS_IN_ONE.fullmatch(word) and "=" not in word.split()[0]:
            words = [f'"{part}"' for part in shown.split(" ", 1)]
            yield Check(PROBLEM, f'argument {number} is "{shown}", one word with a blank', f"write {', '.join(words)}")
        elif _QUOTED.fullmatch(word):
            yield Check(PROBLEM, f"argument {number} has quotes of a shell: {shown}", f'write "{shown[1:-1]}"')


def _is_code(command: Sequence[str], number: int) -> bool:
    """Return whether a word is a program, or a command line for a shell, which has variables and quotes of its own."""
    shell = _SHELLS.fullmatch(os.path.basename(command[0]))
    return command[number - 1] in ("-e", "--eval", "-p") or bool(
        re.fullmatch(r"-\w*c|/c|-command", command[number - 1].lower()) or (shell and command[1].lower() == "/c")
    )


def _of_homes(start: Start) -> Iterator[Check]:
    """Check arguments with a `~`, which only a shell replaces, and some servers."""
    client = start.server.found.client
    for number, word in enumerate(start.command[1:], 1):
        if word == "~" or word.startswith("~/"):
            path = start.machine.paths.join(start.machine.home, word[2:])
            text = f"argument {number}: {client.name} does not replace '~', so the server gets {word}"
            yield Check(NOTE, text, f'if the server does not replace it either, write "{path}"')


def _of_relative_paths(start: Start) -> Iterator[Check]:
    """Check whether a file of the working directory is named, but the server is started in another directory."""
    here = start.machine.cwd
    if os.path.normpath(start.cwd) == os.path.normpath(here):
        return
    for number, word in enumerate(start.command[1:], 1):
        path = os.path.join(here, word)
        if _SCRIPT.fullmatch(word) and os.path.exists(path) and not os.path.exists(os.path.join(start.cwd, word)):
            yield Check(
                PROBLEM,
                f"argument {number}, {word}, is a file in {here}, but the server is started in {start.cwd}",
                f'write "{os.path.normpath(path)}"',
            )


def _of_ports(start: Start) -> Iterator[Check]:
    """Check the ports that a container publishes; a program may have other plans with `--port`."""
    if not _is_container(start.command):
        return
    for before, word in zip(start.command, [*start.command[1:], ""], strict=True):
        value = word if before in ("-p", "--publish") else word.partition("=")[2] if "--publish=" in word else ""
        match = _PORT.fullmatch(value)
        if match and listening(port := int(match[1])):
            yield Check(
                PROBLEM,
                f"port {port} is in use by {user_of(port)}, so the container cannot publish it",
                f"end that, or publish another port; a server on stdio needs none: remove {before} {value}",
            )


def user_of(port: int) -> str:
    """Return the command line of the process that listens on a port, without secrets."""
    held = holder(port)
    return " ".join(Withheld().argv(held.words)) if held else "a process that cannot be seen"


def _of_env(start: Start) -> Iterator[Check]:
    client = start.server.found.client
    env = start.server.members.get(client.env)
    for name, value in env.items() if client.env_of_strings and isinstance(env, dict) else ():
        if not isinstance(value, str):
            kind = "null" if value is None else "not a string"
            text = json.dumps(value) if isinstance(value, int | float) else ""
            yield Check(
                PROBLEM,
                f"{name} is {kind}, and {client.name} starts no server with that",
                f'write {as_member(name, text)} into its "{client.env}"',
            )


def _of_project_variables(start: Start) -> Iterator[Check]:
    server = start.server
    client, own = server.found.client, server.found.client.project_variables
    if not own or server.found.place.scope == PROJECT:
        return
    texts = [*server.words, *server.environ.values(), server.cwd or "", server.env_file or ""]
    for variable in dict.fromkeys(re.findall(rf"\$\{{{own}\w*(?::[^}}]*)?\}}", "\n".join(texts))):
        yield Check(
            PROBLEM,
            f"{client.name} does not replace {variable} in this file, and refuses to start the server",
            "write the path in full, or move the server to .vscode/mcp.json of the project",
        )


def _of_debugger(start: Start) -> Iterator[Check]:
    """Check `dev.debug`: the client starts the debugger itself, and accepts only its own command for that."""
    server, client = start.server, start.server.found.client
    program = client.debugs.get(debugger(server.members.get("dev")))
    if program is None:
        return
    if server.launcher:
        yield Check(
            PROBLEM,
            f"{client.name} starts the debugger of dev.debug only if {program} is the command, which is mcpspy now",
            f"remove dev.debug, or: mcpspy uninstall {client.id} {in_shell(server.name)}",
        )
    elif not re.search(rf"{program}[\d.]*$", server.words[0]):  # microsoft/vscode, mcpDevMode.ts
        yield Check(
            PROBLEM,
            f"{client.name} starts the debugger of dev.debug only if {program} is the command, not {server.words[0]}",
            f"write {program} and the script of the server, or remove dev.debug",
        )
    elif listening(DEBUG_PORT):
        yield Check(
            PROBLEM,
            f"port {DEBUG_PORT}, which {client.name} uses for dev.debug, is in use by {user_of(DEBUG_PORT)}",
            "end that, or remove dev.debug",
        )


def _is_container(command: Sequence[str]) -> bool:
    return os.path.basename(command[0]).removesuffix(".exe") in _CONTAINERS and "run" in command[1:]


def _of_container(start: Start) -> Iterator[Check]:
    """Check whether a container gets what the client writes, and runs as long as the client."""
    if not _is_container(start.command):
        return
    program, begin = os.path.basename(start.command[0]), start.command.index("run") + 1
    options, kept = _options_of_run(start.command[begin:])
    words = Withheld().argv([*start.command[1:begin], "-i", *kept])
    fix = f"write {as_member('args', words)}"
    if "interactive" not in options:
        yield Check(
            PROBLEM, f"{program} run without -i closes the stdin of the container, so the server gets no message", fix
        )
    if "tty" in options:
        yield Check(PROBLEM, f"{program} run -t needs a terminal, which a client does not have", fix)
    if "detach" in options:
        yield Check(PROBLEM, f"{program} run -d leaves the container at once, without its stdout", fix)


_FLAGS = {"i": "interactive", "t": "tty", "d": "detach"}
_CLUSTER = re.compile(f"-([{_SHORT_SWITCHES}]*)")


def _options_of_run(words: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return which of `_FLAGS` are among the options of `docker run`, and the words without them."""
    found: set[str] = set()
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        flags, takes, left = _option(name)
        if value.lower() != "false":
            found |= flags
        kept += [left + equals + value] if left and not (flags and equals) else []
        if not word.startswith("-") or word == "--":
            break
        if takes and not equals:
            kept += [it for it in [next(rest, None)] if it is not None]
    return found, [*kept, *rest]


def _option(name: str) -> tuple[set[str], bool, str]:
    """Return which of `_FLAGS` a word has, whether a value follows it, and what is left of it without them."""
    if name.startswith("--"):
        flag = {name[2:]} & {*_FLAGS.values()}
        return flag, name not in _SWITCHES, "" if flag else name
    cluster = _CLUSTER.match(name)
    if not cluster:
        return set(), False, name
    letters = "".join(letter for letter in cluster[1] if letter not in _FLAGS)
    value = name[cluster.end() :]
    flags = {_FLAGS[letter] for letter in cluster[1] if letter in _FLAGS}
    return flags, len(value) == 1, f"-{letters}{value}" if letters or value else ""
