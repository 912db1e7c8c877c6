"""Messages, exchanges, sessions and HTTP channels: plain data, and what can be read off it.

Who fills it in: `mcpspy.conversation.pairing` the exchanges, `mcpspy.conversation.http_sessions` the HTTP channels,
`mcpspy.conversation.conversation` the messages. A session knows no HTTP; a message knows the HTTP channel that it came
on, if any.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpspy.capture.records import End, Frame, Gap, Gates, Open, Signal
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.spec.revisions import Revision
from mcpspy.wire.http_head import media_type, status
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, Undecoded
from mcpspy.wire.subject import subject

HOLD = 1_000_000_000
"""Nanoseconds for which a rule waits for what another connection may have brought meanwhile."""

REMEMBERED = 8192
"""Answered exchanges that a session remembers: 4096 a direction, if both ask as much."""

ENDLESS = "subscriptions/listen"
"""The request that is answered only when its subscription ends: without an answer it is complete (2026-07-28)."""

_UNREACHED = (502, 504)
_WITH_ID = (Request, Result, Error)  # as a tuple: a union would be made anew for each message
_FAILURE = 400  # and above: the statuses of failure


@dataclass(slots=True)
class Message:
    """One message, or what stands in its place, with its address and what it belongs to."""

    n: int
    part: int
    """Its place in a batch, else 0."""
    t: int
    ch: int
    sender: str
    side: str
    """The sender; of a message of ours, the side in whose place we sent it."""
    frame: Frame
    """Of an SSE event: with its data in place of the block."""
    body: Body | Undecoded
    session: "Session"
    http: "HttpChannel | None" = None
    """Over HTTP: the channel that it came on."""
    revision: Revision | None = None
    exchange: "Exchange | None" = None
    cancels: "Exchange | None" = None
    """Of `notifications/cancelled`: what it cancels, where that was still pending."""
    act: GateAct | None = None
    """What a gate did to its frame."""
    link: int | None = None
    """Of a notification: the ordinal of the exchange that it names by progress token or subscription."""

    @property
    def id(self) -> Id | None:
        """The id of a request or response."""
        return self.body.id if isinstance(self.body, _WITH_ID) else None

    @property
    def method(self) -> str | None:
        """The method; of a response that of its request."""
        if self.exchange:
            return self.exchange.method
        return self.body.method if isinstance(self.body, Notification) else None

    @property
    def name(self) -> str | None:
        """The tool, prompt or resource concerned."""
        if self.exchange:
            return self.exchange.name
        return subject(self.body.method, self.body.params) if isinstance(self.body, Notification) else None


@dataclass(slots=True)
class Exchange:
    """A request and its response."""

    ordinal: int
    """How many requests the capture held before this one."""
    request: Message
    method: str
    name: str | None
    """The tool, prompt or resource concerned."""
    revision: Revision | None
    response: Message | None = None
    answered: int | None = None
    """When, in nanoseconds since the capture started."""
    cancelled: bool = False
    in_doubt: bool = False
    """Records were lost after the request, or not decoded: the response may be among them."""
    undecoded: bool = False
    """The response was too large to be decoded, or such a frame may be the response."""
    refused: bool = False
    """Over HTTP: a status of failure came instead of a response."""
    lost: int | None = None
    """Over HTTP: the line number at which the server broke off, or could not be reached."""
    left: int | None = None
    """Over HTTP: when the client gave up, in nanoseconds since the capture started; None where it only cancelled."""
    underlying: str | None = None
    """Of `tasks/result`, once it is answered: the method whose result that is, where it is known (2025-11-25)."""
    inputs: frozenset[str] | None = None
    """Where the response is `input_required`: the methods of what it asks for (2026-07-28)."""
    continues: int | None = None
    """The line number of the answer `input_required` that the request goes on from."""

    @property
    def key(self) -> tuple[str, Id]:
        """The sender and id of the request: a response from the other side with that id answers it."""
        body = self.request.body
        assert isinstance(body, Request)
        return self.request.side, body.id

    @property
    def status(self) -> str:
        """`pending` without a response, `held`, `dropped`, `cancelled`, `error`, `tool-error`, `ok`, `not-decoded`."""
        if self.cancelled:
            return "cancelled"
        if self.response is None:
            act = self.request.act
            passed = "not-decoded" if self.undecoded else "pending"
            return "error" if self.refused else (act and act.status) or passed
        if isinstance(self.response.body, Error):
            return "error"
        if self.undecoded:
            return "not-decoded"
        result = self.response.body.value.get("result")
        return "tool-error" if isinstance(result, dict) and result.get("isError") is True else "ok"

    def final_status(self, *, live: bool) -> str:
        """The status when there are no more records: a request that nobody will answer is `unanswered`."""
        lacking = self.status == "pending" and not (live or self.in_doubt or self.method == ENDLESS)
        return "unanswered" if lacking else self.status

    @property
    def latency(self) -> int | None:
        """Nanoseconds from the request to its response, less those for which a gate held the request."""
        if self.answered is None:
            return None
        act = self.request.act
        return self.answered - self.request.t - (act.held or 0 if act else 0)

    def untie(self) -> None:
        """Drop what refers back to it, for those who keep no message: only the garbage collector would free all that.

        Its status is no longer known.
        """
        self.request.exchange = self.response = None


@dataclass(slots=True, eq=False)
class Session:
    """What one client has agreed on with the server, and the exchanges between the two."""

    name: str | None = None
    """The session id, where the transport has one."""
    partial: bool = False
    """Earlier or parallel messages may be missing from the capture: nothing is called missing."""
    requested: Revision | None = None
    """The revision that the latest `initialize` asked for."""
    negotiated: Revision | None = None
    stated: Revision | None = None
    """By the latest request that stated one itself; by a `server/discover` only when that has succeeded."""
    pending: dict[tuple[str, Id], list[Exchange]] = field(default_factory=dict)
    """By the sender and id of the request."""
    completed: dict[tuple[str, Id], tuple[int, int]] = field(default_factory=dict)
    """The last exchanges that were answered: the line numbers of request and response."""
    last_answered: int = 0
    """The line number of the last request that was answered."""
    refused: deque[Exchange] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Those that were refused without a message (over HTTP, by a status)."""
    tasks: dict[tuple[str, str], str] = field(default_factory=dict)
    """By the sender and the id of the task: the method of the request that the last tasks stand for (2025-11-25)."""
    tokens: dict[tuple[str, Id], int] = field(default_factory=dict)
    """By the sender and its progress token: the ordinal of the latest request that asks for progress by it."""
    subscriptions: dict[Id, int] = field(default_factory=dict)
    """By id: the ordinal of the latest `subscriptions/listen` (2026-07-28)."""
    rounds: dict[tuple[str, str | None], deque["Round"]] = field(default_factory=dict)
    """By method and name: the latest answers `input_required` (2026-07-28)."""
    initialize: Exchange | None = None
    """While it is not answered."""
    left: int | None = None
    """On stdio: when the client began to end the session, by a signal or by closing stdin."""
    gone: int | None = None
    """On stdio: when the server closed stdout, or took no more, if the client had not left before."""

    @property
    def begun(self) -> bool:
        """Whether its client has initialized it, or is about to."""
        return self.negotiated is not None or self.initialize is not None

    def exchanges(self) -> Iterator[Exchange]:
        """The exchanges without a response, oldest first."""
        for exchanges in self.pending.values():
            yield from exchanges

    def with_id_of(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """The exchanges without a response that have the sender and id of one, itself among them."""
        return tuple(self.pending.get(exchange.key, ()))

    def rest(self) -> None:
        """Forget what is over, of a session that was idle for long: later messages may repeat or answer it."""
        self.partial = True
        for table in (self.completed, self.tasks, self.tokens, self.subscriptions, self.rounds):
            table.clear()


@dataclass(slots=True)
class Round:
    """An answer by which a server asks for input before it goes on (2026-07-28)."""

    answer: int
    """The line number of the result."""
    t: int
    id: Id
    """Of the request."""
    key: int
    """The mark of its params."""
    state: int | None
    """The mark of its `requestState`."""
    asked: frozenset[str]
    """The keys of its `inputRequests`."""
    continued: bool = False
    """A request went on from it."""


@dataclass(slots=True)
class Delivery:
    """An SSE event that has an id."""

    n: int
    data: int
    """A hash of its data."""
    stream: int
    """The channel of the request whose stream it belongs to, resumed or not."""


@dataclass(slots=True)
class HttpChannel:
    """An HTTP request body, an HTTP response body or one direction of a WebSocket, and what is known of it."""

    opened: Open
    session: Session
    summary: dict[str, Any]
    """The method and target of the request, and the status of the response, None of a request."""
    sender: str
    revision: Revision | None = None
    """What the transport tells of the revision."""
    request: "HttpChannel | None" = None
    """Of a response or a direction of a WebSocket: the request that it answers."""
    named: bool = False
    """The request names its session."""
    legacy: bool = False
    """It belongs to the HTTP+SSE of 2024-11-05, whatever revision is spoken over it."""
    carried: list[Message] = field(default_factory=list)
    """The messages that came over a request."""
    damaged: bool = False
    """Its content coding could not be undone."""
    first: int | None = None
    """The line number of the first event that came out of it: a message or an `HttpUnit`."""
    resumes: Delivery | None = None
    """The event after which the client wants a stream to go on, where one had that id."""
    never_delivered: bool = False
    """The client wants a stream to go on after an event that its session never delivered, as far as is remembered."""
    resumable: bool = False
    """It is a stream with an event by whose id it could go on."""
    repeated: dict[int, Delivery] = field(default_factory=dict)
    """By line number: events that have the id of an earlier one."""

    @property
    def answers(self) -> int | None:
        """The channel of the request."""
        return self.request.opened.ch if self.request else None

    @property
    def failed(self) -> bool:
        """It is a response with a status of failure."""
        return status(self.opened.head) >= _FAILURE

    @property
    def unreached(self) -> bool:
        """The relay has answered itself, because the server could not be reached or broke off."""
        return self.opened.sender == "mcpspy" and status(self.opened.head) in _UNREACHED

    @property
    def mute(self) -> bool:
        """It is an answer that, once it has ended, brings nothing more by any way: a stream of events, or JSON."""
        if self.failed:
            return False
        if self.opened.framing == "sse":
            return not self.resumable
        return not self.legacy and media_type(self.opened.head) == "application/json"

    @property
    def spoken(self) -> Revision | None:
        """The revision as far as the transport and the messages of the request tell."""
        carried = self.request.carried if self.request else self.carried
        return (carried[0].revision if carried else None) or self.session.negotiated or self.revision


@dataclass(slots=True)
class HttpUnit:
    """An HTTP head, body, SSE event or WebSocket frame without a message, that is worth a row."""

    n: int
    t: int
    ch: int
    sender: str
    kind: str
    """http or event."""
    text: str
    http: HttpChannel
    revision: Revision | None
    frame: Frame | None = None
    """None of a head, and of the end of a channel."""
    damage: str | None = None
    """At the end of a channel: why its content coding could not be undone."""
    act: GateAct | None = None
    """What a gate did to the frame, or that the head is a gate's."""

    part = 0
    exchange = None

    @property
    def raw(self) -> bytes:
        """The frame; empty where there is none."""
        return self.frame.raw if self.frame else b""

    @property
    def session(self) -> Session:
        """The session that the channel belongs to."""
        return self.http.session


@dataclass(slots=True)
class ServerExit:
    """The end of a capture of stdio, which says how the server's process ended."""

    end: End
    session: Session
    revision: Revision | None

    sender = "server"
    part = 0
    http = exchange = frame = act = None

    @property
    def n(self) -> int:
        """The line number of the record."""
        return self.end.n

    @property
    def t(self) -> int:
        """When it was recorded."""
        return self.end.t


Judged = Message | HttpUnit | ServerExit
"""What rules look at."""
Event = Message | HttpUnit | Frame | Gap | Signal | Gates | End
"""What comes out of a conversation: messages, what HTTP has besides, lines of stderr, gaps, signals, gates, the end."""
