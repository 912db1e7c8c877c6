"""What the views of a session have in common: the focus, a word where there is nothing, and following what comes."""

import asyncio
from typing import ClassVar, Self

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import work
from textual.binding import BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.strip import Strip

from mcpspy.text import printable
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.rows import BREATH, Rows, slice_now

MARKS = {"error": "✗", "warning": "!", "info": "·", "": " "}
"""A severity as one character."""


def fit(text: str, columns: int) -> str:
    """Captured text in at most that many columns of the screen."""
    shown = printable(text, max(columns, 0))
    return shown if cell_len(shown) <= columns else set_cell_size(shown, max(columns - 1, 0)) + "…"[:columns]


class View(Vertical):
    """A list of rows with something above or below it; the list has the focus."""

    def focus(self, scroll_visible: bool = True) -> Self:
        """Give the focus to the list."""
        self.query_one(Rows).focus(scroll_visible)
        return self

    def grown(self) -> None:
        """Show what has come."""
        raise NotImplementedError


class RowsOrNotice(Rows):
    """A list that says so when it is empty."""

    def nothing(self) -> str:
        """What it says then."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        if y or self.count():
            return super().render_line(y)
        base = self.rich_style
        return Strip([Segment(f" {self.nothing()}", base)]).adjust_cell_length(self.size.width, base)

    def grown(self) -> None:
        """Show what has come; the row that is looked at stays where it is."""
        self.rows_changed()
        if not self.count():
            self.refresh()


class Following(RowsOrNotice):
    """A list that grows at its end; with `follow` the cursor stays on the newest row."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("growing list")

    follow = reactive(False)

    def grown(self) -> None:
        """Show what has come; the row that is looked at stays where it is, unless following."""
        super().grown()
        if self.follow:
            self.move_to(self.count() - 1)

    def watch_cursor(self, before: int, now: int) -> None:
        """Follow no longer when the cursor leaves the end."""
        if before != now < self.count() - 1:  # it also gets an event for its first place
            self.follow = False
        super().watch_cursor(before, now)

    def on_mouse_scroll_up(self) -> None:
        """Follow no longer when somebody looks at what was before."""
        self.follow = False

    def on_scroll_to(self) -> None:
        """The same with the bar at the side."""
        self.follow = False

    def watch_follow(self, follow: bool) -> None:
        """Go to the newest row."""
        if follow:
            self.move_to(self.count() - 1)

    def action_toggle_follow(self) -> None:
        """Follow the newest row, or no longer."""
        self.follow = not self.follow


class CatchingUp(Following):
    """A list whose rows have to be gone through before they can be drawn, in slices that give way to keys."""

    def __init__(self) -> None:
        super().__init__()
        self._behind = False  # a worker is going through rows

    def done(self) -> int:
        """How many rows can be drawn."""
        raise NotImplementedError

    def catch_up(self, seconds: float) -> bool:
        """Go through rows for about that long; tells whether there is more to do now."""
        raise NotImplementedError

    def on_show(self) -> None:
        """Go through the rows that came while nobody looked."""
        self.grown()

    def grown(self) -> None:
        """Show what has come, and go through it."""
        if not self._behind and self.catch_up(slice_now(self.app)):
            self._behind = True
            self._go_through()
        super().grown()

    @work(exclusive=True)
    async def _go_through(self) -> None:
        """Go through many rows."""
        more = True
        while more and self.is_attached:
            await asyncio.sleep(BREATH)
            before = self.done()
            more = self.catch_up(slice_now(self.app))
            if before < self.scroll_offset.y + self.size.height:
                self.rows_changed()
        self._behind = False
