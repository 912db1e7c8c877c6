"""The lines above and below a session: its state, its views, and the place of the cursor in it."""

from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mcpspy.browse.timeline import OpenCapture
from mcpspy.report.words import MARKS
from mcpspy.text import plural, printable
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.session.views.table import VIEWS

_LEAST = 12  # minimum columns beside the names of the views
_STATES = {"deleted": "the file was deleted", "cut short": "the file was truncated or replaced"}


def title(session: OpenCapture | Merged, *, following: bool) -> str:
    """Return a session as one line: name, state, number of rows, problems and findings."""
    header = session.header
    state = _STATES.get(session.state) or session.state
    parts = [printable(header.name, 40), header.transport, state, plural(len(session), "row")]
    problems = sum(it.problems.number for it in session.sessions)
    if problems:
        parts.append(plural(problems, "problem"))
    found = [f"{MARKS[severity]} {count:,}" for severity, count in session.found.items() if count]
    if found:
        parts.append(f"found: {' '.join(found)}")
    if session.progress < 1 and session.index.state == "ended":
        parts.append(f"reading {session.progress:.0%}")
    if following:
        parts.append("following")
    return printable(" · ".join(parts), 400)


def tabs(width: int, shown: str, beside: int = _LEAST) -> list[str]:
    """Return the texts of the views for a line: keys with names, if `beside` columns remain free.

    Otherwise the names are close together, or only the shown view has its name, if there is room for that.
    """
    named = {title: f" {view.key} {title} " for title, view in VIEWS.items()}
    close = {title: f" {view.key} {title}" for title, view in VIEWS.items()}
    keys = {title: f" {view.key} " for title, view in VIEWS.items()}
    for names in (named, close, keys | {shown: named[shown]}):
        if sum(map(len, names.values())) + beside < width:
            return list(names.values())
    return list(keys.values())


class Status(Widget):
    """The status line; a click on the name of a view shows that view."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"status--shown", "status--said", "status--held"}

    def __init__(self) -> None:
        super().__init__()
        self._shown = next(iter(VIEWS))
        self._text, self._said, self._held = "", "", 0

    class Clicked(Message):
        """Sent when the name of a view is clicked."""

        def __init__(self, view: str) -> None:
            super().__init__()
            self.view = view

    def show(self, view: str, text: str, said: str, held: int = 0) -> None:
        """Show the current view, the position `text` or instead the notice `said`, and the number of held frames."""
        if (view, text, said, held) != (self._shown, self._text, self._said, self._held):
            self._shown, self._text, self._said, self._held = view, text, said, held
            self.refresh()

    def _tabs(self) -> list[str]:
        """Return the texts of the views; only their keys if the notice needs the room."""
        beside = cell_len(printable(self._said or self._text, self.size.width)) + len(self._holds())
        return tabs(self.size.width, self._shown, max(beside, _LEAST))

    def _holds(self) -> str:
        return f" {self._held:,} held " if self._held else ""

    def render_line(self, _: int) -> Strip:
        """Return the line: the views on the left, the other texts on the right."""
        width, base = self.size.width, self.rich_style
        shown = base + self.get_component_rich_style("status--shown")
        segments = [
            Segment(tab, shown if view == self._shown else base) for view, tab in zip(VIEWS, self._tabs(), strict=True)
        ]
        holds = self._holds()
        room = max(width - sum(len(segment.text) for segment in segments) - len(holds) - 1, 0)
        text = printable(self._said or self._text, room)
        style = base + self.get_component_rich_style("status--said") if self._said else base
        segments.append(Segment(" " * (room - cell_len(text)), base))
        segments.append(Segment(holds, base + self.get_component_rich_style("status--held")))
        return Strip([*segments, Segment(f" {text}" if holds else text, style)]).adjust_cell_length(width, base)

    def on_click(self, event: Click) -> None:
        """Show the clicked view."""
        left = 0
        for view, tab in zip(VIEWS, self._tabs(), strict=True):
            if left <= event.x < left + len(tab):
                self.post_message(self.Clicked(view))
            left += len(tab)
