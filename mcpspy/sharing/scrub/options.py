"""The user's options for a scrub."""

import re
from dataclasses import dataclass

from mcpspy.errors import UsageError

_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """What is replaced besides secrets, and what is not. Raises UsageError for an invalid pointer."""

    only_secrets: bool = False
    """Keep e-mail addresses, home directories and user names."""
    replace: tuple[re.Pattern[str], ...] = ()
    """Further patterns to replace."""
    keep: tuple[str, ...] = ()
    """JSON Pointers into messages; the values there stay."""

    def __post_init__(self) -> None:
        for pointer in self.keep:
            if not _POINTER.fullmatch(pointer):
                raise UsageError(f"--keep {pointer!r} is not a JSON Pointer; one is /params/arguments/path")
