"""A capture as a script: the client's messages, and the server's messages that each of them causes.

A capture records when messages were sent, not why; a script adds the causes. A server's message belongs to the turn of
the client's message that caused it. Some messages name it: a response names its request, and progress its token. Over
HTTP a stream answers one request. Other messages that came while requests were unanswered belong to the newest of these
requests. If no request was open, they belong to the client's last message. `subscriptions/listen` never ends, so it
does not count as unanswered: its notifications are caused by other messages of the client.

Messages that a gate or a viewer made, and responses to them, do not come from a peer and are not in a script. So a
request that a gate dropped, or answered itself, has no response here. A script normally contains the client's frames as
mcpspy received them, without the acts of a gate. `forwarded` takes the frames as the server received them: changed
frames as they were sent, without the dropped ones, with those that a gate sent in the client's place, and held frames
at the time of their release. Requests of a viewer are left out. So is what `wrap --reload` sent to a server that
replaced another: the ids stay those that the client knows.

A comparison uses other groups: there only a link to a request counts (`ScriptLine.link`), because the rest depends on
timing. The order is that of the times in the capture, in which causes precede effects.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mcpspy.capture.copies import GZIP
from mcpspy.capture.format import LEFT_OUT_BY_CUT, RELOAD, VIEWER
from mcpspy.capture.location import PACKED, shown
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame, Gap, Header, Open, Record, Release
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.gate_acts import is_gate
from mcpspy.conversation.model import ENDLESS, Exchange, Message
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import open_foreign
from mcpspy.json_values import member
from mcpspy.recording.copy import packed
from mcpspy.text import size_text
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result
from mcpspy.wire.subject import subject

LOG = "notifications/message"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@dataclass(slots=True, eq=False)
class ScriptLine:
    """One message of the server."""

    message: Message
    gates: tuple[Message, ...] = ()
    """The client's messages since the line before, for which this one may have waited.

    These are responses to the server's requests of the same turn, and its cancellation.
    """
    link: "Turn | None" = None
    """The turn that it names, by progress token or subscription id."""


@dataclass(slots=True, eq=False)
class Turn:
    """A request, notification or invalid frame of the client, and what the server sent in response."""

    cause: Message
    said: list[ScriptLine] = field(default_factory=list)
    """The lines in order, including the response."""
    linked: list[Message] = field(default_factory=list)
    """The notifications that name it, in any turn."""
    heard: list[Message] = field(default_factory=list)
    """The client's messages to it since the last line."""

    def __str__(self) -> str:
        """Return the method and the name."""
        return f"{self.method} {self.name}" if self.name else str(self.method)

    @property
    def exchange(self) -> Exchange | None:
        """The request and its response; None for a notification."""
        return self.cause.exchange

    @property
    def response(self) -> Message | None:
        """The response."""
        return self.cause.exchange.response if self.cause.exchange else None

    @property
    def method(self) -> str | None:
        """The method; None for an invalid message."""
        body = self.cause.body
        return body.method if isinstance(body, Request | Notification) else None

    @property
    def name(self) -> str | None:
        """The tool, prompt or resource concerned."""
        return subject(self.method, self.params) if self.method else None

    @property
    def params(self) -> Any:
        """The params; None without params."""
        body = self.cause.body
        return body.params if isinstance(body, Request | Notification) else None

    @property
    def endless(self) -> bool:
        """Whether no response is expected."""
        return self.method == ENDLESS

    @property
    def abandoned(self) -> bool:
        """Whether the client cancelled it, or closed its stream, and it was never answered."""
        return self.exchange is not None and self.exchange.cancelled and self.response is None

    @property
    def changed(self) -> bool:
        """Whether the server received something else, or nothing: then its response does not answer this message."""
        act = self.cause.act
        return act is not None and (act.changed or act.waits)

    @property
    def unanswered(self) -> bool:
        """Whether it lacks a response that is expected."""
        return self.exchange is not None and self.exchange.status == "pending" and not self.endless


