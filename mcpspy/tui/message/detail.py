"""The selected message, alone or with its request or response: two panes; often only one is visible.

A single message is in the first pane. For a pair, the request is in the first pane and the response in the second. The
panes are side by side if there is room, else one below the other. The form in which messages are shown (tree, raw or
hexadecimal) and the folded parts are stored in this widget, so they are kept when another message is selected.
"""

import os
from collections.abc import Callable, Mapping
from typing import ClassVar, Self

from rich.text import Text as Plain
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize

from mcpspy.capture.records import Header
from mcpspy.errors import UsageError
from mcpspy.exporters import single_message
from mcpspy.text import printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.message.context import Around
from mcpspy.tui.message.dialogs import Choice, CopyMenu, SavePrompt
from mcpspy.tui.message.document import FORMS, Body, Document, Folds, HexDump, SummaryLine, Text, Tree
from mcpspy.tui.message.facts import entries
from mcpspy.tui.message.pane import Pane
from mcpspy.tui.message.text import whole
from mcpspy.tui.widgets.bindings import bindings
from mcpspy.tui.widgets.programs import edited_outside, editor_command, pager_command

_COLUMNS = 100  # minimum width for two messages side by side
_NOTHING = Around()
_LONGEST = 1 << 20  # maximum characters copied to a terminal's clipboard

Subject = tuple[list[Row], Around]
"""The messages of one frame, and their context."""


