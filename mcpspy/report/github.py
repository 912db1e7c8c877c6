"""Workflow commands: output lines of a GitHub job that GitHub shows beside the line of a file.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from typing import Literal

from mcpspy.text import printable

Level = Literal["error", "warning", "notice"]


def command(level: Level, path: str, line: int | None, title: str, text: str) -> str:
    """Return the command that shows `text` under `title`: one complete line. Without a `line` it is about the file."""
    places = {"file": printable(path, 4096)} | ({"line": str(line)} if line else {}) | {"title": title}
    told = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in places.items())
    return f"::{level} {told}::{_escaped(text)}\n"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in text)
