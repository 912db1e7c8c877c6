"""The view of what both sides said of themselves, in full; each line leads to the frame that tells it."""

from typing import ClassVar

from rich.cells import set_cell_size

from mcpspy.browse.timeline import OpenCapture
from mcpspy.text import wrapped
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.peers import Fact, facts
from mcpspy.tui.widgets.rows import Cell, Jump
from mcpspy.tui.widgets.view import RowsOrNotice, fit

_TITLE = 14  # columns of what stands before a text
_NARROW = 30  # columns of a view from which a text has less room than its title


class PeersView(RowsOrNotice):
    """The lines of what is known."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim", "view--heading", "view--client", "view--server"}

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._facts: list[Fact] = []
        self._wrapped: dict[tuple[str, int], list[str]] = {}  # by text and room
        self._lines: list[tuple[Fact, str]] = []  # the first line of a fact has its title

    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def nothing(self) -> str:
        """Never needed: both sides have a line from the beginning."""
        return ""

    def on_mount(self) -> None:
        """Show what is known."""
        self.grown()

    def on_resize(self) -> None:
        """Break the lines for the new width."""
        self._wrap()
        super().on_resize()

    def grown(self) -> None:
        """Show what was learned meanwhile."""
        found = list(facts(self._session))
        if found != self._facts:
            self._facts = found
            self._wrap()
        super().grown()

    def _wrap(self) -> None:
        """Break the texts into lines: those that stay are as they were, for a long one takes a while."""
        room = max(self.scrollable_content_region.width - self._indent - 1, 1)
        before, self._wrapped = self._wrapped, {}
        self._lines = []
        for fact in self._facts:
            key = fact.text, room
            lines = self._wrapped[key] = before.get(key) or list(wrapped(fact.text, room))
            self._lines += [
                (fact if not number else fact._replace(title=""), line) for number, line in enumerate(lines)
            ]

    @property
    def _indent(self) -> int:
        return _TITLE if self.scrollable_content_region.width >= _NARROW else 2

    def face(self, place: int) -> tuple[Fact, str]:
        """A line looks as what it says."""
        return self._lines[place]

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (lines are broken already)
        """A title, or a part of the facts."""
        fact, line = self._lines[place]
        if fact.heading:
            return [(fact.title, f"view--{fact.title}" if fact.title in ("client", "server") else "view--heading"),
                    (f" {line}" if line else "", "view--dim")]  # fmt: skip
        title = fit(fact.title, self._indent - 1)
        return [(set_cell_size(title, self._indent), "view--dim"), (line, "")]

    def on_rows_chosen(self) -> None:
        """Show the frame that tells it."""
        n = self._lines[self.cursor][0].n
        if n:
            self.post_message(Jump(n))
        else:
            self.app.bell()
