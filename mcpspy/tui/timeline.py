"""The timeline of one session, growing while it is live, beside the message that is selected in it."""

import asyncio
import time
from contextlib import suppress
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.css.query import NoMatches
from textual.events import Resize
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer, Static

from mcpspy.printable import printable
from mcpspy.tui.detail import Detail
from mcpspy.tui.model import Line, Session
from mcpspy.tui.rows import BREATH, SLICE, Cell, Rows, slice_now
from mcpspy.units import duration_text, plural, size_text

_LOOK = 0.04  # seconds from one look at a live capture to the next
_PROGRESS = 0.25  # seconds from one look to the next at a capture that is being read: keys come first
_WIDE = 130  # columns from which the detail stands beside the timeline and not below it

_ARROWS = {"client": "→", "server": "←", "mcpspy": "·"}
_FOUND = {"error": "✗", "warning": "!", "info": "·", "": " "}
_BAD = {"error": "timeline--error", "tool-error": "timeline--error", "unanswered": "timeline--error"}
_COLOURS = {"invalid": "timeline--invalid", "gap": "timeline--gap", "end": "timeline--dim", "stderr": "timeline--dim",
            "http": "timeline--dim", "event": "timeline--dim"}  # fmt: skip
_STATES = {"deleted": "the file was deleted", "cut short": "the file was cut short or replaced"}


