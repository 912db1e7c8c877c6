"""The menu for the clients whose limits are checked: one, all of the table, or none (P-01)."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from mcpspy.spec.client_limits import CLIENTS
from mcpspy.tui.widgets.keys import bindings

_WIDTH = max(map(len, CLIENTS))
_CHOICES: dict[str, frozenset[str]] = {
    f"{'none':<{_WIDTH}}": frozenset(),
    f"{'all':<{_WIDTH}}  each of these": frozenset(CLIENTS),
    **{f"{name:<{_WIDTH}}  {people}": frozenset([name]) for name, people in CLIENTS.items()},
}
"""Text of the menu -> clients; the names are those that `check --client` accepts."""


def named(clients: frozenset[str]) -> str:
    """Return the chosen clients in a few words."""
    return "all clients" if len(clients) == len(CLIENTS) else ", ".join(sorted(clients))


class ClientMenu(ModalScreen[frozenset[str] | None]):
    """A menu with a line for each choice; the result is the choice, or None if it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("clients")

    def __init__(self, chosen: frozenset[str]) -> None:
        super().__init__()
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """Yield the title and the choices."""
        with Vertical(classes="dialog"):
            yield Static("show what these clients refuse", classes="dialog--title", markup=False)
            yield OptionList(*_CHOICES, markup=False, compact=True)

    def on_mount(self) -> None:
        """Select the current choice."""
        choices = self.query_one(OptionList)
        choices.highlighted = list(_CHOICES.values()).index(self._chosen)
        choices.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the menu with the selected choice."""
        self.dismiss(list(_CHOICES.values())[event.option_index])
