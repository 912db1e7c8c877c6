"""The view of the tools of several sessions: their total cost in a model's context, and duplicates."""

from collections.abc import Hashable
from typing import ClassVar, NamedTuple

from rich.cells import set_cell_size
from textual.binding import BindingType

from mcpspy.browse.timeline import OpenCapture
from mcpspy.cost import tokens, tokens_text
from mcpspy.overview import ToolUse, duplicates
from mcpspy.rules import Finding
from mcpspy.text import plural
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.session.views.limits import limit_mark, limits_text
from mcpspy.tui.session.views.row_text import SOURCES
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, fit

_SESSION = 14  # columns of the name of a session
_FIGURES = {"context": 8, "calls": 7, "errors": 7, "result": 8}
_HEAD = 3  # rows above the tools


class ServerTool(NamedTuple):
    """A tool and its session."""

    which: int
    """The number of its session in the merge."""
    server: str
    tool: ToolUse
    listed: bool


class MergedToolsView(RowsOrNotice):
    """A row for each tool of each session, below the totals."""

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
        return _HEAD + len(self._tools)

    def nothing(self) -> str:
        """Return nothing: the table always has a heading."""
        return ""

    def grown(self) -> None:
        """Show the current tools."""
        self._find()
        super().grown()

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
        if place < _HEAD:
            return self._sums() if place == 0 else place
        it = self._tools[place - _HEAD]
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
        room = max(width - _SESSION - sum(_FIGURES.values()), 0)
        name, other = (room, 0) if room < 40 else (room * 2 // 5, room - room * 2 // 5)
        if place < _HEAD - 1:
            return [(fit((self._sums(), self._limits())[place], width), "")]
        if place == _HEAD - 1:
            titles = "".join(f"{title:>{columns}}" for title, columns in _FIGURES.items())
            heading = (
                f"{'session':<{_SESSION}}  {'tool':<{max(name - 2, 0)}}{titles}{'  also on other servers'[:other]}"
            )
            return [(heading[:width], "view--heading")]
        it = self._tools[place - _HEAD]
        figures = [f"{text:>{columns}}" for text, columns in zip(self._figures(it), _FIGURES.values(), strict=True)]
        shared = self._shared.get((it.server, it.tool.name), "")
        return [
            (set_cell_size(fit(it.server, _SESSION - 1), _SESSION), f"timeline--source{it.which % SOURCES}"),
            limit_mark(self._refused(it)),
            (set_cell_size(fit(it.tool.name or "(no name)", name - 3), max(name - 2, 0)), ""),
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
        it = self._tools[self.cursor - _HEAD] if self.cursor >= _HEAD else None
        line = (*(found.frame for found in self._refused(it)), it.tool.listed or it.tool.called)[0] if it else 0
        n = self._merged.number(self._merged.sessions[it.which], line) if it else 0
        if n:
            self.post_message(Jump(n))
        else:
            self.app.bell()


def _told(session: OpenCapture) -> tuple[int, int]:
    listing = session.announced.listings.get("tools")
    return len(session.announced.tools), listing.n if listing else 0
