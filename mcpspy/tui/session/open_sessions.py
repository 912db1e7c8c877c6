"""Several sessions that are open at once, one in front of the others: `[` and `]` turn to another.

The screens are installed in the application, so each stays as it was left; they are forgotten together.
"""

from typing import ClassVar

from textual.binding import BindingType

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.session.screen import SessionScreen
from mcpspy.tui.widgets.bindings import bindings


class TurnScreen(SessionScreen):
    """One of them; `turn` holds them all, in their order."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("open sessions")

    def __init__(self, session: OpenCapture, turn: "list[TurnScreen]") -> None:
        super().__init__(session)
        self._turn = turn
        turn.append(self)

    def action_turn(self, step: int) -> None:
        """Show the next, or the one before; after the last comes the first."""
        if len(self._turn) > 1:
            self.app.switch_screen(self._turn[(self._turn.index(self) + step) % len(self._turn)])

    def forget(self) -> None:
        """End it, whether it was ever shown or not."""
        self.app.uninstall_screen(self)
        self.close()
        if self.is_attached:
            self.remove()

    def close(self) -> None:
        """Give the file back if it was never shown; else that is done as it ends."""
        if not self.is_mounted:
            self.session.close()
