"""The view of the calls: a row for each request with its response, and a bar on a time axis common to all rows.

The look of a row is made by pure functions from the call to its texts.
"""

import math
import time
from contextlib import suppress
from datetime import datetime
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.css.query import NoMatches
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.preview import parts
from mcpspy.overview import CALL
from mcpspy.report.words import ARROWS, MARKS
from mcpspy.text import duration_text, fitted_name, printable, size_text
from mcpspy.tui.model.calls import Call, Calls
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.sorting import SORTS
from mcpspy.tui.views.row_text import SLOW, SOURCES, name_columns, waiting_text
from mcpspy.tui.widgets.rows import CatchingUp, Cell, Jump, Sorted, View, column, fit

_SMALL, _SIZES = 100, 6  # bytes without a bar; columns of the bar, one per power of ten
_LATENCY = 9  # columns
_PROGRESS = 8  # columns of the progress bar
_FELT, _ROOMY = 1_000_000_000, 48
"""Minimum nanoseconds of a wait for a person that is always shown; minimum columns for shorter waits."""
_LEAST = 8  # minimum columns for arguments or a result


class Axis(NamedTuple):
    """The time axis of the bars on a screen, in nanoseconds since the start of the session or merge."""

    start: int
    end: int
    now: int
    """The current time, at which bars of pending calls end."""


class CallFace(NamedTuple):
    """All that the look of a row depends on."""

    call: Call
    axis: Axis
    live: bool
    """Whether it may still be answered."""


