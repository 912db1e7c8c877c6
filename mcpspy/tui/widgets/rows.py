"""Lines with a cursor, lists of rows, base classes of views; only the visible rows are made (by textual's Line API).

The module does not define the rows: a subclass defines their number and their content. A view has a focus, a notice
for an empty list, and can follow new rows.
"""

import asyncio
import time
from collections.abc import Hashable
from typing import ClassVar, Self

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.app import App
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Click, Event, InputEvent
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mcpspy.text import printable
from mcpspy.tui.model.sorting import SORTS, SortColumn
from mcpspy.tui.textual_internals import update_scrollbars
from mcpspy.tui.widgets.keys import bindings

_STRIPS = 500  # maximum number of cached rows

SLICE, BREATH = 0.008, 0.001
"""Seconds of background work at a time, and seconds of the pause after it, for keys and the screen."""
_SHORT, _JUST_NOW = 0.001, 0.03  # seconds: the slice just after a key, and how long that lasts

Cell = tuple[str, str]
"""A text and its component class, which defines its style."""


class Jump(Message):
    """A request to show the frame on line `n` in the timeline."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n


class Keyed(App[None]):
    """An application that records the time of the last user input, and how lists are sorted."""

    pressed = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.sorted_by: dict[str, int] = {}
        """By list of `SORTS`: the chosen column; it is kept while the program runs."""

    async def on_event(self, event: Event) -> None:
        """Record the time of keys and mouse events."""
        if isinstance(event, InputEvent):
            self.pressed = time.monotonic()
        await super().on_event(event)


def slice_now(app: App[object]) -> float:
    """Return the seconds of background work allowed now: fewer just after a key, whose effect must be drawn first."""
    keyed = isinstance(app, Keyed) and time.monotonic() - app.pressed < _JUST_NOW
    return _SHORT if keyed else SLICE


def set_height(view: ScrollView, lines: int) -> None:
    """Set the number of lines of a view. Setting `virtual_size` directly would lay out the whole screen: 20 ms."""
    size = Size(view.scrollable_content_region.width, lines)
    if size != view.virtual_size:
        view.set_reactive(ScrollView.virtual_size, size)
        update_scrollbars(view, size)


class CursorLines(ScrollView, can_focus=True):
    """A view of lines with a cursor on one of them; `cursor` is the number of that line."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("lines")

    cursor = reactive(0, repaint=False)

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._base = Style.null()  # for text without a style of its own

    def count(self) -> int:
        """Return the number of lines."""
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return some lines of the screen; the style of the view is computed once, not for each line."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def watch_cursor(self, before: int, now: int) -> None:
        """Scroll to the line with the cursor."""
        self._keep_in_view()
        for place in (before, now):
            self.repaint(place)

    def repaint(self, place: int) -> None:
        """Redraw one line, which is faster than redrawing all lines."""
        if 0 <= place - self.scroll_offset.y < self.size.height:
            self.refresh_line(place)

    def _keep_in_view(self) -> None:
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def move_to(self, place: int) -> None:
        """Move the cursor to the line at `place`, or to the nearest existing line."""
        self.cursor = max(0, min(place, self.count() - 1))

    def action_move(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self.move_to(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by some screens."""
        self.move_to(self.cursor + pages * max(self.scrollable_content_region.height - 1, 1))

    def action_first(self) -> None:
        """Move the cursor to the first line."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move the cursor to the last line."""
        self.move_to(self.count() - 1)


class Rows(CursorLines):
    """The list; the row with the cursor is the selected one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def __init__(self) -> None:
        super().__init__()
        self._faces: list[Hashable] = []  # faces of the rows on the screen
        self._strips: dict[int, tuple[Hashable, Strip]] = {}  # by place: the state of the row, and its drawn strip

    class Chosen(Message):
        """The selected row was chosen."""

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the content of the row at `place`, in a view of a given width."""
        raise NotImplementedError

    def face(self, place: int) -> Hashable:  # noqa: ARG002 (a subclass uses it)
        """Return all that the look of a row depends on: while it is equal, the row is not made again; None: always."""
        return None

    def rows_changed(self) -> None:
        """Update the view after rows were added, removed or changed."""
        count = self.count()
        set_height(self, count)
        if self.cursor >= count:
            self.cursor = max(count - 1, 0)
        top = self.scroll_offset.y
        faces = [self.face(place) for place in range(top, min(top + self.size.height, count))]
        if faces != self._faces or None in faces:
            self._faces = faces
            self.refresh()

    def on_resize(self) -> None:
        """Fit the lines to the width of the view, without horizontal scrolling."""
        set_height(self, self.count())
        self._keep_in_view()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        place = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self._base
        if place >= self.count():
            return Strip.blank(width, base)
        mark = self.mark(place)
        face = self.face(place)
        key = (face, mark, self.has_focus, width, base)
        known = self._strips.get(place)
        if known and face is not None and known[0] == key:
            return known[1]
        strip = self._strip(place, width, base + self.get_component_rich_style(mark) if mark else base)
        if len(self._strips) > _STRIPS:
            self._strips.clear()
        self._strips[place] = (key, strip)
        return strip

    def _strip(self, place: int, width: int, base: Style) -> Strip:
        segments = []
        for text, name in self.cells(place, width):
            plain = not name or place == self.cursor  # few colours are readable on the colour of the cursor
            segments.append(Segment(text, base if plain else base + self.get_component_rich_style(name, partial=True)))
        return Strip(segments).adjust_cell_length(width, base)

    def mark(self, place: int) -> str:
        """Return the component class that styles the whole row; empty if there is none."""
        return "rows--cursor" if place == self.cursor else ""

    def shift(self, rows: int) -> None:
        """Keep the visible rows in place after rows were added or removed above the selected one."""
        self.set_reactive(Rows.cursor, self.cursor + rows)
        set_height(self, self.count())
        self.scroll_to(y=max(self.scroll_offset.y + rows, 0), animate=False, immediate=True)

    def action_choose(self) -> None:
        """Choose the selected row."""
        if self.count():
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        """Select the clicked row; a second click chooses it."""
        place = event.y + self.scroll_offset.y
        if place < self.count():
            again = place == self.cursor
            self.move_to(place)
            if again or event.chain > 1:
                self.action_choose()


def fit(text: str, columns: int) -> str:
    """Return captured text, made printable, in at most `columns` columns."""
    shown = printable(text, max(columns, 0))
    return shown if cell_len(shown) <= columns else set_cell_size(shown, max(columns - 1, 0)) + "…"[:columns]


def column(text: str, columns: int, blanks: int = 1) -> str:
    """Return captured text in a column of that width, with at least `blanks` at its end."""
    return set_cell_size(fit(text, columns - blanks), columns)


class View(Vertical):
    """A list of rows with something above or below it; the list has the focus."""

    def focus(self, scroll_visible: bool = True) -> Self:
        """Give the focus to the list."""
        self.query_one(Rows).focus(scroll_visible)
        return self

    def grown(self) -> None:
        """Show new content."""
        raise NotImplementedError


class Sorted(Rows):
    """A list that can be sorted by some columns; a subclass sorts its rows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("sorted list")
    LIST: ClassVar[str]
    """Its name in `SORTS`."""

    class Resorted(Message):
        """The rows were sorted, so the heading may change."""

    @property
    def by(self) -> SortColumn:
        """The column by which it is sorted."""
        app = self.app if self.is_attached else None
        return SORTS[self.LIST][app.sorted_by.get(self.LIST, 0) if isinstance(app, Keyed) else 0]

    def action_sort(self) -> None:
        """Sort by the next column, and show the first rows."""
        columns = SORTS[self.LIST]
        if isinstance(self.app, Keyed):
            self.app.sorted_by[self.LIST] = (columns.index(self.by) + 1) % len(columns)
        self.sort_rows()
        self.move_to(0)
        self._keep_in_view()

    def sort_rows(self) -> None:
        """Sort the rows, and call `rows_sorted`; the selected one stays selected."""
        raise NotImplementedError

    def rows_sorted(self) -> None:
        """Show the sorted rows."""
        self.rows_changed()
        self.refresh()
        self.post_message(self.Resorted())


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
