"""The timeline with the keys that control a running session: breakpoints, held frames, requests sent again.

Each row belongs to one session, in a merge too, and an order is written to the live directory of that session's
capture. The result of the order appears in the capture, like all other events. A message is edited until it is valid,
in the user's editor if one is set, else here.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.events import DescendantBlur, DescendantFocus

from mcpspy.browse.gates import HeldFrame, breakpoint_text
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import CaptureError, UsageError
from mcpspy.gate_files.file import compile_when
from mcpspy.text import printable
from mcpspy.timeline import Row
from mcpspy.tui.again import send_again
from mcpspy.tui.message.editor import MessageEditor
from mcpspy.tui.message.text import (
    answer_mistake,
    answer_text,
    json_mistake,
    one_line,
    own_id,
    pretty,
    request_mistake,
)
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.views.timeline import TimelineView
from mcpspy.tui.widgets.dialogs import LinePrompt
from mcpspy.tui.widgets.keys import bindings
from mcpspy.tui.widgets.rows import Jump

_OF_HELD = ("release", "edit", "answer")
_LOOK = 0.05  # seconds of reading the capture before an order
_SPEAKERS = ("client", "mcpspy")  # senders whose requests go to the server


class GatedTimeline(TimelineView):
    """The timeline of a session that may be controlled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("held frame"), *bindings("breakpoints"), *TimelineView.BINDINGS,
    ]  # fmt: skip

    def __init__(self, session: OpenCapture | Merged) -> None:
        super().__init__(session)
        self._drafts: dict[tuple[str, int, str], str] = {}  # by session, held frame and action: unfinished texts
        self._sent: dict[str, tuple[OpenCapture, int]] = {}  # by id: session, and row selected then
        self._offered = False  # whether the keys of a held frame are offered

    def on_mount(self) -> None:
        """Update the offered keys when another row is selected."""
        self.watch(self.rows, "cursor", self._offer, init=False)

    @on(DescendantFocus)
    @on(DescendantBlur)
    def _offer(self) -> None:
        offered = self._held() is not None
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the keys for held frames only on their rows; Enter continues a frame only if the list has focus."""
        if action not in _OF_HELD:
            return super().check_action(action, parameters)
        return self._held() is not None and (parameters != ("continued",) or self.rows.has_focus)

    def grown(self) -> None:
        """Show new rows, and responses to requests that were sent from here."""
        super().grown()
        self._offer()
        for number, (session, selected) in list(self._sent.items()):
            n = session.gates.answers.get(number)
            shown = self._session.number(session, n) if n and isinstance(self._session, Merged) else n
            if n and shown:
                del self._sent[number]
                if self.rows.follow or self.rows.selected == selected:
                    self.post_message(Jump(shown))
                self._tell(f"#{n} answers {number}; the client does not see it")

    def _of_row(self) -> tuple[OpenCapture, int] | None:
        """Return the session of the selected row, and its place there."""
        return self._session.of(self.rows.place()) if self.rows.count() else None

    def _held(self) -> tuple[OpenCapture, int, HeldFrame] | None:
        """Return the same and the held frame, if the row is held."""
        found = self._of_row()
        held = found[0].line(found[1]).held if found else None
        return (*found, held) if found and held else None

    def _tell(self, text: str) -> None:
        self.post_message(self.Notice(printable(text, 300)))

    def _refuse(self, text: str) -> None:
        self.app.bell()
        self._tell(text)

    def _order(self, order: Callable[[], None], done: str) -> bool:
        """Give an order, and show a notice. Returns whether that was possible."""
        try:
            order()
        except CaptureError as error:
            self._refuse(str(error))
            return False
        self._tell(done)
        return True

    def action_breakpoint(self) -> None:
        """Ask for a filter, and hold matching frames from now on."""
        session, there = self._of_row() or (self._session.sessions[0], 0)
        refused = session.control.refusal()
        if refused:
            self._refuse(refused)
            return
        line = session.line(there) if len(session) else None
        text = breakpoint_text(line.method, line.name or "", line.sender) if line and line.method else ""

        def accept(text: str) -> str:
            if not text.strip():
                raise UsageError("a breakpoint needs a filter; from:client holds all that the client sends")
            gate = session.control.add(text.strip(), compile_when(text))
            return f"{gate.name}: matching frames are held from now on; 6 lists the gates"

        def told(text: str | None) -> None:
            if text:
                self._tell(text)

        self.app.push_screen(LinePrompt(f"hold the frames of {session.header.name} that match", text, accept), told)

    def action_next_held(self) -> None:
        """Go to the next held row; after the last one, go to the first."""
        numbers = sorted(self._numbers())
        n = next((n for n in numbers if n > self.rows.selected), numbers[0] if numbers else None)
        if n is None:
            self._refuse("no frame is held")
        else:
            self.post_message(Jump(n))

    def _numbers(self) -> list[int]:
        """Return the line numbers of the held frames; in a merge, their numbers in the merge."""
        session = self._session
        if isinstance(session, Merged):
            return [n for each in session.sessions for held in each.held if (n := session.number(each, held.n))]
        return [held.n for held in session.held]

    def action_release(self, how: str) -> None:
        """Release the held frame of the row: unchanged (`continued`), or `dropped`."""
        found = self._held()
        if found:
            session, _, held = found
            self._order(lambda: session.control.release(held, how), f"#{held.n} is {how}")

    def action_edit(self) -> None:
        """Edit the held frame, and release it with the new text."""
        found = self._held()
        if found:
            self._send_instead("edited", found, pretty(self._text(found[0], found[1])), json_mistake)

    def action_answer(self) -> None:
        """Answer the held request in place of its receiver."""
        found = self._held()
        if found is None:
            return
        request = self._request(found[0], found[1])
        if request is None:
            self._refuse("only a request can be answered")
        else:
            self._send_instead("answered", found, answer_text(request), answer_mistake)

    def _send_instead(
        self, how: str, found: tuple[OpenCapture, int, HeldFrame], text: str, mistake: Callable[[str], str | None]
    ) -> None:
        """Open the editor for a text, and release the held frame with it."""
        session, _, held = found
        key = (session.path, held.number, how)
        title = f"{'edit' if how == 'edited' else 'answer'} #{held.n} of {session.header.name}"

        def left() -> str:
            return f"{title} · {_left(session, held) if held.n in session.gates.held else 'it is no longer held'}"

        editor = MessageEditor(left, self._drafts.pop(key, text), mistake, outside=True)

        def done(edited: str | None) -> None:
            if edited is None:
                self._drafts[key] = editor.draft
                return
            session.grow(_LOOK)  # nothing is read while another editor has the terminal
            if held.n not in session.gates.held:
                self._refuse(f"#{held.n} is no longer held")
            elif not self._order(lambda: session.control.release(held, how, one_line(edited)), f"#{held.n} is {how}"):
                self._drafts[key] = edited

        self.app.push_screen(editor, done)

    def action_resend(self) -> None:
        """Send the request of the row again, edited or not, with an id of our own."""
        session, there = self._of_row() or (self._session.sessions[0], None)
        if there is not None and session.line(there).kind in ("result", "error"):
            there = session.partner(there)
        request, selected = self._request(session, there), self.rows.selected
        if request is None and there is not None and session.line(there).kind == "batch":
            self._refuse("a batch cannot be edited here: mcpspy replay --only sends its requests again")
            return
        if request is None or request.sender not in _SPEAKERS:
            self._refuse("only a request of the client can be sent again")
            return
        refused = "the request is too large to edit" if _is_cut(request) else None
        if not refused and not session.index.live:
            self._send_after_end(session, request)
            return
        refused = refused or session.control.refusal()
        if refused:
            self._refuse(refused)
            return
        number = own_id()

        def done(edited: str | None) -> None:
            if edited is not None:
                self._sent[number] = session, selected
                order = one_line(edited)
                self._order(lambda: session.control.send(order, request.session), f"sent again as {number}")

        text = pretty(request.raw.decode(errors="replace"), number)
        title = f"send to {session.header.name} under the id {number}"
        editor = MessageEditor(lambda: title, text, lambda text: request_mistake(text, number))
        self.app.push_screen(editor, done)

    def _send_after_end(self, session: OpenCapture, request: Row) -> None:
        """Send a request in a session of its own."""
        if self.app.is_web:
            self._refuse("the browser starts no server: use the terminal")
            return
        there = session.index.row_of(request.n)
        answer = session.partner(there) if there is not None else None
        send_again(self.screen, session, request, session.line(answer).n if answer is not None else None)

    def _text(self, session: OpenCapture, there: int) -> str:
        """Return the message of a row as text; gates never hold a frame that is too large to be shown."""
        rows = session.messages(there)
        return rows[0].raw.decode(errors="replace") if rows else ""

    def _request(self, session: OpenCapture, there: int | None) -> Row | None:
        """Return the request of a row; None if the row is a batch or is not a request."""
        rows = session.messages(there) if there is not None else []
        return rows[0] if len(rows) == 1 and rows[0].kind == "request" else None


def _left(session: OpenCapture, held: HeldFrame) -> str:
    """Return the text about when a held frame continues automatically."""
    if held.limit is None:
        return "held"
    now = time.time() - datetime.fromisoformat(session.header.started).timestamp()
    return f"continues by itself in {max(int(held.limit / 1e9 - now), 0)} s"


def _is_cut(row: Row) -> bool:
    """Return whether a row has only the start of its frame."""
    return len(row.raw) < row.size
