"""Rules about requests and their answers.

A wrong link is worse than none. A race that the specification allows is not a finding. After a gap, or while a peer was
still active, nothing is reported as missing.
"""

from collections.abc import Iterator
from itertools import islice, product

from mcpspy.conversation.context import other
from mcpspy.conversation.http_sessions import is_resumed
from mcpspy.conversation.model import ENDLESS, Exchange, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Id, Request, Result

_RESPONSES = "basic#responses"
_REQUESTS = "basic#requests"
_WITH_ID = (Request, Result, Error)
_ABSENT = Id("absent", "")
_FEW = 8  # exchanges without an answer that are examined
_PATIENCE = 60_000_000_000  # nanoseconds after which a request counts as unanswered
_PROMPTLY = 10_000_000_000  # the same for requests that need no work; some clients wait no longer
_PROMPT = ("initialize", "server/discover", "ping")
_PATIENT = ("elicitation/create", "sampling/createMessage", "tasks/result")
"""Methods that wait for a person or for the end of a task: a long wait is not a fault."""


@rule(
    "pairing/orphan-response",
    "error",
    """The response matches no request: no request has this id, or the request was answered so long ago that mcpspy no
    longer knows it (then the response may be a duplicate). Over HTTP a body with an error status need not match a
    request. If the POST had a request, a wrong id is only a warning, because the status already tells the client that
    it failed.""",
    fix="Copy the `id` of the request that you answer.",
    meanwhile="Ignore the response, and log it.",
    spec=_RESPONSES,
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 ping
        < 3 = {}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < 2 = {}
    """,
    on=(Result, Error),
)
def orphan_response(message: Message, session: Session) -> Iterator[Fault]:
    """Report a response to no request. Over HTTP also one that does not match the request of its POST."""
    refused, wrong = _refused_by(message), _id_text(message)
    if refused and _ends_session(message):
        return  # such an answer is written before the request is read
    if refused and _loosely(refused.key[1]) != _loosely(_id(message)):
        asked = str(refused.key[1])[:60]
        yield Fault(f"the answer has id {wrong}; expected {asked}, the id of the request", "/id", (refused.request.n,),
                    severity="warning")  # fmt: skip
    elif _unpaired(message, session) and not _why_unpaired(message):
        yield Fault(f"no request has id {wrong}", "/id", _only_one_waiting(message))


def _ends_session(message: Message) -> bool:
    """Return whether the status says that the session of the request is over."""
    place = message.http
    named = place is not None and place.request is not None and place.request.named
    return named and place is not None and status(place.opened.head) == 404


def _only_one_waiting(message: Message) -> tuple[int, ...]:
    """Return the request that an orphan response was meant for, if exactly one was waiting. Not over HTTP."""
    exchanges = list(islice(message.session.exchanges(), _FEW + 1)) if message.http is None else []
    waiting = [it.request.n for it in exchanges if it.request.sender != message.sender and not it.cancelled]
    return tuple(waiting) if len(waiting) == 1 and len(exchanges) <= _FEW else ()


@rule(
    "pairing/duplicate-response",
    "error",
    """The request was already answered. The client of the Python SDK fails at the end of the session after a second
    answer.""",
    fix="Send one response for each request: return after you have sent an error.",
    meanwhile="Ignore the second response, and log it.",
    spec=_RESPONSES,
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 ping
        < 2 = {}
        < 2 = {}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < 2 = {}
        > 2 ping
        < 2 = {}
    """,
    on=(Result, Error),
)
def duplicate_response(message: Message, session: Session) -> Iterator[Fault]:
    """Report a second answer to a request."""
    if _unpaired(message, session) and _why_unpaired(message) == "duplicate":
        related = message.session.completed[other(message.sender), _id(message)]
        yield Fault(f"request #{related[0]} was already answered by #{related[1]}", "/id", related)


