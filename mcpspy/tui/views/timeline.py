"""The timeline of a session: a row for each frame that the filter matches, and the message of one row."""

import time
from collections.abc import Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from mcpspy.browse.gates import held_time
from mcpspy.browse.timeline import OpenCapture, TimelineRow
from mcpspy.filters import Filter, parse
from mcpspy.filters.terms import occurrences
from mcpspy.moments import moment
from mcpspy.tui.compare import MessagesCompared, SessionsCompared, side_of
from mcpspy.tui.message.detail import Detail
from mcpspy.tui.message.facts import around
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.selection import Hunt, Selection, Wanted, failed_or_found, matching
from mcpspy.tui.views.row_text import (
    LOOKS,
    NARROW,
    SLOW,
    TIME_FORMS,
    Face,
    TimeForm,
    begins_text,
    cells,
    heading,
    waiting_text,
)
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Following, Jump, View

_PLACES = "places"  # the workers that search through a message
_TOLD = 0.25  # minimum seconds for which a message is shown while rows stream in
_SLOW = f"latency:>={SLOW / 1e9:.0f}s -kind:request"


class TimelineRows(Following):
    """The rows; the selected row may be connected with its partner, and any row may be marked."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*LOOKS, "timeline--partner"}

    times: reactive[TimeForm] = reactive("start")
    """What is shown of the time of a row."""
    room = reactive(0)
    """The columns of a row."""

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self.session = session
        """The session or merge that is shown."""
        self._started = moment(session.header.started).timestamp()
        self._now = 0  # nanoseconds since the start
        self.selection = Selection(session)
        self.hunt: Hunt | None = None
        """The running search; None if there is none."""
        self.selected = 0
        """The line number of the selected row, even before the filter has found any row."""
        self._tied: tuple[int, int] | None = None  # the selected row and its partner, in order
        self.marked: set[int] = set()
        """The line numbers of marked rows."""
        self._plain = False  # whether the names of the rows do not tell them apart

    class Hunted(Message):
        """Sent when the search `hunt` is finished."""

        def __init__(self, hunt: Hunt) -> None:
            super().__init__()
            self.hunt = hunt

    def count(self) -> int:
        """Return the number of rows shown so far."""
        return len(self.selection)

    def nothing(self) -> str:
        """Return why there are no rows."""
        if not self.selection.wanted:
            return "no messages so far"
        return "no rows match the filter" if self.selection.progress == 1 else "searching"

    def place(self) -> int:
        """Return the place of the selected row in the session."""
        return self.selection.place(self.cursor)

    def choose(self, wanted: Filter | None, selected: int) -> None:
        """Show the rows that match a filter, or all; select the row on line `selected` if it is shown."""
        self.selection.choose(wanted, selected)
        self.selected = selected
        self.hunt = None
        self._tied = None
        self.grown()
        self._keep_in_view()
        self.refresh()

    def find(self, wanted: Wanted, step: int) -> None:
        """Start a search for the next wanted row, or for the previous one (`step` -1)."""
        self.hunt = Hunt(self.selection, wanted, self.cursor + step, step)

    def search(self, seconds: float) -> bool:
        """Continue the filter and the search for about `seconds` each. Returns whether there is more to do now."""
        busy, before = self.selection.progress < 1, self.count()
        more = self.selection.grow(seconds)
        if busy and self.count() and not before:
            self.grown()  # the first hits
        if self.hunt is None or self.hunt.grow(seconds):
            return more or self.hunt is not None
        hunt, self.hunt = self.hunt, None
        if hunt.found is not None:
            self.move_to(hunt.found)
        self.post_message(self.Hunted(hunt))
        return more

    def grown(self) -> None:
        """Show new rows; the visible rows stay in place, unless `follow` is set."""
        self._now = round((time.time() - self._started) * 1e9)
        wanted, names = self.selection.wanted, (session.columns.names for session in self.session.sessions)
        self._plain = (wanted is not None and "name" in wanted.keys) or len(set().union(*names)) == 1
        at = self.selection.position(self.selected)
        if at is not None and at != self.cursor:
            self.shift(at - self.cursor)
        super().grown()
        if self.count():
            self._select(self.cursor)

    def face(self, place: int) -> Face:
        """Return the state that the look of a row depends on."""
        line = self.session.line(self.selection.place(place))
        above = self.session.line(self.selection.place(place - 1)).t if self.times != "start" and place else None
        since = line.t - above if self.times == "above" and above is not None else None
        clock = moment(self.session.header.started, line.t) if self.times == "clock" else None
        earlier = moment(self.session.header.started, above) if clock and above is not None else None
        live = line.status == "pending" and line.kind == "request" and self.session.state == "live"
        waiting = waiting_text(max(self._now - line.t, 0) / 1e9) if live else ""
        held = held_time(line.held, self._now) if line.held else None
        begins = begins_text(clock, earlier)
        return Face(line, since, waiting, line.n in self.marked, self._tie(place), held, clock, begins, self._plain)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the content of a row."""
        return cells(self.face(place), width)

    def mark(self, place: int) -> str:
        """Return the style of the selected row or of its partner; empty for other rows."""
        partner = self._tied is not None and place in self._tied and place != self.cursor
        return "timeline--partner" if partner else super().mark(place)

    def watch_cursor(self, before: int, now: int) -> None:
        """Connect the selected row with its partner."""
        if self.count():
            self._select(now)
        super().watch_cursor(before, now)

    def watch_times(self) -> None:
        """Redraw the rows with the other times."""
        self.refresh()

    def on_resize(self) -> None:
        """Fit the lines to the width of the view."""
        super().on_resize()
        self.room = self.scrollable_content_region.width

    def heading(self) -> str:
        """Return the names of the columns; an empty text if the view is too narrow for them."""
        if self.room < NARROW:
            return ""
        top = self.scroll_offset.y
        t = self.session.line(self.selection.place(top)).t if top < self.count() else 0
        first = moment(self.session.header.started, t)
        return heading(self.room, self.times, first, merged=isinstance(self.session, Merged))

    def action_last(self) -> None:
        """Go to the newest row, and follow if there may be newer ones."""
        super().action_last()
        self.follow = not self.session.complete

    def action_choose(self) -> None:
        """Give the focus to the selected message immediately, because the next key may already be pressed."""
        if self.count():
            self.screen.set_focus(self.screen.query_one(Detail).pane)

    def partner(self) -> int | None:
        """Return the position of the selected row's request or response; None if it is not shown."""
        partner = self.session.partner(self.place()) if self.count() else None
        return None if partner is None else self.selection.position(self.session.index.rows[partner])

    def toggle_mark(self) -> None:
        """Mark or unmark the selected row."""
        if self.count():
            self.marked ^= {self.selected}
            self.repaint(self.cursor)

    def next_marked(self) -> int | None:
        """Return the position of the next marked row; the first follows the last; None if no marked row is shown."""
        shown = sorted(at for n in self.marked if (at := self.selection.position(n)) is not None)
        return next((at for at in shown if at > self.cursor), shown[0] if shown else None)

    def _select(self, at: int) -> None:
        """Make the row at a position the selected one, and redraw the rows that this changes."""
        self.selected = self.selection.line(at)
        partner = self.partner()
        before, self._tied = self._tied, None if partner is None else (min(at, partner), max(at, partner))
        if before != self._tied:
            for first, last in filter(None, (before, self._tied)):
                top = self.scroll_offset.y
                for place in range(max(first, top), min(last, top + self.size.height) + 1):
                    self.repaint(place)

    def _tie(self, place: int) -> str:
        if self._tied is None or not self._tied[0] <= place <= self._tied[1]:
            return " "
        return "┌" if place == self._tied[0] else "└" if place == self._tied[1] else "│"


