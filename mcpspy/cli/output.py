"""Output of commands besides their results: notices on stderr, whether to use colours, and how paths are shown."""

import os
import shutil
import sys

from mcpspy.text import printable


def say(sentence: str) -> None:
    """Print one line to stderr, after the name of the program."""
    print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr, flush=True)


def has_colours() -> bool:
    """Return whether stdout is a terminal, and the user wants colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def line_width(elsewhere: int) -> int:
    """Return the width of the terminal on stdout in columns; `elsewhere` if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else elsewhere


def path_text(path: str) -> str:
    """Return a path for display: safe on a terminal, and with `~` for the home directory, which has the user name."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return printable(path, 4096)