class CallLayout(NamedTuple):
    """The columns of each part of a row, for a given width of the view; 0 if the part is omitted."""

    source: int
    number: int
    status: int
    latency: int
    bar: int
    size: int
    axis: int
    call: int
    result: int

    @classmethod
    def of(cls, width: int, *, merged: bool) -> "CallLayout":
        """Return the layout for a width."""
        source = (12 if width >= 120 else 8) * merged
        if width >= 150:
            fixed = cls(source, 8, 12, 10, _SIZES + 1, 9, min(width // 4, 60), 0, 0)
        elif width >= 110:
            fixed = cls(source, 8, 12, 10, 0, 9, 20, 0, 0)
        elif width >= 70:
            fixed = cls(source, 0, 0, 10, 0, 0, 14, 0, 0)
        else:
            fixed = cls(source, 0, 0, 10 if width >= 40 else 0, 0, 0, 0, 0, 0)
        room = max(width - 4 - sum(fixed), 0)
        call = room * 11 // 20 if room >= 4 * _LEAST else room
        return fixed._replace(call=call, result=room - call)


def call_cells(face: CallFace, width: int) -> list[Cell]:
    """Return the cells of a row: finding, session, number, direction, request, result, status, latency, size, bar."""
    request, response = face.call.request, face.call.response
    layout = CallLayout.of(width, merged=request.source is not None)
    severity = request.severity or (response.severity if response else None)
    number = request.source.n if request.source else request.n
    size = response.size if response else 0
    bad = "view--error" if request.bad else ""
    status = "" if face.live and request.status == "pending" else request.exact_status
    took = duration_text(request.latency) if request.latency is not None else ""
    slow = "view--warning" if (request.latency or 0) >= SLOW else "view--dim"
    return [
        (f"{MARKS[severity] if severity else ' '} ", f"view--{severity}" if severity else ""),
        *_source(face.call, layout.source),
        (f"{'#' + str(number):>7} "[: layout.number], "view--dim"),
        (f"{ARROWS[request.sender]} ", f"view--{request.sender}" if request.sender != "mcpspy" else ""),
        *_asked(face.call, layout.call),
        *_came(face, layout.result, with_status=layout.status > 0),
        (f" {status:<11}"[: layout.status], bad or ("view--ok" if status == "ok" else "view--person")),
        (f"{fit(took, _LATENCY):>{_LATENCY}} "[: layout.latency], slow),
        (f"{size_bar(size):<{_SIZES}} "[: layout.bar], "view--dim"),
        (f"{size_text(size) if size else '':>8} "[: layout.size], "view--dim"),
        (waterfall(face, layout.axis), bad or _colour(face.call)),
    ]


def heading(width: int, axis: Axis | None, *, merged: bool) -> str:
    """Return the names of the columns, and the times at both ends of the axis."""
    layout = CallLayout.of(width, merged=merged)
    names = [
        "  ",
        f"{'session':<{layout.source}}"[: layout.source],
        f"{'request':>7} "[: layout.number],
        "  ",
        f"{'call':<{layout.call}}"[: layout.call],
        f"{'result':<{layout.result}}"[: layout.result],
        f" {'status':<11}"[: layout.status],
        f"{'latency':>9} "[: layout.latency],
        f"{'':<{layout.bar}}",
        f"{'size':>8} "[: layout.size],
    ]
    if axis and layout.axis:
        start, span = f"{axis.start / 1e9:.3f} s", f"+{duration_text(axis.end - axis.start)}"
        room = layout.axis - len(start)
        names.append(f"{start}{span:>{room}}" if room > len(span) else f"{span:>{layout.axis}}"[: layout.axis])
    return "".join(names)


def size_bar(size: int) -> str:
    """Return a size as a bar: one column for each power of ten above 100 bytes."""
    return "▄" * min(math.ceil(math.log10(max(size, _SMALL) / _SMALL)), _SIZES)


def waterfall(face: CallFace, columns: int) -> str:
    """Return the start and end of a call as a bar on the axis; dotted if it has no end."""
    axis, request, response = face.axis, face.call.request, face.call.response
    if not columns:
        return ""
    until = response.t if response else axis.now if face.live else axis.end
    whole = max(axis.end - axis.start, 1)
    first = min(max((request.t - axis.start) * columns // whole, 0), columns - 1)
    last = min(max(-((axis.start - until) * columns // whole), first + 1), columns)
    mark = "▄" if response or face.live else "╌"
    if request.status == "cancelled" and not response:
        mark, last = "x", first + 1
    return " " * first + mark * (last - first) + " " * (columns - last)


def progress_text(done: float, total: float | None) -> str:
    """Return progress as text: `2/4 ████░░░░`, or `2` if the total is unknown."""
    if not total or total <= 0:
        return f"{done:g}"
    filled = round(min(max(done / total, 0), 1) * _PROGRESS)
    return f"{done:g}/{total:g} {'█' * filled}{'░' * (_PROGRESS - filled)}"


def _source(call: Call, columns: int) -> list[Cell]:
    source = call.request.source
    if source is None:
        return []
    return [(column(source.name, columns), f"timeline--source{source.which % SOURCES}")]


def _colour(call: Call) -> str:
    source = call.request.source
    return f"timeline--source{source.which % SOURCES}" if source else "view--client"


def _asked(call: Call, columns: int) -> list[Cell]:
    """Return the cells of the request: the tool, or the method and name, and the arguments."""
    request = call.request
    method = "" if request.method == CALL and request.name else printable(request.method or request.kind, columns)
    name = request.name or ""
    if not method:
        head = [(fitted_name(name, name_columns(request.text or "", columns - 1, plain=False)), "view--client")]
    else:
        shown = fit(method, columns - 1)
        head = [(shown, ""), (f" {fitted_name(name, columns - 2 - cell_len(shown))}" if name else "", "view--client")]
    return _padded([*head, *_words(request.text or "", columns - 1 - sum(cell_len(text) for text, _ in head))], columns)


def _came(face: CallFace, columns: int, *, with_status: bool) -> list[Cell]:
    """Return the cells of the result, or the waiting time so far; and the time spent waiting for a person.

    A failing result begins with its status, unless a column has it.
    """
    call, request = face.call, face.call.request
    if not columns:
        return []
    told: list[Cell] = []
    if call.asked >= _FELT or (call.asked and columns >= _ROOMY):
        asked = duration_text(call.asked)
        text = f"user took {asked} before" if call.continues else f"user took {asked}"
        told = [(fit(f" {text}", columns - 1), "view--person")]
    room = columns - 1 - sum(cell_len(text) for text, _ in told)
    if call.response:
        text, bad = call.response.text or request.exact_status, request.bad
        if bad and not with_status:
            text = f"{request.exact_status} {call.response.text or ''}".rstrip()
        words = [(fit(text, room), "view--error")] if bad else _words(text, room + 2)
        return _padded([*(words if bad else words[1:] or [("", "")]), *told], columns)
    if not face.live or request.status != "pending":
        style = "view--error" if request.bad else "view--dim"
        return _padded([(fit(request.exact_status, room), style), *told], columns)
    waited = waiting_text(max(face.axis.now - request.t, 0) / 1e9)
    text = f"{progress_text(*call.progress)} {waited}" if call.progress else f"waiting {waited}"
    return _padded([(fit(text, room), "view--warning"), *told], columns)


def _words(text: str, room: int) -> list[Cell]:
    """Return a preview in its colours after two blanks; nothing if there is too little room."""
    shown = fit(text, room - 2) if room - 2 >= min(_LEAST, cell_len(text)) else ""
    looks = {"name": "view--dim", "string": "view--ok"}
    return [("  ", ""), *((piece, looks.get(look, "")) for piece, look in parts(shown) if piece)] if shown else []


def _padded(cells: list[Cell], columns: int) -> list[Cell]:
    taken = sum(cell_len(text) for text, _ in cells)
    return [*cells, (" " * (columns - taken), "")]


_TICK = 100_000_000  # nanoseconds between updates of the bars of pending calls
_RARELY = 20  # sorting takes at most this fraction of the time


class CallsRows(CatchingUp, Sorted):
    """One row for each call."""

    LIST = "calls"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--client", "view--server", "view--person",
        "view--ok", *(f"timeline--source{number}" for number in range(SOURCES)),
    }  # fmt: skip

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._calls = Calls(session)
        self._order: list[int] | None = None  # the places of the calls; None: in the order of time
        self._sorted = (0, False)  # how many calls were sorted, and whether all was known of them
        self._sort_at = 0.0  # when the calls may be sorted again
        self._started = datetime.fromisoformat(session.header.started).timestamp()
        self.axis: Axis | None = None
        """The time axis of the visible rows; None if there are no rows."""

    def on_mount(self) -> None:
        """Follow new calls while the session is live."""
        self.follow = self._session.state == "live"
        self.sort_rows()

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

    def grown(self) -> None:
        """Show new calls; those of a running session are sorted again, as far as that takes little of the time."""
        changed = self._sorted != (len(self._calls), True)
        if self._order is not None and changed and time.monotonic() > self._sort_at:
            self.sort_rows()
        super().grown()

    def sort_rows(self) -> None:
        """Sort the calls; the selected one stays selected."""
        began, selected, follow = time.monotonic(), self._place(self.cursor), self.follow
        by_time = self.by == SORTS[self.LIST][0]
        self._order = None if by_time else self._calls.order(self.by)
        self.follow = follow and by_time
        at = selected if self._order is None else self._order.index(selected) if self._order else 0
        if at != self.cursor:
            self.shift(at - self.cursor)
        self._sorted = len(self._calls), self._session.complete
        self._sort_at = began + _RARELY * (time.monotonic() - began)
        self.rows_sorted()

    def action_toggle_follow(self) -> None:
        """Start or stop following the newest call, in the order of time."""
        while self._order is not None:
            self.action_sort()
        super().action_toggle_follow()

    def _place(self, at: int) -> int:
        """Return the place of the call at a position."""
        return at if self._order is None or at >= len(self._order) else self._order[at]

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
        calls = [self._calls.at(self._place(at)) for at in range(top, min(top + self.size.height, self.count()))]
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
        call, live = self._calls.at(self._place(place)), self._session.state == "live"
        axis = self.axis or Axis(0, 1, 0)
        return CallFace(call, axis, live and call.response is None and call.request.status == "pending")

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the content of a row."""
        return call_cells(self.face(place), width)

    def on_rows_chosen(self) -> None:
        """Show the request in the timeline."""
        self.post_message(Jump(self._calls.at(self._place(self.cursor)).request.n))


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

    @on(Sorted.Resorted)
    def _name_columns(self) -> None:
        rows = self.query_one(CallsRows)
        width = rows.scrollable_content_region.width
        text = rows.by.marked(heading(width, rows.axis, merged=isinstance(self._session, Merged)), "call")
        self.query_one("#columns", Static).update(text, layout=False)
