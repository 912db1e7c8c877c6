"""A dialog to edit the text of a message, here or in the user's own editor."""

import os
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from mcpspy.errors import UsageError
from mcpspy.text import printable
from mcpspy.tui.widgets.keys import Keys, bindings
from mcpspy.tui.widgets.programs import edited_outside, editor_command


class MessageEditor(ModalScreen[str | None]):
    """A dialog to edit a text until it is valid; the result is the text, or None if it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("editor")

    def __init__(
        self,
        title: Callable[[], str],
        text: str,
        mistake: Callable[[str], str | None],
        *,
        outside: bool = False,
        about: Sequence[str] = (),
    ) -> None:
        """`title` is called every second; `mistake` returns what is wrong with a text.

        `outside`: start in the user's own editor. `about` are lines between the title and the text, each a word,
        blanks, and what it says.
        """
        super().__init__()
        self.draft = text
        """The current text."""
        self._title, self._mistake, self._outside, self._about = title, mistake, outside, about
        self._judged = text  # the text that was checked last

    def compose(self) -> ComposeResult:
        """Yield the title, the text, a line for errors, and the keys."""
        with Vertical(classes="dialog"):
            yield Static(classes="dialog--title", markup=False)
            for line in self._about:
                word, _, says = line.partition("  ")
                with Horizontal(classes="dialog--about"):
                    yield Static(printable(word, 20), markup=False)
                    yield Static(printable(says.strip(), 400), markup=False)
            yield TextArea(self.draft, soft_wrap=True, show_line_numbers=True)
            yield Static(id="why", markup=False)
            yield Keys()

    def on_mount(self) -> None:
        """Start editing."""
        self._show_title()
        self.set_interval(1, self._show_title)
        self.query_one(TextArea).focus()
        if self._outside and (os.environ.get("VISUAL") or os.environ.get("EDITOR")) and not self.app.is_web:
            self.call_after_refresh(self.action_outside)

    def _show_title(self) -> None:
        self.query_one(".dialog--title", Static).update(printable(self._title(), 200))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Store the typed text, and remove the error message for an earlier text."""
        self.draft = event.text_area.text
        if self.draft != self._judged:
            self._tell("")

    def action_done(self) -> None:
        """Accept the text, or show what is wrong with it."""
        self.draft = self._judged = self.query_one(TextArea).text
        wrong = self._mistake(self.draft)
        if wrong:
            self._tell(wrong)
        else:
            self.dismiss(self.draft)

    def action_outside(self) -> None:
        """Edit in the user's own editor; a changed text is accepted directly if it is valid."""
        area = self.query_one(TextArea)
        if self.app.is_web:
            self._tell("no editor in the browser")
            return
        try:
            text = edited_outside(self.app, area.text, editor_command(os.environ))
        except UsageError as error:
            self._tell(str(error))
            return
        if text == area.text:
            self._tell("the editor changed nothing")
            return
        with self.prevent(TextArea.Changed):
            area.text = text
        self.action_done()

    def _tell(self, text: str) -> None:
        self.query_one("#why", Static).update(printable(text, 300))
