"""The words that start this mcpspy from a client, which has a PATH and a working directory of its own."""

import os
import shutil
import sys

from mcpspy.errors import ConfigError


def launcher() -> list[str]:
    """Return the absolute command of this mcpspy: its script, or the interpreter and `-m mcpspy`.

    Raises ConfigError.
    """
    script = sys.argv[0]
    if _is_script(script):
        found = os.path.abspath(script) if os.path.dirname(script) else shutil.which(script)
        if found and os.path.exists(found):
            return [_text(found)]  # not resolved: the link survives an update, its target may not
    return [_text(os.path.abspath(sys.executable)), "-m", "mcpspy"]


def _text(path: str) -> str:
    """Return `path` if a configuration can contain it. Raises ConfigError."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"the path of mcpspy itself, {path}, is not UTF-8, which no configuration can hold"
        ) from error
    return path


def fleeting(words: list[str]) -> bool:
    """Return whether these words start a file in the cache of `uvx`, which is deleted after a while."""
    return "archive-v0" in words[0].replace("\\", "/").split("/")


def _is_script(path: str) -> bool:
    return os.path.basename(path).lower() in ("mcpspy", "mcpspy.exe")
