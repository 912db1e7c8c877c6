"""Messages, exchanges, sessions and HTTP channels: plain data, and what can be computed from it.

`mcpspy.conversation.pairing` fills in the exchanges, `mcpspy.conversation.http_sessions` the HTTP channels, and
`mcpspy.conversation.conversation` the messages. A session does not know its HTTP channels. A message knows
its channel, if it has one.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcpspy.capture.records import Close, End, Frame, Gap, Gates, Open, Signal
from mcpspy.conversation import bounds
from mcpspy.conversation.facts import (
    CreatedTask,
    Delivery,
    Given,
    Listen,
    Operations,
    Over,
    Progress,
    Round,
    Tool,
    ToolListing,
)
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.spec.peer_schemas import Budget
from mcpspy.spec.revisions import STATELESS, Revision
from mcpspy.text import duration_text
from mcpspy.wire.http_head import media_type, status
from mcpspy.wire.jsonrpc import Body, Error, Id, Invalid, Notification, Request, Result, Undecoded
from mcpspy.wire.subject import subject

HOLD = 1_000_000_000
"""Nanoseconds for which a rule waits for records of other connections."""

ENDLESS = "subscriptions/listen"
"""The request that is answered only when its subscription ends: it is complete without a response (2026-07-28)."""

_UNREACHED = (502, 504)
_WITH_ID = (Request, Result, Error)  # as a tuple: a union would be built again for each message
_CALLS = (Request, Notification)
_REDIRECTION = 300
_FAILURE = 400  # statuses from here on report a failure
_TOLD = 200  # characters of a target, or of the reason of a WebSocket close


@dataclass(slots=True)
class Message:
    """One message, or an invalid or undecoded frame, with its address and what it belongs to."""

    n: int
    part: int
    """The position in a batch, else 0."""
    t: int
    ch: int
    sender: str
    side: str
    """The sender; for a message of mcpspy, the side in whose place it was sent."""
    frame: Frame
    """For an SSE event: the frame with the event's data in place of the block."""
    body: Body | Undecoded
    session: "Session"
    http: "HttpChannel | None" = None
    """Over HTTP: the channel of the message."""
    revision: Revision | None = None
    exchange: "Exchange | None" = None
    cancels: "Exchange | None" = None
    """For `notifications/cancelled`: the exchange that it cancels, if that was still pending."""
    act: GateAct | None = None
    """What a gate did to the frame."""
    link: int | None = None
    """For a notification: the ordinal of the exchange that its progress token or subscription names."""

    @property
    def id(self) -> Id | None:
        """The id of a request or response."""
        return self.body.id if isinstance(self.body, _WITH_ID) else None

    @property
    def method(self) -> str | None:
        """The method; for a response, the method of its request."""
        if self.exchange:
            return self.exchange.method
        return self.body.method if isinstance(self.body, _CALLS) else None

    @property
    def name(self) -> str | None:
        """The tool, prompt or resource concerned."""
        if self.exchange:
            return self.exchange.name
        return subject(self.body.method, self.body.params) if isinstance(self.body, _CALLS) else None


@dataclass(frozen=True, slots=True)
class Fate:
    """How the wait for a response ended without one."""

    how: str
    """`cancelled` by a notification; `late`: the client of a process left before `initialize` was answered; over HTTP
    `left` (the client closed the response), `gone` (it ended the session), `refused`, `broken`, `not-decoded`, or
    `cut`: the stream ended and may be resumed."""
    n: int
    """The line number of the cancellation, or of the head of the answer."""
    t: int
    reason: str = ""
    """The reason that a cancellation names; over HTTP, how the answer ended."""
    answer: "HttpChannel | None" = None
    """Over HTTP: the answer without a message."""


