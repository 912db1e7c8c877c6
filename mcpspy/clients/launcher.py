"""The words that start this mcpspy from a client, whose PATH and working directory are its own."""

import os
import shutil
import sys


def launcher() -> list[str]:
    """The absolute command of this mcpspy: its script, or the interpreter and `-m mcpspy`."""
    script = sys.argv[0]
    if _is_script(script):
        found = os.path.abspath(script) if os.path.dirname(script) else shutil.which(script)
        if found and os.path.exists(found):
            return [found]  # not resolved: the link in ~/.local/bin survives an update, its target may not
    return [os.path.abspath(sys.executable), "-m", "mcpspy"]


def fleeting(words: list[str]) -> bool:
    """Whether these words start what lies in the cache of `uvx`, which keeps it for a while only."""
    return "archive-v0" in words[0].replace("\\", "/").split("/")


def _is_script(path: str) -> bool:
    return os.path.basename(path).lower() in ("mcpspy", "mcpspy.exe")
