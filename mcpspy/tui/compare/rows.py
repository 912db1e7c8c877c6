"""Two values side by side, with a cursor: equal parts are folded, and keys move between the differences."""

from collections.abc import Hashable
from typing import ClassVar

from textual.binding import BindingType

from mcpspy.tui.compare.columns import CLASSES, ComparedRow, rows
from mcpspy.tui.model.comparison import DIFFERENT, MOST, ComparedLine, ComparisonOutline, Pairing
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.rows import Cell
from mcpspy.tui.widgets.view import RowsOrNotice


class ComparedRows(RowsOrNotice):
    """The rows of a comparison."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = bindings("compared values")

    def __init__(self) -> None:
        super().__init__()
        self.notice = ""
        """The text shown while there is no comparison."""
        self._outline: ComparisonOutline | None = None
        self._lines: list[ComparedLine] = []
        self._rows: list[ComparedRow] = []
        self._made = 0  # number of times that the rows were made
        self._width = 0

    def show(self, root: Pairing | None, notice: str = "") -> None:
        """Show a comparison, or a notice why there is none."""
        self.notice = notice
        self._outline = ComparisonOutline(root) if root else None
        self._again(None)
        self.refresh()

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def nothing(self) -> str:
        """Return why there are no rows."""
        return self.notice

    def face(self, place: int) -> Hashable:
        """Return a key that changes only when all rows are made again."""
        return self._made, place

    def cells(self, place: int, width: int) -> list[Cell]:  # noqa: ARG002 (the rows are made for this width)
        """Return the content of a row."""
        return self._rows[place].cells

    def on_resize(self) -> None:
        """Make the rows again if the width has changed."""
        if self._width != self.scrollable_content_region.width:
            self._again(self._line_at_cursor())

    def difference(self, step: int) -> bool:
        """Go to the next difference, or to the previous one (`step` -1). Returns whether there was one."""
        onward = [n for n in self._differences() if (n > self.cursor if step > 0 else n < self.cursor)]
        if onward:
            self.move_to(onward[0] if step > 0 else onward[-1])
        return bool(onward)

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold the line; if there is nothing to fold, go to the value that contains it."""
        at = self._line_at_cursor()
        line = self._lines[at] if at is not None else None
        if line and line.folded is not None and line.folded != folded:
            self._turn(line)
        elif line and folded:
            above = [n for n in range(at or 0) if self._lines[n].depth < line.depth]
            self._go(above[-1] if above else 0)

    def action_turn(self) -> None:
        """Fold or unfold the line."""
        at = self._line_at_cursor()
        if at is not None and self._lines[at].folded is not None:
            self._turn(self._lines[at])

    def action_everything(self) -> None:
        """Unfold or fold all equal parts."""
        at = self._line_at_cursor()
        if self._outline and at is not None:
            pairing = self._lines[at].pairing
            self._outline.show_everything(not self._outline.everything)
            self._make()
            self._go(next((n for n, line in enumerate(self._lines) if line.pairing is pairing), at))

    def _turn(self, line: ComparedLine) -> None:
        if self._outline:
            self._outline.turn(line)
            self._again(self._line_at_cursor())

    def _again(self, line: int | None) -> None:
        """Make the rows again; move the cursor to a line, or to the first difference."""
        self._make()
        if line is not None:
            self._go(line)
        else:
            self.scroll_to(y=0, animate=False)
            self.move_to(next(iter(self._differences()), 0))

    def _make(self) -> None:
        self._width = self.scrollable_content_region.width
        self._lines = self._outline.lines() if self._outline else []
        self._rows = rows(self._lines, self._width) if self._width else []
        if len(self._lines) == MOST:
            self._rows.append(ComparedRow(MOST - 1, [(f"  the first {MOST:,} lines are shown", "compare--dim")]))
        self._made += 1
        self.grown()

    def _go(self, line: int) -> None:
        self.move_to(next((n for n, row in enumerate(self._rows) if row.line == line), 0))

    def _line_at_cursor(self) -> int | None:
        return self._rows[self.cursor].line if self.cursor < len(self._rows) else None

    def _differences(self) -> list[int]:
        """Return the rows in which a difference begins."""
        found, before = [], -1
        for n, row in enumerate(self._rows):
            pairing = self._lines[row.line].pairing
            if row.line != before and pairing.differing and pairing.state in DIFFERENT:
                found.append(n)
            before = row.line
        return found
