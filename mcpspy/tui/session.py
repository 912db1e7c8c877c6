"""The screen of one session with its views; it runs filters, searches and commands, and grows while a session is live.

The screen connects the model, the timeline and the prompt. The other views come from
`mcpspy.tui.views.table`. The screen tells a view when the model has grown, and a view posts `Jump` to show a
frame in the timeline. The lines above and below show the state of the session, its views, and the place of the cursor.

Exports and pages to share are written in a thread while keys are handled; a notification shows the result.
"""

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.events import Click, Resize
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.counts import run_label
from mcpspy.errors import CaptureError, FilterError, McpspyError, UsageError
from mcpspy.filters import Filter, parse
from mcpspy.report.words import MARKS
from mcpspy.text import plural, printable
from mcpspy.tui.gates import GatedTimeline
from mcpspy.tui.message.detail import Detail
from mcpspy.tui.model import commands
from mcpspy.tui.model.commands import destination
from mcpspy.tui.model.exports import ExportRequest, requested, written
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.table import COMMANDS, VIEW_SCOPE, VIEWS, create
from mcpspy.tui.views.timeline import TimelineRows, TimelineView
from mcpspy.tui.widgets.dialogs import ClientMenu, clients_text
from mcpspy.tui.widgets.keys import Keys, bindings, bound
from mcpspy.tui.widgets.prompt import Prompt, common
from mcpspy.tui.widgets.rows import BREATH, SLICE, Jump, Keyed, Rows, RowsOrNotice, View, slice_now

_LONGEST_RESULT = 300  # maximum characters of a message


class _ExportCancelledError(Exception):
    """Raised to stop an export when the application exits."""


def begin_export(app: App[object], request: ExportRequest) -> None:
    """Write an export in a thread, which survives its screen; if the application exits first, the file is removed."""
    app.run_worker(partial(_write_export, app, request), thread=True, exit_on_error=False, group="exports")


def _write_export(app: App[object], request: ExportRequest) -> None:
    worker = get_current_worker()

    def read(_: int) -> None:
        if worker.is_cancelled:
            raise _ExportCancelledError

    try:
        told = written(request, read)
    except _ExportCancelledError:
        return
    except McpspyError as error:
        _tell_export(app, f"not exported: {error}", failed=True)
    except Exception as error:  # a bug of ours must stop only the export
        _tell_export(app, f"not exported: {type(error).__name__}: {error}", failed=True)
    else:
        _tell_export(app, told, failed=False)


def _tell_export(app: App[object], words: str, *, failed: bool) -> None:
    app.notify(
        printable(words, _LONGEST_RESULT), severity="error" if failed else "information", markup=False, timeout=10
    )


_BESIDE_VIEWS = 12  # minimum columns beside the names of the views
_STATES = {"deleted": "the file was deleted", "cut short": "the file was truncated or replaced"}


def title_text(session: OpenCapture | Merged, *, following: bool) -> str:
    """Return a session as one line: name, state, number of rows, problems and findings, and its client if recorded."""
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
    if header.client:
        parts.append(f"client {run_label((it.counts.client, it.header) for it in session.sessions)}")
    return printable(" · ".join(parts), 400)


def tab_texts(width: int, shown: str, beside: int = _BESIDE_VIEWS) -> list[str]:
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
        return tab_texts(self.size.width, self._shown, max(beside, _BESIDE_VIEWS))

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


_LOOK = 0.04  # seconds between looks at a live capture
_PROGRESS = 0.25  # seconds between looks at a capture that is being read: keys have priority
_WIDE_SCREEN = 130  # minimum columns for the detail beside the timeline instead of below it
_LOW_SCREEN = 16  # below this number of lines, the line of keys is hidden
_TIMELINE = "timeline"  # the view that is filtered and searched
_PROBLEMS = "problems"  # the view that an ended session with problems opens with


