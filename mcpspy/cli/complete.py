"""`mcpspy __complete SHELL …`: what the scripts of `mcpspy completion` ask at each Tab.

The theory. The shell waits, so this imports no command: `completions/table.json` has what they take, which
`scripts/write-rules` writes from their parsers (`mcpspy.cli.completion_table`). All that a shell has to know is decided
here, and a script only hands it on. Names go to the shell as they are, ended by NUL, and the shell quotes them: no name
is ever text that a shell evaluates. (Scripts that shtab makes from a parser cannot do that: they read names line by
line. argcomplete imports the command, which takes 300 ms.)

What is written: a word that says what the rest is, then what may stand at the cursor.
"""

import os
import sys

from mcpspy.capture.location import SUFFIX, directory
from mcpspy.errors import UsageError
from mcpspy.json_text import only_value, scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Node = dict[str, Any]

TABLE = os.path.join(os.path.dirname(__file__), "completions", "table.json")
VALUES, TERMS, CAPTURES, FILES, DIRECTORIES, COMMAND = (
    "values", "terms", "captures", "files", "directories", "command",
)  # fmt: skip
"""Words; the beginnings of words; captures; files; directories; another program and its arguments."""


class Completion:
    """What may stand at the cursor."""

    def __init__(self, kind: str, words: "dict[str, str] | None" = None, before: str = "") -> None:
        self.kind = kind
        self.words = words or {}
        """Each with what it means, in the order in which they are shown."""
        self.before = before
        """What stands before them in the same word: `--format=`, or the earlier terms of a filter."""


def complete(arguments: "Sequence[str]") -> int:
    """Write what may stand at the cursor: bash gives the line and its breaks, the others words."""
    if len(arguments) < 3 or arguments[0] not in _LINES:
        raise UsageError("only the scripts that 'mcpspy completion SHELL' prints use '__complete'")
    shell, *words = arguments
    start = 0
    if shell == "bash":
        words, start = split(words[0], words[1])
    found = answer(read_table(), words[1:] or [""])
    if found.kind == CAPTURES:
        found.words = dict.fromkeys(captures(directory(None, os.environ)), "")
    lines = [found.kind, *_LINES[shell](found, words[-1], start)]
    sys.stdout.buffer.write(b"".join(os.fsencode(line) + b"\0" for line in lines))
    return 0


def read_table() -> "Node":
    """The table: what the program takes, and `terms`, of which filters are made.

    A node, the program or a command, has `options` with their values (null: none), a text for each in `help`,
    `positionals`, whether there may be `many` of the last, whether a `server` follows, and `commands`.
    """
    with open(TABLE, encoding="utf-8") as file:
        table: Node = only_value(file.read(), scanner())
    return table


def answer(table: "Node", words: "Sequence[str]") -> Completion:
    """What the last of some words may be, which is not complete; the first is a command."""
    found = _answer(table, words)
    if found.kind == TERMS:
        earlier, space, term = words[-1][len(found.before) :].rpartition(" ")
        found.words = {it: text for it, text in table["terms"].items() if it.endswith(":") == (":" not in term)}
        found.before += earlier + space
    return found


def _answer(table: "Node", words: "Sequence[str]") -> Completion:
    """What is known of a place: a value of an option, an option, a command, or the argument whose turn it is."""
    node, place, value, over = table, 0, None, False
    *earlier, last = words
    for word in earlier:
        if value is not None:
            value = None
        elif over and node.get("server"):
            break
        elif word == "--" and not over:
            over = True
        elif word.startswith("-") and len(word) > 1 and not over:
            value = node["options"].get(word)
        elif node.get("commands"):
            if word not in node["commands"]:
                return Completion(VALUES)
            node = node["commands"][word]
        else:
            place += 1
    if value is not None:
        return _of(value)
    if over and node.get("server"):
        return Completion(COMMAND)
    option, equals, _ = last.partition("=")
    if equals and not over and node["options"].get(option) is not None:
        return _of(node["options"][option], f"{option}=")
    options = Completion(VALUES, node["help"])
    if last.startswith("-") and not over:
        return options
    if node.get("commands"):
        return Completion(VALUES, {name: command["text"] for name, command in node["commands"].items()})
    positionals = node["positionals"]
    if place < len(positionals):
        return _of(positionals[place])
    if positionals and node["many"]:
        return _of(positionals[-1])
    return options if not last and not over else Completion(VALUES)


