"""Several sessions opened in turn: one is shown at a time, and `[` and `]` switch to another.

The screens are installed in the application, so each keeps its state; they are closed together.
"""

from typing import ClassVar

from textual.binding import BindingType

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.session.screen import SessionScreen
from mcpspy.tui.widgets.keys import bindings


class TurnScreen(SessionScreen):
    """The screen of one of the sessions; `turn` contains all screens, in their order."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("open sessions")

    def __init__(self, session: OpenCapture, turn: "list[TurnScreen]") -> None:
        super().__init__(session)
        self._turn = turn
        turn.append(self)

    def action_turn(self, step: int) -> None:
        """Show the next or the previous session; the first follows the last."""
        if len(self._turn) > 1:
            self.app.switch_screen(self._turn[(self._turn.index(self) + step) % len(self._turn)])

    def forget(self) -> None:
        """Remove the screen, whether it was ever shown or not."""
        self.app.uninstall_screen(self)
        self.close()
        if self.is_attached:
            self.remove()

    def close(self) -> None:
        """Close the file if the screen was never shown; otherwise the file is closed when the screen is removed."""
        if not self.is_mounted:
            self.session.close()
