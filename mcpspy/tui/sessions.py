"""The screen with the list of sessions, live ones first. It grows as sessions start; one or several can be opened.

Its rows are runs, which can be unfolded, and captures. If several sessions are opened in turn, one is shown at a time,
and `[` and `]` switch to another. These screens are installed in the application, so each keeps its state; they are
closed together.
"""

import asyncio
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Input, Static

from mcpspy.browse.library import Library, ListedCapture, chosen
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.listing import first_files, omitted
from mcpspy.capture.location import shown
from mcpspy.conversation.counts import client_label
from mcpspy.errors import CaptureError, UsageError
from mcpspy.report.words import MARKS
from mcpspy.rules import SEVERITIES
from mcpspy.text import age_text, plural, printable, size_text
from mcpspy.tui.compare import SessionsCompared
from mcpspy.tui.model import commands
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.run_rows import ListedRow, ListedRun, RunRows, RunSummary
from mcpspy.tui.model.sorting import SORTS
from mcpspy.tui.session import SessionScreen
from mcpspy.tui.views.table import COMMANDS
from mcpspy.tui.widgets.clipboard import copy
from mcpspy.tui.widgets.dialogs import Choice, CopyMenu
from mcpspy.tui.widgets.keys import Keys, bindings
from mcpspy.tui.widgets.prompt import Prompt, common
from mcpspy.tui.widgets.rows import BREATH, Cell, Sorted, fit, slice_now