class TimelineRows(Rows):
    """One row for each frame; with `follow` the cursor stays on the newest."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "timeline--dim", "timeline--error", "timeline--invalid", "timeline--gap", "timeline--ok", "timeline--client",
        "timeline--server", "timeline--pending", "timeline--partner", "timeline--warning", "timeline--info",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "toggle_follow", "follow"),
        Binding("p", "partner", "request/response"),
    ]

    follow = reactive(False)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._partner: int | None = None

    def count(self) -> int:
        """How many rows there are so far."""
        return len(self._session)

    def grown(self) -> None:
        """Show what has come; the row that is looked at stays where it is, unless following."""
        self.rows_changed()
        if self.follow:
            self.move_to(self.count() - 1)

    def face(self, place: int) -> Line:
        """A row looks as its line says."""
        return self._session.line(place)

    def cells(self, place: int, width: int) -> list[Cell]:
        """What was found, number, time, direction, what it is about, and how it went."""
        line = self._session.line(place)
        start = [
            (f"{_FOUND[line.severity]} ", f"timeline--{line.severity}" if line.severity else ""),
            (f"{'#' + str(line.n):>7} ", "timeline--dim"),
            (f"{line.t / 1e9:>9.3f} ", "timeline--dim"),
            (f"{_ARROWS[line.sender]} ", f"timeline--{line.sender}" if line.sender != "mcpspy" else ""),
        ]
        room = max(width - sum(len(text) for text, _ in start), 0)
        if not line.method and line.kind not in ("result", "error"):
            colour = _COLOURS.get(line.kind, "")
            return [*start, (f"{line.kind}: {printable(line.text, max(room - len(line.kind) - 2, 1))}", colour)]
        outcome = _outcome(line, narrow=width < 70)
        room = max(room - sum(len(text) for text, _ in outcome), 8)
        return [*start, *_subject(line, room), *outcome]

    def mark(self, place: int) -> str:
        """The selected row, and the one that it answers or that answers it."""
        return "timeline--partner" if place == self._partner and place != self.cursor else super().mark(place)

    def watch_cursor(self, before: int, now: int) -> None:
        """Follow no longer when the cursor leaves the end."""
        partner = self._partner
        if self.count():
            self._partner = self._session.partner(now)
        for place in (partner, self._partner):
            if place is not None:
                self.repaint(place)
        if now < self.count() - 1:
            self.follow = False
        super().watch_cursor(before, now)

    def watch_follow(self, follow: bool) -> None:
        """Go to the newest row."""
        if follow:
            self.move_to(self.count() - 1)

    def action_toggle_follow(self) -> None:
        """Follow the newest row, or no longer."""
        self.follow = not self.follow

    def action_last(self) -> None:
        """Go to the newest row, and follow while there may be newer ones."""
        super().action_last()
        self.follow = not self._session.complete

    def action_partner(self) -> None:
        """Go from a request to its response, or back."""
        place = self._session.partner(self.cursor) if self.count() else None
        if place is None:
            self.app.bell()
        else:
            self.move_to(place)


def _subject(line: Line, room: int) -> list[Cell]:
    """Method, name and id in `room` columns of the screen, the id only if it fits beside the others."""
    number = f" {printable(f'id {line.id}', 14):>6}" if line.id else ""
    method = printable(line.method or "(no request seen)", room)
    name = printable(f" {line.name}", room) if line.name else ""
    if cell_len(method) + cell_len(name) + cell_len(number) > room:
        number = ""
    left = room - cell_len(number)
    method = set_cell_size(method, min(cell_len(method), left))
    name = set_cell_size(name, left - cell_len(method))
    colour = "timeline--dim" if line.kind == "notification" else ""
    return [(method, colour), (name, "timeline--client"), (number, "timeline--dim")]


def _outcome(line: Line, *, narrow: bool) -> list[Cell]:
    """Status, latency and size; of a request only what its response will not say."""
    status = line.status
    if line.kind == "request" and status not in ("pending", "unanswered", "cancelled"):
        status = ""
    colour = _BAD.get(status, "timeline--pending" if line.kind == "request" else "timeline--ok")
    latency = duration_text(line.latency) if line.latency is not None and line.kind != "request" else ""
    size = [] if narrow else [(f" {size_text(line.size):>8}", "timeline--dim")]
    return [(f" {status:>10}", colour), (f" {latency:>9}", "timeline--pending"), *size]


class TimelineScreen(Screen[None]):
    """A session: its timeline and the selected message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("q", "app.quit", "quit"),
        Binding("r", "toggle_raw", "raw"),
    ]

    def __init__(self, path: str) -> None:
        """Open the capture. Raises CaptureError."""
        super().__init__()
        self._session = Session(path)
        self._shown: Line | None = None  # the selected row as it was when its message was shown
        self._told = 0.0  # when that was

    def compose(self) -> ComposeResult:
        """A title, the timeline, the message, the keys."""
        yield Static(id="title", markup=False)
        with Container(id="panes"):
            yield TimelineRows(self._session)
            yield Detail()
        yield Footer()

    def on_mount(self) -> None:
        """Show the first rows at once, then go on."""
        self._session.grow(SLICE)
        rows = self.query_one(TimelineRows)
        rows.focus()
        self.watch(rows, "cursor", self._moved, init=False)  # at once: a message would cost one more drawing
        rows.follow = self._session.index.state == "live"
        self._grown()
        self._grow()

    def on_unmount(self) -> None:
        """Give the file back."""
        self._session.close()

    def on_resize(self, event: Resize) -> None:
        """Put the message beside or below the timeline."""
        self.set_class(event.size.width >= _WIDE, "wide")

    @work
    async def _grow(self) -> None:
        """Index and fold for as long as the capture can grow, and show a live one some twenty times a second."""
        shown = 0.0
        with suppress(NoMatches):  # the screen is being taken down, widget by widget
            while self.is_attached and not self._session.complete:
                looked = time.monotonic()
                more = self._session.grow(slice_now(self.app))
                pause = _LOOK if self._session.index.state == "live" else _PROGRESS
                if not more or looked - shown > pause:
                    shown = looked
                    self._grown()
                await asyncio.sleep(BREATH if more else max(looked + _LOOK - time.monotonic(), BREATH))
            self.query_one(TimelineRows).follow = False
            self._grown()
            while self.is_attached:  # it may still be deleted, or replaced
                await asyncio.sleep(_PROGRESS)
                if self._session.index.look():
                    self._grown()

    def _grown(self) -> None:
        rows = self.query_one(TimelineRows)
        rows.grown()
        self.query_one("#title", Static).update(self._title(following=rows.follow), layout=False)
        news = rows.count() and self._session.line(rows.cursor) != self._shown  # its answer, or what the fold found
        if news and (self._session.complete or self._may_tell()):
            self._show_message()

    def _title(self, *, following: bool) -> str:
        session, header = self._session, self._session.header
        state = _STATES.get(session.state) or session.state
        parts = [printable(header.name, 40), header.transport, state, plural(len(session), "row")]
        if session.counts.errors:
            parts.append(plural(session.counts.errors, "error"))
        found = [f"{_FOUND[severity]} {count:,}" for severity, count in session.found.items() if count]
        if found:
            parts.append(f"found: {' '.join(found)}")
        if session.progress < 1 and session.index.state == "ended":
            parts.append(f"reading {session.progress:.0%}")
        if following:
            parts.append("following")
        return printable(" · ".join(parts), 400)

    def _moved(self) -> None:
        if not self.query_one(TimelineRows).follow or self._may_tell():
            self._show_message()

    def _may_tell(self) -> bool:
        """Whether the message may change of itself: while rows stream in nobody can read each."""
        return time.monotonic() - self._told > _PROGRESS

    def _show_message(self) -> None:
        self._told = time.monotonic()
        rows = self.query_one(TimelineRows)
        if rows.count():
            self._shown = self._session.line(rows.cursor)
            self.query_one(Detail).show(self._session.messages(rows.cursor), self._session.header)

    def on_rows_chosen(self) -> None:
        """Read the selected message."""
        self.query_one(Detail).focus()

    def action_toggle_raw(self) -> None:
        """Show the frame as it came, or as JSON."""
        detail = self.query_one(Detail)
        detail.raw = not detail.raw
        self._show_message()

    def action_back(self) -> None:
        """From the message to the timeline, from there to the sessions."""
        rows = self.query_one(TimelineRows)
        if self.focused is rows or rows.count() == 0:
            self.app.pop_screen()
        else:
            rows.focus()
