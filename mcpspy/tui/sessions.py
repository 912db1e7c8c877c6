"""The list of sessions: what was captured, live ones first, growing as sessions start."""

import asyncio
import time
from contextlib import suppress
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Footer, Static

from mcpspy.errors import CaptureError
from mcpspy.printable import printable
from mcpspy.tui.library import COUNTED, Entry, Library
from mcpspy.tui.rows import BREATH, Cell, Rows, slice_now
from mcpspy.tui.timeline import TimelineScreen
from mcpspy.units import age_text, plural, size_text

_LOOK = 0.5  # seconds from one look at the directory to the next


class SessionRows(Rows):
    """One row for each capture."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"sessions--live", "sessions--dim", "sessions--errors"}

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    def count(self) -> int:
        """How many captures there are."""
        return len(self._library.entries)

    def entry(self) -> Entry | None:
        """The selected capture."""
        entries = self._library.entries
        return entries[self.cursor] if self.cursor < len(entries) else None

    def cells(self, place: int, width: int) -> list[Cell]:
        """State, name, what is in it, and the command as far as there is room."""
        entry = self._library.entries[place]
        header = entry.header
        age = "● live" if entry.live else age_text(time.time() - entry.started)
        counts = entry.counts
        counted = entry.size <= COUNTED
        said = plural(counts.frames, "frame") if counted else "not counted"
        wrong = plural(counts.errors, "error") if counted and counts.errors else ""
        command = " ".join(header.argv) or header.url or ""
        start = [
            (f" {age:>10}  ", "sessions--live" if entry.live else "sessions--dim"),
            (f"{printable(header.name, 24):<24} ", ""),
            (f"{said:>14} ", ""),
            (f"{wrong:>11} ", "sessions--errors"),
            (f"{size_text(entry.size):>9}  ", "sessions--dim"),
            (f"{printable(header.transport, 5):<5}  ", "sessions--dim"),
        ]
        room = width - sum(len(text) for text, _ in start)
        return [*start, (printable(command, max(room, 1)), "sessions--dim")]


class SessionsScreen(Screen[None]):
    """The first screen: choose a session."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "app.quit", "quit")]

    def __init__(self, targets: list[str]) -> None:
        super().__init__()
        self._library = Library(targets)
        self._where = ", ".join(printable(target, 200) for target in targets)

    def compose(self) -> ComposeResult:
        """A title, the list, or how to fill it."""
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
        yield Footer()

    def on_mount(self) -> None:
        """Look at once, then again and again."""
        self._look()
        self.query_one(SessionRows).focus()
        self._follow()

    @work
    async def _follow(self) -> None:
        """Look at the captures for as long as the screen is there, and count what is in them a little at a time."""
        with suppress(NoMatches):  # the screen is being taken down, widget by widget
            while self.is_attached:
                if self.is_current:
                    self._look()
                deadline = time.monotonic() + _LOOK
                while time.monotonic() < deadline:
                    more = self._library.count(slice_now(self.app))
                    await asyncio.sleep(BREATH if more else max(deadline - time.monotonic(), BREATH))

    def _look(self) -> None:
        rows = self.query_one(SessionRows)
        chosen = rows.entry()
        self._library.look()
        entries = self._library.entries
        if chosen in entries:
            rows.cursor = entries.index(chosen)  # it stays selected where the list changes above it
        rows.rows_changed()
        rows.display = bool(entries)
        self.query_one("#empty").display = not entries
        live = sum(entry.live for entry in entries)
        title = f"mcpspy · {plural(len(entries), 'session')}, {live} live · {self._where}"
        self.query_one("#title", Static).update(title, layout=False)

    def on_rows_chosen(self) -> None:
        """Open the timeline of the selected session."""
        entry = self.query_one(SessionRows).entry()
        if entry:
            try:
                self.app.push_screen(TimelineScreen(entry.path))
            except CaptureError as error:  # it was deleted meanwhile
                self.notify(printable(str(error), 300), severity="error", markup=False)
