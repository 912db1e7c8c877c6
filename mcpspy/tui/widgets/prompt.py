"""The input line at the bottom, for a filter, a search or a command."""

import asyncio
from typing import ClassVar, Self

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static

from mcpspy.errors import UsageError
from mcpspy.text import printable, without_unsafe
from mcpspy.tui.model.commands import History, nearest
from mcpspy.tui.widgets.keys import bindings

KINDS = {"filter": "/", "find": "find ", "command": ":"}
"""The kinds of input, and the text shown before each."""


def caret(column: int, sentence: str, width: int) -> str:
    """Return a caret below a column (from 1), with a sentence beside it, or below it if there is no room."""
    at = min(max(column - 1, 0), max(width - 1, 0))
    if at + 2 + cell_len(sentence) <= width:
        return f"{' ' * at}^ {sentence}"
    return f"{' ' * at}^\n{sentence}"


def common(screen: Screen[None], command: str, argument: str) -> bool:
    """Run a command that works on every screen. Returns whether it is one. Raises UsageError."""
    match command:
        case "":
            pass
        case "theme":
            themes = screen.app.available_themes
            if argument not in themes:
                raise UsageError(f"no theme {argument!r}; {nearest(argument, sorted(themes))}")
            screen.app.theme = argument
        case "help" | "quit":
            screen.call_later(screen.run_action, f"app.{command}")
        case _:
            return False
    return True


class TextLine(Input):
    """An input whose text is always printable, even if pasted."""

    def validate_value(self, value: str) -> str:
        """Return the printable characters of a new text."""
        return without_unsafe(value)

    def replace(self, text: str, start: int, end: int) -> None:
        """Insert the printable characters of a text."""
        super().replace(without_unsafe(text), start, end)


class Prompt(Vertical):
    """The input line, with errors below it and the progress beside it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("prompt")

    def __init__(self) -> None:
        super().__init__()
        self.kind = "filter"
        self._histories = {kind: History() for kind in KINDS}
        self._wrong = ("", 0)  # the error of the line, and its position

    class Typed(Message):
        """Sent when the text of the line has changed."""

    class Entered(Message):
        """Sent when the line is submitted.

        A screen may instead bind Enter itself and call `settle`. Then keys that are pressed right after Enter already
        belong to the screen.
        """

    class Left(Message):
        """Sent when the input is cancelled."""

    def compose(self) -> ComposeResult:
        """Yield the kind of input, the input, a count beside it, and a line for errors."""
        with Horizontal():
            yield Static(id="kind", markup=False)
            yield TextLine(compact=True, select_on_focus=False)
            yield Static(id="count", markup=False)
        yield Static(id="wrong", markup=False)

    def on_mount(self) -> None:
        """Move the error caret when a long line is scrolled."""
        self.watch(self.query_one(Input), "scroll_x", self._point, init=False)

    @property
    def text(self) -> str:
        """The text of the line."""
        return self.query_one(Input).value

    def show(self, kind: str, text: str = "") -> None:
        """Show the line for text of this kind, with `text` in it; what is typed replaces the text of a search."""
        self.kind = kind
        self.display = True
        self.query_one("#kind", Static).update(KINDS[kind])
        self.tell("")
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = text
        line.cursor_position = len(text)
        if kind == "find":
            line.select_all()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Give the focus to the input immediately, because the next key may already be pressed."""
        self.screen.set_focus(self.query_one(Input), scroll_visible=scroll_visible)
        return self

    def remember(self) -> None:
        """Add the text of the line to the history."""
        self._histories[self.kind].add(self.text)

    def count(self, text: str) -> None:
        """Show a count beside the line."""
        count = self.query_one("#count", Static)
        if text != count.content:
            count.update(text, layout=False)

    def tell(self, sentence: str, character: int = 0) -> None:
        """Show an error below the line; `character` (from 1) is its position, or 0 if it has none."""
        if (sentence, character) != self._wrong:
            self._wrong = (sentence, character)
            self._point()

    def _point(self) -> None:
        sentence, character = self._wrong
        line, text = self.query_one(Input), printable(sentence, 300)
        if character:
            before = KINDS[self.kind] + line.value[: character - 1]
            column = cell_len(before) + 1 - round(line.scroll_x)
            text = caret(column, text, self.app.size.width - 2)
        wrong = self.query_one("#wrong", Static)
        wrong.update(text)
        wrong.display = bool(sentence)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Report that the text has changed."""
        event.stop()
        self.post_message(self.Typed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Report that the line is submitted."""
        event.stop()
        self.post_message(self.Entered())

    async def settle(self) -> None:
        """Wait until all pressed keys are processed by the line."""
        settled = asyncio.Event()
        self.query_one(Input).call_next(settled.set)
        await settled.wait()

    def action_cancel(self) -> None:
        """Report that the input is cancelled."""
        self.post_message(self.Left())

    def action_older(self) -> None:
        """Show the previous text of the history."""
        self._put(self._histories[self.kind].older(self.text))

    def action_newer(self) -> None:
        """Show the next text of the history."""
        self._put(self._histories[self.kind].newer(self.text))

    def _put(self, text: str) -> None:
        line = self.query_one(Input)
        line.value = text
        line.cursor_position = len(text)
