"""The application: it shows the sessions list, or directly the timeline of one session; the help is shown on top.

Each line that is drawn passes the last barrier on its way to the terminal (A-14). Views make captured text `printable`
where they draw it. Text that a view or a widget of the library forgets is escaped there, so no line has a control
sequence, hidden text or a link. Markup is another matter: it must not be interpreted, so every widget is made with
`markup=False` (tests/test_sinks.py).
"""

import asyncio
import gc
import os
import sys
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any, ClassVar

from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter, NoColor
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.location import STANDARD_INPUT
from mcpspy.errors import CaptureError, McpspyError, UsageError
from mcpspy.exporters import FORMATS
from mcpspy.report.words import ARROWS, MARKS
from mcpspy.text import escaped, printable
from mcpspy.tui.compare import FrameWanted
from mcpspy.tui.model.actions import SCOPES, Scope, by_title
from mcpspy.tui.model.commands import ANYWHERE, PromptCommand
from mcpspy.tui.model.exports import SHARE
from mcpspy.tui.session import SessionScreen
from mcpspy.tui.sessions import SessionsScreen
from mcpspy.tui.textual_internals import failure, filter_first, filter_lines, print_no_traceback
from mcpspy.tui.views.table import COMMANDS, VIEW_SCOPE
from mcpspy.tui.widgets.keys import bindings, keys_text
from mcpspy.tui.widgets.rows import BREATH, Cell, Jump, Keyed, Rows


class Barrier(LineFilter):
    """A line filter that escapes unsafe characters, and removes links, from the segments of a line."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 (of the base class)
        """Return the segments of a line, of the same total width."""
        shown = [_safe(segment) for segment in segments]
        if shown == segments:
            return segments
        return list(Strip(shown).adjust_cell_length(Segment.get_line_length(segments)))


def _safe(segment: Segment) -> Segment:
    text, style, _ = segment
    if style and style.link:
        style = style.update_link(None)
    elif text.isascii() and text.isprintable():
        return segment
    return Segment(_one_line(text), style)


@lru_cache(maxsize=2000)
def _one_line(text: str) -> str:
    shown = escaped(f"{text}…")[:-1]  # the text may continue in the next row or segment, so a joiner may end this one
    return shown.replace("\n", "\\n").replace("\t", "\\t")


_KEYS = 18  # columns
_SIGNS = (
    (" ".join(ARROWS.values()), "sent by the client, by the server, by mcpspy itself"),
    (" ".join(MARKS.values()), f"a finding: {', '.join(MARKS)}"),
    ("┌ │ └", "connects the selected request or response with its partner"),
    ("▄▄▄", "latency of a call: two blocks more for each power of ten, from 100 µs"),
    ("*", "a marked frame or session"),
)


def lines_of(scopes: tuple[Scope, ...], commands: dict[str, PromptCommand]) -> list[list[Cell]]:
    """Return the lines of the help: the keys by heading, the commands, and the meanings of signs."""
    found: list[list[Cell]] = []
    for title, actions in by_title(scopes).items():
        found += [[(f" {title}", "help--title")], *(_line(keys_text(action), action.text) for action in actions), []]
    found.append([(f" the command line, after : (in the list of sessions: {', '.join(ANYWHERE)})", "help--title")])
    found += [_line(f"{name} {command.argument}", command.says) for name, command in commands.items()]
    found += [[], [(" signs", "help--title")], *(_line(*sign) for sign in _SIGNS)]
    return found


def _line(key: str, says: str) -> list[Cell]:
    return [(f"   {key:<{_KEYS}} ", "help--key"), (says, "")]


class HelpRows(Rows):
    """The list of lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"help--title", "help--key"}

    def __init__(self, lines: list[list[Cell]]) -> None:
        super().__init__()
        self._lines = lines

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (the lines are not adapted to the width)
        """Return one line."""
        return self._lines[place]


class HelpScreen(ModalScreen[None]):
    """The help, on top of the current screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("help")

    def __init__(self, scopes: tuple[Scope, ...], commands: dict[str, PromptCommand]) -> None:
        super().__init__()
        self._lines = lines_of(scopes, commands)

    def compose(self) -> ComposeResult:
        """Yield the title and the lines."""
        yield Static("keys, commands and signs · Esc goes back", id="title", markup=False)
        yield HelpRows(self._lines)


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
        only = targets[0] if len(targets) == 1 else ""
        alone = only == STANDARD_INPUT or (os.path.exists(only) and not os.path.isdir(only))
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
    return terminal.startswith("vt") or terminal.endswith(("-mono", "-m"))


def run(targets: list[str], first: str | None = None, driver: type[Driver] | None = None) -> int:
    """Show the captures until the user quits, in the terminal unless `driver` is given. Returns the exit status."""
    if driver is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the TUI needs a terminal; 'mcpspy ls' and 'mcpspy show --long CAPTURE' print the same")
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