class TurnScreen(SessionScreen):
    """The screen of one of the sessions; `turn` contains all screens, in their order."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("open sessions")

    def __init__(self, session: OpenCapture, turn: "list[TurnScreen]") -> None:
        super().__init__(session)
        self._turn = turn
        turn.append(self)

    def action_turn(self, step: int) -> None:
        """Show the next or the previous session; the first follows the last."""
        if len(self._turn) > 1:
            self.app.switch_screen(self._turn[(self._turn.index(self) + step) % len(self._turn)])

    def forget(self) -> None:
        """Remove the screen, whether it was ever shown or not."""
        self.app.uninstall_screen(self)
        self.close()
        if self.is_attached:
            self.remove()

    def close(self) -> None:
        """Close the file if the screen was never shown; otherwise the file is closed when the screen is removed."""
        if not self.is_mounted:
            self.session.close()


_AGE, _KIND, _PROBLEMS, _FRAMES, _FOUND = 11, 9, 8, 9, 4  # columns of each part of a row
_MANY, _ROOMY = 98, 148  # columns of a screen that is wide enough for activity; for sizes and commands
_LONGEST_CLIENT = 200  # characters of the name of a client
_HEIGHTS = " ▁▂▃▄▅▆▇█"


class ListLayout(NamedTuple):
    """The columns of the parts of a row that depend on the width; 0 if the part is omitted."""

    name: int
    activity: int
    size: int
    client: int

    @classmethod
    def of(cls, width: int) -> "ListLayout":
        """Return the layout for a width."""
        return cls(20, 12, 9, 20) if width >= _ROOMY else cls(16, 12, 0, 0) if width >= _MANY else cls(15, 0, 0, 0)


class SessionRows(Sorted):
    """One row for each run of several captures, and one for each capture that is not hidden in a folded run.

    Every row can be marked.
    """

    LIST = "sessions"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sessions--live", "sessions--dim", "sessions--errors", "sessions--warnings", "sessions--mark", "sessions--run",
        "sessions--activity",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("session list")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._made: tuple[object, ...] = ()  # the state that the rows were made from: changes, words, sorting
        self._selected = ("", False)
        self._runs = RunRows()
        self._summaries: dict[ListedRun, RunSummary] = {}  # as of the last look
        self.words = ""
        """The words that a shown capture must contain."""
        self.marked: set[str] = set()
        """The paths of marked captures."""

    @property
    def entries(self) -> list[ListedCapture]:
        """The captures that match, including those of folded runs."""
        return self._runs.captures

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._runs.rows)

    def row(self) -> ListedRow | None:
        """Return the selected row."""
        return self._runs.rows[self.cursor] if self.cursor < self.count() else None

    def entry(self) -> ListedCapture | None:
        """Return the selected capture; None if a run is selected."""
        row = self.row()
        return row.capture if row else None

    def marked_ones(self) -> list[ListedCapture]:
        """Return the marked captures that still exist, in the order of the list."""
        return [entry for entry in self._library.entries if entry.path in self.marked]

    def picked(self) -> list[ListedCapture]:
        """Return the marked captures; if none is marked, those of the selected run."""
        row = self.row()
        picked = self.marked_ones() or (row.captures if row and row.capture is None else [])
        return first_files(picked)

    def grown(self) -> None:
        """Show the current captures; the selected row stays selected, and keeps its place on the screen."""
        self._summaries.clear()
        made = (self._library.changes, self.words, self.by)
        counted = made != self._made or made[2] != SORTS[self.LIST][0]  # the order depends on counts
        self._made = made
        if counted and self._runs.choose(chosen(self._library.entries, self.words), self.by):
            self._keep_selected()
        else:
            self.rows_changed()

    def sort_rows(self) -> None:
        """Sort the rows; the selected one stays selected."""
        self.grown()
        self.rows_sorted()

    def _keep_selected(self) -> None:
        """Show changed rows, and keep the selection."""
        at = self._runs.place(self._selected)
        if at is not None and at != self.cursor:
            self.shift(at - self.cursor)
        self.rows_changed()
        self._keep_in_view()
        self._select()

    def watch_cursor(self, before: int, now: int) -> None:
        """Remember the selected row."""
        self._select()
        super().watch_cursor(before, now)

    def _select(self) -> None:
        row = self.row()
        self._selected = row.selected if row else ("", False)

    def _summary(self, run: ListedRun) -> RunSummary:
        if run not in self._summaries:
            self._summaries[run] = run.summary()
        return self._summaries[run]

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a row depends on."""
        row = self._runs.rows[place]
        entry, run = row.capture, row.run
        if entry is None:
            return (row.selected, row.sign, self._summary(run), run.process, _age(run.first), self._mark(row))
        counts, found = entry.counts, tuple(entry.found.values())
        known = (row.selected, row.sign, entry.size, counts.frames, entry.problems, found, entry.killed, counts.client)
        return (*known, _age(entry), self._mark(row))

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a row: mark, fold sign, then the columns of the heading."""
        row, layout = self._runs.rows[place], ListLayout.of(width)
        cells = self._run_cells(row, layout) if row.capture is None else self._cells(row, row.capture, layout)
        room = width - sum(cell_len(text) for text, _ in cells[:-1])
        text, style = cells[-1]
        return [*cells[:-1], (fit(text, room), style)]

    def _cells(self, row: ListedRow, entry: ListedCapture, layout: ListLayout) -> list[Cell]:
        header, counts = entry.header, entry.counts
        word, style = printable(header.transport, 5), "sessions--dim"
        if header.imported:
            word = "imported"
        elif entry.killed:
            word, style = "killed", "sessions--errors"
        frames = f"{counts.frames:,}" if not entry.uncounted else "uncounted"
        client, command = (
            fit(client_label(counts.client, header), layout.client or _LONGEST_CLIENT),
            " ".join(header.argv) or header.url or "",
        )
        last = [(_column(client, layout.client), ""), (command, "sessions--dim")] if layout.client else [(client, "")]
        return [
            *self._start(row, entry.live, _age(entry)),
            (_column(header.name, layout.name), ""),
            (_column(word, _KIND), style),
            *_numbers(entry.problems, frames, tuple(entry.found[severity] for severity in SEVERITIES)),
            (_column(activity_bar(entry.activity.over(layout.activity)), layout.activity), "sessions--activity"),
            (_column(size_text(entry.size), layout.size, right=True), "sessions--dim"),
            *last,
        ]

    def _run_cells(self, row: ListedRow, layout: ListLayout) -> list[Cell]:
        run, summary = row.run, self._summary(row.run)
        name, servers = summary.client or f"process {run.process}", plural(len(summary.servers), "server")
        killed = f"{summary.killed:,} killed"
        word = (killed, "sessions--errors") if summary.killed and not layout.activity else (servers, "")
        told = [killed] if summary.killed else []
        told += [plural(summary.turns, "turn")] if summary.turns else []
        about = f"{' · '.join(told)}: " if told else ""
        return [
            *self._start(row, summary.live, _age(run.first)),
            (_column(name, layout.name), "sessions--run"),
            (_column(word[0], _KIND), word[1]),
            *_numbers(summary.problems, f"{summary.frames:,}", summary.found),
            (_column("", layout.activity), ""),
            (_column(size_text(summary.size), layout.size, right=True), "sessions--dim"),
            (f"{about}{', '.join(summary.servers)}", "sessions--dim"),
        ]

    def _start(self, row: ListedRow, live: bool, age: str) -> list[Cell]:
        return [
            (self._mark(row), "sessions--mark"),
            (row.sign, "" if row.capture is None else "sessions--dim"),
            (_column("● live" if live else age, _AGE, right=True), "sessions--live" if live else "sessions--dim"),
        ]

    def _mark(self, row: ListedRow) -> str:
        """Return `*` if all captures of a row are marked, `+` if some are, else a space."""
        marked = sum(capture.path in self.marked for capture in row.captures)
        return "*" if marked == len(row.captures) else "+" if marked else " "

    def action_mark(self) -> None:
        """Mark or unmark the selected capture, or all captures of the selected run, and select the next row."""
        row = self.row()
        if row:
            paths = {capture.path for capture in row.captures}
            self.marked = self.marked - paths if paths <= self.marked else self.marked | paths
            self.refresh()
            self.action_move(1)

    def action_choose(self) -> None:
        """Fold or unfold the selected run, or open the selected capture."""
        row = self.row()
        if row and row.capture is None:
            self.action_unfold(not self._runs.is_unfolded(row.run))
        else:
            super().action_choose()

    def action_unfold(self, unfold: bool) -> None:
        """Unfold or fold the selected run."""
        row = self.row()
        if row and len(row.run.captures) > 1:
            self._runs.unfold(row.run, unfold=unfold)
            self._keep_selected()

    def action_unfold_all(self, unfold: bool) -> None:
        """Unfold or fold all runs."""
        self._runs.unfold_all(unfold=unfold)
        self._keep_selected()


def heading(width: int) -> str:
    """Return the names of the columns, for a list of the given width."""
    layout = ListLayout.of(width)
    names = [
        "  ",
        _column("started", _AGE, right=True),
        _column("server", layout.name),
        _column("kind", _KIND),
        _column("problems", _PROBLEMS, right=True),
        _column("frames", _FRAMES, right=True),
        _column("findings", 2 * _FOUND + 1, right=True),
        _column("activity", layout.activity),
        _column("size", layout.size, right=True),
        _column("client", layout.client) + "command" if layout.client else "client",
    ]
    return fit("".join(names), width)


def activity_bar(numbers: Sequence[int]) -> str:
    """Return numbers of messages as a bar: higher for more messages, blank for none."""
    most = max(numbers, default=0)
    return "".join(_HEIGHTS[-(-number * (len(_HEIGHTS) - 1) // most)] for number in numbers) if most else ""


def _column(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text in a column and the blank after it; empty if the column is omitted."""
    if not columns:
        return ""
    shown = fit(text, columns)
    blank = " " * (columns - cell_len(shown))
    return f"{blank}{shown} " if right else f"{shown}{blank} "


