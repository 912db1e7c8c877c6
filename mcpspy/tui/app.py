"""The application: the sessions, or at once the timeline of one."""

import gc
import os
import sys
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.errors import UsageError
from mcpspy.tui.rows import Keyed
from mcpspy.tui.sessions import SessionsScreen
from mcpspy.tui.timeline import TimelineScreen


class Spy(Keyed):
    """The terminal application."""

    CSS_PATH = "app.tcss"
    TITLE = "mcpspy"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", "quit", show=False)]

    def __init__(self, targets: list[str]) -> None:
        """Show the captures at `targets`: directories and files. Raises CaptureError if the only one is no capture."""
        super().__init__()
        self._targets = targets
        alone = len(targets) == 1 and os.path.exists(targets[0]) and not os.path.isdir(targets[0])
        self._opened = TimelineScreen(targets[0]) if alone else None

    def on_mount(self) -> None:
        """Show the sessions, and above them the only one that was asked for."""
        self.push_screen(SessionsScreen(self._targets))
        if self._opened:
            self.push_screen(self._opened)


def run(targets: list[str]) -> int:
    """Show the captures until the user quits; returns the exit status."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the TUI needs a terminal; 'mcpspy ls' and 'mcpspy show CAPTURE' print the same")
    gc.freeze()  # what is there by now stays: looking through it again and again stops the screen for 100 ms
    gc.set_threshold(20_000, 50, 100)
    app = Spy(targets)
    app.run()
    return app.return_code or 0
