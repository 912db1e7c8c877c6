"""What all commands need for their output: the two streams, notices on stderr, colours, and how paths are shown."""

import io
import os
import shutil
import sys

from mcpspy.output_file import OutputBytes
from mcpspy.text import printable


def prepare_streams() -> None:
    """Let stdout and stderr accept any text, and mark the errors of writing them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, _marked(stream))


def _marked(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw = getattr(stream.buffer, "raw", stream.buffer)  # without a buffer if the user wants that (python -u)
    if type(raw) is not io.FileIO:  # the console of Windows
        stream.reconfigure(errors="backslashreplace")
        return stream
    stream.flush()
    ours = OutputBytes(raw.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        ours if raw is stream.buffer else io.BufferedWriter(ours),  # as Python itself does it
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def say(sentence: str) -> None:
    """Print one line to stderr, after the name of the program."""
    explain(f"mcpspy: {sentence}")


def explain(*lines: str) -> None:
    """Print lines to stderr that belong to a notice; if it is closed, nothing."""
    if sys.stderr is None:  # `print` would write to stdout
        return
    print(*(printable(line, 2000) for line in lines), sep="\n", file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """Ask a question that is answered with y or n, and return whether the answer is y. The end of the input is no."""
    try:
        return input(f"{printable(question, 2000)} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


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
