"""What the server wrote to stderr, a row for each line; each leads to its moment in the timeline."""

from collections.abc import Hashable
from typing import ClassVar

from mcpspy.browse.timeline import OpenCapture
from mcpspy.text import printable
from mcpspy.tui.widgets.rows import Cell, Jump
from mcpspy.tui.widgets.view import Following


class StderrView(Following):
    """The lines that the fold has come to."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim"}

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session

    def on_mount(self) -> None:
        """Follow what is still written."""
        self.follow = self._session.state == "live"

    def count(self) -> int:
        """How many lines there are so far."""
        return len(self._session.stderr)

    def nothing(self) -> str:
        """Why there is none."""
        if self._session.header.transport != "stdio":
            return "stderr is recorded for servers on stdio only"
        return "the server wrote nothing to stderr" if self._session.complete else "nothing on stderr so far"

    def face(self, place: int) -> Hashable:
        """A line stays as it is."""
        return self._session.stderr[place]

    def cells(self, place: int, width: int) -> list[Cell]:
        """Its number, when it came, and what it says."""
        n = self._session.stderr[place]
        at = self._session.index.row_of(n)
        if at is None:
            return []
        line = self._session.line(at)
        number = f"{'#' + str(n):>7} " if width >= 60 else ""
        start = f"{number}{line.t / 1e9:>9.3f}  "
        return [(start, "view--dim"), (printable(line.text, max(width - len(start), 1)), "")]

    def on_rows_chosen(self) -> None:
        """Show the moment in the timeline."""
        self.post_message(Jump(self._session.stderr[self.cursor]))
