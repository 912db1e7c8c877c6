"""The screen with the list of sessions, live ones first. It grows as sessions start; one or several can be opened."""

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Input, Static

from mcpspy.browse.library import Library, ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.listing import omitted
from mcpspy.errors import CaptureError, UsageError
from mcpspy.text import plural, printable
from mcpspy.tui.compare import SessionsCompared
from mcpspy.tui.model import commands
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.session.open_sessions import TurnScreen
from mcpspy.tui.session.screen import SessionScreen
from mcpspy.tui.session.views.table import COMMANDS
from mcpspy.tui.session_rows import SessionRows, heading
from mcpspy.tui.widgets.dialogs import Choice, CopyMenu
from mcpspy.tui.widgets.keys import Keys, bindings
from mcpspy.tui.widgets.prompt import Prompt, common
from mcpspy.tui.widgets.rows import BREATH, fit, slice_now

_LOOK = 0.5  # seconds between looks at the directory
_SHOWN = 0.2  # seconds between redraws while there is much to count
_FIRST = 0.1  # seconds of work before the first drawing
_BEGINNINGS = (
    ("i", "mcpspy install", "list your clients; with CLIENT, wrap all its servers"),
    ("w", "mcpspy wrap -- COMMAND", "one server on stdio: put this in place of COMMAND"),
    ("p", "mcpspy proxy URL", "one server over HTTP: give your client the printed URL"),
    ("d", "mcpspy demo", "a session to look at"),
)
"""How captures come to be: a key to copy the command, the command, and what it records."""