class TimelineView(View):
    """The rows and the message of the selected row; it posts notices about the results of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("timeline"), *bindings("timeline message")]

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__(id="panes")
        self._session = session
        self._shown: TimelineRow | None = None  # the selected row at the time when its message was shown
        self._told = 0.0  # that time
        self._words: tuple[str, ...] = ()  # the texts that the running search looks for, also in the message it finds

    class Notice(Message):
        """The result of a key, or of the search that it started; it may be empty."""

        def __init__(self, text: str = "") -> None:
            super().__init__()
            self.text = text

    def compose(self) -> ComposeResult:
        """Yield the rows and the message."""
        with Vertical(id="timeline"):
            yield Static(id="columns", markup=False)
            yield TimelineRows(self._session)
        yield Detail()

    def on_mount(self) -> None:
        """Show the message whenever the selection changes; a textual message for this would need one more drawing."""
        self.watch(self.rows, "cursor", self._moved, init=False)
        for name in ("times", "scroll_y", "room"):
            self.watch(self.rows, name, self._name_columns, init=False)

    def on_show(self) -> None:
        """Show the row that was selected while the view was hidden."""
        self.show_message()

    @property
    def rows(self) -> TimelineRows:
        """The rows."""
        return self.query_one(TimelineRows)

    def grown(self) -> None:
        """Show new rows, and changes of the selected message."""
        rows = self.rows
        rows.grown()
        self._name_columns()
        line = self._session.line(rows.place()) if rows.count() else None
        news = line != self._shown  # its response, or findings
        if news and (self._session.complete or self._may_tell()):
            self.show_message()

    def _name_columns(self) -> None:
        shown, text = self.query_one("#columns", Static), self.rows.heading()
        shown.display = bool(text)
        if text != shown.content:
            shown.update(text, layout=False)

    def show_message(self) -> None:
        """Show the message of the selected row."""
        self._told = time.monotonic()
        rows, session = self.rows, self._session
        if not rows.count() and rows.selection.progress == 1:
            self._shown = None
            self.query_one(Detail).show([], session.header)
        elif rows.count() and self.display:
            place = rows.place()
            self._shown = session.line(place)
            own, there = session.of(place)
            self.query_one(Detail).show(own.messages(there), own.header, around(own, there))

    def _moved(self) -> None:
        if not self.rows.follow or self._may_tell():
            self.show_message()

    def _may_tell(self) -> bool:
        """Return whether the message may change without a key: while rows stream in, it changes less often."""
        return time.monotonic() - self._told > _TOLD

    @on(TimelineRows.Hunted)
    def _tell_found(self, event: TimelineRows.Hunted) -> None:
        if event.hunt.found is None:
            self.app.bell()
            self.post_message(self.Notice("no row matches"))
        elif event.hunt.round:
            self.post_message(self.Notice("the search continued from the other end"))
        if event.hunt.found is not None and self._words:
            self._show_place(self._words, event.hunt.step, first=True, otherwise=self._tell_hidden)

    def _tell_hidden(self) -> None:
        self.post_message(self.Notice("the match is not in this form of the message; r shows others"))

    def action_next_finding(self, step: int) -> None:
        """Go to the next failed request or row with a finding, or to the previous one (`step` -1)."""
        self._words = ()
        self.rows.find(failed_or_found(self._session), step)
        self.post_message(self.Notice())

    def action_next_slow(self, step: int) -> None:
        """Go to the next slow response, or to the previous one (`step` -1)."""
        self.find(_SLOW, step)

    def find(self, text: str, step: int) -> None:
        """Go to the next row that matches a filter, or to the previous one (`step` -1), and to its text there."""
        wanted = parse(text, self._session.header.started)
        self._words = wanted.words()
        self.rows.find(matching(self._session, wanted), step)
        self.post_message(self.Notice())

    def find_from_here(self, text: str) -> None:
        """Go to the first place in the message, if it matches the filter and has one; else to the next row."""
        self._find_place(text, 1, first=True)

    def find_again(self, text: str, step: int) -> None:
        """Go to the next place in the message, if it matches the filter; after the last place, to the next row."""
        self._find_place(text, step, first=False)

    def _find_place(self, text: str, step: int, *, first: bool) -> None:
        rows, wanted = self.rows, parse(text, self._session.header.started)
        if wanted.words() and rows.count() and matching(self._session, wanted)(rows.place()):
            self.post_message(self.Notice())
            self._show_place(wanted.words(), step, first=first, otherwise=lambda: self.find(text, step))
        else:
            self.find(text, step)

    def find_in_message(self, text: str) -> bool:
        """Go to the first text of a filter in the message of the selected row. Returns whether the filter has texts."""
        words = parse(text, self._session.header.started).words()
        if words and self.rows.count():
            self._show_place(words, 1, first=True)
        return bool(words)

    @work(exclusive=True, group=_PLACES)
    async def _show_place(
        self, words: tuple[str, ...], step: int, *, first: bool, otherwise: Callable[[], None] | None = None
    ) -> None:
        """Go to the `first` or else to the next place in the message; if there is none, call `otherwise`."""
        found = await self.query_one(Detail).find(occurrences(words), step, first=first)
        if not found and otherwise:
            otherwise()

    @property
    def looking(self) -> bool:
        """Whether a search is running: through the rows, or through the message."""
        places = (it for it in self.workers if it.group == _PLACES and it.node is self)
        return bool(self.rows.hunt) or any(it.is_running for it in places)

    def stop_looking(self) -> None:
        """Stop the search."""
        self.rows.hunt = None
        self.workers.cancel_group(self, _PLACES)

    def action_partner(self) -> None:
        """Go from a request to its response, or back."""
        at = self.rows.partner()
        if at is None:
            self.app.bell()
            self.post_message(self.Notice("no request or response to this is shown"))
        else:
            self.rows.move_to(at)

    def action_mark(self) -> None:
        """Mark or unmark the selected row."""
        self.rows.toggle_mark()
        self.post_message(self.Notice())

    def action_next_mark(self) -> None:
        """Go to the next marked row."""
        at = self.rows.next_marked()
        if at is None:
            self.post_message(self.Notice("no row is marked; m marks one"))
        else:
            self.rows.move_to(at)

    def action_compare(self) -> None:
        """Compare two messages; in a merge of two sessions without marks, compare the sessions."""
        rows, session = self.rows, self._session
        if not rows.marked and len(session.sessions) == 2:
            first, second = session.sessions
            self.app.push_screen(SessionsCompared((first.path, first.header), (second.path, second.header)))
            return
        picked = rows.marked if len(rows.marked) > 1 or not rows.count() else rows.marked | {rows.selected}
        if len(picked) != 2:
            many = f"{len(picked)} rows are marked; d compares two"
            text = many if len(picked) > 2 else "m marks a row, then d on another compares the two"
            self.post_message(self.Notice(text))
            return
        lines = sorted(picked, key=lambda n: session.index.row_of(n) or 0)
        left, right = (side_of(session, n) for n in lines)
        self.app.push_screen(MessagesCompared(left, right), lambda side: self._jump_to(lines, side))

    def _jump_to(self, lines: list[int], side: int | None) -> None:
        if side is not None:
            self.post_message(Jump(lines[side]))

    def action_times(self) -> None:
        """Show the next form of times, and tell which one, because a narrow list has no column for it."""
        rows, forms = self.rows, list(TIME_FORMS)
        rows.times = forms[(forms.index(rows.times) + 1) % len(forms)]
        shown = rows.room >= NARROW
        self.post_message(self.Notice(f"times: {TIME_FORMS[rows.times]}" if shown else f"times need {NARROW} columns"))

    async def action_message(self, action: str) -> None:
        """Run an action of the message, which does not have the focus."""
        await self.query_one(Detail).run_action(action)
