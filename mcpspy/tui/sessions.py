"""The list of sessions: what was captured, live ones first, growing as sessions start; one or several can be opened."""

import asyncio
import time
from collections.abc import Hashable
from contextlib import suppress
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Input, Static

from mcpspy.capture.listing import client_process, omitted
from mcpspy.errors import CaptureError, UsageError
from mcpspy.text import age_text, plural, printable, size_text
from mcpspy.tui.model import commands
from mcpspy.tui.model.library import COUNTED, Library, ListedCapture, brackets, chosen
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.timeline import OpenCapture
from mcpspy.tui.session.open_sessions import TurnScreen
from mcpspy.tui.session.screen import SessionScreen
from mcpspy.tui.session.views.table import COMMANDS
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.keys import Keys
from mcpspy.tui.widgets.prompt import Prompt, common
from mcpspy.tui.widgets.rows import BREATH, Cell, Rows, slice_now
from mcpspy.tui.widgets.view import MARKS, fit

_LOOK = 0.5  # seconds from one look at the directory to the next
_SHOWN = 0.2  # seconds from one drawing to the next while there is much to look at
_FIRST = 0.1  # seconds of looking before anything is drawn
_NAME = 20  # columns of a name
_MANY = 100  # columns from which there are sizes and commands


class SessionRows(Rows):
    """One row for each capture; any may be marked."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sessions--live", "sessions--dim", "sessions--errors", "sessions--warnings", "sessions--mark",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("session list")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._made = (-1, "")  # out of what: how often the library had changed, and the words
        self._selected = ""  # the path of the selected one
        self.entries: list[ListedCapture] = []
        """The captures that are shown."""
        self._brackets: list[str] = []  # of each: its part of the bracket around those of one client process
        self.words = ""
        """What those have in them that are shown."""
        self.marked: set[str] = set()
        """The paths of marked captures."""

    def count(self) -> int:
        """How many captures are shown."""
        return len(self.entries)

    def entry(self) -> ListedCapture | None:
        """The selected capture."""
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    def picked(self) -> list[ListedCapture]:
        """The marked captures that there are, in their order."""
        return [entry for entry in self._library.entries if entry.path in self.marked]

    def grown(self) -> None:
        """Show what there is by now; what is selected stays so, and stays where it is on the screen."""
        if self._made != (self._library.changes, self.words):
            self._made = (self._library.changes, self.words)
            self.entries, self._brackets = brackets(chosen(self._library.entries, self.words))
            at = next((at for at, entry in enumerate(self.entries) if entry.path == self._selected), self.cursor)
            if at != self.cursor:
                self.shift(at - self.cursor)
        self.rows_changed()
        self._keep_in_view()
        self._select()

    def watch_cursor(self, before: int, now: int) -> None:
        """Remember what is selected."""
        self._select()
        super().watch_cursor(before, now)

    def _select(self) -> None:
        entry = self.entry()
        self._selected = entry.path if entry else ""

    def face(self, place: int) -> Hashable:
        """A row looks as what is known of its capture."""
        entry = self.entries[place]
        counts, found = entry.counts, entry.found
        known = (entry.path, entry.size, counts.frames, counts.errors, found["error"], found["warning"])
        return (*known, counts.client, self._brackets[place], _age(entry), entry.path in self.marked)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Mark, bracket, age, name, transport, what is in it and wrong with it; with room for it, size and command."""
        entry = self.entries[place]
        header, counts, found = entry.header, entry.counts, entry.found
        counted = entry.size <= COUNTED
        wrong = plural(counts.errors, "error") if counts.errors else ""
        cells = [
            ("*" if entry.path in self.marked else " ", "sessions--mark"),
            (self._brackets[place], "sessions--dim"),
            (f"{_age(entry):>10}  ", "sessions--live" if entry.live else "sessions--dim"),
            (set_cell_size(fit(header.name, _NAME), _NAME + 1), ""),
            (f"{printable(header.transport, 5):<5} ", "sessions--dim"),
            (f"{plural(counts.frames, 'frame') if counted else 'not counted':>13} ", ""),
            (f"{wrong:>10} ", "sessions--errors"),
            (_found(found["error"], "error"), "sessions--errors"),
            (_found(found["warning"], "warning"), "sessions--warnings"),
        ]
        if width >= _MANY:
            cells.append((f"{size_text(entry.size):>9}  ", "sessions--dim"))
        room = width - sum(cell_len(text) for text, _ in cells)
        command = " ".join(header.argv) or header.url or ""
        if self._brackets[place].strip():
            command = f"{counts.client or 'client'} ({client_process(header)}): {command}"
        return [*cells, (fit(command, room), "sessions--dim")]

    def action_mark(self) -> None:
        """Mark the selected capture, or no longer, and go on to the next."""
        entry = self.entry()
        if entry:
            self.marked ^= {entry.path}
            self.repaint(self.cursor)
            self.action_move(1)