@dataclass(slots=True)
class Exchange:
    """A request and its response."""

    ordinal: int
    """The number of requests before this one in the capture."""
    request: Message
    method: str
    name: str | None
    """The tool, prompt or resource concerned."""
    revision: Revision | None
    response: Message | None = None
    answered: int | None = None
    """The time of the response, in nanoseconds since the capture started."""
    cancelled: bool = False
    in_doubt: bool = False
    """Records after the request were lost or not decoded: the response may be one of them."""
    undecoded: bool = False
    """The response was too large to decode, or a frame that was too large may be the response."""
    refused: bool = False
    """Over HTTP: a status of failure, or a redirect, came instead of a response."""
    lost: int | None = None
    """Over HTTP: the line number at which the server broke off, or could not be reached."""
    left: int | None = None
    """Over HTTP: when the client gave up, in nanoseconds since the capture started; None if it only cancelled."""
    underlying: str | None = None
    """For an answered `tasks/result`: the method that the result belongs to, if it is known (2025-11-25)."""
    inputs: frozenset[str] | None = None
    """If the response is `input_required`: the methods of its `inputRequests` (2026-07-28)."""
    continues: int | None = None
    """The line number of the `input_required` response that the request continues."""
    outcome: str = "pending"
    """What came of it so far (`mcpspy.conversation.outcomes`)."""
    expected: str | None = None
    """Why a failing outcome is normal, as far as it is known when the outcome is decided."""
    fate: Fate | None = None
    """How the wait for a response ended, if it ended without one."""

    @property
    def key(self) -> tuple[str, Id]:
        """The sender and id of the request: a response from the other side with that id answers it."""
        body = self.request.body
        assert isinstance(body, Request)
        return self.request.side, body.id

    @property
    def status(self) -> str:
        """`pending`, `held`, `dropped`, `cancelled`, `error`, `tool-error`, `ok` or `not-decoded`."""
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
        """Return the status after the last record: a request that can get no response any more is `unanswered`."""
        lacking = self.status == "pending" and not (live or self.in_doubt or self.method == ENDLESS)
        return "unanswered" if lacking else self.status

    @property
    def latency(self) -> int | None:
        """Nanoseconds from the request to its response, minus the time for which a gate held the request."""
        if self.answered is None:
            return None
        act = self.request.act
        return self.answered - self.request.t - (act.held or 0 if act else 0)

    def untie(self) -> None:
        """Drop the references back to the exchange, for callers that keep no messages.

        Otherwise only the garbage collector could free these objects. The status is no longer known afterwards.
        """
        self.request.exchange = self.response = None


class SessionMemory:
    """What one rule, or a few rules of one module, remember of a session; it is created on first use."""

    def __init__(self, session: "Session") -> None:
        self.session = session

    def lose(self) -> None:
        """React to lost records: what was begun may be complete."""


_Kept = TypeVar("_Kept", bound=SessionMemory)
_Shared = TypeVar("_Shared")


