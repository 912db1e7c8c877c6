"""`mcpspy __complete SHELL …`: the program that the scripts of `mcpspy completion` run at each Tab.

The user waits for the result, so no command is imported here. The arguments of the commands are read from
`completions/table.json`, which `scripts/write-rules` makes from the parsers (`mcpspy.cli.completion_table`). All
decisions are made here; a script only passes the result to its shell. Names are passed unchanged, terminated by NUL,
and the shell quotes them, so a name is never evaluated as shell code. (Scripts made by shtab cannot do that: they read
names line by line. argcomplete imports the command, which takes 300 ms.) A name of a capture that a shell would write
to the terminal raw is left out.

The output is one word for the kind of completion, then the candidates at the cursor.
"""

import os
import sys

from mcpspy.capture.location import SUFFIX, directory
from mcpspy.errors import UsageError
from mcpspy.json_text import only_value, scanner
from mcpspy.text import without_unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Node = dict[str, Any]

TABLE = os.path.join(os.path.dirname(__file__), "completions", "table.json")
VALUES, TERMS, CAPTURES, FILES, DIRECTORIES, COMMAND = (
    "values", "terms", "captures", "files", "directories", "command",
)  # fmt: skip
"""The kinds: words; prefixes of words; captures; files; directories; another program and its arguments."""
_SHOWN = dict.fromkeys((*range(0x20), 0x7F))
"""The controls that every shell shows in a harmless form, such as `^[`."""


class Completion:
    """The candidates at the cursor."""

    def __init__(self, kind: str, words: "dict[str, str] | None" = None, before: str = "") -> None:
        self.kind = kind
        self.words = words or {}
        """Word -> its meaning, in the order of display."""
        self.before = before
        """The text before them in the same word: `--format=`, or the earlier terms of a filter."""


def complete(arguments: "Sequence[str]") -> int:
    """Print the candidates at the cursor. bash passes the line and its word breaks, other shells pass words."""
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
    """Return the table: the arguments of the program, and `terms`, the terms of filters.

    A node is the program or a command. It has `options` with their values (null for an option without a value), a text
    for each in `help`, `positionals`, `many` (whether the last may be repeated), `server` (whether the command line of
    a server follows), and `commands`.
    """
    with open(TABLE, encoding="utf-8") as file:
        table: Node = only_value(file.read(), scanner())
    return table


def answer(table: "Node", words: "Sequence[str]") -> Completion:
    """Return the candidates for the last word, which is incomplete. The first word is a command."""
    found = _answer(table, words)
    if found.kind == TERMS:
        earlier, space, term = words[-1][len(found.before) :].rpartition(" ")
        found.words = {it: text for it, text in table["terms"].items() if it.endswith(":") == (":" not in term)}
        found.before += earlier + space
    return found


def _answer(table: "Node", words: "Sequence[str]") -> Completion:
    """Return the candidates: values of an option, options, commands, or values of the next argument."""
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
    """Return the candidates for the value of an argument."""
    return Completion(value, None, before) if isinstance(value, str) else Completion(VALUES, value, before)


def captures(folder: str) -> list[str]:
    """Return the paths of the captures in a directory, the most recently written first."""
    try:
        with os.scandir(folder) as entries:
            found = [(_written(it), it.path) for it in entries if it.name.endswith(SUFFIX) and _is_safe(it.path)]
    except OSError:
        return []
    return [path for written, path in sorted(found, reverse=True) if written]


def _is_safe(name: str) -> bool:
    """Return whether shells show a name without harm: bash and fish write C1 controls and hidden text unchanged."""
    shown = name.translate(_SHOWN)
    return without_unsafe(shown) == shown


def _written(entry: "os.DirEntry[str]") -> int:
    """Return when a file was last written, in nanoseconds; 0 if it is not a regular file."""
    try:
        return max(entry.stat().st_mtime_ns, 1) if entry.is_file() else 0
    except OSError:  # the file was deleted meanwhile, or is a link to itself
        return 0


def split(line: str, breaks: str) -> tuple[list[str], int]:
    """Return the words of a bash line without quotes, and the position in the last word from which bash replaces.

    The position is after the last unquoted character of `breaks`.
    """
    words, quote, start, escaped = [""], "", 0, False
    between = True  # whether the character is between two words
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
    """Yield whole candidates for the part that bash replaces. bash neither filters them nor shows descriptions."""
    rest = word[len(found.before) :]
    if found.kind == CAPTURES:
        named = [it for it in found.words if rest and rest in os.path.basename(it)]
        paths = [*(it for it in found.words if it.startswith(rest)), *_here(rest)]
        yield from (f"{found.before}{it}"[start:] for it in paths or (named if len(named) == 1 else ()))
    else:
        yield from (f"{found.before}{it}"[start:] for it in found.words if it.startswith(rest))


def _here(word: str) -> "Iterator[str]":
    """Yield the captures and directories whose path begins with the word; only captures if the word is empty."""
    folder, name = os.path.split(word)
    try:
        found = sorted(os.listdir(os.path.expanduser(folder) or "."))
    except OSError:
        return
    for entry in found:
        if not entry.startswith(name) or (entry.startswith(".") and not name) or not _is_safe(entry):
            continue
        path = os.path.join(folder, entry)
        if os.path.isdir(os.path.expanduser(path)):
            if word:
                yield f"{path}/"
        elif entry.endswith(SUFFIX):
            yield path if word or not entry.startswith("-") else f"./{path}"


def _zsh(found: Completion, _: str, __: int) -> "Iterator[str]":
    """Yield candidates, then as many lines to display. zsh filters them."""
    words = [f"{found.before}{it}" for it in found.words]
    yield from words
    if found.kind != CAPTURES:
        yield from (f"{it}  {text}".rstrip() for it, text in zip(words, found.words.values(), strict=True))


def _fish(found: Completion, word: str, _: int) -> "Iterator[str]":
    """Yield candidates, each with its description after a tab, so names with a tab are left out. fish filters them."""
    here = _here(word[len(found.before) :]) if found.kind == CAPTURES else ()
    words = found.words | dict.fromkeys(here, "")
    yield from (f"{found.before}{it}\t{text}".rstrip("\t") for it, text in words.items() if "\t" not in it)


_LINES = {"bash": _bash, "zsh": _zsh, "fish": _fish}
