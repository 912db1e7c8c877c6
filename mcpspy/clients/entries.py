"""The servers of a configuration: which there are, what each is started with, and whether mcpspy is in front of it.

Pure: a tree in, entries out. A stdio entry may say how to start the server itself (`command`, `args`), or in an object
that is called `command` and has a `path` (Zed before 2025-06, zed-industries/zed#62818). What is wrong with an entry is
a `Refusal` with its place, so that the others can still be served.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcpspy.capture.location import printable_name
from mcpspy.clients.table import Machine, Place, projects
from mcpspy.clients.tree import Member, Node, where
from mcpspy.errors import ConfigError


class Refusal(Exception):
    """Why an entry cannot be changed. Within this package only."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One server of a configuration."""

    name: str
    node: Node
    """The entry: an object, if the configuration is right."""

    @property
    def label(self) -> str:
        """What its captures are called: its name, unless a command line cannot hold it."""
        fits = self.name.isprintable() and self.name.strip("-")
        return self.name if fits else printable_name(self.name)

    @property
    def members(self) -> dict[str, Member]:
        """The members of the entry; raises Refusal if it is no object."""
        replaceable(self.node, "it")
        if not isinstance(self.node.value, dict):
            raise Refusal(f"it is {kind(self.node)}, not an object")
        return self.node.value

    def scalar(self, key: str) -> Any:
        """The value of a member; None if there is none."""
        member = self.members.get(key)
        return member.node.value if member else None

    @property
    def disabled(self) -> bool:
        """Whether the client is told not to start it."""
        return self.scalar("disabled") is True or self.scalar("enabled") is False


@dataclass(frozen=True, slots=True)
class Launch:
    """How an entry starts a stdio server."""

    holder: Node
    """The object with the command and its arguments."""
    command: Member
    args: Member | None

    @property
    def words(self) -> list[str]:
        """The command line, as the client would run it but for its variables."""
        return [self.command.node.value, *(str(word.value) for word in self.arguments)]

    @property
    def arguments(self) -> list[Node]:
        """The nodes of the arguments."""
        return self.args.node.value if self.args else []


class Wrapped(NamedTuple):
    """A command line that has mcpspy in front of the server."""

    launcher: list[str]
    """What starts mcpspy: the words before `wrap`."""
    options: list[str]
    """The words between `wrap` and `--`."""
    words: list[str]
    """The server's own command line."""

    @property
    def ours(self) -> bool:
        """Whether the launcher is nothing but mcpspy, so that without it the server's own command is left."""
        first, *more = self.launcher
        starter = " ".join([re.split(r"[/\\]", first)[-1].lower().removesuffix(".exe"), *more[:-1]])
        return not more or more == ["-m", "mcpspy"] or starter in ("uvx", "uv tool run", "pipx run")

    @property
    def by_hand(self) -> bool:
        """Whether `install` would have written it otherwise."""
        return len(self.options) != 2 or self.options[0] != "--name"


def entries(root: Node, place: Place, machine: Machine, text: str) -> list[Entry]:
    """The servers at `place` in the tree of `text`; raises ConfigError where there is something else."""
    node, keys = root, ""
    for key in place.root:
        if not isinstance(node.value, dict):
            raise ConfigError(f"{where(text, node.start)}: {keys or 'the whole'} is {kind(node)}, not an object")
        names = _project_keys(machine) if key == "{project}" else [key]
        member = next((node.value[name] for name in names if name in node.value), None)
        if member is None:
            return []
        node, keys = member.node, f"{keys}.{key}".lstrip(".")
        if node.fixed:
            raise ConfigError(f"{where(text, node.start)}: {keys} {node.fixed}")
    if node.value is None:
        return []
    if isinstance(node.value, dict):
        return [Entry(name, member.node) for name, member in node.value.items()]
    if isinstance(node.value, list) and place.form == "yaml":
        return [Entry(_name(element, number), element) for number, element in enumerate(node.value, 1)]
    raise ConfigError(f"{where(text, node.start)}: {keys} is {kind(node)}, not an object")


def _project_keys(machine: Machine) -> list[str]:
    return [key for folder in projects(machine) for key in (folder, folder.replace("\\", "/"))]


def _name(node: Node, number: int) -> str:
    """The name of an element of a list, or its place there."""
    name = node.value["name"].node.value if isinstance(node.value, dict) and "name" in node.value else None
    return name if isinstance(name, str) and name else str(number)


def replaceable(node: Node, what: str) -> None:
    """Raise Refusal if the text of a value cannot be replaced."""
    if node.fixed:
        raise Refusal(f"{what} {node.fixed}")


def kind(node: Node) -> str:
    """What a value is, in words."""
    if isinstance(node.value, dict):
        return "an object"
    if isinstance(node.value, list):
        return "a list"
    if isinstance(node.value, str):
        return "a string"
    if node.value is None:
        return "empty"
    return str(node.value).lower() if isinstance(node.value, bool) else "a number or a date"


def launch(entry: Entry) -> Launch | None:
    """How `entry` starts its server; None if it does not. Raises Refusal for what is not as it should be."""
    holder, key = entry.node, "command"
    command = entry.members.get(key)
    if command and isinstance(command.node.value, dict):
        holder, key = command.node, "path"
        command = holder.value.get(key)
        if command is None:
            raise Refusal("its command is an object without a path")
    if command is None:
        return None
    replaceable(command.node, f"its {key}")
    if not isinstance(command.node.value, str):
        raise Refusal(f"its {key} is {kind(command.node)}, not a string")
    args: Member | None = holder.value.get("args")
    if args:
        replaceable(args.node, "its list of args")
        if not isinstance(args.node.value, list):
            raise Refusal(f"its args are {kind(args.node)}, not a list")
    launched = Launch(holder, command, args)
    for word in launched.arguments:
        replaceable(word, "one of its args")
        if isinstance(word.value, dict | list | bool | None):
            raise Refusal(f"one of its args is {kind(word)}")
    return launched


def remote(entry: Entry, keys: Sequence[str]) -> Member | None:
    """The URL of a remote server, in the first of the client's own `keys` that is there."""
    for key in keys:
        if (member := entry.members.get(key)) is not None:
            replaceable(member.node, f"its {key}")
            if not isinstance(member.node.value, str):
                raise Refusal(f"its {key} is {kind(member.node)}, not a string")
            return member
    return None


def wrapped(words: Sequence[str]) -> Wrapped | None:
    """What is behind mcpspy, whatever its path, and whatever starts it; None if it is not there."""
    for at in range(len(words) - 1):
        if _is_mcpspy(words[at]) and words[at + 1] == "wrap" and "--" in words[at + 2 :]:
            end = words.index("--", at + 2)
            return Wrapped(list(words[: at + 1]), list(words[at + 2 : end]), list(words[end + 1 :]))
    return None


def in_a_shell(words: Sequence[str]) -> bool:
    """Whether one of the words is the command line of a shell, with mcpspy in front of something."""
    return any(re.search(r"(?:^|[\s/\\'\"])mcpspy(?:\.exe)?['\"]?\s+wrap\s", word) for word in words)


def _is_mcpspy(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"mcpspy(?:\.exe)?(?:(?:==|@).*)?", name) is not None