def _of(value: "str | dict[str, str]", before: str = "") -> Completion:
    """What the value of an argument may be."""
    return Completion(value, None, before) if isinstance(value, str) else Completion(VALUES, value, before)


def captures(folder: str) -> list[str]:
    """The paths of the captures in a directory, the one that was written to last first."""
    try:
        with os.scandir(folder) as entries:
            found = [(_written(it), it.path) for it in entries if it.name.endswith(SUFFIX)]
    except OSError:
        return []
    return [path for written, path in sorted(found, reverse=True) if written]


def _written(entry: "os.DirEntry[str]") -> int:
    """When a file was last written to, in nanoseconds; 0 for what is none."""
    try:
        return max(entry.stat().st_mtime_ns, 1) if entry.is_file() else 0
    except OSError:  # deleted meanwhile, or a link to itself
        return 0


def split(line: str, breaks: str) -> tuple[list[str], int]:
    """The words of a line of bash without their quotes, and where the part begins that bash would replace.

    That is the place in the last word after the last of `breaks` that is not quoted.
    """
    words, quote, start, escaped = [""], "", 0, False
    between = True  # two words
    for character in line:
        if escaped:
            words[-1] += character
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif character == quote:
            quote = ""
        elif quote:
            words[-1] += character
        elif character in "'\"":
            quote = character
        elif character in " \t\n":
            if not between:
                words.append("")
            between, start = True, 0
            continue
        else:
            words[-1] += character
            if character in breaks:
                start = len(words[-1])
        between = False
    return words, start


def _bash(found: Completion, word: str, start: int) -> "Iterator[str]":
    """Whole candidates for what bash replaces: it neither chooses among them nor shows texts."""
    rest = word[len(found.before) :]
    if found.kind == CAPTURES:
        named = [it for it in found.words if rest and rest in os.path.basename(it)]
        paths = [*(it for it in found.words if it.startswith(rest)), *_here(rest)]
        yield from (f"{found.before}{it}"[start:] for it in paths or (named if len(named) == 1 else ()))
    else:
        yield from (f"{found.before}{it}"[start:] for it in found.words if it.startswith(rest))


def _here(word: str) -> "Iterator[str]":
    """The captures and directories that a path is the beginning of; of the working directory only captures at first."""
    folder, name = os.path.split(word)
    try:
        found = sorted(os.listdir(os.path.expanduser(folder) or "."))
    except OSError:
        return
    for entry in found:
        if not entry.startswith(name) or (entry.startswith(".") and not name):
            continue
        path = os.path.join(folder, entry)
        if os.path.isdir(os.path.expanduser(path)):
            if word:
                yield f"{path}/"
        elif entry.endswith(SUFFIX):
            yield path if word or not entry.startswith("-") else f"./{path}"


def _zsh(found: Completion, _: str, __: int) -> "Iterator[str]":
    """Candidates, and lines for people of the same number after them; zsh chooses."""
    words = [f"{found.before}{it}" for it in found.words]
    yield from words
    if found.kind != CAPTURES:
        yield from (f"{it}  {text}".rstrip() for it, text in zip(words, found.words.values(), strict=True))


def _fish(found: Completion, word: str, _: int) -> "Iterator[str]":
    """Candidates with their texts after a tab, so a name with a tab cannot be one; fish chooses."""
    here = _here(word[len(found.before) :]) if found.kind == CAPTURES else ()
    words = found.words | dict.fromkeys(here, "")
    yield from (f"{found.before}{it}\t{text}".rstrip("\t") for it, text in words.items() if "\t" not in it)


_LINES = {"bash": _bash, "zsh": _zsh, "fish": _fish}
