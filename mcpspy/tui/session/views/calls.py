"""The view of the calls: a row for each request with its response, and a bar on a time axis common to all rows."""

import time
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.css.query import NoMatches
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.calls import Calls
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.session.views.calls_text import Axis, CallFace, call_cells, heading
from mcpspy.tui.session.views.row_text import SOURCES
from mcpspy.tui.widgets.rows import CatchingUp, Cell, Jump, View

_TICK = 100_000_000  # nanoseconds between updates of the bars of pending calls


class CallsRows(CatchingUp):
    """One row for each call."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--client", "view--server", "view--person",
        "view--ok", *(f"timeline--source{number}" for number in range(SOURCES)),
    }  # fmt: skip

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._calls = Calls(session)
        self._started = datetime.fromisoformat(session.header.started).timestamp()
        self.axis: Axis | None = None
        """The time axis of the visible rows; None if there are no rows."""

    def on_mount(self) -> None:
        """Follow new calls while the session is live."""
        self.follow = self._session.state == "live"

    def count(self) -> int:
        """Return the number of calls so far."""
        return len(self._calls)

    def nothing(self) -> str:
        """Return that there are no calls."""
        return "nothing was called" if self._session.complete else "no calls so far"

    def done(self) -> int:
        """Return the number of calls: all of them can be drawn."""
        return len(self._calls)

    def catch_up(self, seconds: float) -> bool:
        """Add calls of a merge."""
        return self._calls.grow(seconds)

    def rows_changed(self) -> None:
        """Update the rows and their time axis."""
        self._measure()
        super().rows_changed()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return lines of the screen, after updating the time axis."""
        self._measure()
        return super().render_lines(crop)

    def _measure(self) -> None:
        """Compute the time axis of the visible rows."""
        top = self.scroll_offset.y
        calls = [self._calls.at(place) for place in range(top, min(top + self.size.height, self.count()))]
        if not calls:
            self.axis = None
            return
        now, live = 0, self._session.state == "live"
        if live and any(call.request.status == "pending" for call in calls):
            now = round((time.time() - self._started) * 1e9) // _TICK * _TICK
        start = min(call.request.t for call in calls)
        ends = [max(call.request.t, call.response.t if call.response else 0) for call in calls]
        self.axis = Axis(start, max(*ends, now, start + 1), now)

    def face(self, place: int) -> CallFace:
        """Return the state that the look of a row depends on: its call and the time axis."""
        if self.axis is None:
            self._measure()
        call, live = self._calls.at(place), self._session.state == "live"
        axis = self.axis or Axis(0, 1, 0)
        return CallFace(call, axis, live and call.response is None and call.request.status == "pending")

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the content of a row."""
        return call_cells(self.face(place), width)

    def on_rows_chosen(self) -> None:
        """Show the request in the timeline."""
        self.post_message(Jump(self._calls.at(self.cursor).request.n))


class CallsView(View):
    """The calls, below the titles of the columns."""

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """Yield the heading and the rows."""
        yield Static(id="columns", markup=False)
        yield CallsRows(self._session)

    def on_mount(self) -> None:
        """Update the heading when the list is scrolled, because the time axis may change."""
        self.watch(self.query_one(CallsRows), "scroll_y", self._name_columns)

    def on_resize(self) -> None:
        """Update the heading to the new width."""
        self._name_columns()

    def grown(self) -> None:
        """Show new calls."""
        with suppress(NoMatches):  # before it is composed
            self.query_one(CallsRows).grown()
            self._name_columns()

    def _name_columns(self) -> None:
        rows = self.query_one(CallsRows)
        width = rows.scrollable_content_region.width
        text = heading(width, rows.axis, merged=isinstance(self._session, Merged))
        self.query_one("#columns", Static).update(text, layout=False)