def _numbers(problems: int, frames: str, found: tuple[int, ...]) -> list[Cell]:
    """Return the cells with the numbers of problems, frames and findings."""
    severities = dict(zip(SEVERITIES, found, strict=True))
    return [
        (_column(f"{problems:,}" if problems else "", _PROBLEMS, right=True), "sessions--errors"),
        (_column(frames, _FRAMES, right=True), ""),
        (_found(severities["error"], "error"), "sessions--errors"),
        (_found(severities["warning"], "warning"), "sessions--warnings"),
    ]


def _age(entry: ListedCapture) -> str:
    return "● live" if entry.live else age_text(time.time() - entry.started)


def _found(number: int, severity: str) -> str:
    return _column(f"{MARKS[severity]}{number:,}" if number else "", _FOUND, right=True)


_LOOK = 0.5  # seconds between looks at the directory
_REDRAWN = 0.2  # seconds between redraws while there is much to count
_BEFORE_DRAWN = 0.1  # seconds of work before the first drawing
_BEGINNINGS = (
    ("i", "mcpspy install", "list your clients; with CLIENT, wrap all its servers"),
    ("w", "mcpspy wrap -- COMMAND", "one server on stdio: put this in place of COMMAND"),
    ("p", "mcpspy proxy URL", "one server over HTTP: give your client the printed URL"),
    ("d", "mcpspy demo", "a session to look at"),
)
"""How captures come to be: a key to copy the command, the command, and what it records."""