def _age(entry: ListedCapture) -> str:
    return "● live" if entry.live else age_text(time.time() - entry.started)


def _found(number: int, severity: str) -> str:
    return f"{f'{MARKS[severity]}{number:,}' if number else '':>6} "


class SessionsScreen(Screen[None]):
    """The first screen: choose a session, or several."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("sessions")

    def __init__(self, targets: list[str]) -> None:
        super().__init__()
        self._library = Library(targets)
        self._turn: list[TurnScreen] = []  # what was opened in turn
        self._where = ", ".join(printable(target, 200) for target in targets)

    def compose(self) -> ComposeResult:
        """A title, the list, or how to fill it, and a line to type in."""
        yield Static(id="title", markup=False)
        yield SessionRows(self._library)
        yield Static(
            f"No captures in {self._where} yet.\n\n"
            "They appear here when a server runs behind mcpspy:\n\n"
            "  mcpspy wrap -- COMMAND…     in place of COMMAND in your client's configuration\n"
            "  mcpspy demo                 a session to look at",
            id="empty",
            markup=False,
        )
        yield Static(id="omitted", markup=False)
        yield Prompt()
        yield Keys()

    def on_mount(self) -> None:
        """Look at once, then again and again."""
        self._library.look()
        self._library.grow(_FIRST)
        self._show()
        self.query_one(SessionRows).focus()
        self._follow()

    def on_screen_resume(self) -> None:
        """Close what was opened in turn."""
        for screen in self._turn:
            screen.forget()
        self._turn.clear()

    def on_unmount(self) -> None:
        """Give the files back of what was opened in turn and never shown."""
        for screen in self._turn:
            screen.close()

    @work
    async def _follow(self) -> None:
        """Look at the captures for as long as the screen is seen, and count what is in them a little at a time."""
        looked = shown = 0.0
        with suppress(NoMatches):  # the screen is being taken down, widget by widget
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
        rows.display = bool(entries)
        self.query_one("#empty").display = not entries
        live = sum(entry.live for entry in entries)
        parts = ["mcpspy", f"{plural(len(entries), 'session')}, {live} live", self._where]
        if rows.marked:
            parts.insert(2, f"{len(rows.picked())} marked")
        self.query_one("#title", Static).update(" · ".join(parts), layout=False)
        self._tell_omitted()
        if rows.words:
            self.query_one(Prompt).count(f"{rows.count():,} of {len(entries):,}")

    def _tell_omitted(self) -> None:
        text = fit(omitted(self._library.refused), self.size.width - 2)
        line = self.query_one("#omitted", Static)
        if text != line.content:
            line.update(text)
            line.display = bool(text)

    # What is typed: the words that are looked for, and commands.

    def action_prompt(self, kind: str) -> None:
        """Let words or a command be typed."""
        prompt = self.query_one(Prompt)
        prompt.show(kind, self.query_one(SessionRows).words if kind == "filter" else "")
        prompt.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What begins a line may also stand in one."""
        typing = action == "prompt" and isinstance(self.focused, Input)
        return False if typing else super().check_action(action, parameters)

    def action_all(self) -> None:
        """Show all sessions; where all are shown, mark none."""
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
            raise UsageError(f"{command} is for a session: Enter opens the selected one")

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

    # Opening.

    def on_rows_chosen(self) -> None:
        """Open the selected session."""
        entry = self.query_one(SessionRows).entry()
        for session in self._open([entry] if entry else []):
            self.app.push_screen(SessionScreen(session))

    def action_merge(self) -> None:
        """Open the marked sessions as one, by the clock."""
        sessions = self._open(self._picked())
        if sessions:
            self.app.push_screen(SessionScreen(Merged(sessions)))

    def action_view(self) -> None:
        """Open the marked sessions one behind the other."""
        for session in self._open(self._picked()):
            self.app.install_screen(TurnScreen(session, self._turn), f"turn {len(self._turn)}")
        if self._turn:
            self.app.push_screen(self._turn[0])

    def _picked(self) -> list[ListedCapture]:
        picked = self.query_one(SessionRows).picked()
        if len(picked) < 2:
            self.notify("mark two sessions or more with the space bar", severity="warning", markup=False)
            return []
        return picked

    def _open(self, entries: list[ListedCapture]) -> list[OpenCapture]:
        """Open captures, or none and say why: one may have been deleted meanwhile."""
        opened: list[OpenCapture] = []
        try:
            opened.extend(OpenCapture(entry.path) for entry in entries)
        except CaptureError as error:
            for session in opened:
                session.close()
            self.notify(printable(str(error), 300), severity="error", markup=False)
            return []
        return opened
