"""The screen that compares two messages."""

from typing import Any, ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.text import plural, printable, size_text
from mcpspy.tui.compare.columns import COLUMNS
from mcpspy.tui.compare.rows import ComparedRows
from mcpspy.tui.message.facts import Around, entries
from mcpspy.tui.model.comparison import Pairing, comparable, compared
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.keys import Keys


class ComparedSide(NamedTuple):
    """One of the two messages."""

    title: str
    """Printable text."""
    value: Any


def side_of(model: OpenCapture | Merged, n: int) -> ComparedSide:
    """Return the messages of the frame on line `n` of a session or merge."""
    session, there = model.of(model.index.row_of(n) or 0)
    rows = session.messages(there)
    pieces = entries(rows[:1], session.header, Around(), brief=True)[0].pieces if rows else []
    title = "".join(text for text, _ in pieces).rstrip()
    if rows and len(rows[0].raw) < rows[0].size:
        title += f" · the first {size_text(len(rows[0].raw))} of {size_text(rows[0].size)}"
    name = f"{printable(session.header.name, 40)} " if model is not session else ""
    return ComparedSide(name + title, comparable(rows))


class MessagesCompared(Screen[int | None]):
    """The comparison; the result is the message to show in the timeline, 0 or 1, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("comparison")

    def __init__(self, left: ComparedSide, right: ComparedSide) -> None:
        super().__init__()
        self._sides = left, right

    def compose(self) -> ComposeResult:
        """Yield the title with the number of differences, the two messages, the values, and the keys."""
        yield Static("compare", id="title", markup=False)
        with Container(id="sides"):
            for side in self._sides:
                yield Static(side.title, markup=False)
        yield ComparedRows()
        yield Keys()

    def on_mount(self) -> None:
        """Start the comparison, which takes a while for large messages."""
        rows = self.query_one(ComparedRows)
        rows.show(None, "comparing")
        rows.focus()
        self._compare()

    def on_resize(self, event: Resize) -> None:
        """Arrange the titles like the columns."""
        self.set_class(event.size.width >= COLUMNS, "columns")

    @work(thread=True)
    def _compare(self) -> None:
        found = compared(*(side.value for side in self._sides))
        self.app.call_from_thread(self._show, found)

    def _show(self, found: Pairing) -> None:
        if self.is_attached:
            self.query_one("#title", Static).update(f"compare · {summary(found)}")
            self.query_one(ComparedRows).show(found)

    def action_difference(self, step: int) -> None:
        """Go to the next or the previous difference."""
        if not self.query_one(ComparedRows).difference(step):
            self.app.bell()

    def action_frame(self, side: int) -> None:
        """Show one of the two messages in the timeline."""
        self.dismiss(side)


def summary(found: Pairing) -> str:
    """Return the number of differences as text."""
    if not found.differing:
        return "no differences"
    volatile = f", {found.volatile:,} probably different in each run (≈)" if found.volatile else ""
    return f"{plural(found.differing, 'difference')}{volatile}"
