"""A request sent again after its session has ended: edited, sent by `mcpspy replay`, compared with the recorded answer.

Only a process with one thread can start a server and end it properly, so another process does that. It checks again
whether the server that the capture names may be used. The user sees
all that will be sent, and agrees.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import PIPE
from typing import Any, ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from mcpspy.browse.timeline import OpenCapture
from mcpspy.clients.recorded import recorded, trusted
from mcpspy.errors import CaptureError, UsageError
from mcpspy.process.command_line import words_of
from mcpspy.replay.again import QUESTION, edited_request
from mcpspy.replay.differences import ABSENT
from mcpspy.text import printable, printable_whole
from mcpspy.timeline import Row
from mcpspy.tui.compare import ComparedSide, FrameWanted, MessagesCompared, side_of
from mcpspy.tui.message.editor import MessageEditor
from mcpspy.tui.message.text import one_line, pretty
from mcpspy.tui.widgets.dialogs import LinePrompt
from mcpspy.tui.widgets.keys import Keys, bindings
from mcpspy.tui.widgets.rows import Jump

_STEP = 0.05  # seconds of reading the new capture at once


class Answered(NamedTuple):
    """What came of a request that was sent again."""

    path: str
    """The new capture."""
    request: int
    """The line of the request in it."""
    answer: int
    """The line of the answer."""
    side: ComparedSide


def send_again(screen: Screen[Any], session: OpenCapture, request: Row, response: int | None) -> None:
    """Let the user edit a request of a session that has ended, send it, and show both answers.

    `response` is the line of the recorded answer.
    """

    def done(answered: Answered | str | None) -> None:
        if isinstance(answered, str):
            title, told = f"#{request.n} again", printable(answered, 600)
            screen.notify(told, title=title, severity="error", markup=False, timeout=20)
        elif answered:
            _compare(screen, session, response, answered)

    def edit(server: Sequence[str]) -> None:
        def send(text: str | None) -> None:
            if text is not None:
                screen.app.push_screen(SendingAgain(session.path, request.n, server, one_line(text)), done)

        title = f"send #{request.n} again, in a session of its own"
        text = pretty(request.raw.decode(errors="replace"))
        screen.app.push_screen(MessageEditor(lambda: title, text, _mistake(request)), send)

    def typed(line: str | None) -> None:
        if line is not None:
            edit(_arguments(line))

    try:
        recorded(trusted(session.path)).complete(_refuse)
    except (CaptureError, UsageError) as error:
        title = f"{error}: type the command or the URL to send it to"
        screen.app.push_screen(LinePrompt(title, "", _accepted), typed)
    else:
        edit([])


def _refuse(where: str) -> str:
    raise UsageError(f"the command has a redacted value ({printable(where, 80)}), which 'mcpspy replay' asks for")


def _accepted(line: str) -> str:
    """Return a typed command or URL. Raises UsageError."""
    _arguments(line)
    return line


def _arguments(line: str) -> list[str]:
    """Return the arguments of `mcpspy replay` for a typed command or URL. Raises UsageError."""
    if line.strip().startswith(("http://", "https://")):
        return ["--url", line.strip()]
    try:
        words = words_of(line, sys.platform)
    except ValueError as error:
        raise UsageError(f"the command is malformed: {str(error).lower()}") from None
    if not words:
        raise UsageError("type a command, such as python server.py, or a URL")
    return ["--", *words]


def _mistake(request: Row) -> Callable[[str], str | None]:
    def mistake(text: str) -> str | None:
        try:
            edited_request(one_line(text), request.id)
        except UsageError as error:
            return str(error)
        return None

    return mistake


def _compare(screen: Screen[Any], session: OpenCapture, response: int | None, answered: Answered) -> None:
    """Show both answers; then, if the user wants, one of them in its session."""
    before = side_of(session, response) if response is not None else ComparedSide("no answer", ABSENT)
    sides = (
        before._replace(title=f"recorded  {before.title}"),
        answered.side._replace(title=f"now  {answered.side.title}"),
    )

    def chosen(side: int | None) -> None:
        if side == 1:
            screen.post_message(FrameWanted(answered.path, answered.answer))
        elif side == 0 and response is not None:
            screen.post_message(Jump(response))

    screen.app.push_screen(MessagesCompared(*sides), chosen)


class SendingAgain(ModalScreen[Answered | str | None]):
    """Shows what is sent, asks, and waits; the result is the answer, or why there is none, or None if there is no wish.

    The other process says what it will send, and sends exactly that after the answer y: the capture may change.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("sending")

    def __init__(self, path: str, n: int, server: Sequence[str], text: str) -> None:
        """`server` are the arguments of `mcpspy replay` that name the server; none: the one that the capture names."""
        super().__init__()
        self._text = text
        self._sender: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._argv = [
            *(sys.executable, "-P", "-m", "mcpspy", "replay", os.path.abspath(path)),
            *("--only", str(n), "--edit", "--format", "json", *server),
        ]

    def compose(self) -> ComposeResult:
        """Yield the state, what is sent, and the keys."""
        with Vertical(classes="dialog"):
            yield Static("reading the capture", classes="dialog--title", markup=False)
            with VerticalScroll():
                yield Static(id="plan", markup=False)
            yield Keys()

    def on_mount(self) -> None:
        """Start the process."""
        try:
            self._sender = subprocess.Popen(self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        except OSError as error:
            self.dismiss(f"cannot start mcpspy: {error.strerror}")
        else:
            self._follow(self._sender)

    def on_unmount(self) -> None:
        """End the process, which ends its server."""
        if self._sender:
            self._sender.terminate()

    def action_send(self) -> None:
        """Agree."""
        if self._asked:
            self._asked = False
            self._show("waiting for the answer")
            self._tell(b"y\n")

    def _tell(self, line: bytes) -> None:
        assert self._sender
        assert self._sender.stdin
        with suppress(OSError):  # it has ended
            self._sender.stdin.write(line)
            self._sender.stdin.flush()

    @work(thread=True)
    def _follow(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait for the question, for the end of the process, and for the answer in the new capture."""
        assert process.stdout
        assert process.stderr
        self._tell(self._text.encode("utf-8", "replace") + b"\n")
        told: list[str] = []
        with process, ThreadPoolExecutor(1) as pool:
            output = pool.submit(process.stdout.read)
            for line in process.stderr:
                told.append(line.decode(errors="replace").rstrip("\n"))
                if told[-1] == QUESTION and self.is_attached:
                    self.app.call_from_thread(self._ask, told[:-1])
            printed = output.result()
        if self.is_attached:
            self.app.call_from_thread(self.dismiss, _answered(printed, told))

    def _ask(self, plan: Sequence[str]) -> None:
        self._asked = True
        self.query_one("#plan", Static).update("\n".join(map(printable_whole, plan)))
        self._show("y sends it")
        self.query_one(VerticalScroll).focus()

    def _show(self, state: str) -> None:
        self.query_one(".dialog--title", Static).update(state)


def _answered(output: bytes, told: Sequence[str]) -> Answered | str:
    """Return what `mcpspy replay` printed, with the answer from the new capture; a text is the reason for no answer."""
    try:
        report = json.loads(output)
        found, path = report["exchanges"][0], report["capture"]
    except (ValueError, LookupError, TypeError):
        return told[-1].removeprefix("mcpspy: ") if told else "mcpspy replay printed nothing"
    try:
        answer = _read(path, found["observed"])
    except CaptureError as error:
        return str(error)
    if answer is None:
        why = found["reason"] or "it was not answered"
        return "\n".join([why, *report["stderr"][-5:], f"recorded in {path}"])
    return answer


def _read(path: str, n: int | None) -> Answered | None:
    """Return the answer to the request on line `n` of a capture; None if it has none. Raises CaptureError."""
    session = OpenCapture(path)
    try:
        while session.grow(_STEP):
            pass
        there = session.index.row_of(n) if n is not None else None
        partner = session.partner(there) if there is not None else None
        if n is None or partner is None:
            return None
        line = session.line(partner).n
        return Answered(path, n, line, side_of(session, line))
    finally:
        session.close()
