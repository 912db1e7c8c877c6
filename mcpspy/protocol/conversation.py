"""The fold from records to messages that know their exchange, and to what else is worth a row.

What a frame means depends on its channel: a line of stdin or stdout is a message, a line of stderr is text, and over
HTTP there is more to know (`mcpspy.protocol.web`). Messages then belong to a session, which pairs them
(`mcpspy.protocol.session`). Nothing here decides what is right or wrong: the rules judge what comes out.
"""

from collections.abc import Iterator

from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record
from mcpspy.protocol.session import Exchange, Message, Session
from mcpspy.protocol.web import Place, Remark, Web
from mcpspy.wire.jsonrpc import Request, parse

Event = Message | Remark | Frame | Gap | End
"""What comes out: messages, heads and SSE events without one, lines of stderr, gaps and the end."""


class Conversation:
    """Folds the records of one capture; `feed` each, then `end`."""

    def __init__(self) -> None:
        self._channels: dict[int, Open] = {}
        self._stdio = Session()
        self._web = Web()
        self._requests = 0

    def feed(self, record: Record) -> Iterator[Event]:
        """Take the next record and yield what it completes."""
        if self._web.sessions or self._stdio.waiting:
            for session in self._sessions():
                yield from session.release(record.t)
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
        else:
            if isinstance(record, Gap):
                for exchange in self.pending():
                    exchange.in_doubt = True
            yield record

    def end(self) -> Iterator[Event]:
        """Yield what was held for what did not come."""
        for session in self._sessions():
            yield from session.end()

    def pending(self) -> Iterator[Exchange]:
        """The exchanges without a message in answer, oldest first within a session."""
        for session in self._sessions():
            yield from session.exchanges()
            yield from session.refused

    def _sessions(self) -> tuple[Session, ...]:
        return (self._stdio, *self._web.sessions) if self._web.sessions else (self._stdio,)

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
            for part, body in enumerate(parse(frame.raw)):
                message = Message(frame.n, part, frame.t, frame.ch, sender, frame, body, self._stdio)
                yield from self._stdio.feed(message, ordinal=self._requests, fallback=None, carrier=None)
                self._requests += isinstance(body, Request)

    def _messages(self, frame: Frame, place: Place) -> Iterator[Message]:
        """The messages of a frame that came over HTTP."""
        fallback = place.spoken
        for part, body in enumerate(parse(frame.raw)):
            session = self._web.session(place, body)
            sender = frame.sender or place.sender
            message = Message(frame.n, part, frame.t, frame.ch, sender, frame, body, session, place)
            if place.asked is None:
                place.carried.append(message)
            yield from session.feed(message, ordinal=self._requests, fallback=fallback, carrier=place.answers)
            self._requests += isinstance(body, Request)
