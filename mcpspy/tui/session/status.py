"""What is said above and below a session: how it is, which views there are, and where in it one is."""

from typing import ClassVar

from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mcpspy.text import plural, printable
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.timeline import OpenCapture
from mcpspy.tui.session.views.table import VIEWS
from mcpspy.tui.widgets.view import MARKS

_STATES = {"deleted": "the file was deleted", "cut short": "the file was cut short or replaced"}


def title(session: OpenCapture | Merged, *, following: bool) -> str:
    """A session in one line: whose it is, how it is, and what went wrong in it."""
    header = session.header
    state = _STATES.get(session.state) or session.state
    parts = [printable(header.name, 40), header.transport, state, plural(len(session), "row")]
    if session.counts.errors:
        parts.append(plural(session.counts.errors, "error"))
    found = [f"{MARKS[severity]} {count:,}" for severity, count in session.found.items() if count]
    if found:
        parts.append(f"found: {' '.join(found)}")
    if session.progress < 1 and session.index.state == "ended":
        parts.append(f"reading {session.progress:.0%}")
    if following:
        parts.append("following")
    return printable(" · ".join(parts), 400)


def tabs(width: int) -> list[str]:
    """The views as they stand in a line of that width, with their keys: the whole names where there is room."""
    names = [f" {view.key} {view.title} " for view in VIEWS.values()]
    return names if sum(map(len, names)) < width - 20 else [f" {view.key} " for view in VIEWS.values()]


class Status(Widget):
    """The line; a click on a view shows it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"status--shown", "status--said"}

    def __init__(self) -> None:
        super().__init__()
        self._shown = next(iter(VIEWS))
        self._text, self._said = "", ""

    class Clicked(Message):
        """A view was clicked."""

        def __init__(self, view: str) -> None:
            super().__init__()
            self.view = view

    def show(self, view: str, text: str, said: str) -> None:
        """Say which view is shown, where one is, or in place of that something that has just come about."""
        if (view, text, said) != (self._shown, self._text, self._said):
            self._shown, self._text, self._said = view, text, said
            self.refresh()

    def render_line(self, _: int) -> Strip:
        """The views to the left, the rest to the right."""
        width, base = self.size.width, self.rich_style
        shown = base + self.get_component_rich_style("status--shown")
        segments = [
            Segment(tab, shown if view == self._shown else base) for view, tab in zip(VIEWS, tabs(width), strict=True)
        ]
        room = max(width - sum(len(segment.text) for segment in segments) - 1, 0)
        text = printable(self._said or self._text, room)
        style = base + self.get_component_rich_style("status--said") if self._said else base
        segments.append(Segment(" " * (room - Segment(text).cell_length), base))
        return Strip([*segments, Segment(text, style)]).adjust_cell_length(width, base)

    def on_click(self, event: Click) -> None:
        """Show the view under the mouse."""
        left = 0
        for view, tab in zip(VIEWS, tabs(self.size.width), strict=True):
            if left <= event.x < left + len(tab):
                self.post_message(self.Clicked(view))
            left += len(tab)
