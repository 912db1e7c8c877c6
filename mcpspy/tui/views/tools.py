"""The views of the tools of a server, and of several servers: their cost in a model's context, and their calls.

If clients are chosen (P-01), the tools that they refuse are marked, and the reason is shown below the list. The tools
of several sessions have their total cost, and duplicates.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.cost import tokens, tokens_text
from mcpspy.overview import OTHERS, Announced, ToolUse, duplicates
from mcpspy.report.words import MARKS
from mcpspy.rules import RULES, Finding, worst
from mcpspy.text import duration_text, fitted_name, plural, printable, size_text
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.sorting import SortColumn
from mcpspy.tui.views.row_text import SOURCES
from mcpspy.tui.widgets.dialogs import clients_text
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, Sorted, View, column, fit


def limit_mark(refused: Sequence[Finding]) -> Cell:
    """Return the mark before a tool: the worst severity for the chosen clients."""
    severity = worst(refused)
    return f"{MARKS[severity] if severity else ' '} ", f"view--{severity}" if severity else ""


def limits_text(clients: frozenset[str], refused: Sequence[Sequence[Finding]]) -> str:
    """Return the chosen clients, and how many listed tools break a limit; `refused` has an element for each tool."""
    return f"{clients_text(clients)}: {sum(map(bool, refused)):,} of {plural(len(refused), 'tool')} break one"


_TOOL_NAME = 12  # minimum columns for the name of a tool
_SENTENCE_TITLE = 13  # columns of the title before a sentence
_HEADING = "tool"
_LIMITS = "limits of"
_LONGEST_SENTENCE = 1000  # maximum characters of a sentence
_COLUMNS = (
    ("definition", 11), ("context", 8), ("calls", 7), ("errors", 7), ("found", 7), ("result", 8), ("p50", 10),
    ("p95", 10), ("max", 10), ("largest", 9),
)  # fmt: skip
"""The columns of the table after the name, with their widths; the last ones are omitted if they do not fit. The tokens
of the definition, of the mean result and of the largest result are estimates."""


class Announcement(NamedTuple):
    """A line above the tools."""

    title: str
    text: str = ""
    n: int = 0
    """The line number of the frame that states it; 0 if there is none."""


def sayings(session: OpenCapture) -> Iterator[Announcement]:
    """Yield the lines above the tools: the cost of their definitions, the limits that are checked, and the heading."""
    listing = session.announced.listings.get("tools")
    if listing:
        yield Announcement("tools", _cost_text(session.announced), listing.n)
    if session.clients:
        refused = session.refusals.listing
        yield Announcement(_LIMITS, _limits_text(session), refused[-1].frame if refused else 0)
    if listing or session.clients:
        yield Announcement("")
    yield Announcement(_HEADING)


def _cost_text(announced: Announced) -> str:
    """Return the size and cost of the listed tools, and how many were never called."""
    listed = [tool for tool in announced.tools.values() if announced.is_current(tool)]
    alone = [tool for tool in listed if tool.name != OTHERS]
    count = announced.listings["tools"].count if len(alone) < len(listed) else len(listed)
    never = sum(not tool.calls for tool in alone)
    cost = f"{tokens_text(sum(tool.context for tool in listed))} tokens of a model's context"
    size = size_text(sum(tool.size for tool in listed))
    of = f" of the first {len(alone):,}" if len(alone) < len(listed) else ""
    return f"{plural(count, 'tool')}, {size}, {cost}" + (f"; {never:,}{of} never called" if never else "")


def _limits_text(session: OpenCapture) -> str:
    """Return the chosen clients, and how many of the listed tools break their limits."""
    tools, refusals = session.announced.tools.items(), session.refusals
    refused = [refusals.tools.get(name, []) for name, tool in tools if session.announced.is_current(tool)]
    return limits_text(session.clients, refused) + (", and the list as a whole" if refusals.listing else "")


def _sorted(tools: Iterable[ToolUse], column: SortColumn) -> list[ToolUse]:
    """Return tools sorted by a column, in the order of their listing as far as they are equal."""
    return sorted(tools, key=_VALUES[column.name], reverse=column.falling)


_VALUES: dict[str, Callable[[ToolUse], Any]] = {
    "listing": lambda _: 0,
    "name": lambda tool: tool.name,
    "calls": lambda tool: tool.calls,
    "errors": lambda tool: tool.errors,
    "latency": lambda tool: tool.latencies.longest,
    "context": lambda tool: tool.context,
}
"""The value of a tool for each column of its `SORTS`."""


class ToolsRows(Sorted, RowsOrNotice):
    """The rows; Enter shows the frame that belongs to a row."""

    LIST = "tools"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--heading",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("client limits")

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session
        self._said = list(sayings(session))
        self._tools = list(session.announced.tools.values())  # as they are sorted

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._said) + len(self._tools)

    def nothing(self) -> str:
        """Return nothing: the table always has a heading."""
        return ""

    def grown(self) -> None:
        """Show the current tools; the selected row stays in place on the screen."""
        selected, below = self._at(self.cursor), self.cursor - self.scroll_offset.y
        self._tools = _sorted(self._session.announced.tools.values(), self.by)
        more, self._said = len(self._said), list(sayings(self._session))
        more = len(self._said) - more
        super().grown()
        if more or selected is not self._at(self.cursor):
            titles = [said.title for said in self._said]
            if isinstance(selected, ToolUse):
                self.move_to(len(titles) + next(at for at, tool in enumerate(self._tools) if tool is selected))
            else:
                self.move_to(titles.index(selected.title) if selected.title in titles else self.cursor + more)
            self.scroll_to(y=self.cursor - below, animate=False)

    def sort_rows(self) -> None:
        """Sort the tools; the selected row stays selected."""
        self.grown()
        self.rows_sorted()

    def _at(self, place: int) -> Announcement | ToolUse:
        said = len(self._said)
        return self._said[place] if place < said else self._tools[place - said]

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a row depends on."""
        at = self._at(place)
        if isinstance(at, Announcement):
            return at, self.by
        current = self._session.announced.is_current(at)
        return (
            at.name,
            at.context,
            at.calls,
            at.errors,
            at.found,
            at.answers,
            at.latencies.longest,
            current,
            self._mark(at),
        )

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a sentence, of the heading, or of a tool."""
        at = self._at(place)
        columns = _fitting(width)
        room = width - sum(columns.values())
        if isinstance(at, ToolUse):
            mark = self._mark(at)
            room -= len(mark[0])
            name = set_cell_size(fitted_name(at.name or "(no name)", room), room)
            return [mark, (name, ""), *self._figures(at, columns)]
        if at.title == _HEADING:
            names = "".join(f"{name:>{columns[name]}}" for name in columns)
            return [(self.by.marked(set_cell_size(_HEADING, room) + names, _HEADING), "view--heading")]
        return [(f"{at.title:<{_SENTENCE_TITLE}}", "view--dim"), (fit(at.text, width - _SENTENCE_TITLE), "")]

    @property
    def refused(self) -> list[Finding]:
        """The findings of the chosen clients about the selected row."""
        at = self._at(self.cursor)
        if isinstance(at, ToolUse):
            return self._session.refusals.tools.get(at.name, [])
        return self._session.refusals.listing if at.title == _LIMITS else []

    def _mark(self, tool: ToolUse) -> Cell:
        """Return the mark before a tool; empty if no clients are chosen."""
        return limit_mark(self._session.refusals.tools.get(tool.name, ())) if self._session.clients else ("", "")

    def _figures(self, tool: ToolUse, columns: dict[str, int]) -> Iterator[Cell]:
        """Yield the cell of each column; the latencies are those of the answered calls."""
        current = self._session.announced.is_current(tool)
        latencies = list(map(duration_text, tool.latencies.quantiles(0.5, 0.95, 1))) or [""] * 3
        figures = [
            (
                size_text(tool.size) if current else "gone" if tool.listed else "not listed",
                "" if current else "view--dim",
            ),
            (f"{tokens(tool.context):,}" if current else "", "" if current else "view--dim"),
            (f"{tool.calls:,}" if tool.calls else "never" if current else "", "" if tool.calls else "view--dim"),
            (f"{tool.errors:,}" if tool.errors else "", "view--error"),
            (f"{tool.found:,}" if tool.found else "", "view--warning"),
            (f"{tokens(tool.mean):,}" if tool.answers else "", ""),
            *((text, "") for text in latencies),
            (f"{tokens(tool.largest):,}" if tool.answers else "", ""),
        ]
        for (text, colour), room in zip(figures, columns.values(), strict=False):
            yield f"{text:>{room}}", colour

    def on_rows_chosen(self) -> None:
        """Show a finding about the tool, else its newest listing, else its first call; for a line, its frame."""
        at = self._at(self.cursor)
        refused = [finding.frame for finding in self.refused]
        n = at.n if isinstance(at, Announcement) else (*refused, at.listed or at.called)[0]
        if n:
            self.post_message(Jump(n))
        else:
            self.app.bell()


class ToolsView(View):
    """The rows, and below them why the chosen clients refuse the selected tool."""

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """Yield the rows and the explanation."""
        yield ToolsRows(self._session)
        yield Static(id="explanation", markup=False)

    def on_mount(self) -> None:
        """Update the explanation whenever the selection changes."""
        self.watch(self.query_one(ToolsRows), "cursor", self._explain)

    def grown(self) -> None:
        """Show the current tools."""
        with suppress(NoMatches):  # before it is composed
            self.query_one(ToolsRows).grown()
            self._explain()

    def _explain(self) -> None:
        shown = self.query_one("#explanation", Static)
        shown.display = bool(self._session.clients)
        shown.update("\n".join(_reasons(self.query_one(ToolsRows).refused)), layout=False)


def _reasons(refused: list[Finding]) -> Iterator[str]:
    """Yield why something is refused, and what to do about it."""
    for finding in refused:
        yield f"{MARKS[finding.severity]} {printable(finding.message, _LONGEST_SENTENCE)}"
        yield from (f"  {title}: {text}" for title, text in RULES[finding.rule].advice(finding.blame))
    if not refused:
        yield "no tool exceeds a limit of the chosen clients (docs/compat.md lists the limits)"


def _fitting(width: int) -> dict[str, int]:
    """Return the columns of the table that fit, with their widths."""
    found, room = {}, width - _TOOL_NAME
    for name, columns in _COLUMNS:
        room -= columns
        if room < 0:
            break
        found[name] = columns
    return found


_SESSION = 14  # columns of the name of a session
_MERGED_FIGURES = {"context": 8, "calls": 7, "errors": 7, "result": 8}
_MERGED_HEAD = 3  # rows above the tools


class ServerTool(NamedTuple):
    """A tool and its session."""

    which: int
    """The number of its session in the merge."""
    server: str
    tool: ToolUse
    listed: bool


class MergedToolsView(Sorted, RowsOrNotice):
    """A row for each tool of each session, below the totals."""

    LIST = "tools"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--heading",
        *(f"timeline--source{number}" for number in range(SOURCES)),
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings("client limits")

    def __init__(self, merged: Merged) -> None:
        super().__init__()
        self._merged = merged
        self._tools: list[ServerTool] = []
        self._seen: list[tuple[int, int]] = []  # by session: number of tools, and line of the newest listing
        self._shared: dict[tuple[str, str], str] = {}  # by server and tool: the tools that it can be confused with
        self._find()

    def count(self) -> int:
        """Return the number of rows."""
        return _MERGED_HEAD + len(self._tools)

    def nothing(self) -> str:
        """Return nothing: the table always has a heading."""
        return ""

    def grown(self) -> None:
        """Show the current tools; the selected row stays selected."""
        selected = self._tools[self.cursor - _MERGED_HEAD].tool if self.cursor >= _MERGED_HEAD else None
        self._find()
        self._tools.sort(key=lambda it: it.which)  # the order of their listing, in each session
        self._tools.sort(key=lambda it: _VALUES[self.by.name](it.tool), reverse=self.by.falling)
        super().grown()
        if selected:
            at = next(at for at, it in enumerate(self._tools) if it.tool is selected)
            self.shift(at + _MERGED_HEAD - self.cursor)

    def sort_rows(self) -> None:
        """Sort the tools; the selected one stays selected."""
        self.grown()
        self.rows_sorted()

    def _find(self) -> None:
        """Update the tools and their duplicates, if they have changed."""
        seen = [_told(session) for session in self._merged.sessions]
        if seen == self._seen:
            return
        self._seen = seen
        self._tools = [
            ServerTool(which, session.header.name, tool, session.announced.is_current(tool))
            for which, session in enumerate(self._merged.sessions)
            for tool in session.announced.tools.values()
        ]
        listed = [(it.server, [it.tool]) for it in self._tools if it.listed]
        self._shared = {}
        for group in duplicates(listed):
            for server, name in group.tools:
                others = ", ".join(f"{of} {it}" if it != name else of for of, it in group.tools if of != server)
                told = f"{'the same' if group.identical else 'same name'} in {others}"
                self._shared.setdefault((server, name), told)

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a row depends on."""
        if place < _MERGED_HEAD:
            return self._sums() if place == 0 else (place, self.by)
        it = self._tools[place - _MERGED_HEAD]
        return (
            it.which,
            it.server,
            it.tool.name,
            it.listed,
            *self._figures(it),
            self._shared.get((it.server, it.tool.name)),
        )

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of the totals, of the limits, of the heading, or of a tool."""
        room = max(width - _SESSION - sum(_MERGED_FIGURES.values()), 0)
        name, other = (room, 0) if room < 40 else (room * 2 // 5, room - room * 2 // 5)
        if place < _MERGED_HEAD - 1:
            return [(fit((self._sums(), self._limits())[place], width), "")]
        if place == _MERGED_HEAD - 1:
            titles = "".join(f"{title:>{columns}}" for title, columns in _MERGED_FIGURES.items())
            heading = (
                f"{'session':<{_SESSION}}  {'tool':<{max(name - 2, 0)}}{titles}{'  also on other servers'[:other]}"
            )
            return [(self.by.marked(heading, _HEADING)[:width], "view--heading")]
        it = self._tools[place - _MERGED_HEAD]
        figures = [
            f"{text:>{columns}}" for text, columns in zip(self._figures(it), _MERGED_FIGURES.values(), strict=True)
        ]
        shared = self._shared.get((it.server, it.tool.name), "")
        return [
            (column(it.server, _SESSION), f"timeline--source{it.which % SOURCES}"),
            limit_mark(self._refused(it)),
            (set_cell_size(fitted_name(it.tool.name or "(no name)", max(name - 3, 0)), max(name - 2, 0)), ""),
            (figures[0], "" if it.listed else "view--dim"),
            (figures[1], "" if it.tool.calls else "view--dim"),
            (figures[2], "view--error"),
            (figures[3], ""),
            (fit(f"  {shared}", other) if shared else "", "view--warning"),
        ]

    def _sums(self) -> str:
        """Return the totals: tools, cost, and how many were never called or exist on several servers."""
        listed = [it for it in self._tools if it.listed]
        servers = len({it.server for it in listed})
        cost = tokens_text(sum(it.tool.context for it in listed))
        never = sum(not it.tool.calls for it in listed)
        parts = [
            f"{plural(len(listed), 'tool')} of {plural(servers, 'server')}, {cost} tokens of a model's context",
            f"{never:,} never called" if never else "",
            f"{len(self._shared):,} also on another server" if self._shared else "",
        ]
        return "; ".join(filter(None, parts))

    def _limits(self) -> str:
        """Return the clients whose limits are checked, and how many tools break a limit."""
        if not self._merged.clients:
            return ""
        refused = [self._refused(it) for it in self._tools if it.listed]
        return f"limits of {limits_text(self._merged.clients, refused)}"

    def _refused(self, it: ServerTool) -> list[Finding]:
        return self._merged.sessions[it.which].refusals.tools.get(it.tool.name, [])

    def _figures(self, it: ServerTool) -> list[str]:
        tool = it.tool
        return [
            f"{tokens(tool.context):,}" if it.listed else "gone" if tool.listed else "-",
            f"{tool.calls:,}" if tool.calls else "never" if it.listed else "",
            f"{tool.errors:,}" if tool.errors else "",
            f"{tokens(tool.mean):,}" if tool.answers else "",
        ]

    def on_rows_chosen(self) -> None:
        """Show a finding about the tool, else its newest listing, else its first call, in the timeline."""
        it = self._tools[self.cursor - _MERGED_HEAD] if self.cursor >= _MERGED_HEAD else None
        line = (*(found.frame for found in self._refused(it)), it.tool.listed or it.tool.called)[0] if it else 0
        n = self._merged.number(self._merged.sessions[it.which], line) if it else 0
        if n:
            self.post_message(Jump(n))
        else:
            self.app.bell()


def _told(session: OpenCapture) -> tuple[int, int]:
    listing = session.announced.listings.get("tools")
    return len(session.announced.tools), listing.n if listing else 0