@dataclass(slots=True, eq=False)
class Session:
    """What is known of one client and its server: what was negotiated and announced, and their exchanges.

    Down to `gone`, the fields change when a message is entered (`mcpspy.conversation.pairing`), so they include the
    message that is examined. From `judged` on they are facts for rules: what was known before that message. They change
    after the rules have examined it (`mcpspy.conversation.learning`). What a peer announces is valid until the peer
    announces something else. What only one rule remembers is an object of a class of its own (`of`). After a gap
    nothing is reported as missing.

    Memory is bounded (`mcpspy.conversation.bounds`). In a session that was idle while many others were active, only
    what late frames need is kept (`rest`, `rest_facts`).
    """

    name: str | None = None
    """The session id, if the transport has one."""
    partial: bool = False
    """Earlier or parallel messages may not be in the capture: nothing is reported as missing."""
    requested: Revision | None = None
    """The revision that the latest `initialize` requested."""
    negotiated: Revision | None = None
    stated: Revision | None = None
    """The revision of the latest request that stated one itself; that of a `server/discover` only after its success."""
    pending: dict[tuple[str, Id], list[Exchange]] = field(default_factory=dict)
    """By the sender and id of the request."""
    completed: dict[tuple[str, Id], tuple[int, int]] = field(default_factory=dict)
    """The line numbers of request and response of the exchanges that were answered last."""
    last_answered: int = 0
    """The highest line number of a request that was answered."""
    refused: deque[Exchange] = field(default_factory=lambda: deque(maxlen=bounds.EXCHANGES))
    """The exchanges that were refused without a message (over HTTP, by a status)."""
    task_methods: dict[tuple[str, str], str] = field(default_factory=dict)
    """By the sender and the id of the task: the method of the request that created it (2025-11-25)."""
    tokens: dict[tuple[str, Id], int] = field(default_factory=dict)
    """By the sender and its progress token: the ordinal of the latest request with that token."""
    subscriptions: dict[Id, int] = field(default_factory=dict)
    """By id: the ordinal of the latest `subscriptions/listen` (2026-07-28)."""
    rounds: dict[tuple[str, str | None], deque[Round]] = field(default_factory=dict)
    """By method and name: the latest `input_required` responses (2026-07-28)."""
    initialize: Exchange | None = None
    """The `initialize` exchange, until it is answered."""
    left: int | None = None
    """On stdio: when the client began to end the session, by a signal or by closing stdin."""
    signalled: int | None = None
    """On stdio: when the client sent a signal first."""
    gone: int | None = None
    """On stdio: when the server closed stdout or stopped reading, unless the client had left before."""
    begun_at: int = 0
    """On stdio: when its process was started."""
    client_name: str = ""
    """The name of the client in its latest `initialize`."""
    asking: dict[int, int] = field(default_factory=dict)
    """By ordinal: the open requests of the server that a person answers, and since when a person is asked."""
    asked: list[tuple[int, int]] = field(default_factory=list)
    """When a person was asked, each with start and end; these times do not overlap."""

    judged: bool = False
    """The judge has begun with it, at its first message."""
    lossy: bool = False
    """Records are missing."""
    gaps: int = 0
    """The number of gaps that are known."""
    first_initialize: int | None = None
    """The line number of the first `initialize` request."""
    agreed: int | None = None
    """The time of the response to `initialize`."""
    initialized: bool = False
    discovered: bool = False
    """The result of `server/discover` lists a revision without a handshake."""
    client: dict[str, Any] | None = None
    """The capabilities that the client declared for the session."""
    server: dict[str, Any] | None = None
    malformed: dict[tuple[str, Id], int] = field(default_factory=dict)
    """By sender and id: the line number of an invalid message that has an id. A response with that id may answer it."""
    explained: dict[int, None] = field(default_factory=dict)
    """The line numbers of requests without a response that another finding already explains."""
    extensions: set[str] = field(default_factory=set)
    """In the per-request era: the extensions that the client declared in any request."""
    said: set[str] = field(default_factory=set)
    """Keys of findings that are reported once per session and were reported."""
    listing: ToolListing = field(default_factory=ToolListing)
    called: dict[tuple[int, int], Tool] = field(default_factory=dict)
    """By the line number and part of an unanswered call: the tool as listed then, if it has an `outputSchema`."""
    budget: Budget = field(default_factory=Budget)
    """The remaining cost of validation by schemas, for all sessions of the capture."""
    clients: frozenset[str] = frozenset()
    """The clients whose limits are checked (`mcpspy.spec.client_limits`)."""
    answered: int = 0
    """The time of the latest response."""
    progress: dict[tuple[str, Id], Progress] = field(default_factory=dict)
    """By the side that sent the request, and the token."""
    progress_forgotten: bool = False
    """There were so many that some are no longer known."""
    tasks: dict[Id | str, CreatedTask] = field(default_factory=dict)
    """Calls of tools that were answered by a task, by the id of the request and by the id of the task."""
    listens: dict[Id, Listen] = field(default_factory=dict)
    acknowledged: dict[Id, None] = field(default_factory=dict)
    """Acknowledgements of subscriptions whose request is not recorded yet."""
    given: Given | None = None
    """Over HTTP: how the session got its id."""
    over: Over | None = None
    """Over HTTP: how the session ended."""
    renewed: bool = False
    """Over HTTP: its client has sent `initialize` again, for a new session."""
    operations: Operations | None = None
    """None if operational findings were not requested."""
    expected: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """For all sessions of the capture, by line number and part of a request that failed: why that is normal."""
    memories: dict[type[SessionMemory], SessionMemory] = field(default_factory=dict)
    """By class: what single rules remember."""
    shared: dict[type[Any], Any] = field(default_factory=dict)
    """For all sessions of the capture, by class: what single rules remember."""

    @property
    def begun(self) -> bool:
        """Whether the client has initialized the session, or has sent the request for it."""
        return self.negotiated is not None or self.initialize is not None

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges without a response, oldest first."""
        for exchanges in self.pending.values():
            yield from exchanges

    def with_id_of(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """Return the exchanges without a response that have the sender and id of `exchange`, itself included."""
        return tuple(self.pending.get(exchange.key, ()))

    def of(self, kind: type[_Kept]) -> _Kept:
        """Return the session's object of a class of memory."""
        found = self.memories.get(kind)
        if not isinstance(found, kind):
            found = self.memories[kind] = kind(self)
        return found

    def of_capture(self, kind: type[_Shared]) -> _Shared:
        """Return the object of a class of memory that all sessions of the capture share."""
        found: _Shared = self.shared.get(kind) or self.shared.setdefault(kind, kind())
        return found

    def once(self, what: str) -> bool:
        """Return whether this is reported for the first time in the session; the number of keys is limited."""
        if what in self.said or len(self.said) >= bounds.FACTS:
            return False
        self.said.add(what)
        return True

    def lose(self, gaps: int) -> None:
        """Record that records were lost before the next message: nothing that was begun counts as complete."""
        self.gaps, self.lossy = gaps, True
        self.listing.complete = False
        for memory in self.memories.values():
            memory.lose()

    def is_unsure(self, revision: Revision | None) -> bool:
        """Return whether something that requests depend on may be missing; requests of 2026-07-28 need no session."""
        return self.gaps > 0 if revision in STATELESS else self.lossy

    def rest(self) -> None:
        """Forget what links messages, in a session that was idle for long: later ones may repeat or answer it."""
        self.partial = True
        for table in (self.completed, self.task_methods, self.tokens, self.subscriptions, self.rounds):
            table.clear()

    def rest_facts(self) -> None:
        """Forget what rules need only in an active session; keep how it began, went on and ended."""
        self.partial = True
        self.listing = ToolListing()
        tables: tuple[dict[Any, Any], ...] = (
            self.called,
            self.progress,
            self.tasks,
            self.listens,
            self.acknowledged,
            self.malformed,
            self.memories,
        )
        for table in tables:
            table.clear()