@rule(
    "pairing/id-loose-match",
    "error",
    """The id of the response is similar to one in flight, but not equal: "1" is not 1, and 1.0 may not be 1 either.
    Some SDKs accept it anyway, others wait forever.""",
    fix="Copy the `id` of the request with its JSON type: a number stays a number.",
    spec=_RESPONSES,
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 ping
        < | {"jsonrpc":"2.0","id":"2","result":{}}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < | {"jsonrpc":"2.0","id":2,"result":{}}
    """,
    on=(Result, Error),
)
def id_loose_match(message: Message, session: Session) -> Iterator[Fault]:
    """Report an id of another type, or with other digits."""
    refused = _refused_by(message)
    if refused:
        exchange = refused if _loosely(refused.key[1]) == _loosely(_id(message)) else None
    else:
        loose = _unpaired(message, session) and _why_unpaired(message) == "loose"
        exchange = next(_loose_matches(message)) if loose else None
    if exchange:
        asked = getattr(exchange.request.body, "id", "")
        yield Fault(f"the response has id {_id_text(message)}; expected {asked}, as in #{exchange.request.n}", "/id",
                    (exchange.request.n,))  # fmt: skip


@rule(
    "pairing/response-by-wrong-side",
    "error",
    "A side has answered its own request.",
    fix="Answer only requests that you received, and check that nothing echoes your own messages back to you.",
    spec=_RESPONSES,
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 ping
        > 2 = {}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < 2 = {}
    """,
    on=(Result, Error),
)
def response_by_wrong_side(message: Message, session: Session) -> Iterator[Fault]:
    """Report a response by the side that sent the request."""
    if _unpaired(message, session) and _why_unpaired(message) == "side":
        yield Fault(f"the {message.sender} answers its own request {_id_text(message)}", "/id")


def answers_by_id(message: Message) -> bool:
    """Return whether a response to a request has its id. An error for an unreadable request may have no id."""
    return message.exchange is None or _id(message) in (message.exchange.key[1], Id("null", "null"), _ABSENT)


def _refused_by(message: Message) -> Exchange | None:
    """Return the request that a response refuses under another id. Only the status of HTTP makes this possible."""
    return None if answers_by_id(message) else message.exchange


def _unpaired(message: Message, session: Session) -> bool:
    if message.exchange is not None or _id(message).kind in ("null", "absent"):
        return False
    if (other(message.sender), _id(message)) in session.malformed:
        return False  # the frame with that id was malformed, but got an answer
    place = message.http
    if place is None or place.request is None:
        return not session.lossy
    if is_resumed(place):
        return False  # a repeated response may have been recorded the first time
    asks = any(isinstance(it.body, Request) for it in place.request.carried)
    if place.opened.framing == "body" and (asks or place.failed):
        return asks  # the answer to one POST answers nothing else, even after a gap
    return not session.lossy


def _why_unpaired(message: Message) -> str:
    """Return why a response belongs to no request, or an empty string for an orphan."""
    session, number = message.session, _id(message)
    if (other(message.sender), number) in session.completed:
        return "duplicate"
    if next(_loose_matches(message), None):
        return "loose"
    return "side" if (message.sender, number) in session.pending else ""


def _loose_matches(message: Message) -> Iterator[Exchange]:
    """Yield the requests in flight whose id a careless peer would take for the id of the response."""
    loose = _loosely(_id(message))
    for kind, token in product(("number", "string"), (loose, f"{loose}.0")):
        if (kind, token) != _id(message):
            yield from message.session.pending.get((other(message.sender), Id(kind, token)), ())


def _loosely(number: Id) -> str:
    try:
        value = float(number.token)
        return str(int(value)) if value.is_integer() else number.token
    except (ValueError, OverflowError):
        return number.token


