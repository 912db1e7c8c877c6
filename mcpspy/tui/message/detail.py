"""The selected message, alone or with its request or response: two panes; often only one is visible.

A single message is in the first pane. For a pair, the request is in the first pane and the response in the second. The
panes are side by side if there is room, else one below the other. The form that the user has chosen and the folded
parts are stored in this widget, so they are kept when another message is selected. A pane draws the rows of a document
when they become visible, and has a cursor.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Self

from rich.segment import Segment
from rich.text import Text as Plain
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Click, Resize
from textual.message import Message
from textual.strip import Strip

from mcpspy.capture.records import Header
from mcpspy.errors import UsageError
from mcpspy.exporters import single_message
from mcpspy.json_values import Number
from mcpspy.reading.media import MediaFile, decoded, media_of
from mcpspy.text import escaped, printable, size_text
from mcpspy.timeline import Row
from mcpspy.tui.message.content import Content
from mcpspy.tui.message.document import Document, Fits, Folds, SummaryLine
from mcpspy.tui.message.facts import Around, entries
from mcpspy.tui.message.forms import FORMS, body_of, default_form
from mcpspy.tui.message.text import whole
from mcpspy.tui.widgets.clipboard import copy
from mcpspy.tui.widgets.dialogs import Choice, CopyMenu, SavePrompt
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.programs import edited_outside, editor_command, pager_command, view, viewer_command
from mcpspy.tui.widgets.rows import BREATH, CursorLines, set_height, slice_now

_AT_ONCE = 200  # lines made before a document is shown, or after a fold
_A_FEW = 10  # lines made before the time is looked at
_AHEAD = 50_000  # rows made below the cursor; more are made as it moves down
_KINDS = (
    "key", "string", "number", "literal", "punctuation", "plain", "label", "warning", "fold", "cursor", "match",
)  # fmt: skip


_MATCH_ABOVE = 3  # a found place appears below this part of the pane


class Pane(CursorLines):
    """A document, and a cursor on one of its screen rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"detail--{kind}" for kind in _KINDS}
    BINDINGS: ClassVar[list[BindingType]] = bindings("message pane")

    class Moved(Message):
        """Sent when the cursor is on another row, or the text of its row has changed."""

    class Opened(Message):
        """Sent when Enter is pressed on an image, a sound or another file in the message."""

    class Resized(Message):
        """Sent when the width of the pane has changed, so that its document must be wrapped again."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.document: Document | None = None
        self._to_end = False  # whether the cursor goes to the last row when all rows are made

    def show(self, document: Document, *, again: bool) -> None:
        """Show a document; `again`: it is of the same message as before, so the position is kept."""
        before, top, cursor = self.document, self.scroll_offset.y, self.cursor
        self.document = document
        more = document.grow(_AT_ONCE)
        down = 0
        if again and before is not None and cursor < len(before):
            line, part = before.line(cursor), cursor - before.row(before.line(cursor))
            added = len(document.entries) - len(before.entries)  # lines about the message
            line = line + added if line >= len(before.entries) else line
            while document.line(len(document) - 1) < line and document.grow(_AT_ONCE):
                pass
            down = min(document.row(line) + part, len(document) - 1)
            document.found = before.found if type(before.body) is type(document.body) else None
        set_height(self, len(document))
        self.set_reactive(Pane.cursor, down)
        self.scroll_to(y=max(down - (cursor - top), 0) if again else 0, animate=False)
        self.refresh()
        if more:
            self._grow()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Request wrapping again if the width has changed."""
        if self.document is None or self.document.width != self.scrollable_content_region.width:
            self.post_message(self.Resized(self))

    @work(exclusive=True)
    async def _grow(self) -> None:
        """Make the rows that are not visible yet, a few at a time, as far as they may soon be looked at."""
        document, more = self.document, True
        while more and document and document is self.document and (self._to_end or self._lacks(document, _AHEAD)):
            more = self._make_rows(document)
            await asyncio.sleep(BREATH)
        if self._to_end and document is self.document:
            self.move_to(self.count() - 1)

    def _make_rows(self, document: Document) -> bool:
        """Make rows for as long as keys can wait. Returns whether there may be more."""
        deadline = time.perf_counter() + slice_now(self.app)
        more = document.grow(_A_FEW)
        while more and time.perf_counter() < deadline:
            more = document.grow(_A_FEW)
        set_height(self, len(document))
        self.refresh()
        return more

    def _lacks(self, document: Document, rows: int) -> bool:
        """Return whether more rows have to be made, so that there are some below the cursor."""
        return not document.complete and len(document) - max(self.cursor, self.scroll_offset.y) < rows

    def count(self) -> int:
        """Return the number of rows so far."""
        return len(self.document) if self.document else 0

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if self.document is None or row >= len(self.document):
            return Strip.blank(width, self._base)
        strip = Strip(
            Segment(text, self.get_component_rich_style(f"detail--{kind}", partial=True))
            for text, kind in self.document.pieces(row)
        )
        base = self._base
        if row == self.cursor and self.has_focus:
            base += self.get_component_rich_style("detail--cursor")
        return strip.adjust_cell_length(width).apply_style(base)

    def watch_cursor(self, before: int, now: int) -> None:
        """Report the new position of the cursor, and make more rows if it comes near to the last one."""
        super().watch_cursor(before, now)
        self._to_end = False
        if self.document and self._lacks(self.document, _AHEAD // 2):
            self._grow()
        self.post_message(self.Moved())

    def action_last(self) -> None:
        """Go to the last row, as soon as it is made."""
        super().action_last()
        if self.document and not self.document.complete:
            self._to_end = True
            self._grow()

    async def find(self, fits: Fits, step: int) -> bool:
        """Unfold, show and highlight the next place in the message, or the previous one. Returns whether there is one.

        A large message is searched for as long as keys can wait, again and again.
        """
        document, deadline = self.document, 0.0
        for place in document.search(fits, step) if document else ():
            if place is None:
                if time.perf_counter() > deadline:
                    await asyncio.sleep(BREATH)
                    deadline = time.perf_counter() + slice_now(self.app)
            elif document and document is self.document:
                document.reveal(place)
                while (row := document.row_of(place)) is None:
                    self._make_rows(document)
                    await asyncio.sleep(BREATH)
                self._folded(row)
                return True
            if document is not self.document:  # another message is shown meanwhile
                return True
        return False

    def action_fold(self) -> None:
        """Fold the row; if it cannot be folded, or is folded already, go to the value that contains it."""
        if self.document and self.count():
            if self.document.is_folded(self.cursor) is False:
                self._fold(folded=True)
            else:
                self.move_to(self.document.above(self.cursor))

    def action_unfold(self) -> None:
        """Unfold the row; if it is unfolded already, go to its first line."""
        folded = self.document.is_folded(self.cursor) if self.document and self.count() else None
        if folded:
            self._fold(folded=False)
        elif folded is False:
            self.action_move(1)

    def action_open(self) -> None:
        """Open the image or the sound of the row; fold or unfold another row."""
        at = self.document.at(self.cursor) if self.document and self.count() else None
        if self.document and at is not None and self.document.body.media(at) is not None:
            self.post_message(self.Opened())
        else:
            self.action_turn()

    def action_turn(self) -> None:
        """Fold or unfold the row; if it cannot be folded, go down by one page."""
        folded = self.document.is_folded(self.cursor) if self.document and self.count() else None
        if folded is None:
            self.action_page(1)
        else:
            self._fold(folded=not folded)

    def action_fold_all(self, folded: bool) -> None:
        """Fold all levels of the message except the outermost two, or unfold all."""
        if self.document and self.count():
            line = self.document.line(self.cursor)
            self.document.fold_all(folded=folded)
            while self.document.grow(_AT_ONCE) and self.document.line(self.count() - 1) < line:
                pass
            self._folded(self.document.row(line))

    def action_toggle_all(self) -> None:
        """Unfold the whole message if any visible part is folded; else fold it."""
        rows = range(self.scroll_offset.y, min(self.scroll_offset.y + self.size.height, self.count()))
        document = self.document
        if document:
            self.action_fold_all(not any(document.is_folded(row) for row in rows if document.is_message(row)))

    def _fold(self, *, folded: bool) -> None:
        if self.document:
            line = self.document.line(self.cursor)
            self.document.fold(self.cursor, folded=folded)
            self.document.grow(_AT_ONCE)
            self._folded(self.document.row(line))

    def _folded(self, row: int) -> None:
        """Show the changed rows, with the cursor on `row`."""
        set_height(self, self.count())
        height = self.size.height
        if not 0 <= row - self.scroll_offset.y < height:
            self.scroll_to(y=max(row - height // _MATCH_ABOVE, 0), animate=False)
        self.move_to(row)
        self.refresh()
        self._grow()

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row; a second click folds or unfolds it."""
        row = event.y + self.scroll_offset.y
        if row < self.count():
            again = row == self.cursor
            self.move_to(row)
            if (again or event.chain > 1) and self.document and self.document.is_folded(row) is not None:
                self.action_turn()


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
        self._form = ""  # what the user has chosen; empty: each message has the form that suits it
        self._title = ""
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
        place = document.place(self.pane.cursor) if document and len(document) else ""
        rows, _ = self._subject() or ([], _NOTHING)
        usual = not self._form or not rows or self._form == default_form(rows[0])
        title = printable(place, 200) or ("" if usual else f" {self._form} ")
        if title != self._title:  # to set it draws all again
            self._title = title
            self.border_title = Plain(title)

    def on_descendant_focus(self) -> None:
        """Update the title when the focus moves to the other message of the pair."""
        self.on_pane_moved()

    def action_form(self) -> None:
        """Switch to the next form, for all messages."""
        rows, _ = self._subject() or ([], _NOTHING)
        document = self.pane.document
        form = self._form or (default_form(rows[0]) if rows else FORMS[0])
        if form == FORMS[0] and document and not isinstance(document.body, Content):
            form = FORMS[1]  # the message has no content, so it is a tree already
        self._form = FORMS[(FORMS.index(form) + 1) % len(FORMS)]
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

    async def find(self, fits: Fits, step: int, *, first: bool) -> bool:
        """Go to the next place in the selected message, or to the previous one. Returns whether there is one.

        `first`: the first place in the message, or the last one if `step` is -1.
        """
        pane = self.panes[self._subjects.index(self._selected)]
        if first and pane.document:
            pane.document.found = None
        return await pane.find(fits, step)

    def action_copy(self) -> None:
        """Ask what to copy, and copy it."""
        choices = self._choices() if self._subject() else []
        if choices:
            self.app.push_screen(CopyMenu(choices), self._copy)
        else:
            self._tell("there is nothing to copy here", failed=True)

    def _media(self) -> tuple[str, MediaFile] | None:
        """Return the base64 text of the image, sound or document under the cursor, and what it is."""
        document = self.pane.document
        at = document.at(self.pane.cursor) if document and len(document) else None
        text = document.body.media(at) if document and at is not None else None
        media = media_of(text) if text is not None else None
        return (text, media) if text is not None and media else None

    def action_save(self) -> None:
        """Ask for a file name, and save there the file under the cursor, decoded, or else the frame, byte for byte."""
        rows, around = self._subject() or ([], _NOTHING)
        if found := self._media():
            text, media = found
            what = f"save {media} of #{rows[0].n} as"
            self._save(what, f"frame-{rows[0].n}{media.extension}", lambda: [decoded(text)])
            return
        size = around.size(rows[0].n) if rows else None
        raw = rows[0].raw if rows and size is None and len(rows[0].raw) == rows[0].size else b""
        if size is None and not raw:
            self._tell("no frame is selected that could be saved", failed=True)
            return
        suffix = "json" if rows[0].value is not None else "txt"
        what = f"save #{rows[0].n}, {size_text(size or len(raw))}, as"
        self._save(what, f"frame-{rows[0].n}.{suffix}", lambda: [raw] if size is None else around.pieces(rows[0].n))

    def _save(self, what: str, name: str, pieces: Callable[[], Iterable[bytes]]) -> None:
        prompt = SavePrompt(what, name, lambda name: single_message.save(pieces(), name))
        self.app.push_screen(prompt, lambda name: self._tell(f"saved {name}") if name else None)

    def on_pane_opened(self) -> None:
        """Open the file under the cursor in the system's viewer, if its bytes are of a form that contains no code."""
        found = self._media()
        if not found:
            return
        text, media = found
        try:
            if not media.opened:
                what = f"an empty {media.form}" if media.empty else media.form or "a file of unknown form"
                raise UsageError(f"{what} is not opened, only saved: s saves it")
            if self.app.is_web:
                raise UsageError("the system's viewer needs a desktop, not a browser: s saves it")
            view(decoded(text), media.opened, viewer_command(os.environ, sys.platform))
        except UsageError as error:
            self._tell(str(error), failed=True)
        else:
            self._tell(f"opened {media} in the system's viewer")

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
        assert header
        choices: list[Choice] = []
        if rows[0].raw:
            what = "the message as JSON" if rows[0].value is not None and not rows[0].refused else "the frame as text"
            choices.append(("j", what, lambda: single_message.as_json(rows[0])))
        choices += self._choices_here()
        if request.sender == "client" and opened:
            choices.append(("c", "the request as a curl command", lambda: single_message.curl(header, request, opened)))
        if request.sender == "client" and request.kind == "request":
            choices.append(("p", "the request as a program with the Python SDK",
                            lambda: single_message.python(header, request, opened)))  # fmt: skip
        return choices

    def _choices_here(self) -> list[Choice]:
        """Return what can be copied of the value under the cursor."""
        document = self.pane.document
        at = document.at(self.pane.cursor) if document and len(document) else None
        value = document.body.value(at) if document and at is not None else None
        if not document or at is None or value is None:
            return []
        place, text = document.body.place(at), document.body.decoded(at)
        shown = printable(place, 40) or "the whole"
        choices: list[Choice] = []
        if isinstance(text, str) and not isinstance(text, Number):
            choices.append(("t", f"the text at {shown}", lambda: escaped(text.replace("\r\n", "\n"))))
        choices.append(("v", f"the value at {shown}", lambda: single_message.pasteable(value)))
        if place:
            choices.append(("a", f"the JSON Pointer {shown}", lambda: single_message.pasteable(place)))
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
        where = copy(self.app, text)
        self._tell(f"copied {choice[1]}: {size_text(len(text.encode(errors='replace')))}, {where}")

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
        form = self._form or (default_form(row) if row else "")
        body = body_of(row, around, form, width)
        if row and len(row.raw) < row.size and not isinstance(body, Content):
            shown = f"the first {size_text(len(row.raw))} of {size_text(row.size)}"
            if row.tail:
                shown = f"not decoded: {shown}, and the last {size_text(len(row.tail))}"
            found.append(SummaryLine([(shown, "warning")]))
        key = (row.method, row.kind) if row else (None, "")
        folds = self._folds.setdefault(key, Folds())
        return Document(found, body, width=width, folds=folds, sections=self._sections)


def _line(subject: Subject | None) -> list[int]:
    """Return the line numbers of the messages in a pane."""
    return [row.n for row in subject[0]] if subject else []