@dataclass(slots=True)
class HttpChannel:
    """The state of an HTTP request body, an HTTP response body, or one direction of a WebSocket."""

    opened: Open
    session: Session
    summary: dict[str, Any]
    """The method and target of the request, and the status of the response (None for a request)."""
    sender: str
    revision: Revision | None = None
    """The revision that the transport indicates."""
    client: str = ""
    """What distinguishes its client from others."""
    request: "HttpChannel | None" = None
    """For a response, or one direction of a WebSocket: the request that it answers."""
    named: bool = False
    """The request names its session."""
    legacy: bool = False
    """The channel belongs to the HTTP+SSE of 2024-11-05, whatever revision its messages use."""
    carried: list[Message] = field(default_factory=list)
    """The messages in the body of a request."""
    damaged: bool = False
    """Its content coding could not be decoded."""
    decided: bool = False
    """An HTTP request that carries no JSON-RPC request has its outcome."""
    latest: int | None = None
    """For a request: the time of the latest frame of its answer, or of its WebSocket."""
    ended: bool = False
    """For a request: its WebSocket has ended, in one of its directions."""
    first: int | None = None
    """The line number of its first event: a message or an `HttpUnit`."""
    followed: bool = False
    """For a preflight of a browser (OPTIONS): the request that it is about followed, or another preflight for it."""
    resuming: bool = False
    """A request that names the last event that its client got."""
    resumes: Delivery | None = None
    """The event after which the client resumes a stream, if an event with that id is known."""
    never_delivered: bool = False
    """The client resumes a stream after an event that its session never delivered, as far as it is remembered."""
    resumable: bool = False
    """The channel is a stream that has an event with an id, so it can be resumed."""
    spoke: bool = False
    """The channel is a stream that has an event with data, an id or a comment."""
    said: str = ""
    """For a response with a status of failure: what its body says."""
    repeated: dict[int, Delivery] = field(default_factory=dict)
    """By line number: the events that have the id of an earlier event."""

    @property
    def answers(self) -> int | None:
        """The channel of the request."""
        return self.request.opened.ch if self.request else None

    @property
    def failed(self) -> bool:
        """Whether it is a response with a status of failure."""
        return status(self.opened.head) >= _FAILURE

    @property
    def redirects(self) -> bool:
        """Whether it is a response that sends the client elsewhere."""
        return _REDIRECTION <= status(self.opened.head) < _FAILURE

    @property
    def streams(self) -> bool:
        """Whether it is a stream of events."""
        return self.opened.framing == "sse"

    @property
    def unreached(self) -> bool:
        """Whether the relay answered itself, because the server could not be reached or broke off."""
        return self.opened.sender == "mcpspy" and status(self.opened.head) in _UNREACHED

    @property
    def mute(self) -> bool:
        """Whether the response is a stream of events, or JSON, that can bring nothing more after its end."""
        if self.failed or self.redirects:
            return False
        if self.opened.framing == "sse":
            return not self.resumable
        return not self.legacy and media_type(self.opened.head) == "application/json"

    @property
    def spoken(self) -> Revision | None:
        """The revision, as far as the transport and the messages of the request indicate it."""
        carried = self.request.carried if self.request else self.carried
        return (carried[0].revision if carried else None) or self.session.negotiated or self.revision


