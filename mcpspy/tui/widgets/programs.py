"""Programs of the person's own that a text is opened in."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from textual.app import SuspendNotSupported

from mcpspy.errors import UsageError


class Suspendable(Protocol):
    """An application, as far as this module looks at it."""

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to others meanwhile."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The command of the person's editor; empty where there is none."""
    try:
        return shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "")
    except ValueError:
        return []


def pager_command(environ: Mapping[str, str]) -> list[str]:
    """The command of the person's pager, or `less`; empty where there is none."""
    try:
        named = shlex.split(environ.get("PAGER") or "")
    except ValueError:
        return []
    return named or (["less"] if shutil.which("less") else [])


def edited_outside(app: Suspendable, text: str, command: list[str]) -> str:
    """The text as an editor leaves it, which has the terminal meanwhile. Raises UsageError."""
    try:
        with app.suspend():  # a failure must not leave it: the application would not take the terminal back
            try:
                outcome: str | UsageError = edited(text, command)
            except UsageError as error:
                outcome = error
    except SuspendNotSupported:
        raise UsageError("this terminal cannot be given to another program") from None
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
            raise UsageError(f"{command[0]} ended with status {status}: the text is as it was")
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{command[0]} cannot open the text: {error}") from None
    finally:
        with suppress(OSError):
            os.unlink(path)
