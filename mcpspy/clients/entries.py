"""The servers of a configuration: their names, their commands, and whether mcpspy is in front of them.

Pure: a tree in, entries out. A stdio entry has its command in `command` and `args`, or in an object called `command`
with a `path` (Zed before 2025-06, zed-industries/zed#62818), or in one list called `command` (opencode). Cline has all
of these in an object called `transport`. A problem of an entry is a `Refusal` with its position.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from mcpspy.capture.location import printable_name
from mcpspy.clients.formats import YAML
from mcpspy.clients.places import Found, Machine, projects
from mcpspy.clients.table import LIST, STRING, Client, Place
from mcpspy.clients.tree import Member, Node, plain, where
from mcpspy.errors import ConfigError, Unwrappable

MOST_SERVERS = 10_000
"""The most servers of one file."""
_ROOTS = ("mcpServers", "servers", "context_servers", "mcp_servers")  # what clients call their list of servers


class Refusal(Exception):
    """An entry cannot be changed because its form is unknown; the text is the reason. Used in this package only."""


class Unchangeable(Refusal):
    """An entry of a known form must stay as it is, while others can be changed; the text is the reason.

    Used in this package only.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """One server of a configuration."""

    name: str
    node: Node
    """The entry, which is an object if the configuration is valid."""
    client: Client

    @property
    def label(self) -> str:
        """The name of its captures: the server's name, unless a command line cannot contain it."""
        fits = self.name.isprintable() and self.name.strip("-")
        return self.name if fits else printable_name(self.name)

    @property
    def members(self) -> dict[str, Member]:
        """The members of the entry. Raises Refusal if it is not an object."""
        replaceable(self.node, "it")
        if not isinstance(self.node.value, dict):
            raise Refusal(f"it is {kind(self.node)}, not an object")
        return self.node.value

    @property
    def body(self) -> Node:
        """The object with the command or the URL: the entry itself, or an object in it."""
        members = self.members
        inner = members.get(self.client.nested) if self.client.nested else None
        return inner.node if inner and isinstance(inner.node.value, dict) else self.node

    def scalar(self, key: str) -> Any:
        """Return the value of a member; None if there is none."""
        member = self.body.value.get(key) or self.members.get(key)
        return member.node.value if member else None

    @property
    def debugger(self) -> str:
        """The type of the debugger with which the client starts it (`dev.debug`); empty without one."""
        return debugger(plain(self.members["dev"].node)) if "dev" in self.members else ""

    @property
    def disabled(self) -> bool:
        """Whether the configuration disables it."""
        return self.scalar("disabled") is True or self.scalar("enabled") is False


@dataclass(frozen=True, slots=True)
class Launch:
    """How an entry starts a stdio server."""

    holder: Node
    """The object with the command and its arguments."""
    command: Member
    """A string, or a list that includes the arguments."""
    args: Member | None

    @property
    def words(self) -> list[str]:
        """The command line as the client runs it, with its variables not replaced."""
        return [str(word.value) for word in self.nodes]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the command line."""
        if self.in_one:
            return list(self.command.node.value)
        return [self.command.node, *(self.args.node.value if self.args else [])]

    @property
    def in_one(self) -> bool:
        """Whether the command is a list that includes the arguments."""
        return isinstance(self.command.node.value, list)


class Wrapped(NamedTuple):
    """A command line with mcpspy in front of the server."""

    launcher: list[str]
    """What starts mcpspy: the words before `wrap`."""
    options: list[str]
    """The words between `wrap` and `--`."""
    words: list[str]
    """The server's own command line."""

    @property
    def ours(self) -> bool:
        """Whether the launcher only starts mcpspy, so that the server's own command remains without it."""
        if self.options and not self.options[0].startswith("-"):  # the command begins there, and `--` is in it
            return False
        first, *more = self.launcher
        starter = " ".join([re.split(r"[/\\]", first)[-1].lower().removesuffix(".exe"), *more[:-1]])
        return not more or more == ["-m", "mcpspy"] or starter in ("uvx", "uv tool run", "pipx run")

    @property
    def by_hand(self) -> bool:
        """Whether it differs from what `install` writes."""
        return len(self.options) != 2 or self.options[0] != "--name"


def entries(root: Node, found: Found, machine: Machine, text: str) -> list[Entry]:
    """Return the servers at a place in the tree of `text`. Raises ConfigError if the place has another type."""
    client, place, _ = found
    node, keys = root, ""
    for key in place.root:
        if not isinstance(node.value, dict):
            raise Unwrappable(f"{where(text, node.start)}: {keys or 'the whole'} is {kind(node)}, not an object")
        names = _project_keys(machine) if key == "{project}" else [key]
        member = next((node.value[name] for name in names if name in node.value), None)
        if member is None:
            _refuse_other_root(node, place, client, text)
            return []
        node, keys = member.node, f"{keys}.{key}".lstrip(".")
        if node.fixed:
            raise ConfigError(f"{where(text, node.start)}: {keys} {node.fixed}")
    if node.value is None:
        return []
    if isinstance(node.value, dict | list) and len(node.value) > MOST_SERVERS:
        raise ConfigError(f"{where(text, node.start)}: {keys} has more than {MOST_SERVERS:,} servers")
    if isinstance(node.value, dict):
        return [Entry(name, member.node, client) for name, member in node.value.items()]
    if isinstance(node.value, list) and place.form == YAML:
        return [Entry(_name(element, number), element, client) for number, element in enumerate(node.value, 1)]
    raise Unwrappable(f"{where(text, node.start)}: {keys} is {kind(node)}, not an object")