@dataclass(slots=True)
class HttpUnit:
    """An HTTP head, body, SSE event or WebSocket frame without a message that deserves a row."""

    n: int
    t: int
    ch: int
    sender: str
    kind: str
    """`http` or `event`."""
    text: str
    http: HttpChannel
    revision: Revision | None
    frame: Frame | None = None
    """None for a head, and for the end of a channel."""
    damage: str | None = None
    """At the end of a channel: why its content coding could not be decoded."""
    act: GateAct | None = None
    """What a gate did to the frame, or that a gate made the head."""

    part = 0
    exchange = None

    @property
    def raw(self) -> bytes:
        """The bytes of the frame; empty without a frame."""
        return self.frame.raw if self.frame else b""

    @property
    def session(self) -> Session:
        """The session that the channel belongs to."""
        return self.http.session


@dataclass(slots=True)
class StreamEnd:
    """The end of stdin, of stdout, or of an answer or a WebSocket that could have brought more."""

    opened: Open
    closed: Close
    session: Session
    revision: Revision | None
    began: int
    """When it began; for an answer without a head, when its request began."""
    latest: int | None
    """The time of its latest frame; None if it had none."""
    http: HttpChannel | None = None
    waiting: tuple[int, ...] = ()
    """For the answer to a POST: the line numbers of the requests that it has left without a response."""

    kind = "end-of-stream"
    part = 0
    exchange = frame = act = None

    @property
    def n(self) -> int:
        """The line number of the record."""
        return self.closed.n

    @property
    def t(self) -> int:
        """The time of the record."""
        return self.closed.t

    @property
    def ch(self) -> int:
        """The channel."""
        return self.closed.ch

    @property
    def how(self) -> str:
        """How the channel ended."""
        return self.closed.how

    @property
    def sender(self) -> str:
        """Who ended it: client, server or mcpspy."""
        by = self.opened.sender
        by_receiver = "server" if by == "client" else "client"
        return {"eof": by, "reset": by, "abort": by_receiver, "exit": "server"}.get(self.how, "mcpspy")

    @property
    def lasted(self) -> int:
        """For how many nanoseconds it lasted."""
        return max(self.t - self.began, 0)

    @property
    def idle(self) -> int:
        """For how many nanoseconds there was no frame before the end."""
        return min(max(self.t - (self.latest or 0), 0), self.lasted)

    @property
    def text(self) -> str:
        """Who ended it, after how long, and for how long it was idle."""
        who = self.sender if self.sender == "mcpspy" else f"the {self.sender}"
        return f"{who} {self._what()} after {duration_text(self.lasted)}{self._quiet()}"

    def _what(self) -> str:
        """Return what the side that ended it did."""
        how, role, code = self.how, self.opened.role, self.closed.code
        if self.http is None:
            verb = {"reset": "broke off", "abort": "stopped reading"}.get(how, "closed")
            return f"exited with {role} open" if how == "exit" else f"{verb} {role}"
        verb = {"eof": "closed" if role == "ws" else "ended", "reset": "reset", "abort": "left"}.get(how, "closed")
        if role == "ws":
            reason = f": {self.closed.reason[:_TOLD]}" if self.closed.reason else ""
            return f"{verb} the WebSocket{'' if code is None else f' ({code}{reason})'}"
        asked = f"{self.http.summary['method']} {self.http.summary['target'][:_TOLD]}"
        if self.opened.head is None:
            return f"{verb} {asked} without an answer"
        unanswered = f" without the response to #{self.waiting[0]}" if self.waiting else ""
        more = f" and {len(self.waiting) - 1} more" if self.waiting[1:] else ""
        return f"{verb} the stream of {asked}{unanswered}{more}"

    def _quiet(self) -> str:
        if self.http and self.opened.head is None and self.opened.role != "ws":
            return ""
        if self.latest is None:
            return ", without a frame"
        return f", idle for {duration_text(self.idle)}" if self.idle else ""


