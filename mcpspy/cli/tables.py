"""Captures as tables, created if they do not exist yet: the first step of `sql` and `export --format parquet`."""

import os
from collections.abc import Sequence
from glob import glob
from itertools import chain
from typing import TYPE_CHECKING

from mcpspy.cli.extras import install_command
from mcpspy.cli.output import ProgressBar, say
from mcpspy.cli.targets import readable_paths
from mcpspy.errors import UsageError
from mcpspy.query import cache
from mcpspy.query.cache import CapturedTables, tables_of
from mcpspy.text import printable

if TYPE_CHECKING:
    from types import ModuleType

_PASSES = 2  # number of times that a capture is read


def built(named: Sequence[str]) -> list[CapturedTables]:
    """Return the tables of the named captures, and make those that are missing or outdated.

    Raises UsageError if the extra is not installed, CaptureError if a capture cannot be read.
    """
    build = _imported().build
    found: dict[str, CapturedTables] = {}
    for path in readable_paths(list(chain.from_iterable(map(_matching, named)))):
        captured = tables_of(path)
        other = found.get(captured.id)
        if other is None or other.size < captured.size:
            found[captured.id] = captured
        if other is not None and not os.path.samefile(other.capture.path, path):
            say(f"{path} and {other.capture.path} are copies of one capture; the longer one is taken")
    captures = list(found.values())
    cache.forget_gone()
    total = _PASSES * sum(captured.size for captured in captures if not captured.fresh)
    with ProgressBar("making tables", total) as bar:
        build(captures, bar.advance)
    return captures


def _imported() -> "ModuleType":
    """Return the module that needs the extra."""
    try:
        from mcpspy.query import build
    except ModuleNotFoundError as error:
        command = install_command("sql")
        raise UsageError(
            f"SQL and Parquet need {printable(str(error.name), 60)}, which is not installed: {command}"
        ) from None
    return build


def _matching(name: str) -> list[str]:
    """Return the files that match a pattern. Any other name, and a pattern without matches, is returned unchanged."""
    return [name] if os.path.lexists(name) else sorted(glob(name)) or [name]
