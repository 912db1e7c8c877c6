"""One message on the screen: the rows of a document, drawn when they become visible, and a cursor."""

import asyncio
from typing import ClassVar

from rich.segment import Segment
from textual import work
from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from mcpspy.tui.message.document import Document
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.rows import BREATH, CursorLines, set_height

_AT_ONCE = 200  # lines made before keys are processed again
_KINDS = (
    "key", "string", "number", "literal", "punctuation", "plain", "label", "warning", "fold", "cursor",
)  # fmt: skip


class Pane(CursorLines):
    """A document, and a cursor on one of its screen rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"detail--{kind}" for kind in _KINDS}
    BINDINGS: ClassVar[list[BindingType]] = bindings("message pane")

    class Moved(Message):
        """Sent when the cursor is on another row, or the text of its row has changed."""

    class Resized(Message):
        """Sent when the width of the pane has changed, so that its document must be wrapped again."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.document: Document | None = None

    def show(self, document: Document, *, again: bool) -> None:
        """Show a document; `again`: it is of the same message as before, so the position is kept."""
        before, top, cursor = self.document, self.scroll_offset.y, self.cursor
        self.document = document
        more = document.grow(_AT_ONCE)
        down = 0
        if again and before is not None and cursor < len(before):
            line, part = before.line(cursor), cursor - before.row(before.line(cursor))
            added = len(document.entries) - len(before.entries)  # lines about the message
            line = line + added if line >= len(before.entries) else line
            while document.line(len(document) - 1) < line and document.grow(_AT_ONCE):
                pass
            down = min(document.row(line) + part, len(document) - 1)
        set_height(self, len(document))
        self.set_reactive(Pane.cursor, down)
        self.scroll_to(y=max(down - (cursor - top), 0) if again else 0, animate=False)
        self.refresh()
        if more:
            self._grow()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Request wrapping again if the width has changed."""
        if self.document is None or self.document.width != self.scrollable_content_region.width:
            self.post_message(self.Resized(self))

    @work(exclusive=True)
    async def _grow(self) -> None:
        """Make the rows that are not visible yet, a few at a time."""
        document, more = self.document, True
        while more and document and document is self.document:
            more = document.grow(_AT_ONCE)
            set_height(self, len(document))
            self.refresh()
            await asyncio.sleep(BREATH)

    def count(self) -> int:
        """Return the number of rows so far."""
        return len(self.document) if self.document else 0

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if self.document is None or row >= len(self.document):
            return Strip.blank(width, self._base)
        pieces, cut = self.document.pieces(row)
        strip = Strip(
            Segment(text, self.get_component_rich_style(f"detail--{kind}", partial=True)) for text, kind in pieces
        )
        if cut != (0, 0):
            strip = strip.crop(*cut)
        base = self._base
        if row == self.cursor and self.has_focus:
            base += self.get_component_rich_style("detail--cursor")
        return strip.adjust_cell_length(width).apply_style(base)

    def watch_cursor(self, before: int, now: int) -> None:
        """Report the new position of the cursor."""
        super().watch_cursor(before, now)
        self.post_message(self.Moved())

    def action_fold(self) -> None:
        """Fold the row; if it cannot be folded, or is folded already, go to the value that contains it."""
        if self.document and self.count():
            if self.document.is_folded(self.cursor) is False:
                self._fold(folded=True)
            else:
                self.move_to(self.document.above(self.cursor))

    def action_unfold(self) -> None:
        """Unfold the row; if it is unfolded already, go to its first line."""
        folded = self.document.is_folded(self.cursor) if self.document and self.count() else None
        if folded:
            self._fold(folded=False)
        elif folded is False:
            self.action_move(1)

    def action_turn(self) -> None:
        """Fold or unfold the row; if it cannot be folded, go down by one page."""
        folded = self.document.is_folded(self.cursor) if self.document and self.count() else None
        if folded is None:
            self.action_page(1)
        else:
            self._fold(folded=not folded)

    def action_fold_all(self, folded: bool) -> None:
        """Fold all levels of the message except the outermost two, or unfold all."""
        if self.document and self.count():
            line = self.document.line(self.cursor)
            self.document.fold_all(folded=folded)
            while self.document.grow(_AT_ONCE) and self.document.line(self.count() - 1) < line:
                pass
            self._folded(self.document.row(line))

    def action_toggle_all(self) -> None:
        """Unfold the whole message if any visible part is folded; else fold it."""
        rows = range(self.scroll_offset.y, min(self.scroll_offset.y + self.size.height, self.count()))
        document = self.document
        if document:
            self.action_fold_all(not any(document.is_folded(row) for row in rows if document.is_message(row)))

    def _fold(self, *, folded: bool) -> None:
        if self.document:
            line = self.document.line(self.cursor)
            self.document.fold(self.cursor, folded=folded)
            self.document.grow(_AT_ONCE)
            self._folded(self.document.row(line))

    def _folded(self, row: int) -> None:
        """Show the changed rows, with the cursor on `row`."""
        set_height(self, self.count())
        self.move_to(row)
        self.refresh()
        self._grow()

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row; a second click folds or unfolds it."""
        row = event.y + self.scroll_offset.y
        if row < self.count():
            again = row == self.cursor
            self.move_to(row)
            if (again or event.chain > 1) and self.document and self.document.is_folded(row) is not None:
                self.action_turn()
