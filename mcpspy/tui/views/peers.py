"""The view of everything that both sides declare about themselves; Enter shows the frame with the declaration."""

from typing import ClassVar

from rich.cells import set_cell_size

from mcpspy.browse.timeline import OpenCapture
from mcpspy.text import wrapped
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.peers import Fact, facts
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, fit

_TITLE = 14  # columns of the title before a text
_NARROW = 30  # minimum columns of a view for titles of full width


class PeersView(RowsOrNotice):
    """The lines of the facts."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim", "view--heading", "view--client", "view--server"}

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._facts: list[Fact] = []
        self._wrapped: dict[tuple[str, int], list[str]] = {}  # by text and columns
        self._lines: list[tuple[Fact, str]] = []  # only the first line of a fact has its title

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def nothing(self) -> str:
        """Return nothing: both sides always have a line."""
        return ""

    def on_mount(self) -> None:
        """Show the known facts."""
        self.grown()

    def on_resize(self) -> None:
        """Wrap the texts to the new width."""
        self._wrap()
        super().on_resize()

    def grown(self) -> None:
        """Show new facts."""
        found = list(facts(self._session))
        if found != self._facts:
            self._facts = found
            self._wrap()
        super().grown()

    def _wrap(self) -> None:
        """Wrap the texts into lines; unchanged texts are cached, because wrapping a long text is slow."""
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
        """Return the state that the look of a line depends on."""
        return self._lines[place]

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (lines are wrapped already)
        """Return the cells of a heading, or of a line of a fact."""
        fact, line = self._lines[place]
        if fact.heading:
            return [(fact.title, f"view--{fact.title}" if fact.title in ("client", "server") else "view--heading"),
                    (f" {line}" if line else "", "view--dim")]  # fmt: skip
        title = fit(fact.title, self._indent - 1)
        return [(set_cell_size(title, self._indent), "view--dim"), (line, "")]

    def on_rows_chosen(self) -> None:
        """Show the frame that states the fact."""
        n = self._lines[self.cursor][0].n
        if n:
            self.post_message(Jump(n))
        else:
            self.app.bell()
