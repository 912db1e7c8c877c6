"""One client and one server: which message answers which, and under which revision.

The theory. Pairing goes by direction and typed id: both peers count from 1. Messages come in the order of their times
(`mcpspy.capture.order`), so each request precedes its response; of several requests in flight with one id, a response
answers the first that was sent before it. Over HTTP a response comes in answer to the HTTP request that carried its
request, and then that decides.

The revision belongs to the exchange, not the connection: the request's own `_meta`, else what its session negotiated,
else what the transport tells, else unknown.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcpspy.capture.records import Frame
from mcpspy.json_values import member
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, SUBSCRIPTION_ID, TASKS, Revision
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, Undecoded, exact_id

if TYPE_CHECKING:
    from mcpspy.conversation.http_sessions import Place

HOLD = 1_000_000_000
"""Nanoseconds for which a rule waits for what another connection may have brought meanwhile."""

REMEMBERED = 8192
"""Answered exchanges that a session remembers: 4096 a direction, if both ask as much."""

ENDLESS = "subscriptions/listen"
"""The request that is answered only when its subscription ends: unanswered, it is as it should be (2026-07-28)."""

_PROBE = "server/discover"

_FORGOTTEN = 1024  # at once: the oldest entry of a dict is found quickly only after it has been written anew
_NO_ID = Id("null", "null")  # of an error whose request could not be read


@dataclass(slots=True)
class Message:
    """One message, or what stands in its place, with its address and what it belongs to."""

    n: int
    part: int
    """Its place in a batch, else 0."""
    t: int
    ch: int
    sender: str
    frame: Frame
    """Of an SSE event: with its data in place of the block."""
    body: Body | Undecoded
    session: "Session"
    place: "Place | None" = None
    """Over HTTP: the channel that it came on."""
    revision: Revision | None = None
    exchange: "Exchange | None" = None
    cancels: "Exchange | None" = None
    """Of `notifications/cancelled`: what it cancels, where that was still pending."""

    @property
    def http(self) -> dict[str, Any] | None:
        """Over HTTP: the method and target of the request that carried or asked for it, and the status."""
        return self.place.http if self.place else None


@dataclass(slots=True)
class Exchange:
    """A request and its answer."""

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
    """Records were lost after the request, or not decoded: the answer may be among them."""
    undecoded: bool = False
    """The answer was too large to be decoded, or such a frame may be the answer."""
    refused: bool = False
    """Over HTTP: the answer was a status of failure, and no message."""
    underlying: str | None = None
    """Of `tasks/result`, once it is answered: the method whose result that is, where it is known (2025-11-25)."""

    @property
    def status(self) -> str:
        """`pending` without an answer, `cancelled`, `error`, `tool-error`, `ok`, or `not-decoded`."""
        if self.cancelled:
            return "cancelled"
        if self.response is None:
            return "error" if self.refused else "not-decoded" if self.undecoded else "pending"
        if isinstance(self.response.body, Error):
            return "error"
        if self.undecoded:
            return "not-decoded"
        result = self.response.body.value.get("result")
        return "tool-error" if isinstance(result, dict) and result.get("isError") is True else "ok"

    @property
    def latency(self) -> int | None:
        """Nanoseconds from the request to its answer."""
        return None if self.answered is None else self.answered - self.request.t

    def untie(self) -> None:
        """Drop what refers back to it, for those who keep no message: only the garbage collector would free all that.

        Its status is no longer known.
        """
        self.request.exchange = self.response = None


@dataclass(slots=True)
class Delivery:
    """An SSE event that has an id."""

    n: int
    data: int
    """What stands for its data."""
    stream: int
    """The channel of the request whose stream it belongs to, resumed or not."""


class Session:
    """What one client has agreed on with the server, and the exchanges between the two."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        """The session id, where the transport has one."""
        self.partial = False
        """What was said before, or beside it, may not be here: nothing is called missing."""
        self.negotiated: Revision | None = None
        self.stated: Revision | None = None
        """By the latest request that stated one itself; by a `server/discover` only when that has succeeded."""
        self.pending: dict[tuple[str, Id], list[Exchange]] = {}
        """By the sender and id of the request."""
        self.completed: dict[tuple[str, Id], tuple[int, int]] = {}
        """The last exchanges that were answered: the line numbers of request and response."""
        self.last_answered = 0
        """The line number of the last request that was answered."""
        self.refused: deque[Exchange] = deque(maxlen=REMEMBERED)
        """Over HTTP: those that only a status answered."""
        self.events: dict[str, Delivery] = {}
        """Over HTTP: the last SSE events that have an id."""
        self.tasks: dict[tuple[str, str], str] = {}
        """By who asked for it and its id: the method of the request that the last tasks stand for (2025-11-25)."""
        self._initialize: Exchange | None = None  # while it is not answered

    @property
    def begun(self) -> bool:
        """Whether its client has initialized it, or is about to."""
        return self.negotiated is not None or self._initialize is not None

    def feed(self, message: Message, *, ordinal: int, fallback: Revision | None, carrier: int | None) -> None:
        """Take the next message and tell it what it belongs to.

        `ordinal` is how many requests came before it, `fallback` the revision that the transport tells, `carrier` the
        channel of the HTTP request that it came in answer to.
        """
        body = message.body
        message.revision = fallback
        if isinstance(body, Request):
            self._request(message, body, ordinal, fallback)
        elif isinstance(body, Result | Error):
            key = ("server" if message.sender == "client" else "client", body.id or _NO_ID)
            if not self._answer(message, key, carrier):
                self._refusal(message)
        elif isinstance(body, Notification):
            self._notification(message, body)
        elif isinstance(body, Undecoded):
            self._doubt(message.sender)

    def exchanges(self) -> Iterator[Exchange]:
        """The exchanges without an answer, oldest first."""
        for exchanges in self.pending.values():
            yield from exchanges

    def with_id_of(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """The exchanges without an answer that have the sender and id of one, itself among them."""
        return tuple(self.pending.get(_key(exchange), ()))

    def rest(self) -> None:
        """Forget what is over, of a session that was idle for long: what comes may repeat or answer what was before."""
        self.partial = True
        self.completed, self.events, self.tasks = {}, {}, {}

    def asked_by(self, carried: list[Message]) -> list[Exchange]:
        """The exchanges without an answer that an HTTP request has begun by the messages that it carried."""
        found = [it.exchange for it in carried if it.session is self and isinstance(it.body, Request)]
        return [it for it in found if it and it.response is None and not it.refused]

    def refuse(self, carried: list[Message]) -> None:
        """Take it that what an HTTP request has asked was refused by a status alone."""
        for exchange in self.asked_by(carried):
            exchange.refused = True
            self.refused.append(exchange)
            self._settle(exchange)

    def deliver(self, event_id: str, delivery: Delivery) -> Delivery | None:
        """Remember an SSE event by its id; returns the one that had the id before, which stays."""
        known = self.events.get(event_id)
        if known is None:
            self.events[event_id] = delivery
            if len(self.events) > REMEMBERED:
                _forget(self.events)
        return known

    def _doubt(self, sender: str) -> None:
        """Any request that waits for an answer of this side may have had it by a frame that was not decoded."""
        self.partial = True
        for exchange in self.exchanges():
            if exchange.request.sender != sender:
                exchange.in_doubt = exchange.undecoded = True

    def _request(self, message: Message, body: Request, ordinal: int, fallback: Revision | None) -> None:
        message.revision = self._revision(body) or fallback
        exchange = Exchange(ordinal, message, body.method, subject(body.method, body.params), message.revision)
        message.exchange = exchange
        self.pending.setdefault((message.sender, body.id), []).append(exchange)
        if body.method == "initialize":
            self._initialize = exchange

    def _answer(self, message: Message, key: tuple[str, Id], carrier: int | None) -> bool:
        """Join a response to its request, if that has been seen; `key` is the sender and id of the request."""
        exchange = _first_asked(self.pending.get(key, []), message.t, carrier)
        if exchange is None:
            return False
        self._join(message, key, exchange)
        return True

    def _refusal(self, message: Message) -> None:
        """Join an error with another id, or none, to the one request of the POST that it refuses by its status."""
        if not (isinstance(message.body, Error) and message.place and message.place.failed and message.place.asked):
            return
        asked = self.asked_by(message.place.asked.carried)
        if len(asked) == 1:
            self._join(message, _key(asked[0]), asked[0])

    def _settle(self, exchange: Exchange) -> None:
        """Nobody waits for an answer any more."""
        pending = self.pending[_key(exchange)]
        pending.remove(exchange)
        if not pending:
            del self.pending[_key(exchange)]
        if exchange is self._initialize:
            self._initialize = None

    def _join(self, message: Message, key: tuple[str, Id], exchange: Exchange) -> None:
        self._settle(exchange)
        exchange.response, exchange.answered = message, message.t
        exchange.undecoded = message.frame.omitted is not None
        message.exchange = exchange
        message.revision = exchange.revision
        self.completed.pop(key, None)  # so that the order is that of completion
        self.completed[key] = (exchange.request.n, message.n)
        self.last_answered = max(self.last_answered, exchange.request.n)
        if len(self.completed) > REMEMBERED + _FORGOTTEN:
            _forget(self.completed)
        if exchange.method == "initialize" and isinstance(message.body, Result):
            self._agree(message, message.body.result)
        elif exchange.revision in TASKS and isinstance(message.body, Result):
            self._follow_task(key[0], exchange, message.body.result)
        elif exchange.method == _PROBE and isinstance(message.body, Result):
            self.stated = self.stated or exchange.revision

    def _agree(self, message: Message, result: Any) -> None:
        message.revision = Revision.of(member(result, "protocolVersion"))
        self.negotiated = message.revision

    def _follow_task(self, asker: str, exchange: Exchange, result: Any) -> None:
        """A request for a task is answered by the task, and the result itself comes in answer to `tasks/result`."""
        if exchange.method == "tasks/result":
            wanted = member(exchange.request.body.value.get("params"), "taskId")
            exchange.underlying = self.tasks.get((asker, wanted)) if isinstance(wanted, str) else None
            return
        given = member(result, "task", "taskId")
        if isinstance(given, str):
            self.tasks[asker, given] = exchange.method
            if len(self.tasks) > REMEMBERED:
                _forget(self.tasks)

    def _notification(self, message: Message, body: Notification) -> None:
        message.revision = self.negotiated or self.stated or message.revision
        subscription = member(body.params, "_meta", SUBSCRIPTION_ID)
        if subscription is not None:
            listen = exact_id(subscription, message.frame.raw, message.part, "params", "_meta", SUBSCRIPTION_ID)
            for exchange in self.pending.get(("client", listen), ()):
                message.revision = exchange.revision
        if body.method == "notifications/cancelled":
            requested = member(body.params, "requestId")
            target = exact_id(requested, message.frame.raw, message.part, "params", "requestId")
            for exchange in self.pending.get((message.sender, target), ()):
                exchange.cancelled = True
                message.cancels = exchange

    def _revision(self, body: Request) -> Revision | None:
        stated = Revision.of(member(body.params, "_meta", PROTOCOL_VERSION))
        if stated:
            if body.method != _PROBE:  # a server that may be of the other era has not agreed to it yet
                self.stated = stated
            return stated
        if body.method == "initialize":
            return Revision.of(member(body.params, "protocolVersion")) or NEWEST_HANDSHAKE
        return self.negotiated


def _first_asked(pending: list[Exchange], t: int, carrier: int | None) -> Exchange | None:
    """Of the exchanges with one id, the first that was asked before `t`.

    Better one that `carrier` carried; and better one that was not cancelled, for that is the one whose sender waits.
    """
    if len(pending) == 1:
        return pending[0] if pending[0].request.t <= t else None
    asked = [exchange for exchange in pending if exchange.request.t <= t]
    carried = [exchange for exchange in asked if exchange.request.ch == carrier]
    candidates = carried or asked
    return next((it for it in candidates if not it.cancelled), next(iter(candidates), None))


def _forget(table: dict[Any, Any]) -> None:
    """Make room in a table, its oldest entries being the first to go."""
    for old in list(table)[:_FORGOTTEN]:
        del table[old]


def _key(exchange: Exchange) -> tuple[str, Id]:
    """The sender and id of a request."""
    body = exchange.request.body
    return exchange.request.sender, body.id if isinstance(body, Request) else _NO_ID


def subject(method: str, params: Any) -> str | None:
    """The tool, prompt or resource that a request or notification is about."""
    if method == "completion/complete":
        params = member(params, "ref")
        found = member(params, "name") or member(params, "uri")
    elif method in ("tools/call", "prompts/get"):
        found = member(params, "name")
    elif method.startswith(("resources/", "notifications/resources/")):
        found = member(params, "uri")
    else:
        return None
    return found if isinstance(found, str) else None
