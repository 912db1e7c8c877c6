"""How to replay and mock one capture: the settings in `NAME.replay.toml` beside it, and the options of a command line.

    ignore = ["/result/content/*/text", "tools/call get_time", "tools/call add /result/structuredContent/took"]
    shape = true
    strict = true
    read_only = true

    [is]
    "tools/call now /result/content/0/text" = "date-time"
    "tools/call book /params/arguments/nonce" = "uuid"

    [matches]
    "tools/call book /result/content/0/text" = "^booking [0-9]+$"

    [within]
    "tools/call measure /result/structuredContent/celsius" = 0.5

    [echo]
    "tools/call book /result/structuredContent/nonce" = "/params/arguments/nonce"

The command line can add to the settings of the file, but not remove any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcpspy.capture.location import stem
from mcpspy.errors import ConfigError, UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.replay.tolerance import WAYS, Echo, Rules, Tolerance
from mcpspy.text import printable, suggestion
from mcpspy.toml_text import toml_values

_KINDS: dict[str, tuple[type, str]] = {
    "ignore": (list, "an array of strings"),
    "is": (dict, "a table: a place = the form of its values"),
    "matches": (dict, "a table: a place = a regular expression"),
    "within": (dict, "a table: a place = a number"),
    "echo": (dict, "a table: a place in an answer = a pointer into the request"),
    "shape": (bool, "true or false"),
    "strict": (bool, "true or false"),
    "read_only": (bool, "true or false"),
}
_ARRAY = re.compile(r"^ignore\s*=\s*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The settings of a replay."""

    rules: Rules = field(default_factory=Rules)
    read_only: bool = False


def place(capture: str) -> str:
    """Return the path of the settings file that belongs to a capture."""
    return f"{stem(capture)}.replay.toml"


def read(path: str) -> ReplaySettings:
    """Return the settings in a file, or the defaults if there is no file. Raises ConfigError."""
    try:
        found: dict[str, Any] = toml_values(read_foreign(path).decode())
    except FileNotFoundError:
        return ReplaySettings()
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    for name, value in found.items():
        if name not in _KINDS:
            hint = suggestion(name, _KINDS, f"the settings are {', '.join(_KINDS)}")
            raise ConfigError(f"{path} has {name!r}, which is not a setting; {hint}")
        kind, told = _KINDS[name]
        if not isinstance(value, kind) or not all(isinstance(it, str) for it in found.get("ignore", [])):
            raise ConfigError(f"{path}: {name} is {told}")
    tolerances = []
    for way in WAYS:
        entries = found.get(way, {})
        values = entries if isinstance(entries, dict) else dict.fromkeys(entries, "")
        for text, value in values.items():
            with _named(path, way, text):
                tolerances.append(Tolerance.parse(way, text, value))
    echoes = []
    for text, source in found.get("echo", {}).items():
        with _named(path, "echo", text):
            echoes.append(Echo.parse(text, source))
    rules = Rules(tuple(tolerances), tuple(echoes), shape=found.get("shape", False), strict=found.get("strict", False))
    return ReplaySettings(rules, found.get("read_only", False))


@contextmanager
def _named(path: str, table: str, key: str) -> Iterator[None]:
    """Name the file, the table and the key of an entry in the error about it."""
    try:
        yield
    except UsageError as error:
        where = table if table == "ignore" else f"[{table}] {printable(key, 200)!r}"
        raise ConfigError(f"{path}: {where}: {error}") from None


def chosen(captures: Iterable[str], options: Mapping[str, Any]) -> ReplaySettings:
    """Return the settings beside some captures, and those of the command line. Raises ConfigError or UsageError."""
    found = [read(place(capture)) for capture in captures]
    tolerances = []
    for way in WAYS:
        for text in options[way]:
            try:
                tolerances.append(Tolerance.option(way, text))
            except UsageError as error:
                raise UsageError(f"--{way}: {error}") from None
    rules = Rules(tuple(tolerances), shape=options.get("shape", False), strict=options.get("strict", False))
    for it in reversed(found):
        rules = it.rules + rules
    return ReplaySettings(rules, options.get("read_only", False) or any(it.read_only for it in found))


def with_tolerances(text: str, found: Iterable[Tolerance]) -> str:
    """Return the text of a settings file that allows more, and everything else unchanged.

    Raises ConfigError if it has a table in a form to which nothing can be added.
    """
    more = list(found)
    for way in WAYS:
        entries = [it for it in more if it.by == way]
        if entries and way == "ignore":
            text = _with_ignored(text, map(str, entries))
        elif entries:
            lines = "".join(f"{_quoted(str(it.place))} = {_quoted(str(it.value))}\n" for it in entries)
            text = _with_entries(text, way, lines)
    try:
        toml_values(text)
    except ValueError as error:
        raise ConfigError(
            f"the settings cannot be added: {error}; write each table under its name, such as [is]"
        ) from None
    return text


def _with_ignored(text: str, patterns: Iterable[str]) -> str:
    lines = "".join(f"\n    {_quoted(pattern)}," for pattern in patterns)
    found = _ARRAY.search(text)
    if found:
        return f"{text[: found.end()]}{lines}{text[found.end() :]}"
    return f"ignore = [{lines}\n]\n{text}"


def _with_entries(text: str, table: str, lines: str) -> str:
    found = re.search(rf"^\[{table}\][^\n]*\n", text, re.MULTILINE)
    if found:
        return f"{text[: found.end()]}{lines}{text[found.end() :]}"
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{before}{chr(10) if before else ''}[{table}]\n{lines}"


def _quoted(text: str) -> str:
    """Return a TOML string, as a literal if possible."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = "".join(
        character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08X}"
        for character in text
    )
    return f'"{escaped}"'
