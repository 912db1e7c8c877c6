"""The command lines of mcpspy in the configurations of clients.

A client has a PATH and a working directory of its own, so `launcher` returns an absolute command. The server for agents
that read captures (`mcpspy mcp`) is recognized, because it is not wrapped.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence

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


NAME = "mcpspy"
"""The name of the server in the configuration of a client."""
COMMAND = "mcp"


def is_agent(words: Sequence[str]) -> bool:
    """Return whether a command line starts that server, whatever the path of mcpspy and its launcher."""
    return any(_is_mcpspy(word) and words[at + 1] == COMMAND for at, word in enumerate(words[:-1]))


def _is_mcpspy(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"mcpspy(?:\.exe)?(?:(?:==|@|\[).*)?", name) is not None
