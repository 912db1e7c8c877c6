"""Dialogs: what to copy, the file name for saving, and the clients whose limits are checked (P-01)."""

import os
from collections.abc import Callable
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from mcpspy.errors import GateError, McpspyError
from mcpspy.spec.client_limits import CLIENTS
from mcpspy.text import printable
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.prompt import TextLine, caret

_EDGES = 6  # columns of the border and padding of a dialog
_LONGEST = 4096  # maximum characters of a path

Choice = tuple[str, str, Callable[[], str]]
"""A key, a description of the copied text, and a function that returns the text or raises McpspyError."""


class CopyMenu(ModalScreen[Choice | None]):
    """A menu with a key for each text that can be copied; the result is the choice."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("copy")

    def __init__(self, choices: list[Choice]) -> None:
        super().__init__()
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Yield a line for each choice."""
        with Vertical(classes="dialog"):
            yield Static("copy", classes="dialog--title", markup=False)
            for key, what, _ in self._choices:
                yield Static(f"{key}  {what}", markup=False)
            yield Static("escape  nothing", markup=False)

    def on_key(self, event: Key) -> None:
        """Choose by key."""
        for choice in self._choices:
            if event.key == choice[0]:
                event.stop()
                self.dismiss(choice)


class SavePrompt(ModalScreen[str | None]):
    """A dialog that asks for a file name until `save` accepts it; the result is that name."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("save")

    def __init__(self, what: str, name: str, save: Callable[[str], None]) -> None:
        """`save` may raise McpspyError, which is shown."""
        super().__init__()
        self._what, self._name, self._save = what, name, save

    def compose(self) -> ComposeResult:
        """Yield a title, the input, the directory, and a line for errors."""
        with Vertical(classes="dialog"):
            yield Static(self._what, classes="dialog--title", markup=False)
            yield TextLine(self._name, select_on_focus=False)
            yield Static(ending(f"in {_directory()}", self.app.size.width - _EDGES), markup=False)
            yield Static(id="why", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Try to save under the typed name."""
        try:
            self._save(event.value)
        except McpspyError as error:
            self.query_one("#why", Static).update(printable(str(error), 300))
        else:
            self.dismiss(event.value)


def ending(text: str, columns: int) -> str:
    """Return the end of a text in at most `columns` columns; the end of a path is its distinctive part."""
    if cell_len(text) <= columns:
        return text
    while text and cell_len(text) >= columns:
        text = text[1:]
    return f"…{text}"


def _directory() -> str:
    """Return the directory in which files are saved."""
    try:
        return printable(os.getcwd(), _LONGEST)
    except OSError:
        return "a directory that was deleted"


_WIDTH = max(map(len, CLIENTS))
_CHOICES: dict[str, frozenset[str]] = {
    f"{'none':<{_WIDTH}}": frozenset(),
    f"{'all':<{_WIDTH}}  each of these": frozenset(CLIENTS),
    **{f"{name:<{_WIDTH}}  {people}": frozenset([name]) for name, people in CLIENTS.items()},
}
"""Text of the menu -> clients; the names are those that `check --client` accepts."""


def clients_text(clients: frozenset[str]) -> str:
    """Return the chosen clients in a few words."""
    return "all clients" if len(clients) == len(CLIENTS) else ", ".join(sorted(clients))


class LinePrompt(ModalScreen[str | None]):
    """A dialog that asks for a line until `accept` accepts it; the result is the return value of `accept`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("breakpoint")

    def __init__(self, title: str, text: str, accept: Callable[[str], str]) -> None:
        """`accept` may raise McpspyError, which is shown below the line, at its column if it has one."""
        super().__init__()
        self._prompt, self._text, self._accept = title, text, accept

    def compose(self) -> ComposeResult:
        """Yield the title, the input, and a line for errors."""
        with Vertical(classes="dialog"):
            yield Static(printable(self._prompt, 200), classes="dialog--title", markup=False)
            yield TextLine(self._text, select_on_focus=False)
            yield Static(id="why", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Try the line."""
        event.stop()
        why = self.query_one("#why", Static)
        try:
            answer = self._accept(event.value)
        except GateError as error:
            column = max(error.column - round(event.input.scroll_x), 1)
            why.update(caret(column, printable(error.what, 300), event.input.size.width))
        except McpspyError as error:
            why.update(printable(str(error), 300))
        else:
            self.dismiss(answer)


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
