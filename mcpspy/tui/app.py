"""The application: it shows the sessions list, or directly the timeline of one session."""

import asyncio
import gc
import os
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from textual import on, work
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.filter import NoColor
from textual.screen import Screen

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import CaptureError, McpspyError, UsageError
from mcpspy.exporters import FORMATS
from mcpspy.text import printable
from mcpspy.tui.barrier import Barrier
from mcpspy.tui.compare import FrameWanted
from mcpspy.tui.model.actions import SCOPES
from mcpspy.tui.model.exports import SHARE
from mcpspy.tui.session.screen import SessionScreen
from mcpspy.tui.session.views.table import COMMANDS, VIEW_SCOPE
from mcpspy.tui.sessions import SessionsScreen
from mcpspy.tui.textual_internals import failure, filter_first, filter_lines, print_no_traceback
from mcpspy.tui.widgets.help import HelpScreen
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import BREATH, Jump, Keyed


class Spy(Keyed):
    """The terminal application."""

    CSS_PATH = "app.tcss"
    TITLE = "mcpspy"
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")

    def __init__(self, targets: list[str], first: str | None = None) -> None:
        """Show the captures at `targets`, which are directories and files.

        The capture at `first` is opened directly; so is a single target that is a file. Raises CaptureError if the
        file to open is not a capture.
        """
        super().__init__()
        if self.no_color:
            filter_lines(self, NoColor())
        filter_first(self, Barrier())
        print_no_traceback(self)
        self.targets = targets
        """The files and directories to show."""
        alone = len(targets) == 1 and os.path.exists(targets[0]) and not os.path.isdir(targets[0])
        opened = targets[0] if alone else first
        self._opened = None if opened is None else SessionScreen(OpenCapture(opened))

    def on_mount(self) -> None:
        """Show the sessions list, and on top of it the session to open directly, if any."""
        self.push_screen(SessionsScreen(self.targets))
        if self._opened:
            self.push_screen(self._opened)

    @on(FrameWanted)
    async def _open_frame(self, event: FrameWanted) -> None:
        """Open a capture, and show the wanted frame as soon as it is read."""
        try:
            screen = SessionScreen(OpenCapture(event.path), explain=False)
        except CaptureError as error:  # it was deleted in the meantime
            self.notify(printable(str(error), 300), severity="error", markup=False)
            return
        await self.push_screen(screen)
        self._show_frame(screen, event.n)

    @work
    async def _show_frame(self, screen: SessionScreen, n: int) -> None:
        session = screen.session
        while session.index.row_of(n) is None and not session.complete:
            if not screen.is_attached:
                return
            await asyncio.sleep(BREATH)
        if screen.is_attached:
            screen.post_message(Jump(n))

    def action_help(self) -> None:
        """Show all keys and commands."""
        self.push_screen(HelpScreen(KEYS, COMMANDS))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the entries of the command palette: the actions of our keys that work here, themes, and exports."""
        yield SystemCommand("theme", "change the colours", self.action_change_theme)
        done = {"command_palette"}
        for key, (node, binding, enabled, _) in screen.active_bindings.items():
            if enabled and (key, binding.action) in _OWN and binding.action not in done:
                done.add(binding.action)
                action = partial(self.run_action, binding.action, node)
                yield SystemCommand(binding.description, f"key {self.get_key_display(binding)}", action)
        if isinstance(screen, SessionScreen):
            for name in FORMATS:
                what = "write the rows of the timeline to a file in this directory"
                yield SystemCommand(f"export {name}", what, partial(self._export, screen, name))
            what = "write the rows of the timeline to an HTML page without secrets, in this directory"
            yield SystemCommand("share", what, partial(self._export, screen, SHARE))

    def _export(self, screen: SessionScreen, name: str) -> None:
        try:
            screen.export(name)
        except McpspyError as error:
            self.notify(printable(f"not exported: {error}", 300), severity="error", markup=False)


KEYS = (*SCOPES.values(), VIEW_SCOPE)
"""All key bindings, by scope."""
_OWN = {
    (key, action.name) for scope in KEYS for action in scope.actions for key in action.keys.split(",")
}  # textual has bindings too


def _terminal() -> type[Driver] | None:
    """Return our terminal driver; None on Windows, where textual's own is used."""
    if sys.platform == "win32":
        return None
    from mcpspy.tui.terminal import Terminal

    return Terminal


def colourless(terminal: str) -> bool:
    """Return whether the terminal type `terminal` (as in TERM) has no colours."""
    return terminal == "dumb" or terminal.startswith("vt") or terminal.endswith(("-mono", "-m"))


def run(targets: list[str], first: str | None = None, driver: type[Driver] | None = None) -> int:
    """Show the captures until the user quits, in the terminal unless `driver` is given. Returns the exit status."""
    if driver is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the TUI needs a terminal; 'mcpspy ls' and 'mcpspy show CAPTURE' print the same")
    if colourless(os.environ.get("TERM", "")):
        os.environ.setdefault("NO_COLOR", "1")
    gc.freeze()  # existing objects stay: collecting garbage among them repeatedly would stop the screen for 100 ms
    gc.set_threshold(5_000, 10, 500)
    app = Spy(targets, first)
    app.driver_class = driver or _terminal() or app.driver_class
    app.run()
    if error := failure(app):
        raise error
    return app.return_code or 0
