"""The view of the findings: a foldable list by rule and responsible side, and details of the selected line."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.widgets import Static

from mcpspy.browse.findings import Group, Outline, OutlineLine, about
from mcpspy.browse.timeline import OpenCapture
from mcpspy.report.words import FOLDS, MARKS
from mcpspy.rules import RULES
from mcpspy.text import printable
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, View

_WIDE = 100  # minimum columns for the summary of a rule


class FindingsRows(RowsOrNotice):
    """The list. The selected line keeps its position on the screen when the order of the groups changes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "view--dim", "view--error", "view--warning", "view--info", "view--client", "view--server", "view--count",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("findings"), *bindings("client limits")]

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session
        self.outline = Outline(session.findings.groups.values())

    @property
    def selected(self) -> OutlineLine | None:
        """The entry under the cursor."""
        return self.outline.at(self.cursor) if len(self.outline) else None

    def count(self) -> int:
        """Return the number of lines."""
        return len(self.outline)

    def nothing(self) -> str:
        """Return that there are no findings."""
        told = "nothing was found" if self._session.complete else "no findings so far"
        return told if self._session.findings.operational else f"{told}; o shows operational findings"

    def grown(self) -> None:
        """Show new findings."""
        self._rearrange(self.outline.arrange)

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a line depends on."""
        group, number = self.outline.at(place)
        return group.severity, group.rule, group.blame, number, group.count, self.outline.is_unfolded(group)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a rule with its count, or of one finding."""
        at = self.outline.at(place)
        if at.number is None:
            return self._group(at.group, width)
        finding = at.finding
        if finding is None:
            left = at.group.count - len(at.group.findings)
            return [(f"      … {left:,} more, not kept", "view--dim")]
        where = f"  {finding.pointer}" if finding.pointer else ""
        return [
            (f"    {'#' + str(finding.frame):>7}  ", "view--dim"),
            (printable(finding.message, width), ""),
            (printable(where, width), "view--dim"),
        ]

    def _group(self, group: Group, width: int) -> list[Cell]:
        found = [
            (f"{FOLDS[not self.outline.is_unfolded(group)]} ", "view--dim"),
            (f"{MARKS[group.severity]} ", f"view--{group.severity}"),
            (f"{group.count:>7,}  ", "view--count"),
            (f"{group.blame:<7}", f"view--{group.blame}" if group.blame in ("client", "server") else "view--dim"),
            (f"{group.rule:<28}", ""),
        ]
        rule = RULES.get(group.rule)
        return [*found, (f" {rule.summary}", "view--dim")] if rule and width >= _WIDE else found

    def on_rows_chosen(self) -> None:
        """Show the frame of a finding in the timeline, or fold or unfold a rule."""
        place = self.selected
        if place and place.finding:
            self.post_message(Jump(place.finding.frame))
        elif place:
            self.action_fold(not self.outline.is_unfolded(place.group))

    def action_fold(self, unfold: bool) -> None:
        """Fold or unfold the rule of the selected line."""
        place = self.selected
        if place:
            self._rearrange(lambda: self.outline.fold(place.group, unfold=unfold))

    def action_fold_all(self, unfold: bool) -> None:
        """Fold or unfold all rules."""
        self._rearrange(lambda: self.outline.fold_all(unfold=unfold))

    def action_operational(self) -> None:
        """Show or hide operational findings."""
        found = self._session.findings
        self._session.revised.extend(found.show_operational(wanted=not found.operational))
        self._rearrange(self.outline.arrange)

    def _rearrange(self, change: Callable[[], None]) -> None:
        place, below = self.selected, self.cursor - self.scroll_offset.y
        change()
        RowsOrNotice.grown(self)
        if place:
            self.move_to(self.outline.line_of(place))
            self.scroll_to(y=self.cursor - below, animate=False)


class FindingsView(View):
    """The list, and details of the selected line."""

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """Yield the list and the explanation."""
        yield FindingsRows(self._session)
        yield Static(id="explanation", markup=False)

    def on_mount(self) -> None:
        """Update the explanation whenever the selection changes."""
        self.watch(self.query_one(FindingsRows), "cursor", self._explain)

    def grown(self) -> None:
        """Show new findings."""
        with suppress(NoMatches):  # before it is composed
            self.query_one(FindingsRows).grown()
            self._explain()

    def _explain(self) -> None:
        place = self.query_one(FindingsRows).selected
        self.query_one("#explanation", Static).update("\n".join(about(place)) if place else "", layout=False)
