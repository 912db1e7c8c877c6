"""`mcpspy tui`: view captures in the terminal or in a browser, including live ones."""

import argparse
import os
import shlex
import sys
from types import ModuleType

from mcpspy.capture.location import STANDARD_INPUT, directory
from mcpspy.capture.reader import Capture
from mcpspy.cli.commands import run as run_command
from mcpspy.cli.installation import missing
from mcpspy.cli.output import ProgressBar, say, stays_plain
from mcpspy.cli.targets import newest_capture
from mcpspy.errors import CaptureError, UsageError
from mcpspy.moments import use_utc
from mcpspy.process.ports import listening_place
from mcpspy.tui.app import run as run_app

_PORT = 6280


def run(options: argparse.Namespace) -> int:
    """Show the given captures and directories; by default the newest capture, with the list behind it."""
    if options.utc:
        use_utc()
        os.environ["TZ"] = "UTC"  # for the processes of pages
    folder = directory(None, os.environ)
    for target in options.targets:
        if target == folder:  # it may not exist yet
            continue
        if target == STANDARD_INPUT:
            _refuse_to_serve(options)
        elif not os.path.exists(target):
            raise CaptureError(f"{target} does not exist; 'mcpspy ls' lists the captures that exist")
        if target == STANDARD_INPUT or not os.path.isdir(target):
            capture = Capture(target)  # raises if it is not a capture
            with ProgressBar("reading", capture.size) as bar:
                capture.copy(bar.advance)
    if options.web is None and sys.stdout.isatty() and (why := stays_plain()):
        for target in options.targets or [newest_capture()]:
            _print(target, ["ls"] if target == folder else ["ls", target], why)
        return 0
    targets = options.targets or [folder]
    if options.web is None:
        if STANDARD_INPUT in targets:
            _take_keys_from_terminal()
        return run_app(targets, None if options.targets else newest_capture())
    host, port = listening_place(options.web, _PORT, "--web")
    status: int = _web().serve(targets, host, port)
    return status


def _refuse_to_serve(options: argparse.Namespace) -> None:
    if options.web is not None:
        raise UsageError("--web starts a process for each page, which reads files: it cannot show standard input")


def _take_keys_from_terminal() -> None:
    """Make the terminal standard input, after the capture was read from it."""
    terminal = "CONIN$" if sys.platform == "win32" else "/dev/tty"
    try:
        file = os.open(terminal, os.O_RDWR)
    except OSError as error:
        what = f"the TUI needs a terminal for its keys, but {terminal} cannot be opened ({error.strerror})"
        raise UsageError(f"{what}; 'mcpspy show -' prints the capture") from error
    os.dup2(file, 0)
    os.close(file)


def _print(target: str, listing: list[str], why: str) -> None:
    """Print what the TUI would show of a capture, or with `listing` of a directory."""
    if target == STANDARD_INPUT or os.path.isfile(target):
        command, rest = ["show", "--long", target], ""
    else:
        command, rest = listing, "; 'mcpspy show --long CAPTURE' prints a session"
    say(f"{why}: the TUI does not start; 'mcpspy {shlex.join(command)}' prints this{rest}")
    run_command(command)


def _web() -> ModuleType:
    """Return the module that imports textual-serve. Raises UsageError if textual-serve is not installed."""
    try:
        from mcpspy.tui.web import page
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual_serve":
            raise
        raise UsageError(missing("--web needs", "textual-serve", "web")) from None
    return page
