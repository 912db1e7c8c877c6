"""The options of `mcpspy wrap --reload`, and the checks before a server is started.

The module is on the `wrap` path only with that option.
"""

import os
import sys
from importlib.util import find_spec

from mcpspy.cli.installation import install_command
from mcpspy.errors import UsageError
from mcpspy.text import printable

_AFTER = ("idle",)


def check_reload(paths: list[str], after: str | None, *, gate: bool) -> None:
    """Raise UsageError if these paths cannot be watched, or if other options conflict."""
    if not paths:
        raise UsageError("--reload-after needs --reload PATH: which files to watch")
    if sys.platform == "win32":
        raise UsageError("--reload works on Linux and macOS only")
    if after is not None and after not in _AFTER:
        raise UsageError(f"--reload-after takes 'idle' (wait for running calls), not {printable(after, 60)!r}")
    if gate:
        raise UsageError("--reload and --gate cannot be used together: give one of them")
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"--reload {printable(path, 1000)}: no such file or directory")
    if find_spec("watchfiles") is None:
        command = install_command("reload")
        raise UsageError(f"'mcpspy wrap --reload' needs watchfiles, which is not installed: {command}")
