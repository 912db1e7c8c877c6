"""How to replay one capture: the settings in `NAME.replay.toml` beside it, and the options of the command line.

    ignore = ["/result/content/*/text", "tools/call get_time", "tools/call add /result/structuredContent/took"]
    shape = true
    strict = true
    read_only = true

The command line can add to the settings of the file, but not remove any.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcpspy.errors import ConfigError
from mcpspy.foreign_file import read_foreign
from mcpspy.replay.sessions import Ignored, Rules
from mcpspy.text import suggestion
from mcpspy.toml_text import toml_values

_KINDS: dict[str, tuple[type, str]] = {
    "ignore": (list, "an array of strings"),
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
    return f"{os.path.splitext(capture)[0]}.replay.toml"


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
    ignore = tuple(Ignored.parse(text) for text in found.get("ignore", []))
    rules = Rules(ignore, shape=found.get("shape", False), strict=found.get("strict", False))
    return ReplaySettings(rules, found.get("read_only", False))


def with_options(
    settings: ReplaySettings,
    ignore: Iterable[str],
    *,
    shape: bool = False,
    strict: bool = False,
    read_only: bool = False,
) -> ReplaySettings:
    """Return the settings with the options of the command line added. Raises UsageError."""
    rules = settings.rules
    ignored = (*rules.ignore, *map(Ignored.parse, ignore))
    merged = Rules(ignored, shape=rules.shape or shape, strict=rules.strict or strict)
    return ReplaySettings(merged, settings.read_only or read_only)


def with_ignored(text: str, patterns: Iterable[str]) -> str:
    """Return the text of a settings file with more to ignore, and everything else unchanged."""
    lines = "".join(f"\n    {_quoted(pattern)}," for pattern in patterns)
    found = _ARRAY.search(text)
    if found:
        return f"{text[: found.end()]}{lines}{text[found.end() :]}"
    return f"ignore = [{lines}\n]\n{text}"


def _quoted(text: str) -> str:
    """Return a TOML string, as a literal if possible."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = "".join(
        character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08X}"
        for character in text
    )
    return f'"{escaped}"'