@dataclass(slots=True)
class ServerExit:
    """The end of a stdio capture that records how the server's process ended."""

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
        """The time of the record."""
        return self.end.t


Judged = Message | HttpUnit | StreamEnd | ServerExit
"""What rules examine."""
Event = Message | HttpUnit | StreamEnd | Frame | Gap | Signal | Gates | End
"""What a conversation yields.

Messages, other HTTP events, ends of streams, lines of stderr, gaps, signals, gates and the end.
"""


_BODIES = {body: body.__name__.lower() for body in (Request, Notification, Result, Error, Invalid, Undecoded)}
_SENT = (Message, HttpUnit, StreamEnd)  # as a tuple: a union would be built again for each event
_WITH_KIND = (HttpUnit, StreamEnd)


def kind_of(event: Event) -> str:
    """Return the kind of an event.

    It is request, notification, result, error, invalid, undecoded, stderr, http, event, end-of-stream, gap, signal,
    gates or end.
    """
    if isinstance(event, Message):
        return _BODIES[type(event.body)]
    if isinstance(event, _WITH_KIND):
        return event.kind
    return "stderr" if isinstance(event, Frame) else type(event).__name__.lower()


def sender_of(event: Event) -> str:
    """Return client, server or mcpspy."""
    if isinstance(event, _SENT):
        return event.sender
    return (event.sender or "server") if isinstance(event, Frame) else "mcpspy"
