"""Lines with a cursor, and a list of rows; only the visible rows are made (textual's Line API).

It knows nothing of what the rows are: a subclass defines their number and their content.
"""

import time
from collections.abc import Hashable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.binding import BindingType
from textual.events import Click, Event, InputEvent
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mcpspy.tui.textual_internals import update_scrollbars
from mcpspy.tui.widgets.bindings import bindings

_STRIPS = 500  # rows that are kept as they were made

SLICE, BREATH = 0.008, 0.001
"""Seconds: how long work in the background goes on at a time, and how long it then gives way to keys and the screen."""
_SHORT, _JUST_NOW = 0.001, 0.03  # seconds: such a slice just after a key, whose way to the screen has five stops

Cell = tuple[str, str]
"""A text, and the component class that styles it."""


class Jump(Message):
    """Asks for the frame on line `n` to be shown in the timeline."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n


class Keyed(App[None]):
    """An application that knows when somebody last did something."""

    pressed = 0.0

    async def on_event(self, event: Event) -> None:
        """Take note of keys and the mouse."""
        if isinstance(event, InputEvent):
            self.pressed = time.monotonic()
        await super().on_event(event)


def slice_now(app: App[object]) -> float:
    """Seconds that work in the background may go on for at this moment: keys come first."""
    keyed = isinstance(app, Keyed) and time.monotonic() - app.pressed < _JUST_NOW
    return _SHORT if keyed else SLICE


def set_height(view: ScrollView, lines: int) -> None:
    """Tell a view how many lines it has, no wider than itself. Setting `virtual_size` lays out the screen: 20 ms."""
    size = Size(view.scrollable_content_region.width, lines)
    if size != view.virtual_size:
        view.set_reactive(ScrollView.virtual_size, size)
        update_scrollbars(view, size)


class CursorLines(ScrollView, can_focus=True):
    """A view of lines with a cursor on one of them; `cursor` is its place."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("lines")

    cursor = reactive(0, repaint=False)

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._base = Style.null()  # of what has no style of its own

    def count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        """Those lines of the screen; what the style sheet says of the view is asked once, not for each of them."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def watch_cursor(self, before: int, now: int) -> None:
        """Bring the line with the cursor into view."""
        self._keep_in_view()
        for place in (before, now):
            self.repaint(place)

    def repaint(self, place: int) -> None:
        """Draw one line anew: a key is answered sooner than with all of them."""
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
        """Put the cursor on the line at `place`, or on the nearest there is."""
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
        self._faces: list[Hashable] = []  # of the rows on the screen
        self._strips: dict[int, tuple[Hashable, Strip]] = {}  # rows as they were made last

    class Chosen(Message):
        """The selected row was chosen."""

    def cells(self, place: int, width: int) -> list[Cell]:
        """The content of the row at `place`, in a view of that width."""
        raise NotImplementedError

    def face(self, place: int) -> Hashable:  # noqa: ARG002 (a subclass looks at it)
        """What decides how the row at `place` looks: while that stays, it is not made anew. None: it always is."""
        return None

    def rows_changed(self) -> None:
        """Tell the view that rows have come, gone or changed."""
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
        """Lines are as wide as the view: nothing scrolls sideways."""
        set_height(self, self.count())
        self._keep_in_view()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
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
            plain = not name or place == self.cursor  # few colours can be read on that of the cursor
            segments.append(Segment(text, base if plain else base + self.get_component_rich_style(name, partial=True)))
        return Strip(segments).adjust_cell_length(width, base)

    def mark(self, place: int) -> str:
        """The component class that styles the whole row, or nothing."""
        return "rows--cursor" if place == self.cursor else ""

    def shift(self, rows: int) -> None:
        """Rows have come or gone above the selected one: what is in sight stays where it is on the screen."""
        self.set_reactive(Rows.cursor, self.cursor + rows)
        set_height(self, self.count())
        self.scroll_to(y=max(self.scroll_offset.y + rows, 0), animate=False, immediate=True)

    def action_choose(self) -> None:
        """Choose the selected row."""
        if self.count():
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        """Select the row under the mouse; a second click chooses it."""
        place = event.y + self.scroll_offset.y
        if place < self.count():
            again = place == self.cursor
            self.move_to(place)
            if again or event.chain > 1:
                self.action_choose()
