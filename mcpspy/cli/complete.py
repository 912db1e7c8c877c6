"""`mcpspy completion`, and `mcpspy __complete SHELL …`, which the scripts of the former run at each Tab.

The user waits for the result, so no command is imported here, only the tables of the arguments
(`mcpspy.cli.options`). All decisions are made here; a script only passes the result to its shell. Names are passed
unchanged, terminated by NUL, and the shell quotes them, so a name is never evaluated as shell code. (Scripts made by
shtab cannot do that: they read names line by line. argcomplete imports the command, which takes 300 ms.) A name of a
capture that a shell would write to the terminal raw is left out.

The output is one word for the kind of completion, then the candidates at the cursor.
"""

import os
import sys

from mcpspy.capture.location import SUFFIXES, directory
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.options import Command, Option, Positional
from mcpspy.cli.options.set_up import SHELLS
from mcpspy.cli.options.shared import REVISIONS, SEVERITIES
from mcpspy.errors import UsageError
from mcpspy.text import suggestion, without_unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

VALUES, TERMS, CAPTURES, FILES, DIRECTORIES, COMMAND = (
    "values", "terms", "captures", "files", "directories", "command",
)  # fmt: skip
"""The kinds: words; prefixes of words; captures; files; directories; another program and its arguments."""
_KINDS = {
    "CAPTURE": CAPTURES,
    "CAPTURE|DIR": CAPTURES,
    "A": CAPTURES,
    "B": CAPTURES,
    "FILE": FILES,
    "PATH": FILES,
    "DIR": DIRECTORIES,
    "EXPR": TERMS,
}
"""Placeholder -> the kind of its values."""
FILTER_KEYS = (
    *("method", "name", "id", "from", "kind", "status", "revision", "session", "rule", "severity", "latency"),
    *("size", "time", "text"),
)
"""The keys of filters: like their values, they stand in `mcpspy.filters` too, whose import takes 0.2 s."""
FILTER_VALUES = {
    "from": ("client", "server", "mcpspy"),
    "kind": (
        *("request", "notification", "result", "error", "invalid", "undecoded", "stderr", "http", "event"),
        *("end-of-stream", "gap", "signal", "gates", "end"),
    ),
    "status": (
        *("ok", "error", "tool-error", "not-decoded", "pending", "unanswered", "cancelled", "held", "dropped"),
        *("failed", "refused", "broken", "timed-out", "server-exit", "abandoned", "in-doubt", "open"),
    ),
    "severity": SEVERITIES,
    "revision": REVISIONS,
}
"""The values of those keys that have few."""
_PROGRAM = Command(
    "mcpspy",
    "",
    "",
    Option("--version", text="show the version"),
    subcommands=tuple(COMMANDS.values()),
    help_text="show the commands",
)
_WIDEST = 80  # characters of a description
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
    found = answer(words[1:] or [""])
    if found.kind == CAPTURES:
        found.words = dict.fromkeys(captures(directory(None, os.environ)), "")
    lines = [found.kind, *_LINES[shell](found, words[-1], start)]
    sys.stdout.buffer.write(b"".join(os.fsencode(line) + b"\0" for line in lines))
    return 0


def answer(words: "Sequence[str]") -> Completion:
    """Return the candidates for the last word, which is incomplete. The first word is a command."""
    found = _answer(words)
    if found.kind == TERMS:
        earlier, space, term = words[-1][len(found.before) :].rpartition(" ")
        known = [f"{key}:{value}" for key, values in FILTER_VALUES.items() for value in values]
        found.words = dict.fromkeys(known if ":" in term else (f"{key}:" for key in FILTER_KEYS), "")
        found.before += earlier + space
    return found


def _answer(words: "Sequence[str]") -> Completion:
    """Return the candidates: values of an option, options, commands, or values of the next argument."""
    command, place, open_option, over = _PROGRAM, 0, None, False
    *earlier, last = words
    for word in earlier:
        if open_option is not None:
            open_option = None
        elif over and command.server:
            break
        elif word == "--" and not over:
            over = True
        elif word.startswith("-") and len(word) > 1 and not over:
            open_option = _needing_value(command, word)
        elif command.subcommands:
            inner = {it.name: it for it in command.subcommands}
            if word not in inner:
                return Completion(VALUES)
            command = inner[word]
        else:
            place += 1
    if open_option is not None:
        return _values_of(open_option)
    if over and command.server:
        return Completion(COMMAND)
    name, equals, _ = last.partition("=")
    option = _needing_value(command, name)
    if equals and not over and option is not None:
        return _values_of(option, f"{name}=")
    options = Completion(VALUES, {name: _short(it.text) for name, it in command.named_options.items() if it.text})
    if last.startswith("-") and not over:
        return options
    if command.subcommands:
        return Completion(VALUES, {it.name: _short(it.text) for it in command.subcommands})
    positionals = [it for it in command.positionals if it.text is not None]
    if place < len(positionals):
        return _values_of(positionals[place])
    if positionals and positionals[-1].many in ("*", "+"):
        return _values_of(positionals[-1])
    return options if not last and not over else Completion(VALUES)


def _needing_value(command: Command, name: str) -> Option | None:
    """Return the option of that name if a value must follow."""
    option = command.named_options.get(name)
    return option if option is not None and option.placeholder and option.const is None else None


def _values_of(it: Option | Positional, before: str = "") -> Completion:
    """Return the candidates for the value of an argument."""
    if not it.offers:
        return Completion(_KINDS.get(it.placeholder, VALUES), None, before)
    known = it.offers() if callable(it.offers) else dict.fromkeys(it.offers, "")
    return Completion(VALUES, {name: _short(text) for name, text in known.items()}, before)


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def captures(folder: str) -> list[str]:
    """Return the paths of the captures in a directory, the most recently written first."""
    try:
        with os.scandir(folder) as entries:
            found = [(_written(it), it.path) for it in entries if it.name.endswith(SUFFIXES) and _is_safe(it.path)]
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
        elif entry.endswith(SUFFIXES):
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


_SCRIPTS = os.path.join(os.path.dirname(__file__), "completions")


def run_completion(options: "argparse.Namespace") -> int:
    """Print the script."""
    if options.shell not in SHELLS:
        hint = suggestion(options.shell, SHELLS, f"there are {', '.join(SHELLS)}")
        raise UsageError(f"there is no completion for {options.shell!r}; {hint}")
    with open(os.path.join(_SCRIPTS, f"mcpspy.{options.shell}"), encoding="utf-8") as script:
        print(script.read(), end="")
    return 0