def _refuse_other_root(node: Node, place: Place, client: Client, text: str) -> None:
    """Raise Unwrappable if the client's own key has no servers, but a key of other clients has some."""
    if len(place.root) > 1:
        return
    for key in _ROOTS:
        member = node.value.get(key)
        inside = member.node.value if member and isinstance(member.node.value, dict) else {}
        if member and any(isinstance(inner.node.value, dict) for inner in inside.values()):
            raise Unwrappable(
                f"{where(text, member.start)}: found servers under {key!r}; {client.name} reads {place.root[0]!r}"
            )


def _project_keys(machine: Machine) -> list[str]:
    """Return the keys that may name the project: Claude Code uses the root of the main git working tree, if any."""
    folders = [machine.main] if machine.main else projects(machine)
    return [key for folder in folders for key in (folder, folder.replace("\\", "/"))]


def _name(node: Node, number: int) -> str:
    """Return the name of an element of a list, or its number."""
    name = node.value["name"].node.value if isinstance(node.value, dict) and "name" in node.value else None
    return name if isinstance(name, str) and name else str(number)


def replaceable(node: Node, what: str) -> None:
    """Raise Refusal if the text of a value cannot be replaced."""
    if node.fixed:
        raise Refusal(f"{what} {node.fixed}")


def kind(node: Node) -> str:
    """Return the type of a value, in words."""
    if isinstance(node.value, dict):
        return "an object"
    if isinstance(node.value, list):
        return LIST
    if isinstance(node.value, str):
        return STRING
    if node.value is None:
        return "empty"
    return str(node.value).lower() if isinstance(node.value, bool) else "a number or a date"


def launch(entry: Entry) -> Launch | None:
    """Return how `entry` starts its server; None if it does not. Raises Refusal for an invalid entry."""
    holder, key = entry.body, "command"
    command: Member | None = holder.value.get(key)
    if command and isinstance(command.node.value, dict):
        holder, key = command.node, "path"
        command = holder.value.get(key)
        if command is None:
            raise Refusal("its command is an object without a path")
    if command is None:
        return None
    replaceable(command.node, f"its {key}")
    if kind(command.node) not in entry.client.commands:
        raise Refusal(f"its {key} is {kind(command.node)}, not {' or '.join(entry.client.commands)}")
    args: Member | None = holder.value.get("args") if kind(command.node) == STRING else None
    if args:
        replaceable(args.node, "its list of args")
        if not isinstance(args.node.value, list):
            raise Refusal(f"its args are {kind(args.node)}, not a list")
    launched = Launch(holder, command, args)
    for word in launched.nodes:
        replaceable(word, "one of its args")
        if isinstance(word.value, dict | list | bool | None):
            raise Refusal(f"one of its args is {kind(word)}")
    if not launched.nodes:
        raise Refusal("its command is an empty list")
    if entry.client.splits and len(launched.nodes) == 1 and " " in launched.words[0].strip():
        raise Refusal(f"{entry.client.name} splits its command at the blanks; put the arguments into args")
    return launched


def remote(entry: Entry) -> Member | None:
    """Return the URL of a remote server, from the first of the client's keys that exists."""
    for key in entry.client.remote:
        member: Member | None = entry.body.value.get(key)
        if member is not None:
            replaceable(member.node, f"its {key}")
            if not isinstance(member.node.value, str):
                raise Refusal(f"its {key} is {kind(member.node)}, not a string")
            return member
    return None


def unknown(entry: Entry) -> Refusal:
    """Return why an entry is neither a stdio nor a remote server."""
    there = ", ".join(entry.members) or "nothing"
    return Refusal(f"it has neither a command nor {' nor '.join(entry.client.remote)}; found {there}")


def only_switched(entry: Entry) -> bool:
    """Return whether an entry only enables or disables a server that another file of the client defines (opencode)."""
    return set(entry.members) in ({"enabled"}, {"disabled"})


def debugger(dev: object) -> str:
    """Return the type of the debugger in the value of `dev`; empty if it has none."""
    debug = dev.get("debug") if isinstance(dev, dict) else None
    kind = debug.get("type") if isinstance(debug, dict) else None
    return kind if isinstance(kind, str) else ""


def wrapped(words: Sequence[str]) -> Wrapped | None:
    """Return the command behind mcpspy, whatever the path of mcpspy and its launcher; None if mcpspy is not in it."""
    for at in range(len(words) - 1):
        if _is_mcpspy(words[at]) and words[at + 1] == "wrap" and "--" in words[at + 2 :]:
            end = words.index("--", at + 2)
            return Wrapped(list(words[: at + 1]), list(words[at + 2 : end]), list(words[end + 1 :]))
    return None


def wrapped_otherwise(words: Sequence[str]) -> bool:
    """Return whether mcpspy is in front of a command in a form that cannot be undone: in a shell, or without `--`."""
    in_a_shell = re.compile(r"(?:^|[\s/\\'\"])mcpspy(?:\.exe)?['\"]?\s+wrap\s")
    return any(map(in_a_shell.search, words)) or any(
        _is_mcpspy(word) and after == "wrap" for word, after in pairwise(words)
    )


def _is_mcpspy(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"mcpspy(?:\.exe)?(?:(?:==|@).*)?", name) is not None
