"""The fold from records to messages that know their exchange, and to other events that deserve a row.

The meaning of a frame depends on its channel. A line of stdin or stdout is a message, a line of stderr is text, and
`mcpspy.conversation.http_sessions` interprets the frames of HTTP. Each message belongs to a session, in which it is
paired (`mcpspy.conversation.pairing`). Nothing here decides what is right or wrong: the rules judge the output.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from mcpspy.capture.format import RELOAD
from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record, Release, Signal
from mcpspy.conversation.bounds import Recent
from mcpspy.conversation.gate_acts import GateAct, GateActs, is_gate
from mcpspy.conversation.http_sessions import HttpSessions
from mcpspy.conversation.model import Event, Exchange, HttpChannel, HttpUnit, Message, ServerExit, Session, StreamEnd
from mcpspy.conversation.outcomes import Outcome, Outcomes
from mcpspy.conversation.pairing import join_refusal, pair
from mcpspy.wire.jsonrpc import Error, Notification, Request, outline, parse

_AT_ONCE = 50_000_000  # nanoseconds


@dataclass(slots=True)
class _ProcessStream:
    """An open channel of a process."""

    opened: Open
    session: Session
    latest: int | None = None
    """The time of its latest frame."""


class Conversation:
    """Folds the records of one capture, in the order of their times. `feed` each record.

    `rest` is called with each session that was idle for long, `drop` with each that is forgotten. They may change what
    rules know of a session, and must not change which events follow.
    """

    def __init__(
        self, rest: Callable[[Session], None] = lambda _: None, drop: Callable[[Session], None] = lambda _: None
    ) -> None:
        self._channels: dict[int, _ProcessStream] = {}  # channels that are not HTTP
        self._stdio = Session()  # the latest; a second stdin begins another one
        self._earlier: list[Session] = []  # sessions before it that have requests without a response
        self._processes: Recent[Session, Session] = Recent(lambda session, _: rest(session), lambda it, _: drop(it))
        self._stdin = False  # the latest session has a stdin
        self._since_gap: dict[Session, None] = {}  # sessions with requests since the last gap
        self._outcomes = Outcomes()
        self.decided: list[Outcome] = self._outcomes.decided
        """The outcomes that the latest record decided, if no message of their exchanges shows them."""
        self._http = HttpSessions(self._outcomes, rest, self._drop)
        self._ending: End | None = None
        self._forget = drop
        self._acts = GateActs()
        self._requests = 0
        self.newest = 0
        """The time of the newest record so far; a record with an earlier time is out of order."""
        self.released: GateAct | None = None
        """What happened to the frame that the last `release` record was about."""

    def feed(self, record: Record) -> Iterable[Event]:
        """Take the next record; iterate over its events once, before you feed the next record."""
        if record.t > self.newest:  # noqa: PLR1730 (`max` takes four times as long)
            self.newest = record.t
        if self.decided:
            self.decided.clear()
        return self._frame(record) if type(record) is Frame else self._other(record)

    @property
    def expected(self) -> Mapping[tuple[int, int], str]:
        """By line number and part of a request that failed: why that turned out to be normal."""
        return self._outcomes.expected

    def end(self) -> list[Outcome]:
        """Take the end of the capture: return the outcomes of requests to which nothing follows."""
        self.decided.clear()
        self._outcomes.end(self.pending(), self._http.requests(), self.newest, self._ending)
        return self.decided

    def _other(self, record: Record) -> Iterator[Event]:
        """Yield the events of a record that is not a frame."""
        if isinstance(record, Open):
            if record.role in ("stdin", "stdout", "stderr"):
                self._begin_stream(record)
            else:
                yield from self._head(record)
        elif isinstance(record, Close):
            stream = self._channels.pop(record.ch, None)
            if stream is None:
                yield from self._http.close(record)
            else:
                yield from self._end_stream(stream, record)
        elif isinstance(record, Release):
            self.released = self._acts.release(record)
            if self.released:
                self._outcomes.released(self.released.n, record.t)
        else:
            if isinstance(record, Gap):
                for session in self._since_gap:
                    for exchange in session.exchanges():
                        exchange.in_doubt = True
                self._since_gap.clear()
            elif isinstance(record, Signal):
                self._take_signal(record)
            elif isinstance(record, End):
                self._ending = record
            yield record

    def _head(self, opened: Open) -> Iterator[HttpUnit]:
        """Open an HTTP channel; the head of a response that a gate made is attributed to the gate."""
        for unit in self._http.open(opened):
            if opened.sender == "mcpspy" and is_gate(opened.by):
                unit.act, unit.sender = GateAct(opened.n, opened.t, opened.by or "", "made"), "mcpspy"
            yield unit

    def _take_signal(self, signal: Signal) -> None:
        """Record that the client left; a signal to the group may have ended the server before mcpspy received it."""
        session = self._stdio
        session.signalled = signal.t if session.signalled is None else session.signalled
        if session.gone is not None and signal.to == "group" and signal.t - session.gone < _AT_ONCE:
            session.gone = None
        if session.gone is None and session.left is None:
            session.left = signal.t

    def _begin_stream(self, opened: Open) -> None:
        """Open a channel of a process; a second stdin belongs to the next process, unless it is the same channel."""
        if opened.role == "stdin" and opened.ch not in self._channels:
            if self._stdin:
                self._earlier += [self._stdio] if any(self._stdio.exchanges()) else []
                self._processes.add(self._stdio, self._stdio)
                self._stdio = Session(begun_at=opened.t)
            self._stdin = True
        self._channels[opened.ch] = _ProcessStream(opened, self._stdio)

    def _end_stream(self, stream: _ProcessStream, closed: Close) -> Iterator[StreamEnd]:
        """Learn who left first: the client, which closes stdin or stops reading, or the server.

        If the server exits, stdin ends too, and only the end of stdout is an event.
        """
        opened, session = stream.opened, stream.session
        if opened.role == "stderr":
            return
        by_server = ("exit", "abort") if opened.role == "stdin" else ("exit", "eof", "reset")
        if session.left is None and session.gone is None:
            if closed.how in by_server:
                session.gone = closed.t
            else:
                session.left = closed.t
        if opened.role == "stdout" or closed.how != "exit":
            revision = session.negotiated or session.stated
            yield StreamEnd(opened, closed, session, revision, opened.t, stream.latest)

    def exit(self, end: End) -> ServerExit | None:
        """Return how the server's process ended, or None if the capture does not record that."""
        session = self._stdio
        told = end.why is not None or end.code is not None or end.signal is not None
        return ServerExit(end, session, session.negotiated or session.stated) if told else None

    def sessions(self) -> list[Session]:
        """Return all remembered sessions, the oldest first."""
        return [*self._processes, self._stdio, *self._http.sessions()]

    def pending(self) -> Iterator[Exchange]:
        """Yield the exchanges without a message in response, oldest first within a session."""
        for session in [*self._earlier, self._stdio, *self._http.sessions()]:
            yield from session.exchanges()
            yield from session.refused

    def _drop(self, session: Session) -> None:
        self._since_gap.pop(session, None)
        self._forget(session)

    def _frame(self, frame: Frame) -> Iterable[Message | HttpUnit | Frame]:
        """Return the messages of a frame, or the frame itself or an `HttpUnit` if it is not a message.

        The messages of a batch are computed lazily: each is entered after the caller has used the one before it.
        """
        http: HttpChannel | None = None
        stream = self._channels.get(frame.ch)
        if stream:
            if stream.opened.role == "stderr":
                return (frame,)
            process, stream.latest = stream.session, frame.t
            side: str = stream.opened.sender
        else:
            http, process = self._http.channel(frame.ch), self._stdio
            side = http.sender if http else "client"
        sender = frame.sender or side
        act: GateAct | None = None
        if frame.by is not None:
            made = "mcpspy" if http and http.opened.sender == "mcpspy" else sender
            act = self._acts.take(frame, made)
            sender = made if act else sender
        if frame.by == RELOAD and frame.sent is not None and side == "server":
            frame = replace(frame, raw=frame.sent)  # `sent` has the ids that the client knows
        if http:
            found = self._http.read(frame, http)
            if isinstance(found, HttpUnit):
                found.act, found.sender = act, sender
                return (found,)
            frame = found
        spoken = http.spoken if http else None
        bodies = (outline(frame.raw, frame.omitted.tail),) if frame.omitted else parse(frame.raw)
        first = Message(frame.n, 0, frame.t, frame.ch, sender, side, frame, bodies[0], process, http, spoken)
        if act:
            first.act = act
        if len(bodies) == 1:  # the usual case, without a generator
            return (self._enter(first),)
        batch = [replace(first, part=part, body=body) for part, body in enumerate(bodies)]
        return map(self._enter, batch)

    def _enter(self, message: Message) -> Message:
        """Enter the next message into its session, where it may answer or cancel an earlier one."""
        http, body = message.http, message.body
        if http:
            message.session = self._http.session(http, body)
            if http.request is None:
                http.carried.append(message)
        elif message.session is not self._stdio and self._processes.use(message.session) is None:
            self._processes.add(message.session, message.session)  # a late message of an earlier process
        pair(message, self._requests, http.answers if http else None)
        if type(body) is Request:
            self._requests += 1
            self._since_gap[message.session] = None
            if message.exchange:
                if message.t < self.newest:
                    message.exchange.in_doubt = True
                self._outcomes.requested(message, message.exchange)
            return message
        if http and message.exchange is None:
            _join_refusal(message, http)
        if message.exchange:
            self._outcomes.answered(message, message.exchange)
        elif message.cancels or type(body) is Notification:
            self._outcomes.notified(message)
        return message


def events_of(records: Iterable[Record]) -> Iterator[Event]:
    """Yield the events of a capture, without judging them."""
    conversation = Conversation()
    return chain.from_iterable(map(conversation.feed, records))


def decided_events(records: Iterable[Record], *, live: bool = False) -> Iterator[Event | Outcome]:
    """Yield the events of all records, and the outcomes that no event shows; nothing follows unless it is `live`."""
    conversation = Conversation()
    for record in records:
        yield from conversation.feed(record)
        yield from conversation.decided
    if not live:
        yield from conversation.end()


def _join_refusal(message: Message, http: HttpChannel) -> None:
    """Join an error with another id, or without one, to the request of its POST, if the status is a failure."""
    if isinstance(message.body, Error) and http.failed and http.request:
        join_refusal(message, http.request.carried)