class SessionsScreen(Screen[None]):
    """The first screen, on which you choose one or several sessions."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("sessions")

    def __init__(self, targets: list[str]) -> None:
        super().__init__()
        self._library = Library(targets)
        self._turn: list[TurnScreen] = []  # the sessions opened in turn
        self._where = ", ".join(printable(target, 200) for target in targets)

    def compose(self) -> ComposeResult:
        """Yield a title, the list or a hint how to fill it, the input line, and the line of keys."""
        yield Static(id="title", markup=False)
        yield Static(id="columns", markup=False)
        yield SessionRows(self._library)
        ways = "".join(f"  {command:<24}{what}\n" for _, command, what in _BEGINNINGS)
        yield Static(
            f"No captures in {self._where} yet.\n\n"
            f"They appear here when a server runs behind mcpspy:\n\n{ways}\n"
            "Press y to copy one of these commands.",
            id="empty",
            markup=False,
        )
        yield Static(id="omitted", markup=False)
        yield Prompt()
        yield Keys()

    def on_mount(self) -> None:
        """Look for captures now, and then repeatedly."""
        self._library.look()
        self._library.grow(_FIRST)
        self._show()
        self.query_one(SessionRows).focus()
        self._follow()

    def on_screen_resume(self) -> None:
        """Close the sessions that were opened in turn."""
        for screen in self._turn:
            screen.forget()
        self._turn.clear()

    def on_unmount(self) -> None:
        """Close the files of sessions that were opened in turn but never shown."""
        for screen in self._turn:
            screen.close()

    @work
    async def _follow(self) -> None:
        """Look at the captures while the screen is visible, and count their content in small steps."""
        looked = shown = 0.0
        with suppress(NoMatches):  # the screen is being closed, widget by widget
            while self.is_attached:
                now, more = time.monotonic(), False
                if self.is_current:
                    if now - looked > _LOOK:
                        looked = now
                        self._library.look()
                    more = self._library.grow(slice_now(self.app))
                    if not more or now - shown > _SHOWN:
                        shown = now
                        self._show()
                await asyncio.sleep(BREATH if more else _LOOK)

    def _show(self) -> None:
        rows = self.query_one(SessionRows)
        rows.grown()
        entries = self._library.entries
        if rows.display != bool(entries):
            rows.display = bool(entries)
            self.refresh_bindings()
        self.query_one("#empty").display = not entries
        self._show_heading()
        live = sum(entry.live for entry in entries)
        parts = ["mcpspy", f"{plural(len(entries), 'session')}, {live} live", self._where]
        if marked := len(rows.marked_ones()):
            parts.insert(2, f"{marked} marked")
        self.query_one("#title", Static).update(" · ".join(parts), layout=False)
        self._tell_omitted()
        if rows.words:
            self.query_one(Prompt).count(f"{len(rows.entries):,} of {len(entries):,}")

    def _show_heading(self) -> None:
        rows, shown = self.query_one(SessionRows), self.query_one("#columns", Static)
        text = heading(rows.scrollable_content_region.width) if rows.display else ""
        if text != shown.content:
            shown.update(text, layout=False)

    def on_resize(self) -> None:
        """Fit the heading to the width of the list."""
        self.call_after_refresh(self._show_heading)

    def _tell_omitted(self) -> None:
        text = fit(omitted(self._library.refused), self.size.width - 2)
        line = self.query_one("#omitted", Static)
        if text != line.content:
            line.update(text)
            line.display = bool(text)

    # Typed text: words to search for, and commands.

    def action_prompt(self, kind: str) -> None:
        """Show the input line, for a filter or a command."""
        prompt = self.query_one(Prompt)
        prompt.show(kind, self.query_one(SessionRows).words if kind == "filter" else "")
        prompt.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys that open the input line while text is typed in it, and `y` unless the list is empty."""
        typing = action == "prompt" and isinstance(self.focused, Input)
        listed = action == "copy" and bool(self._library.entries)
        return False if typing or listed else super().check_action(action, parameters)

    def action_all(self) -> None:
        """Show all sessions; if all are shown already, unmark all."""
        rows = self.query_one(SessionRows)
        if not rows.words:
            rows.marked.clear()
        self._search("")
        self._close_prompt()

    @on(Prompt.Typed)
    def _typed(self) -> None:
        prompt = self.query_one(Prompt)
        if prompt.kind == "filter":
            self._search(prompt.text)
        else:
            prompt.tell("")

    @on(Prompt.Entered)
    def _entered(self) -> None:
        prompt = self.query_one(Prompt)
        if prompt.kind == "command":
            try:
                self._do(*commands.parse(prompt.text, COMMANDS))
            except UsageError as error:
                prompt.tell(str(error))
                return
        prompt.remember()
        self._close_prompt()

    def _do(self, command: str, argument: str) -> None:
        if not common(self, command, argument):
            raise UsageError(f"{command} works in a session only: Enter opens the selected one")

    @on(Prompt.Left)
    def _left(self) -> None:
        if self.query_one(Prompt).kind == "filter":
            self._search("")
        self._close_prompt()

    def _search(self, words: str) -> None:
        self.query_one(SessionRows).words = words
        self._show()

    def _close_prompt(self) -> None:
        rows, prompt = self.query_one(SessionRows), self.query_one(Prompt)
        prompt.show("filter", rows.words)
        prompt.display = bool(rows.words.strip())
        rows.focus()

    def action_copy(self) -> None:
        """Ask which of the commands that make captures to copy, and send it to the terminal (OSC 52)."""

        def copy(choice: Choice | None) -> None:
            if choice:
                self.app.copy_to_clipboard(choice[2]())
                self.notify(f"copied {choice[1]}", markup=False)

        choices: list[Choice] = [(key, command, partial(str, command)) for key, command, _ in _BEGINNINGS]
        self.app.push_screen(CopyMenu(choices), copy)

    # Opening sessions.

    def on_rows_chosen(self) -> None:
        """Open the selected session."""
        entry = self.query_one(SessionRows).entry()
        for session in self._open([entry] if entry else []):
            self.app.push_screen(SessionScreen(session))

    def action_merge(self) -> None:
        """Open the marked sessions, or those of the selected run, merged by time."""
        sessions = self._open(self._picked())
        if sessions:
            self.app.push_screen(SessionScreen(Merged(sessions)))

    def action_view(self) -> None:
        """Open the marked sessions, or those of the selected run, to view them in turn."""
        for session in self._open(self._picked()):
            self.app.install_screen(TurnScreen(session, self._turn), f"turn {len(self._turn)}")
        if self._turn:
            self.app.push_screen(self._turn[0])

    def action_compare(self) -> None:
        """Compare two marked sessions, or those of the selected run."""
        picked = self.query_one(SessionRows).picked()
        if len(picked) != 2:
            many = f", not {len(picked)}" if len(picked) > 2 else ""
            text = f"d compares two sessions{many}: mark two with the space bar"
            self.notify(text, severity="warning", markup=False)
        else:
            self.app.push_screen(SessionsCompared(*((entry.path, entry.header) for entry in picked)))

    def _picked(self) -> list[ListedCapture]:
        picked = self.query_one(SessionRows).picked()
        if len(picked) < 2:
            self.notify("select a run, or mark two sessions with the space bar", severity="warning", markup=False)
            return []
        return picked

    def _open(self, entries: list[ListedCapture]) -> list[OpenCapture]:
        """Open captures; if one cannot be opened (it may be deleted), open none and report the error."""
        opened: list[OpenCapture] = []
        try:
            opened.extend(OpenCapture(entry.path) for entry in entries)
        except CaptureError as error:
            for session in opened:
                session.close()
            self.notify(printable(str(error), 300), severity="error", markup=False)
            return []
        return opened
