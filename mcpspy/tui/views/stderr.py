"""The view of stderr: a row for each line that the server wrote; Enter shows its row in the timeline."""

from collections.abc import Hashable
from typing import ClassVar

from mcpspy.browse.timeline import OpenCapture
from mcpspy.text import printable
from mcpspy.tui.widgets.rows import Cell, Following, Jump


class StderrView(Following):
    """The lines of stderr that are folded so far."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"view--dim"}

    def __init__(self, session: OpenCapture) -> None:
        super().__init__()
        self._session = session

    def on_mount(self) -> None:
        """Follow new lines while the session is live."""
        self.follow = self._session.state == "live"

    def count(self) -> int:
        """Return the number of lines so far."""
        return len(self._session.stderr)

    def nothing(self) -> str:
        """Return why there are no lines."""
        if self._session.header.transport != "stdio":
            return "stderr is recorded for servers on stdio only"
        return "the server wrote nothing to stderr" if self._session.complete else "nothing on stderr so far"

    def face(self, place: int) -> Hashable:
        """Return a constant key, because a line never changes."""
        return self._session.stderr[place]

    def cells(self, place: int, width: int) -> list[Cell]:
        """Return the cells of a line: number, time and text."""
        n = self._session.stderr[place]
        at = self._session.index.row_of(n)
        if at is None:
            return []
        line = self._session.line(at)
        number = f"{'#' + str(n):>7} " if width >= 60 else ""
        start = f"{number}{line.t / 1e9:>9.3f}  "
        return [(start, "view--dim"), (printable(line.text or "", max(width - len(start), 1)), "")]

    def on_rows_chosen(self) -> None:
        """Show the line in the timeline."""
        self.post_message(Jump(self._session.stderr[self.cursor]))
