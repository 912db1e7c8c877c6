"""Opening a text in the user's editor or pager, and an image or a sound in the system's viewer."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from threading import Thread
from typing import Protocol

from textual.app import SuspendNotSupported

from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.process.command_line import words_of
from mcpspy.text import printable


class Suspendable(Protocol):
    """The interface to an application that this module needs."""

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to another program inside the block."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the user's editor. Raises UsageError if there is none."""
    command = _command(environ, "VISUAL") or _command(environ, "EDITOR")
    if not command:
        raise UsageError("no editor is set: set $VISUAL or $EDITOR")
    return command


def pager_command(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the user's pager, or `less`. Raises UsageError if there is none."""
    command = _command(environ, "PAGER") or (["less"] if shutil.which("less") else [])
    if not command:
        raise UsageError("no pager is set and less is not installed: set $PAGER")
    return command


def viewer_command(environ: Mapping[str, str], platform: str) -> list[str]:
    """Return the command that opens a file in the system's viewer. Raises UsageError if there is none."""
    name = "open" if platform == "darwin" else "xdg-open"
    if platform == "win32" or not shutil.which(name):
        raise UsageError(f"{name} is not installed, so nothing can be opened: s saves it")
    if platform != "darwin" and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise UsageError("there is no display, so nothing can be opened: s saves it")
    return [name]


def view(data: bytes, extension: str, command: list[str]) -> None:
    """Open bytes in a program that has a window of its own. Raises UsageError.

    The program gets a temporary file that only the user can read. It is removed when mcpspy ends, because the program
    may read it later.
    """
    try:
        fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=extension, dir=_folder().name)
        with open(fd, "wb") as file:
            file.write(data)
        null = subprocess.DEVNULL
        viewer = subprocess.Popen([*command, path], stdin=null, stdout=null, stderr=null, start_new_session=True)
    except OSError as error:
        raise UsageError(f"{command[0]} cannot open the file: {error}") from None
    Thread(target=viewer.wait, daemon=True).start()  # it may run as long as its window is open


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Return the directory for what viewers read; it is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="mcpspy-", ignore_cleanup_errors=True)


def _command(environ: Mapping[str, str], name: str) -> list[str]:
    """Return the words of an environment variable; an empty list if it is not set. Raises UsageError."""
    try:
        return words_of(environ.get(name) or "", sys.platform)
    except ValueError as error:
        shown = printable(environ[name], 60)
        raise UsageError(f"${name} is malformed: {str(error).lower()} in {shown}") from None


def edited_outside(app: Suspendable, text: str, command: list[str]) -> str:
    """Return the text after editing in a program that uses the terminal. Raises UsageError."""
    try:
        with app.suspend():  # no exception may leave this block, or the application would not take the terminal back
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
    """Return the text after editing in a program. Raises UsageError."""
    fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".json")
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C in the editor is for the editor
        try:
            status = subprocess.call([*command, path])
        finally:
            signal.signal(signal.SIGINT, before)
        if status:
            raise UsageError(f"{command[0]} ended with status {status}: the text is unchanged")
        return read_foreign(path).decode().replace("\r\n", "\n").rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{command[0]} cannot open the text: {error}") from None
    finally:
        with suppress(OSError):
            os.unlink(path)
