"""The view of the gates of one or several sessions: which are in force, and how many frames each acted on."""

from collections.abc import Callable, Hashable
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from mcpspy.browse.gates import SetGate
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import CaptureError
from mcpspy.tui.model.gate_list import GateLine, gate_lines
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.timeline import TimelineView
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Cell, Jump, RowsOrNotice, column, fit

_SESSION, _NAME, _ACTION, _SOURCE = 14, 24, 12, 16  # columns
_WIDE = 120  # minimum columns for the source of a gate


class GatesView(RowsOrNotice):
    """A line for each gate; gates of this viewer can be switched off and removed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim", "view--ok", "view--count"}
    BINDINGS: ClassVar[list[BindingType]] = bindings("gates")

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__()
        self._session = session
        self._lines = gate_lines(session)

    def count(self) -> int:
        """Return the number of gates."""
        return len(self._lines)

    def nothing(self) -> str:
        """Return why there are no gates."""
        refusals = [session.control.refusal() for session in self._session.sessions]
        return "no gate is set; B in the timeline sets a breakpoint" if None in refusals else f"no gate: {refusals[0]}"

    def grown(self) -> None:
        """Show the current gates."""
        self._lines = gate_lines(self._session)
        super().grown()

    def face(self, place: int) -> Hashable:
        """Return the state that the look of a line depends on."""
        line = self._lines[place]
        return (line.session.path, *line[2:], line.on)

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells: on or off, in a merge the session, name, frames acted on, action, source, filter."""
        line = self._lines[place]
        found = [("● on  " if line.on else "○ off ", "view--ok" if line.on else "view--dim")]
        if isinstance(self._session, Merged):
            found.append((column(line.session.header.name, _SESSION, 2), "view--dim"))
        found += [
            (column(line.name, _NAME, 2), ""),
            (f"{line.acted:>7,}  ", "view--count"),
            (column(line.action, _ACTION, 2), ""),
            (column(line.source, _SOURCE, 2) if width >= _WIDE else "", "view--dim"),
        ]
        room = width - sum(cell_len(text) for text, _ in found)
        return [*found, (fit(line.text, room), "view--dim")]

    def on_rows_chosen(self) -> None:
        """Show the latest frame that the gate acted on in the timeline."""
        line = self._lines[self.cursor]
        n = line.latest
        if n and isinstance(self._session, Merged):
            n = self._session.number(line.session, n)
        if n:
            self.post_message(Jump(n))
        else:
            self._tell(f"{line.name} has not acted yet")

    def action_switch(self) -> None:
        """Switch the gate off or on."""
        self._change(lambda line, gate: line.session.control.toggle(gate))

    def action_remove(self) -> None:
        """Remove the gate."""
        self._change(lambda line, gate: line.session.control.remove(gate))

    def _change(self, change: Callable[[GateLine, SetGate], None]) -> None:
        if not self._lines:
            return
        line = self._lines[self.cursor]
        if line.gate is None:
            self._tell(f"{line.name} was set by {'the gate file' if line.source == 'gate file' else line.source}")
            return
        try:
            change(line, line.gate)
        except CaptureError as error:
            self._tell(str(error))
        self.grown()

    def _tell(self, text: str) -> None:
        self.post_message(TimelineView.Notice(text))
