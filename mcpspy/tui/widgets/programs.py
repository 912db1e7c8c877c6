"""Programs of the person's own that a text is opened in."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from textual.app import SuspendNotSupported

from mcpspy.errors import UsageError
from mcpspy.process.command_line import words_of
from mcpspy.text import printable


class Suspendable(Protocol):
    """An application, as far as this module looks at it."""

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to others meanwhile."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The command of the person's editor; raises UsageError where there is none."""
    command = _command(environ, "VISUAL") or _command(environ, "EDITOR")
    if not command:
        raise UsageError("no editor is set: set $VISUAL or $EDITOR")
    return command


def pager_command(environ: Mapping[str, str]) -> list[str]:
    """The command of the person's pager, or `less`; raises UsageError where there is none."""
    command = _command(environ, "PAGER") or (["less"] if shutil.which("less") else [])
    if not command:
        raise UsageError("no pager is set and less is not installed: set $PAGER")
    return command


def _command(environ: Mapping[str, str], name: str) -> list[str]:
    """The words of a variable of the environment; none where it is empty. Raises UsageError."""
    try:
        return words_of(environ.get(name) or "", sys.platform)
    except ValueError as error:
        shown = printable(environ[name], 60)
        raise UsageError(f"${name} is malformed: {str(error).lower()} in {shown}") from None


def edited_outside(app: Suspendable, text: str, command: list[str]) -> str:
    """The text as an editor leaves it, which has the terminal meanwhile. Raises UsageError."""
    try:
        with app.suspend():  # a failure must not leave it: the application would not take the terminal back
            try:
                outcome: str | UsageError = edited(text, command)
            except UsageError as error:
                outcome = error
    except SuspendNotSupported:
        raise UsageError("this terminal cannot run another program") from None
    if isinstance(outcome, UsageError):
        raise outcome
    return outcome


def edited(text: str, command: list[str]) -> str:
    """The text as an editor leaves it. Raises UsageError."""
    fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".json")
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        before = signal.signal(signal.SIGINT, lambda *_: None)  # what is pressed in the editor is for the editor
        try:
            status = subprocess.call([*command, path])
        finally:
            signal.signal(signal.SIGINT, before)
        if status:
            raise UsageError(f"{command[0]} ended with status {status}: the text is unchanged")
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{command[0]} cannot open the text: {error}") from None
    finally:
        with suppress(OSError):
            os.unlink(path)