@dataclass(slots=True)
class Script:
    """The session of a capture, with its causes."""

    header: Header | None
    messages: list[Message] = field(default_factory=list)
    """All messages, in order."""
    turns: list[Turn] = field(default_factory=list)
    """The turns, in the order of the client's messages."""
    opening: list[ScriptLine] = field(default_factory=list)
    """The server's messages before the client's first message."""
    complete: bool = False
    """Whether the capture ended in order."""
    lost: str | None = None
    """Why records are missing, if some are."""

    @property
    def size(self) -> int:
        """The number of bytes that the server sent."""
        return sum(len(it.frame.raw) for it in self.messages if it.sender == "server")

    @property
    def processes(self) -> "list[Script]":
        """The sessions of a stdio capture, each with its own server process; an HTTP capture is one session."""
        if any(message.http for message in self.messages):
            return [self]
        found: dict[int, Script] = {}
        for message in self.messages:
            part = found.setdefault(id(message.session), Script(self.header, complete=self.complete, lost=self.lost))
            part.messages.append(message)
        for turn in self.turns:
            found[id(turn.cause.session)].turns.append(turn)
        for line in self.opening:
            found[id(line.message.session)].opening.append(line)
        return list(found.values()) or [self]

    @property
    def lines(self) -> Iterator[ScriptLine]:
        """All messages of the server, turn by turn."""
        yield from self.opening
        for turn in self.turns:
            yield from turn.said

    @property
    def asked(self) -> list[Message]:
        """The requests of the server."""
        return [it for it in self.messages if it.sender == "server" and isinstance(it.body, Request)]

    @property
    def unasked(self) -> list[Message]:
        """Other messages of the server that name no request: notifications, orphan responses, invalid messages."""
        own = (Notification, Invalid)
        found = (line for line in self.lines if not line.link)
        return [it.message for it in found if isinstance(it.message.body, own) or not it.message.exchange]


def read(header: Header | None, records: Iterable[Record]) -> Script:
    """Return the script of a capture's records."""
    script = Script(header)
    conversation = Conversation()
    answers: dict[int, int] = {}  # the channel of an HTTP request, by that of its response
    made: list[Message] = []
    for record in records:
        if isinstance(record, Open) and record.answers is not None:
            answers[record.ch] = record.answers
        elif isinstance(record, Gap) and record.why != LEFT_OUT_BY_CUT:
            script.lost = script.lost or record.why
        elif isinstance(record, End):
            script.complete = True
        found = [event for event in conversation.feed(record) if isinstance(event, Message)]
        made += [message for message in found if message.act and message.act.made]
        script.messages += [message for message in found if not _is_ours(message)]
    for message in made:  # afterwards, because the conversation has to know what was answered
        _take_back(message)
    builder = _Builder(script, answers)
    for message in script.messages:
        builder.add(message)
    return script


def _is_ours(message: Message) -> bool:
    """Return whether a gate or a viewer made a message, or the request that it answers."""
    asked = message.exchange.request if message.exchange else message
    return any(it.act is not None and it.act.made for it in (message, asked))


def _take_back(message: Message) -> None:
    """Remove a response that a gate or a viewer made."""
    exchange = message.exchange
    if exchange and exchange.response is message:
        exchange.response = exchange.answered = None


class _Builder:
    """Assigns each message to a turn of a script."""

    def __init__(self, script: Script, answers: dict[int, int]) -> None:
        self._script = script
        self._answers = answers
        self._turns: dict[int, Turn] = {}  # by the ordinal of the client's exchange
        self._asked: dict[int, Turn] = {}  # turns with requests of the server, by the ordinal of their exchange
        self._open: list[Turn] = []  # requests without a response

    def add(self, message: Message) -> None:
        """Add the next message."""
        if message.sender != "client":
            self._server(message)
        elif isinstance(message.body, Result | Error):
            if message.exchange and message.exchange.ordinal in self._asked:
                self._asked[message.exchange.ordinal].heard.append(message)
        else:
            self._client(message)

    def _client(self, message: Message) -> None:
        here = (turn for turn in self._open if message.http or turn.cause.session is message.session)
        self._open = [turn for turn in here if not turn.abandoned]
        turn = Turn(message)
        self._script.turns.append(turn)
        if turn.exchange:
            self._turns[turn.exchange.ordinal] = turn
            if not turn.endless:
                self._open.append(turn)
        elif message.cancels and message.cancels.ordinal in self._turns:
            cancelled = self._turns[message.cancels.ordinal]
            cancelled.heard.append(message)
            if cancelled in self._open:
                self._open.remove(cancelled)

    def _server(self, message: Message) -> None:
        link = self._turns.get(message.link) if message.link is not None else None
        if isinstance(message.body, Result | Error):
            turn = self._turns.get(message.exchange.ordinal) if message.exchange else self._newest(message)
            if turn in self._open:
                self._open.remove(turn)
        else:
            own = isinstance(message.body, Notification) and message.body.method in (PROGRESS, _ACKNOWLEDGED)
            turn = link if own and link else self._newest(message)
        line = ScriptLine(message, tuple(turn.heard) if turn else (), link)
        (turn.said if turn else self._script.opening).append(line)
        if turn:
            turn.heard.clear()
            if message.exchange and isinstance(message.body, Request):
                self._asked[message.exchange.ordinal] = turn
        if link:
            link.linked.append(message)

    def _newest(self, message: Message) -> Turn | None:
        """Return the turn that caused a message, as far as time and channel show it."""
        carrier = self._answers.get(message.ch)
        carried = [turn for turn in self._open if carrier is not None and turn.cause.ch == carrier]
        turns = carried or self._open or self._script.turns
        if message.http is None:  # on stdio another session is another process
            turns = [turn for turn in turns[-1:] if turn.cause.session is message.session]
        return turns[-1] if turns else None


