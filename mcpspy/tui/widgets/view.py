"""Base classes of the views of a session: focus, a notice for an empty list, and following new rows."""

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
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import BREATH, Rows, slice_now


def fit(text: str, columns: int) -> str:
    """Return captured text, made printable, in at most `columns` columns."""
    shown = printable(text, max(columns, 0))
    return shown if cell_len(shown) <= columns else set_cell_size(shown, max(columns - 1, 0)) + "…"[:columns]


class View(Vertical):
    """A list of rows with something above or below it; the list has the focus."""

    def focus(self, scroll_visible: bool = True) -> Self:
        """Give the focus to the list."""
        self.query_one(Rows).focus(scroll_visible)
        return self

    def grown(self) -> None:
        """Show new content."""
        raise NotImplementedError


class RowsOrNotice(Rows):
    """A list that shows a notice when it is empty."""

    def nothing(self) -> str:
        """Return the notice."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        if y or self.count():
            return super().render_line(y)
        base = self.rich_style
        return Strip([Segment(fit(f" {self.nothing()}", self.size.width), base)]).adjust_cell_length(
            self.size.width, base
        )

    def grown(self) -> None:
        """Show new rows; the visible rows stay in place."""
        self.rows_changed()
        if not self.count():
            self.refresh()


class Following(RowsOrNotice):
    """A list that grows at its end; with `follow` the cursor stays on the newest row."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("growing list")

    follow = reactive(False)

    def grown(self) -> None:
        """Show new rows; the visible rows stay in place, unless `follow` is set."""
        super().grown()
        if self.follow:
            self.move_to(self.count() - 1)

    def watch_cursor(self, before: int, now: int) -> None:
        """Stop following when the cursor leaves the end."""
        if before != now < self.count() - 1:  # this is also called for the initial position
            self.follow = False
        super().watch_cursor(before, now)

    def on_mouse_scroll_up(self) -> None:
        """Stop following when the user scrolls up."""
        self.follow = False

    def on_scroll_to(self) -> None:
        """Stop following when the user moves the scroll bar."""
        self.follow = False

    def watch_follow(self, follow: bool) -> None:
        """Go to the newest row."""
        if follow:
            self.move_to(self.count() - 1)

    def action_toggle_follow(self) -> None:
        """Start or stop following the newest row."""
        self.follow = not self.follow


class CatchingUp(Following):
    """A list whose rows must be processed before they can be drawn, in time slices between which keys are handled."""

    def __init__(self) -> None:
        super().__init__()
        self._behind = False  # whether a worker is processing rows

    def done(self) -> int:
        """Return the number of rows that can be drawn."""
        raise NotImplementedError

    def catch_up(self, seconds: float) -> bool:
        """Process rows for about `seconds`. Returns whether there is more to do now."""
        raise NotImplementedError

    def on_show(self) -> None:
        """Process the rows that were added while the view was hidden."""
        self.grown()

    def grown(self) -> None:
        """Process and show new rows."""
        if not self._behind and self.catch_up(slice_now(self.app)):
            self._behind = True
            self._go_through()
        super().grown()

    @work(exclusive=True)
    async def _go_through(self) -> None:
        """Process many rows in a worker."""
        more = True
        while more and self.is_attached:
            await asyncio.sleep(BREATH)
            before = self.done()
            more = self.catch_up(slice_now(self.app))
            if before < self.scroll_offset.y + self.size.height:
                self.rows_changed()
        self._behind = False
