"""What commands print beside their results, whether results have colours, and how paths are shown."""

import os
import shutil
import sys

from mcpspy.text import printable


def say(sentence: str) -> None:
    """Print a sentence to stderr on one line, after our name."""
    print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr, flush=True)


def has_colours() -> bool:
    """Whether stdout is a terminal whose user wants colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def line_width(elsewhere: int) -> int:
    """The columns of the terminal that stdout is; where it is none, as many as `elsewhere`."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else elsewhere


def path_text(path: str) -> str:
    """A path as people read it: safe on a terminal, and with `~` for the home directory, which names the user."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return printable(path, 4096)
