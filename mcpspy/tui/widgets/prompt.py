"""The line at the bottom that something is typed into: a filter, what to find, a command."""

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
from mcpspy.text import printable
from mcpspy.tui.model.commands import History, nearest
from mcpspy.tui.widgets.bindings import bindings

KINDS = {"filter": "/", "find": "find ", "command": ":"}
"""What can be typed, and what stands before it."""


def caret(column: int, sentence: str, width: int) -> str:
    """A caret below a column (from 1) with a sentence beside it, or below it where that has no room."""
    at = min(max(column - 1, 0), max(width - 1, 0))
    if at + 2 + cell_len(sentence) <= width:
        return f"{' ' * at}^ {sentence}"
    return f"{' ' * at}^\n{sentence}"


def common(screen: Screen[None], command: str, argument: str) -> bool:
    """Do a command that is the same on every screen; tells whether it is one. Raises UsageError."""
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
    """A line of text that is safe to show, wherever it was copied from."""

    def replace(self, text: str, start: int, end: int) -> None:
        """Put in what can be seen of a text."""
        super().replace("".join(filter(str.isprintable, text)), start, end)


class Prompt(Vertical):
    """The line, below it what is wrong with its text, and beside it the progress."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("prompt")

    def __init__(self) -> None:
        super().__init__()
        self.kind = "filter"
        self._histories = {kind: History() for kind in KINDS}
        self._wrong = ("", 0)  # what is wrong with the line, and with which character

    class Typed(Message):
        """The text of the line has changed."""

    class Entered(Message):
        """The line is to be done; a screen whose other keys follow at once may bind the key itself, and `settle`."""

    class Left(Message):
        """The line is to be forgotten."""

    def compose(self) -> ComposeResult:
        """What is asked for, the line, and beside it a count."""
        with Horizontal():
            yield Static(id="kind", markup=False)
            yield TextLine(compact=True, select_on_focus=False)
            yield Static(id="count", markup=False)
        yield Static(id="wrong", markup=False)

    def on_mount(self) -> None:
        """Let the caret go with a line that is longer than the screen."""
        self.watch(self.query_one(Input), "scroll_x", self._point, init=False)

    @property
    def text(self) -> str:
        """The text of the line."""
        return self.query_one(Input).value

    def show(self, kind: str, text: str = "") -> None:
        """Show the line for text of this kind, with `text` in it."""
        self.kind = kind
        self.display = True
        self.query_one("#kind", Static).update(KINDS[kind])
        self.tell("")
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = text
        line.cursor_position = len(text)

    def focus(self, scroll_visible: bool = True) -> Self:
        """Let it be typed into: at once, for the next key may be on its way already."""
        self.screen.set_focus(self.query_one(Input), scroll_visible=scroll_visible)
        return self

    def remember(self) -> None:
        """Keep the text of the line in the history."""
        self._histories[self.kind].add(self.text)

    def count(self, text: str) -> None:
        """Say beside the line how far it has come."""
        count = self.query_one("#count", Static)
        if text != count.content:
            count.update(text, layout=False)

    def tell(self, sentence: str, character: int = 0) -> None:
        """Say below the line what is wrong with it, and with which character (from 1), if it is."""
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
        """Pass on that something was typed."""
        event.stop()
        self.post_message(self.Typed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass on that it is to be done."""
        event.stop()
        self.post_message(self.Entered())

    async def settle(self) -> None:
        """Wait until all keys that were pressed so far are in the line."""
        settled = asyncio.Event()
        self.query_one(Input).call_next(settled.set)
        await settled.wait()

    def action_cancel(self) -> None:
        """Pass on that it is to be forgotten."""
        self.post_message(self.Left())

    def action_older(self) -> None:
        """What was typed before."""
        self._put(self._histories[self.kind].older(self.text))

    def action_newer(self) -> None:
        """What was typed after that."""
        self._put(self._histories[self.kind].newer(self.text))

    def _put(self, text: str) -> None:
        line = self.query_one(Input)
        line.value = text
        line.cursor_position = len(text)