@rule(
    "pairing/id-in-flight",
    "error",
    """The id is in use by a request that is not answered yet. After the answer the id is free again. If that request
    was cancelled this is a warning, because an answer may still arrive.""",
    fix="Use a new `id` for each request, for example a counter.",
    spec=_REQUESTS,
    fails="""
        = 2025-06-18
        > 2 tools/list
        > 2 prompts/list
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[]}
        > 2 prompts/list
    """,
    on=(Request,),
)
def id_in_flight(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report an id that is in use. Checked later, because the answer that frees it may be recorded late."""
    pending = message.session.pending.get((message.sender, _id(message)), ())
    if len(pending) < 2:
        return
    if message.http and message.session.partial:
        return  # clients that cannot be told apart may each use this id
    earlier = pending[-2]  # the one that is answered last of the earlier ones
    given_up = earlier.cancelled

    def question() -> Iterator[Fault]:
        if earlier.in_doubt or (earlier.answered is not None and earlier.answered <= message.t):
            return
        number = earlier.request.n
        why = "is cancelled and may still be answered" if given_up else "is not answered yet"
        yield Fault(f"id {_id_text(message)} is already in use by request #{number}, which {why}", "/id", (number,),
                    severity="warning" if given_up else None)  # fmt: skip

    yield Later(question())


@rule(
    "pairing/unanswered",
    "warning",
    """The request was never answered, although the client waited for at least a minute before it disconnected (ten
    seconds for `initialize`, `server/discover` and `ping`), or although the session went on for more than a minute and
    later requests were answered. Progress restarts that time. The severity is info if the stream ended earlier, if the
    request waits for a person or a task, or if the client went on with `initialize` after `server/discover`. Nothing is
    reported if the request was cancelled, or if the client disconnected earlier. `subscriptions/listen` is answered
    only at its end.""",
    fix="Answer every request, with an error if it fails: catch exceptions, and await every promise.",
    meanwhile="""Set a time-out, and cancel the request when it expires: `timeout` in the TypeScript SDK,
    `read_timeout_seconds` in the Python SDK.""",
    blame="responder",
    spec=_RESPONSES,
    fails="""
        = 2025-06-18
        > 2 tools/list
        @62 > 3 prompts/list
        @63 < 3 = {"prompts":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[]}
    """,
    on=(),
)
class Unanswered(StatefulCheck):
    """Report requests without an answer at the end of the capture."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asks: bool | None = None
        """At the end: whether the server waits for input that it requested."""

    def end(self, request: Message) -> Iterator[Fault]:
        """Decide what the missing answer means."""
        exchange = request.exchange
        if exchange is None or exchange.in_doubt or exchange.refused or exchange.method == ENDLESS:
            return
        if exchange.method == "initialize" and self.session.agreed is None and still_failed(exchange):
            return  # `lifecycle/handshake-failed` reports it
        if request.sender == "server" and request.revision in STATELESS:
            return  # clients send no responses in these revisions; see `lifecycle/wrong-direction`
        left = exchange.left if request.http else request.session.left
        if request.n in self.session.explained or exchange.lost:  # reported by `lifecycle/server-exit`
            return
        blame, method, heard = other(request.sender), exchange.method, self._heard(request)
        only_cancelled = exchange.cancelled and exchange.left is None  # over HTTP, a client may cancel by leaving
        patience = _PROMPTLY if method in _PROMPT else _PATIENCE
        if left is not None and left - heard >= patience and not only_cancelled:
            waited = f"{(left - request.t) / 1e9:.0f} seconds"
            yield Fault(f"{method} was not answered within {waited}; then the client left", blame=blame,
                        severity="info" if self._may_wait(request, method) else None)  # fmt: skip
        elif exchange.cancelled or left is not None:
            return  # no answer is needed after a cancellation, or when the client leaves
        elif request.session.last_answered < request.n or self.session.answered - heard < _PATIENCE:
            yield Fault(f"{method} was not answered when the stream ended", severity="info", blame=blame)
        else:
            yield Fault(f"{method} was not answered, but later requests were", blame=blame,
                        severity="info" if self._may_wait(request, method) else None)  # fmt: skip

    def _heard(self, request: Message) -> int:
        """Return when a request was sent, or when its last progress arrived."""
        token = member(request.body.value, "params", "_meta", "progressToken")
        known = self.session.progress.get((request.sender, Id.of(token))) if token is not None else None
        return known.t if known and known.request == request.n and known.t else request.t

    def _may_wait(self, request: Message, method: str) -> bool:
        """Return whether the long wait for an answer may be legitimate."""
        if method in _PATIENT:
            return True
        if method == "server/discover":  # servers of earlier revisions may stay silent (basic/transports/stdio)
            return request.session.negotiated is not None
        if self._asks is None:
            waiting = request.session.exchanges()
            self._asks = any(it.request.sender == "server" and it.method in _PATIENT for it in waiting)
        return self._asks and request.sender == "client" and method not in _PROMPT


@rule(
    "pairing/late-after-cancel",
    "info",
    """The request was answered after it was cancelled. The specification allows this race; the client must ignore the
    answer.""",
    fix="Stop work on a cancelled request as soon as you can; otherwise there is nothing to fix.",
    meanwhile="Ignore the response.",
    spec="basic/utilities/cancellation",
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
        < 2 = {"content":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        < 2 = {"content":[]}
    """,
    on=(Result, Error),
)
def late_after_cancel(message: Message, session: Session) -> Iterator[Fault]:
    """Report the answer to a cancelled request."""
    if message.exchange and message.exchange.cancelled and message.exchange.method != ENDLESS:
        number = message.exchange.request.n
        yield Fault(f"request #{number} was cancelled before this answer", "/id", (number,))


def _id(message: Message) -> Id:
    body = message.body
    found = body.id if isinstance(body, _WITH_ID) else None
    return found or _ABSENT


def _id_text(message: Message) -> str:
    return str(_id(message))[:60]