class SessionsScreen(Screen[None]):
    """The first screen, on which you choose one or several sessions."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("sessions")

    def __init__(self, targets: list[str]) -> None:
        super().__init__()
        self._library = Library(targets)
        self._turn: list[TurnScreen] = []  # the sessions opened in turn
        self._where = ", ".join(printable(shown(target), 200) for target in targets)

    def compose(self) -> ComposeResult:
        """Yield a title, the list or a hint how to fill it, the input line, and the line of keys."""
        yield Static(id="title", markup=False)
        yield Static(id="columns", markup=False)
        yield SessionRows(self._library)
        ways = "".join(f"  {command:<24}{what}\n" for _, command, what in _BEGINNINGS)
        yield Static(
            f"No captures in {self._where} yet.\n\n"
            f"They appear here when a server runs behind mcpspy:\n\n{ways}\n"
            "Press y to copy one of these commands.",
            id="empty",
            markup=False,
        )
        yield Static(id="omitted", markup=False)
        yield Prompt()
        yield Keys()

    def on_mount(self) -> None:
        """Look for captures now, and then repeatedly."""
        self._library.look()
        self._library.grow(_BEFORE_DRAWN)
        self._show()
        self.query_one(SessionRows).focus()
        self._follow()

    def on_screen_resume(self) -> None:
        """Close the sessions that were opened in turn."""
        for screen in self._turn:
            screen.forget()
        self._turn.clear()

    def on_unmount(self) -> None:
        """Close the files of sessions that were opened in turn but never shown."""
        for screen in self._turn:
            screen.close()

    @work
    async def _follow(self) -> None:
        """Look at the captures while the screen is visible, and count their content in small steps."""
        looked = shown = 0.0
        with suppress(NoMatches):  # the screen is being closed, widget by widget
            while self.is_attached:
                now, more = time.monotonic(), False
                if self.is_current:
                    if now - looked > _LOOK:
                        looked = now
                        self._library.look()
                    more = self._library.grow(slice_now(self.app))
                    if not more or now - shown > _REDRAWN:
                        shown = now
                        self._show()
                await asyncio.sleep(BREATH if more else _LOOK)

    def _show(self) -> None:
        rows = self.query_one(SessionRows)
        rows.grown()
        entries = self._library.entries
        if rows.display != bool(entries):
            rows.display = bool(entries)
            self.refresh_bindings()
        self.query_one("#empty").display = not entries
        self._show_heading()
        live = sum(entry.live for entry in entries)
        parts = ["mcpspy", f"{plural(len(entries), 'session')}, {live} live", self._where]
        if marked := len(rows.marked_ones()):
            parts.insert(2, f"{marked} marked")
        self.query_one("#title", Static).update(" · ".join(parts), layout=False)
        self._tell_omitted()
        if rows.words:
            self.query_one(Prompt).count(f"{len(rows.entries):,} of {len(entries):,}")

    @on(Sorted.Resorted)
    def _show_heading(self) -> None:
        rows, shown = self.query_one(SessionRows), self.query_one("#columns", Static)
        text = rows.by.marked(heading(rows.scrollable_content_region.width), "server") if rows.display else ""
        if text != shown.content:
            shown.update(text, layout=False)

    def on_resize(self) -> None:
        """Fit the heading to the width of the list."""
        self.call_after_refresh(self._show_heading)

    def _tell_omitted(self) -> None:
        text = fit(omitted(self._library.refused), self.size.width - 2)
        line = self.query_one("#omitted", Static)
        if text != line.content:
            line.update(text)
            line.display = bool(text)

    # Typed text: words to search for, and commands.

    def action_prompt(self, kind: str) -> None:
        """Show the input line, for a filter or a command."""
        prompt = self.query_one(Prompt)
        prompt.show(kind, self.query_one(SessionRows).words if kind == "filter" else "")
        prompt.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys that open the input line while text is typed in it, and `y` unless the list is empty."""
        typing = action == "prompt" and isinstance(self.focused, Input)
        listed = action == "copy" and bool(self._library.entries)
        return False if typing or listed else super().check_action(action, parameters)

    def action_all(self) -> None:
        """Show all sessions; if all are shown already, unmark all."""
        rows = self.query_one(SessionRows)
        if not rows.words:
            rows.marked.clear()
        self._search("")
        self._close_prompt()

    @on(Prompt.Typed)
    def _typed(self) -> None:
        prompt = self.query_one(Prompt)
        if prompt.kind == "filter":
            self._search(prompt.text)
        else:
            prompt.tell("")

    @on(Prompt.Entered)
    def _entered(self) -> None:
        prompt = self.query_one(Prompt)
        if prompt.kind == "command":
            try:
                self._do(*commands.parse(prompt.text, COMMANDS))
            except UsageError as error:
                prompt.tell(str(error))
                return
        prompt.remember()
        self._close_prompt()

    def _do(self, command: str, argument: str) -> None:
        if not common(self, command, argument):
            raise UsageError(f"{command} works in a session only: Enter opens the selected one")

    @on(Prompt.Left)
    def _left(self) -> None:
        if self.query_one(Prompt).kind == "filter":
            self._search("")
        self._close_prompt()

    def _search(self, words: str) -> None:
        self.query_one(SessionRows).words = words
        self._show()

    def _close_prompt(self) -> None:
        rows, prompt = self.query_one(SessionRows), self.query_one(Prompt)
        prompt.show("filter", rows.words)
        prompt.display = bool(rows.words.strip())
        rows.focus()

    def action_copy(self) -> None:
        """Ask which of the commands that make captures to copy, and copy it."""

        def chosen(choice: Choice | None) -> None:
            if choice:
                self.notify(f"copied {choice[1]}, {copy(self.app, choice[2]())}", markup=False)

        choices: list[Choice] = [(key, command, partial(str, command)) for key, command, _ in _BEGINNINGS]
        self.app.push_screen(CopyMenu(choices), chosen)

    # Opening sessions.

    def on_rows_chosen(self) -> None:
        """Open the selected session."""
        entry = self.query_one(SessionRows).entry()
        for session in self._open([entry] if entry else []):
            self.app.push_screen(SessionScreen(session))

    def action_merge(self) -> None:
        """Open the marked sessions, or those of the selected run, merged by time."""
        sessions = self._open(self._picked())
        if sessions:
            self.app.push_screen(SessionScreen(Merged(sessions)))

    def action_view(self) -> None:
        """Open the marked sessions, or those of the selected run, to view them in turn."""
        for session in self._open(self._picked()):
            self.app.install_screen(TurnScreen(session, self._turn), f"turn {len(self._turn)}")
        if self._turn:
            self.app.push_screen(self._turn[0])

    def action_compare(self) -> None:
        """Compare two marked sessions, or those of the selected run."""
        picked = self.query_one(SessionRows).picked()
        if len(picked) != 2:
            many = f", not {len(picked)}" if len(picked) > 2 else ""
            text = f"d compares two sessions{many}: mark two with the space bar"
            self.notify(text, severity="warning", markup=False)
        else:
            self.app.push_screen(SessionsCompared(*((entry.path, entry.header) for entry in picked)))

    def _picked(self) -> list[ListedCapture]:
        picked = self.query_one(SessionRows).picked()
        if len(picked) < 2:
            self.notify("select a run, or mark two sessions with the space bar", severity="warning", markup=False)
            return []
        return picked

    def _open(self, entries: list[ListedCapture]) -> list[OpenCapture]:
        """Open captures; if one cannot be opened (it may be deleted), open none and report the error."""
        opened: list[OpenCapture] = []
        try:
            opened.extend(OpenCapture(entry.path) for entry in entries)
        except CaptureError as error:
            for session in opened:
                session.close()
            self.notify(printable(str(error), 300), severity="error", markup=False)
            return []
        return opened
