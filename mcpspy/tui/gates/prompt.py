"""The dialog for the filter of a breakpoint."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcpspy.errors import GateError, McpspyError
from mcpspy.text import printable
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.prompt import TextLine, caret


class BreakpointPrompt(ModalScreen[str | None]):
    """A dialog that asks for a filter until `accept` accepts it; the result is the return value of `accept`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("breakpoint")

    def __init__(self, where: str, text: str, accept: Callable[[str], str]) -> None:
        """`accept` may raise McpspyError, which is shown below the line, at its column if it has one."""
        super().__init__()
        self._where, self._text, self._accept = where, text, accept

    def compose(self) -> ComposeResult:
        """Yield the title, the input, and a line for errors."""
        with Vertical(classes="dialog"):
            title = printable(f"hold the frames of {self._where} that match", 80)
            yield Static(title, classes="dialog--title", markup=False)
            yield TextLine(self._text, select_on_focus=False)
            yield Static(id="why", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Try the filter."""
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