class SessionScreen(Screen[None]):
    """The screen of a session; it closes its model."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("session"), *bound(VIEW_SCOPE.actions)]

    def __init__(self, session: OpenCapture | Merged, *, explain: bool = True) -> None:
        """Show an open model; `explain`: begin with its problems, if it is one ended session that has any."""
        super().__init__()
        self.session = session
        """The session or merge that is shown; it is closed with the screen."""
        self._view = _TIMELINE
        self._home = _TIMELINE  # the view that Esc goes back to
        self._explain = explain and isinstance(session, OpenCapture) and session.state != "live"
        self._begun = 0.0  # when it was first shown
        self._timeline = GatedTimeline(session)
        self._views: dict[str, View | RowsOrNotice] = {_TIMELINE: self._timeline}  # the views shown so far
        self._woken = asyncio.Event()  # set when there is something to search for
        self._filter = ""  # the filter of the timeline, as typed
        self._before: tuple[str, int] | None = None  # the filter and the selected row before typing began
        self._sought = ""  # the filter whose matches `n` goes to
        self._said = ""  # the notice about the last key

    def compose(self) -> ComposeResult:
        """Yield the title, the timeline, the input line, the status line, and the line of keys."""
        yield Static(id="title", markup=False)
        yield self._timeline
        yield Prompt()
        yield Status()
        yield Keys()

    def on_mount(self) -> None:
        """Show the first rows immediately, then read on in a worker."""
        self._begun = time.monotonic()
        self.session.grow(SLICE)
        self._rows.follow = self.session.state == "live"
        self.watch(self._rows, "cursor", self._moved, init=False)
        self._focus_view()
        self._grown()
        self._grow()

    def on_unmount(self) -> None:
        """Close the model."""
        self.session.close()

    def on_resize(self, event: Resize) -> None:
        """Put the message beside or below the timeline; hide the line of keys on a low screen."""
        self.set_class(event.size.width >= _WIDE_SCREEN, "wide")
        self.set_class(event.size.height < _LOW_SCREEN, "low")

    @property
    def _rows(self) -> TimelineRows:
        return self._timeline.rows

    @property
    def _list(self) -> Rows:
        """The list of the shown view."""
        view = self._views[self._view]
        return view if isinstance(view, RowsOrNotice) else view.query_one(Rows)

    # Background work.

    @work
    async def _grow(self) -> None:
        """Read and search while the screen exists; update a live capture about twenty times per second."""
        shown, over = 0.0, False
        with suppress(NoMatches):  # the screen is being closed, widget by widget
            while self.is_attached:
                looked = time.monotonic()
                more = self._go_on()
                pause = _LOOK if self.session.index.state == "live" else _PROGRESS
                if self.session.complete:
                    self.session.index.look()  # it may still be deleted, or replaced
                    if not over:
                        over = True
                        await self._show_end()
                if not more or looked - shown > pause:
                    shown = looked
                    self._grown()
                await self._rest(0 if more else looked + pause - time.monotonic())

    async def _show_end(self) -> None:
        """Show the last rows; if the session has problems, and the user has not begun to look at it, show those."""
        self._grown()
        self._rows.follow = False
        touched = isinstance(self.app, Keyed) and self.app.pressed > self._begun
        if self._explain and not touched and self.session.sessions[0].problems.number:
            self._home = _PROBLEMS
            await self.action_view(_PROBLEMS)

    async def _rest(self, seconds: float) -> None:
        """Let keys and the screen be processed, for some seconds or until there is something to search for."""
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, BREATH)):
                await self._woken.wait()

    def _go_on(self) -> bool:
        """Work for as long as keys can wait. Returns whether there is more to do now."""
        rows, session = self._rows, self.session
        parts = (not session.complete) + (rows.selection.progress < 1) + bool(rows.hunt)
        seconds = slice_now(self.app) / max(parts, 1)
        more = session.grow(seconds)
        return rows.search(seconds) or more

    def _grown(self) -> None:
        for name in {_TIMELINE, self._view}:  # the timeline also searches while it is hidden
            self._views[name].grown()
        self._tell()

    # Notices.

    def _tell(self) -> None:
        """Update the title, the status line and the counts."""
        text = title_text(self.session, following=self._rows.follow)
        shown = self.query_one("#title", Static)
        if text != shown.content:
            shown.update(text, layout=False)
        self._tell_place()

    @on(TimelineView.Notice)
    def _tell_what_came(self, event: TimelineView.Notice) -> None:
        self._say(event.text)
        self._woken.set()

    def _tell_place(self) -> None:
        rows, shown = self._rows, self._list
        parts = [f"{shown.cursor + 1:,}/{shown.count():,}" if shown.count() else "no rows"]
        if shown is rows and rows.marked:
            parts.append(f"{len(rows.marked)} marked")
        if self._timeline.looking:
            parts.append("looking")
        self.query_one(Status).show(self._view, " · ".join(parts), self._said, len(self.session.held))
        progress = rows.selection.progress
        done = f" · {progress:.0%}" if progress < 1 else ""
        count = f"{rows.count():,} of {len(self.session):,}{done}"
        self.query_one(Prompt).count(count if self._filter else "")

    def _moved(self) -> None:
        """Clear the notice after the cursor has moved, because it has been read."""
        if not self._rows.follow:
            self._said = ""
        self._tell_place()

    def _say(self, text: str) -> None:
        self._said = text
        self._tell_place()

    # Filters and searches.

    async def action_prompt(self, kind: str) -> None:
        """Show the input line; for a filter or a search, also show the timeline."""
        if kind != "command":
            await self.action_view(_TIMELINE)
        self._before = self._before or (self._filter, self._rows.selected)
        prompt = self.query_one(Prompt)
        prompt.show(kind, {"filter": self._filter, "find": self._sought}.get(kind, ""))
        prompt.focus()

    @on(Prompt.Typed)
    def _typed(self) -> None:
        """Filter while the user types."""
        prompt = self.query_one(Prompt)
        if prompt.kind == "filter" and prompt.text.strip() == self._filter:
            prompt.tell("")
            return  # of keys that come together, the first applies the whole text, and the last come after Enter
        self._before = self._before or (self._filter, self._rows.selected)
        if prompt.kind == "filter":
            self._apply(prompt.text, self._before[1])
        elif prompt.kind == "find":
            self._parse(prompt.text)
        else:
            prompt.tell("")

    async def action_enter(self) -> None:
        """Apply the filter, search, or run the command, without the keys that are pressed after Enter."""
        prompt = self.query_one(Prompt)
        await prompt.settle()
        text = prompt.text.strip()
        try:
            command = commands.parse(text, COMMANDS) if prompt.kind == "command" else (prompt.kind, text)
            done = self._do(*command)
        except (UsageError, CaptureError) as error:
            prompt.tell(str(error))
            return
        if done:
            prompt.remember()
            self._close_prompt()

    @on(Prompt.Left)
    def _left(self) -> None:
        """Restore the previous filter and row."""
        filtered, selected = self._before or ("", 0)
        if filtered != self._filter:
            self._apply(filtered, selected)
        self._close_prompt()

    def _close_prompt(self) -> None:
        self._before = None
        prompt = self.query_one(Prompt)
        prompt.show("filter", self._filter)
        prompt.display = bool(self._filter)
        self._focus_view()
        self._tell_place()

    def _apply(self, text: str, selected: int) -> bool:
        """Filter the timeline; select the row on line `selected` if it matches. Returns whether the text is valid."""
        wanted = self._parse(text)
        if wanted is not None:
            self._filter = text.strip()
            self._rows.choose(wanted if self._filter else None, selected)
            self._woken.set()
            self._timeline.show_message()
            self._tell_place()
        return wanted is not None

    def _parse(self, text: str) -> Filter | None:
        """Return the parsed filter; None if the text is invalid, which the prompt then shows."""
        prompt = self.query_one(Prompt)
        try:
            wanted = parse(text, self.session.header.started)
        except FilterError as error:
            prompt.tell(str(error), error.column + max(prompt.text.find(text), 0))
            return None
        prompt.tell("")
        return wanted

    async def action_find_again(self, step: int) -> None:
        """Go to the next or the previous match; if there was no search yet, ask for one."""
        sought = self._sought or self._filter
        if not sought:
            await self.action_prompt("find")
            return
        if self._view != _TIMELINE:
            await self.action_view(_TIMELINE)
        self._timeline.find_again(sought, step)

    async def action_next_failure(self, step: int) -> None:
        """Go to the next failed request or row with a finding in the timeline, or to the previous one (`step` -1)."""
        await self.action_view(_TIMELINE)
        self._timeline.action_next_finding(step)

    # Keys and commands.

    def _do(self, command: str, argument: str) -> bool:
        """Run a command. Returns whether it is done. Raises UsageError."""
        match command:
            case "filter":
                valid = argument == self._filter or self._apply(argument, self._rows.selected)
                if valid and self._timeline.find_in_message(argument):
                    self._sought = argument
                return valid
            case "find":
                if self._parse(argument) is None:
                    return False
                self._sought = argument
                if argument:
                    self._timeline.find_from_here(argument)
            case "goto":
                found = destination(self.session, self._rows.selected, argument)
                self._jump(found.n)
                if found.says:
                    self._say(found.says)
            case "save":
                self.query_one(Detail).action_save()
            case "export" | "share":
                self.export(argument if command == "export" else f"share {argument}")
            case view if view in VIEWS:
                self.call_later(self.action_view, view)
            case _:
                common(self, command, argument)
        return True

    def export(self, argument: str) -> None:
        """Write the rows of the timeline in a format, or as a page to `share`: `FORMAT [FILE]`. Raises McpspyError."""
        selected = self.session.of(self._rows.place())[0] if self._rows.count() else self.session
        begin_export(self.app, requested(argument, self.session, selected, self._filter))

    @on(Jump)
    def _jump_to(self, event: Jump) -> None:
        """Show the frame that a view has requested in the timeline."""
        event.stop()
        self._jump(event.n)

    def _jump(self, n: int) -> None:
        rows, self._explain = self._rows, False
        rows.follow = False
        place = self.session.index.row_of(n)
        if place is not None and rows.selection.position(n) is None:
            self._apply("", n)
            self._close_prompt()
            own, there = self.session.of(place)
            self._say(f"the filter is removed, because it hid #{own.index.rows[there]}")
        at = rows.selection.position(n)
        if at is not None:
            rows.move_to(at)
        self.call_later(self.action_view, _TIMELINE)

    async def action_view(self, view: str) -> None:
        """Show a view; hidden views keep their state."""
        self._explain = False
        if view not in self._views:
            created = create(view, self.session)
            if created is None:
                await self._view_source(view)
                return
            self._views[view] = created
            await self.mount(self._views[view], before=self.query_one(Prompt))
            self._view = view
            self.watch(self._list, "cursor", self._tell_place, init=False)
        self._view = view
        for name, widget in self._views.items():
            widget.display = name == view
        self._focus_view()
        self._grown()

    async def _view_source(self, view: str) -> None:
        """Show a view of the selected frame's session on a separate screen."""
        if not self._rows.count():
            self._say("no messages so far")
            return
        try:
            session = OpenCapture(self.session.of(self._rows.place())[0].path)
        except CaptureError as error:  # it was deleted in the meantime
            self._say(str(error))
            return
        session.choose(self.session.clients)
        screen = SessionScreen(session, explain=False)
        await self.app.push_screen(screen)
        await screen.action_view(view)
        screen.tell_alone()

    def tell_alone(self) -> None:
        """Show a notice that this screen shows only one of the merged sessions."""
        self._say(f"of {printable(self.session.header.name, 40)} only; Esc twice goes back to all sessions")

    def action_clients(self) -> None:
        """Ask for clients, and check which tools they refuse."""

        def choose(clients: frozenset[str] | None) -> None:
            if clients is not None:
                self.session.choose(clients)
                self._woken.set()
                self._say(
                    f"checked for {clients_text(clients)}" if clients else "the limits of clients are not checked"
                )

        self.app.push_screen(ClientMenu(self.session.clients), choose)

    @on(Status.Clicked)
    async def _show_clicked(self, event: Status.Clicked) -> None:
        """Show the clicked view."""
        await self.action_view(event.view)

    def _focus_view(self) -> None:
        """Give the focus to the list of the view immediately, because the next key may already be pressed."""
        self.set_focus(self._list)

    def action_back(self) -> None:
        """Stop a search; in the timeline, remove the filter; else go back to the first view; then to the sessions."""
        in_timeline = self._view == _TIMELINE
        if self._timeline.looking:
            self._timeline.stop_looking()
            self._say("")
        elif in_timeline and not self._rows.has_focus:
            self._rows.focus()
        elif in_timeline and self._filter:
            self._apply("", self._rows.selected)
            self._close_prompt()
        elif self._view != self._home:
            self.call_later(self.action_view, self._home)
        else:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys that open the input line while text is typed in it, and Enter while none is typed."""
        typing = isinstance(self.focused, Input)
        wrong = (action == "prompt" and typing) or (action == "enter" and not typing)
        return False if wrong else super().check_action(action, parameters)
