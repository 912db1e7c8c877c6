"""The fold from records to messages that know their exchange, and to what else is worth a row.

What a frame means depends on its channel: a line of stdin or stdout is a message, a line of stderr is text, and over
HTTP there is more to know (`mcpspy.conversation.http_sessions`). Messages then belong to a session, which pairs them
(`mcpspy.conversation.session`). Nothing here decides what is right or wrong: the rules judge what comes out.
"""

from collections.abc import Iterator

from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record, Release, Signal
from mcpspy.conversation.http_sessions import Place, Remark, Web
from mcpspy.conversation.session import Exchange, Message, Session
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Body, Request, Undecoded, parse
from mcpspy.wire.outline import outline

Event = Message | Remark | Frame | Gap | Signal | End
"""What comes out: messages, heads and SSE events without one, lines of stderr, gaps, signals and the end."""


class Conversation:
    """Folds the records of one capture, in the order of their times; `feed` each."""

    def __init__(self) -> None:
        self._channels: dict[int, Open] = {}
        self._stdio = Session()
        self._asked: dict[Session, None] = {}  # those with requests since the last gap
        self._web = Web(self._drop)
        self._requests = 0
        self.newest = 0
        """The time of the newest record so far; one that is older comes out of its order."""

    def feed(self, record: Record) -> Iterator[Event]:
        """Take the next record and yield what it completes."""
        self.newest = max(self.newest, record.t)
        if isinstance(record, Frame):
            yield from self._frame(record)
        elif isinstance(record, Open):
            if record.role in ("stdin", "stdout", "stderr"):
                self._channels[record.ch] = record
            else:
                yield from self._web.open(record)
        elif isinstance(record, Close):
            if self._channels.pop(record.ch, None) is None:
                yield from self._web.close(record)
        elif not isinstance(record, Release):
            if isinstance(record, Gap):
                for session in self._asked:
                    for exchange in session.exchanges():
                        exchange.in_doubt = True
                self._asked.clear()
            yield record

    def pending(self) -> Iterator[Exchange]:
        """The exchanges without a message in answer, oldest first within a session."""
        for session in self._sessions():
            yield from session.exchanges()
            yield from session.refused

    def _sessions(self) -> list[Session]:
        return [self._stdio, *self._web.sessions()]

    def _drop(self, session: Session) -> None:
        """Nothing more is known of a session."""
        self._asked.pop(session, None)

    def _take(self, message: Message, fallback: Revision | None, carrier: int | None) -> Message:
        """Hand a message to its session; the answer to a request out of its order may have come before it."""
        session = message.session
        session.feed(message, ordinal=self._requests, fallback=fallback, carrier=carrier)
        if isinstance(message.body, Request):
            self._requests += 1
            self._asked[session] = None
            if message.exchange and message.t < self.newest:
                message.exchange.in_doubt = True
        return message

    def _frame(self, frame: Frame) -> Iterator[Message | Remark | Frame]:
        place = self._web.place(frame.ch)
        if place:
            for read in self._web.read(frame, place):
                if isinstance(read, Remark):
                    yield read
                else:
                    yield from self._messages(read, place)
            return
        channel = self._channels.get(frame.ch)
        if channel and channel.role == "stderr":
            yield frame
        else:
            sender = frame.sender or (channel.sender if channel else "client")
            for part, body in enumerate(_bodies(frame)):
                message = Message(frame.n, part, frame.t, frame.ch, sender, frame, body, self._stdio)
                yield self._take(message, None, None)

    def _messages(self, frame: Frame, place: Place) -> Iterator[Message]:
        """The messages of a frame that came over HTTP."""
        fallback = place.spoken
        for part, body in enumerate(_bodies(frame)):
            session = self._web.session(place, body)
            sender = frame.sender or place.sender
            message = Message(frame.n, part, frame.t, frame.ch, sender, frame, body, session, place)
            if place.asked is None:
                place.carried.append(message)
            yield self._take(message, fallback, place.answers)


def _bodies(frame: Frame) -> tuple[Body | Undecoded, ...]:
    """The messages of a frame; of one that is too large to be decoded what its ends tell."""
    return (outline(frame.raw, frame.omitted.tail),) if frame.omitted else parse(frame.raw)
