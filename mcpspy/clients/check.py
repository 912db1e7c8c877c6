"""The result of one check of `doctor`, and how it shows names and commands."""

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

FINE, NOTE, PROBLEM = "ok", "note", "problem"


class Check(NamedTuple):
    """The result of one check."""

    level: str
    text: str
    fix: str = ""


def in_shell(*names: str) -> str:
    """Quote names of servers for a command line of mcpspy in a shell; a name may begin with a dash."""
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join([*dashes, *names])


def as_member(key: str, value: str | Sequence[str]) -> str:
    """Return a member of an entry as a person writes it in JSON."""
    return f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