class Detail(Container):
    """The message, or the pair of request and response."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("message")

    def __init__(self) -> None:
        super().__init__()
        self._header: Header | None = None
        self._selected: Subject | None = None
        self._subjects: list[Subject | None] = [None, None]  # by pane
        self._form = 0
        self._pair = False
        self._folds: dict[tuple[str | None, str], Folds] = {}  # by method and kind of message
        self._sections: dict[str, bool] = {}

    def compose(self) -> ComposeResult:
        """Yield the two panes."""
        yield Pane()
        yield Pane(classes="second")

    @property
    def panes(self) -> tuple[Pane, Pane]:
        """The first and the second pane."""
        first, second = self.query(Pane)
        return first, second

    @property
    def pane(self) -> Pane:
        """The pane that has the focus, else the pane with the selected message."""
        first, second = self.panes
        if not self._pair or first.has_focus:
            return first
        is_second = second.has_focus or (self._selected and self._subjects[1] is self._selected)
        return second if is_second else first

    def show(self, rows: list[Row], header: Header, around: Around = _NOTHING) -> None:
        """Show the messages of one frame; `around` is their context."""
        self._header = header
        self._selected = (rows, around)
        self._arrange()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Give the focus to the selected message."""
        self.pane.focus(scroll_visible)
        return self

    def on_resize(self, event: Resize) -> None:
        """Put the pair side by side or one below the other, depending on the width."""
        self.set_class(event.size.width >= _COLUMNS, "columns")

    def on_pane_resized(self, event: Pane.Resized) -> None:
        """Wrap the document of a pane again."""
        self._make(self.panes.index(event.pane), again=event.pane.document is not None)

    def on_pane_moved(self) -> None:
        """Show the position of the cursor in the title."""
        document = self.pane.document
        place = document.pointer(self.pane.cursor) if document and len(document) else ""
        form = "" if self._form == 0 else f" {FORMS[self._form]} "
        self.border_title = Plain(printable(place, 200) or form)

    def on_descendant_focus(self) -> None:
        """Update the title when the focus moves to the other message of the pair."""
        self.on_pane_moved()

    def action_form(self) -> None:
        """Switch to the next form: tree, raw or hexadecimal."""
        self._form = (self._form + 1) % len(FORMS)
        for place in (0, 1):
            self._make(place, again=False)

    def action_pair(self) -> None:
        """Switch between the pair of request and response and the selected message alone."""
        self._pair = not self._pair
        self.set_class(self._pair, "pair")
        if self.parent:
            self.parent.set_class(self._pair, "beside")  # two messages need the whole width
        had_focus = self.has_focus_within
        self._arrange()
        if had_focus:
            self.focus()

    def action_copy(self) -> None:
        """Ask what to copy, and send it to the terminal (OSC 52)."""
        choices = self._choices() if self._subject() else []
        if choices:
            self.app.push_screen(CopyMenu(choices), self._copy)
        else:
            self._tell("there is nothing to copy here", failed=True)

    def action_save(self) -> None:
        """Ask for a file name, and save the frame there, byte for byte."""
        rows, around = self._subject() or ([], _NOTHING)
        size = around.size(rows[0].n) if rows else None
        raw = rows[0].raw if rows and size is None and len(rows[0].raw) == rows[0].size else b""
        if size is None and not raw:
            self._tell("no frame is selected that could be saved", failed=True)
            return
        suffix = "json" if rows[0].value is not None else "txt"
        what = f"save #{rows[0].n}, {size_text(size or len(raw))}, as"

        def save(name: str) -> None:
            single_message.save([raw] if size is None else around.pieces(rows[0].n), name)

        prompt = SavePrompt(what, f"frame-{rows[0].n}.{suffix}", save)
        self.app.push_screen(prompt, lambda name: self._tell(f"saved {name}") if name else None)

    def action_editor(self) -> None:
        """Open the frame in the user's editor; changes are ignored."""
        self._open(editor_command)

    def action_pager(self) -> None:
        """Open the frame in the user's pager."""
        self._open(pager_command)

    def _open(self, find: Callable[[Mapping[str, str]], list[str]]) -> None:
        rows, _ = self._subject() or ([], _NOTHING)
        try:
            if self.app.is_web:
                raise UsageError("editor and pager need a terminal, not a browser: y copies the message, s saves it")
            command = find(os.environ)
            if not rows:
                raise UsageError("no frame is selected that could be opened")
            text = whole(rows[0])
            after = edited_outside(self.app, text, command)
        except UsageError as error:
            self._tell(str(error), failed=True)
        else:
            if after != text.rstrip("\n"):
                self._tell(f"your changes are ignored: #{rows[0].n} stays as it was recorded", failed=True)

    def _subject(self) -> Subject | None:
        """Return the messages in the active pane."""
        subject = self._subjects[self.panes.index(self.pane)]
        return subject if subject and subject[0] else None

    def _choices(self) -> list[Choice]:
        rows, around = self._subject() or ([], _NOTHING)
        asked = (rows, around)
        if rows[0].kind in ("result", "error"):
            asked = around.partner() or asked
        (request, *_), opened = asked[0], asked[1].request
        header = around.session.header if around.session else self._header
        document, row = self.pane.document, self.pane.cursor
        value = document.value(row) if document and len(document) else None
        assert header
        choices: list[Choice] = []
        if rows[0].raw:
            what = "the message as JSON" if rows[0].value is not None and not rows[0].refused else "the frame as text"
            choices.append(("j", what, lambda: single_message.as_json(rows[0])))
        if document and value is not None:
            place = printable(document.pointer(row), 40) or "the whole"
            choices.append(("v", f"the value at {place}", lambda: single_message.pasteable(value)))
        if request.sender == "client" and opened:
            choices.append(("c", "the request as a curl command", lambda: single_message.curl(header, request, opened)))
        if request.sender == "client" and request.kind == "request":
            choices.append(("p", "the request as a program with the Python SDK",
                            lambda: single_message.python(header, request, opened)))  # fmt: skip
        return choices

    def _copy(self, choice: Choice | None) -> None:
        if choice is None:
            return
        try:
            text = choice[2]()
            if len(text) > _LONGEST:
                raise UsageError(f"{size_text(len(text))} is too large for the clipboard: save it with s")
        except UsageError as error:
            self._tell(str(error), failed=True)
            return
        self.app.copy_to_clipboard(text)
        self._tell(f"copied {choice[1]}: {size_text(len(text.encode(errors='replace')))}")

    def _tell(self, text: str, *, failed: bool = False) -> None:
        self.app.notify(printable(text, 300), severity="warning" if failed else "information", markup=False)

    def _arrange(self) -> None:
        """Assign the messages to the panes."""
        selected = self._selected
        if selected is None:
            return
        before = self._subjects
        self._subjects = [selected, None]
        if self._pair:
            other = selected[1].partner()
            is_answer = bool(selected[0]) and selected[0][0].kind in ("result", "error")
            self._subjects = [other, selected] if is_answer else [selected, other]
        for place, (old, new) in enumerate(zip(before, self._subjects, strict=True)):
            self._make(place, again=_line(old) == _line(new))

    def _make(self, place: int, *, again: bool) -> None:
        """Make the document of a pane if the pane is visible; otherwise it is made when the pane becomes visible."""
        pane = self.panes[place]
        width = pane.scrollable_content_region.width
        if self._header and width and (place == 0 or self._pair):
            pane.show(self._document(self._subjects[place], self._header, width), again=again)
        elif place:
            pane.document = None

    def _document(self, subject: Subject | None, header: Header, width: int) -> Document:
        rows, around = subject or ([], _NOTHING)
        row = rows[0] if rows else None
        brief = self._pair and not self.has_class("columns")  # two messages one below the other leave little room
        found = entries(rows, header, around, brief=brief)
        if subject is None:
            found = [SummaryLine([("no other message belongs to it", "label")])]
        if row and len(row.raw) < row.size:
            shown = f"the first {size_text(len(row.raw))} of {size_text(row.size)}"
            if row.tail:
                shown = f"not decoded: {shown}, and the last {size_text(len(row.tail))}"
            found.append(SummaryLine([(shown, "warning")]))
        key = (row.method, row.kind) if row else (None, "")
        folds = self._folds.setdefault(key, Folds())
        size = row.size if row else 0
        return Document(found, self._body(row, width), size=size, width=width, folds=folds, sections=self._sections)

    def _body(self, row: Row | None, width: int) -> Body:
        """Return the message in the chosen form."""
        if row is None:
            return HexDump(b"", width)
        form = FORMS[self._form]
        if form == "hex":
            return HexDump(row.raw, width)
        text = row.raw.decode(errors="replace" if form == "tree" else "backslashreplace") if row.raw else row.text or ""
        if row.tail:
            missing = row.size - len(row.raw) - len(row.tail)
            return Text(f"{text}\n… {size_text(missing)} are not shown …\n{row.tail.decode(errors='replace')}")
        decoded = row.raw and (row.kind not in ("invalid", "stderr") or row.value is not None)
        return Tree(text) if decoded and form == "tree" else Text(text)


def _line(subject: Subject | None) -> list[int]:
    """Return the line numbers of the messages in a pane."""
    return [row.n for row in subject[0]] if subject else []
