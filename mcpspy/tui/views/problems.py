"""The view of the problems: what failed and why, and what to do about the selected problem."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.report.problems import cause_text, problem_lines
from mcpspy.report.words import FOLDS, MARKS
from mcpspy.text import plural
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.problem_lines import ProblemLine, ProblemLines
from mcpspy.tui.views.row_text import LOOKS, Face, cells
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, View, fit

_NAME = 16  # columns of the name of a session in a merge
_EDGES = 3  # columns of the padding of the explanation, and of its scroll bar
_CAUSE, _ROW = " " * 6, " " * 4


class ProblemsRows(RowsOrNotice):
    """The list. The selected line keeps its position on the screen when other problems come."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim", "view--error", "view--client", "view--server", *LOOKS}
    BINDINGS: ClassVar[list[BindingType]] = bindings("problems")

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._lines = ProblemLines(session)

    @property
    def selected(self) -> ProblemLine | None:
        """The entry under the cursor."""
        return self._lines.at(self.cursor) if len(self._lines) else None

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def nothing(self) -> str:
        """Return that there are no problems, and where else to look."""
        if not self._session.complete:
            return "no problems so far"
        found = sum(self._session.found.values())
        return "no request failed" + (f"; 2 shows {plural(found, 'finding')} in the messages" if found else "")

    def grown(self) -> None:
        """Show new problems."""
        self._rearrange(self._lines.arrange)

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a line depends on."""
        at = self._lines.at(place)
        row = self._row(at) if at.row else None
        return at.session.path, at.problem.headline, at.label, at.cause, at.row, row, self._lines.is_unfolded(at)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a headline, of a cause, or of a row as the timeline shows it."""
        at = self._lines.at(place)
        if at.cause:
            side = at.problem.side if at.label.startswith(at.problem.side) else ""
            colour = f"view--{side}" if side in ("client", "server") else "view--dim"
            room = width - len(_CAUSE) - len(at.label) - 2
            return [(_CAUSE, ""), (at.label, colour), (f": {fit(cause_text(at.cause), room)}", "view--dim")]
        if at.row:
            row = self._row(at)
            shown = cells(row, width - len(_ROW)) if row else [(f"#{at.row}", "view--dim")]
            return [(_ROW, ""), *shown]
        name = f"{fit(at.session.header.name, _NAME)}: " if isinstance(self._session, Merged) else ""
        sign = FOLDS[not self._lines.is_unfolded(at)] if at.problem.rows else " "
        return [
            (f"{sign} ", "view--dim"),
            (f"{MARKS['error']} ", "view--error"),
            (name, "view--dim"),
            (fit(at.problem.headline, width - 4 - cell_len(name)), ""),
        ]

    def _row(self, at: ProblemLine) -> Face | None:
        """Return the look of the row of a line; in a merge None before the row is merged."""
        place = self._session.index.row_of(self._lines.number(at, at.row))
        return None if place is None else Face(self._session.line(place), None, "", False, " ")

    def on_rows_chosen(self) -> None:
        """Show the row that proves a problem; of a problem that happened several times, its rows."""
        place = self.selected
        if place and not place.cause and not place.row and place.problem.count > 1:
            self.action_fold(not self._lines.is_unfolded(place))
        elif place and (number := self._lines.number(place, place.proof)):
            self.post_message(Jump(number))

    def action_fold(self, unfold: bool) -> None:
        """Fold or unfold the problem of the selected line."""
        place = self.selected
        if place:
            self._rearrange(lambda: self._lines.fold(place, unfold=unfold))

    def action_fold_all(self, unfold: bool) -> None:
        """Fold or unfold all problems."""
        self._rearrange(lambda: self._lines.fold_all(unfold=unfold))

    def _rearrange(self, change: Callable[[], None]) -> None:
        place, below = self.selected, self.cursor - self.scroll_offset.y
        change()
        RowsOrNotice.grown(self)
        if place:
            self.move_to(self._lines.line_of(place))
            self.scroll_to(y=self.cursor - below, animate=False)


class ProblemsView(View):
    """The list, and all about the selected problem."""

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """Yield the list and the explanation."""
        yield ProblemsRows(self._session)
        with VerticalScroll(id="problem", can_focus=False):
            yield Static(markup=False)

    def on_mount(self) -> None:
        """Update the explanation whenever the selection changes."""
        self.watch(self.query_one(ProblemsRows), "cursor", self._explain)

    def on_resize(self) -> None:
        """Wrap the explanation again, after its own size has changed."""
        self.call_after_refresh(self._explain)

    def grown(self) -> None:
        """Show new problems."""
        with suppress(NoMatches):  # before it is composed
            self.query_one(ProblemsRows).grown()
            self._explain()

    def _explain(self) -> None:
        place, shown = self.query_one(ProblemsRows).selected, self.query_one("#problem Static", Static)
        text = "\n".join(problem_lines(place.problem, self.size.width - _EDGES)) if place else ""
        if text != shown.content:
            shown.update(text)