def progress_token(params: Any) -> Any:
    """Return the token under which a request asks for progress; None if it does not."""
    return member(params, "_meta", "progressToken")


def answer(body: Result | Error) -> dict[str, Any]:
    """Return a response without its envelope."""
    return {"result": body.result} if isinstance(body, Result) else {"error": body.error}


def as_forwarded(records: Iterable[Record]) -> list[Record]:
    """Return the records in the order of their times. Some times differ from the recorded ones."""
    found = list(records)
    channels = {it.ch for it in found if isinstance(it, Open) and it.sender == "client"}
    releases = {it.held: it for it in found if isinstance(it, Release)}
    forwarded: list[Record] = []
    for record in found:
        if isinstance(record, Frame) and is_gate(record.by):
            if record.by == VIEWER or (record.by == RELOAD and (record.dropped or record.sender == "mcpspy")):
                continue
            if record.ch in channels and not (record.by == RELOAD and record.sent is not None):
                frame = _as_forwarded(record, releases)
                forwarded += [frame] if frame else []
                continue
        forwarded.append(record)
    return sorted(forwarded, key=lambda record: record.t)


def _as_forwarded(frame: Frame, releases: dict[int, Release]) -> Frame | None:
    """Return a frame of the client's channel as the server received it; None if it was not forwarded."""
    told: Frame | Release | None = frame if frame.held is None else releases.get(frame.held)
    if told is None or told.dropped:
        return None
    raw = frame.raw if told.sent is None else told.sent
    return replace(frame, t=told.t, raw=raw, sender=None, sent=None, by=None, held=None)


LARGEST = 64 << 20
"""Maximum size of a frame, in bytes: a replayed frame has to be decoded as a whole."""


def load(path: str, say: Callable[[str], None], *, forwarded: bool = False) -> Script:
    """Return the script of the capture at `path`; `say` receives a notice if the capture has no end.

    With `forwarded`, the client's frames are those that a gate forwarded.

    Raises CaptureError if the capture has no message of a client, or is truncated or damaged in mid-session.
    """
    if Capture(path).live:
        raise CaptureError(f"{shown(path)} is still being recorded: end its session first")
    script = script_of(path, forwarded=forwarded)
    if not any(message.sender == "client" for message in script.messages):
        raise CaptureError(f"{shown(path)} has no message of a client: there is nothing to replay")
    if script.lost:
        raise CaptureError(f"{shown(path)} is truncated in mid-session ({script.lost}): record it again")
    if not script.complete:
        waiting = [turn for turn in script.turns if turn.unanswered]
        if waiting:
            what = f"{waiting[0].method} (#{waiting[0].cause.n})"
            raise CaptureError(
                f"{shown(path)} is truncated in mid-session: {what} has no answer, and the capture has no end"
            )
        say(f"{shown(path)} has no end, because its relay was killed; it is replayed as far as it goes")
    return script


def script_of(path: str, advance: Callable[[int], None] | None = None, *, forwarded: bool = False) -> Script:
    """Return the script of any capture at `path`. Raises CaptureError.

    `advance` is called with each number of bytes that was read, for a progress bar.
    """
    capture = Capture(path)
    records = capture.records(LARGEST, advance)
    script = read(capture.header, as_forwarded(records) if forwarded else records)
    for message in script.messages:
        if message.frame.omitted:
            size = f"{size_text(message.frame.size)}, more than the {size_text(LARGEST)} that can be replayed"
            raise CaptureError(f"{shown(path)} cannot be replayed: frame #{message.n} has {size}")
    return script


def accept(new: str, capture: str) -> None:
    """Replace the capture by the session at `new`: completely or not at all, with the permissions of the old file.

    A symbolic link stays one, a compressed file stays compressed. Raises CaptureError.
    """
    target = os.path.realpath(capture)
    try:
        fd, beside = tempfile.mkstemp(prefix=f"{os.path.basename(target)}.", dir=os.path.dirname(target))
        os.close(fd)
        try:
            compress = _is_compressed(target)
            with open_foreign(new) as source, open(beside, "wb") as output, packed(output, compress=compress) as file:
                shutil.copyfileobj(source, file)
            if os.path.exists(target):
                shutil.copymode(target, beside)
            os.replace(beside, target)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as error:
        raise CaptureError(f"cannot replace {capture}: {error.strerror}") from error


def _is_compressed(target: str) -> bool:
    """Return whether the file at a path is compressed, or, if there is none, its name says so."""
    if not os.path.exists(target):
        return target.endswith(PACKED)
    with open_foreign(target) as file:
        return file.read(len(GZIP)) == GZIP
