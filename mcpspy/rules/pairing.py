"""Rules about requests and their answers, and which request a response was meant for if its id is wrong."""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import ClassVar

from mcpspy.conversation.bounds import FACTS, keep
from mcpspy.conversation.context import other
from mcpspy.conversation.http_sessions import is_resumed
from mcpspy.conversation.model import ENDLESS, Exchange, HttpChannel, Message, Session
from mcpspy.conversation.outcomes import open_for, patience, still_failed, waited
from mcpspy.json_values import excerpt, member
from mcpspy.rules.http.posting import says_empty
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.methods import methods, result_definition
from mcpspy.spec.revisions import HANDSHAKE, STATELESS
from mcpspy.spec.schema import verdict
from mcpspy.text import duration_text
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Id, Invalid, Notification, Request, Result

_RESPONSES = "basic#responses"
_REQUESTS = "basic#requests"
_WITH_ID = (Request, Result, Error)
_ABSENT = Id("absent", "")
_OF_CLIENTS = ("notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed",
               "notifications/progress", "notifications/tasks/status")  # fmt: skip
_PARSE_ERROR, _METHOD_MISSING = -32700, -32601
_FEW = 8  # notifications, and exchanges without an answer, that are examined
_PATIENCE = 60_000_000_000  # nanoseconds of other traffic after which a request counts as unanswered
_PROMPT = ("initialize", "server/discover", "ping")
_PATIENT = ("elicitation/create", "sampling/createMessage", "tasks/result")
"""Methods that wait for a person or for the end of a task: a long wait is not a fault."""


@rule(
    "pairing/orphan-response",
    "error",
    """The response matches no request: no request has this id, or the request was answered so long ago that mcpspy
    no longer knows it (then the response may be a duplicate), or it is an error without an id while one request
    waits, which never gets another answer. Over HTTP a body with an error status need not match a request. If the
    POST had a request, a wrong id is only a warning, because the status already tells the client that it failed.""",
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
class OrphanResponse(StatefulCheck):
    """Report a response to no request. Over HTTP also one that does not match the request of its POST.

    An error without an id refuses something that could not be read, or the only request that waits and is never
    answered.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._nameless: dict[int, tuple[Message, str]] = {}
        """By line number of the only request that waited: the first error without an id, and which request waited."""

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare the id of a response with those of the requests."""
        refused, wrong = _refused_by(message), _id(message)
        if refused and _ends_session(message):
            return  # such an answer is written before the request is read
        if refused and refused.key[1].loose != wrong.loose:
            expected = refused.key[1].beside(wrong)
            yield Fault(f"the answer has id {wrong.excerpt}; expected {expected}, the id of the request", "/id",
                        (refused.request.n,), severity="warning")  # fmt: skip
        elif _unpaired(message, self.session) and not _why_unpaired(message):
            hint, meant = waiting_clause(message)
            yield Fault(f"no request has id {wrong.excerpt}{hint}", "/id", meant)
        elif self._is_nameless(message):
            hint, meant = waiting_clause(message)
            for n in meant if len(self._nameless) < FACTS else ():
                self._nameless.setdefault(n, (message, hint))

    def _is_nameless(self, message: Message) -> bool:
        """Return whether an error has no id, although all that the other side sent could be read."""
        if message.exchange or not isinstance(message.body, Error) or _id(message).kind not in ("null", "absent"):
            return False
        readable = member(message.body.value, "error", "code") not in (None, _PARSE_ERROR)
        return readable and not self.session.lossy and not self.session.of(NotificationAnswered).malformed

    def end(self, request: Message) -> Iterator[Fault]:
        """Report the error without an id that was the only answer to a request."""
        message, hint = self._nameless.get(request.n, (None, ""))
        if message and request.n not in self.session.explained:
            yield Fault(f"the error has no id{hint}", "/id", (request.n,), at=message)


def _ends_session(message: Message) -> bool:
    """Return whether the status says that the session of the request is over."""
    place = message.http
    named = place is not None and place.request is not None and place.request.named
    return named and place is not None and status(place.opened.head) == 404


@rule(
    "pairing/duplicate-response",
    "error",
    """The request was already answered. The client of the Python SDK fails at the end of the session after a second
    answer.""",
    fix="Send one response for each request, with the `id` of that request: return after you have sent an error.",
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
        hint, meant = waiting_clause(message, since=session.answered)
        told = f"id {_id(message).excerpt}: request #{related[0]} was already answered by #{related[1]}"
        yield Fault(f"{told}{hint}", "/id", (*related, *meant))


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
        exchange = refused if refused.key[1].loose == _id(message).loose else None
    else:
        loose = _unpaired(message, session) and _why_unpaired(message) == "loose"
        exchange = next(_loose_matches(message)) if loose else None
    if exchange:
        wrong, n = _id(message), exchange.request.n
        expected = exchange.key[1].beside(wrong)
        yield Fault(f"the response has id {wrong.excerpt}; expected {expected}, as in #{n}", "/id", (n,))


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
        yield Fault(f"the {message.sender} answers its own request {_id(message).excerpt}", "/id")


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
    loose = _id(message).loose
    for kind, token in product(("number", "string"), (loose, f"{loose}.0")):
        if (kind, token) != _id(message):
            yield from message.session.pending.get((other(message.sender), Id(kind, token)), ())


@rule(
    "pairing/id-in-flight",
    "error",
    """The id is in use by a request that is not answered yet. After the answer the id is free again. If that request
    was cancelled this is a warning, because an answer may still arrive.""",
    fix="Use a new `id` for each request, for example a counter.",
    spec=_REQUESTS,
    about="pairing",
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
        yield Fault(f"id {_id(message).excerpt} is already in use by request #{number}, which {why}", "/id", (number,),
                    severity="warning" if given_up else None)  # fmt: skip

    yield Later(question())


@rule(
    "pairing/unanswered",
    "warning",
    """The request was never answered, although the client waited for at least a minute before it disconnected (ten
    seconds for `initialize`, `server/discover` and `ping`; for some clients, their own time-out), or although the
    session went on for more than a minute and later requests were answered. The same applies if its sender waited as
    long before it cancelled it, or names a time-out as the reason. Progress restarts that time. The severity is info if
    the stream ended earlier, if the request waits for a person or a task, or if the client went on with `initialize`
    after `server/discover`. Nothing is reported if the request was cancelled for another reason, or if the client
    disconnected earlier. `subscriptions/listen` is answered only at its end.""",
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
        if exchange.outcome == "refused" and exchange.fate and _is_empty(exchange.fate.answer):
            return  # `http/empty-answer` reports it
        blame, method, heard = other(request.sender), exchange.method, _heard(request, self.session)
        only_cancelled = exchange.cancelled and exchange.left is None  # over HTTP, a client may cancel by leaving
        patient = patience(exchange)
        if exchange.cancelled and exchange.fate and still_failed(exchange):
            given_up = exchange.fate.t
            if heard == request.t or given_up - heard >= patient:
                time = duration_text(open_for(exchange, given_up))
                yield Fault(f"{method} was not answered within {time}; then the {request.sender} cancelled it",
                            related=(exchange.fate.n,) if exchange.fate.n else (), blame=blame,
                            severity="info" if self._may_wait(request, method) else None)  # fmt: skip
        elif left is not None and left - heard >= patient and not only_cancelled:
            time = f"{(left - request.t) / 1e9:.0f} seconds"
            yield Fault(f"{method} was not answered within {time}; then the client left", blame=blame,
                        severity="info" if self._may_wait(request, method) else None)  # fmt: skip
        elif exchange.cancelled or left is not None:
            return  # no answer is needed after a cancellation, or when the client leaves
        elif request.session.last_answered < request.n or self.session.answered - heard < _PATIENCE:
            yield Fault(f"{method} was not answered when the stream ended", severity="info", blame=blame)
        else:
            yield Fault(f"{method} was not answered, but later requests were", blame=blame,
                        severity="info" if self._may_wait(request, method) else None)  # fmt: skip

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
    exchange = message.exchange
    if exchange and exchange.cancelled and exchange.method != ENDLESS and exchange.outcome != "timed-out":
        number = exchange.request.n
        yield Fault(f"request #{number} was cancelled before this answer", "/id", (number,))


@rule(
    "pairing/ping-refused",
    "error",
    """A `ping` must be answered with an empty result, by both sides and at any time. Peers that send pings take an
    error for a dead connection, and close it. Not reported if the request itself is faulty.""",
    fix="Answer `ping` with the result `{}`, also before the handshake is complete.",
    meanwhile="Count an error as a sign of life, or send no pings.",
    spec="basic/utilities/ping",
    revisions=HANDSHAKE,
    fails="""
        = 2025-06-18
        > 2 ping
        < 2 ! {"code":-32601,"message":"Method not found"}
    """,
    passes="""
        = 2025-06-18
        > 2 ping
        < 2 = {}
    """,
    on=(Error,),
    methods=("ping",),
    explains=("error",),
)
def ping_refused(message: Message, session: Session) -> Iterator[Fault]:
    """Report an error in answer to a ping. A status of failure is about the HTTP request, so it is not reported."""
    exchange = message.exchange
    if exchange is None or exchange.request.n in session.explained or exchange.key in session.malformed:
        return
    if not (message.http and message.http.failed):
        error = member(message.body.value, "error")
        yield Fault(f"ping is answered with error {excerpt(member(error, 'code'))}: "
                    f"{excerpt(member(error, 'message'))}; expected an empty result", "/error")  # fmt: skip


@rule(
    "pairing/notification-answered",
    "error",
    """The server answers a notification. A notification has no id and gets no answer, not even an error if its method
    is unknown. Clients cannot match such an answer to a request: some log an error, some end the session.""",
    fix="Send an answer only if the message has an `id`, also if the method is unknown.",
    meanwhile="Ignore answers without an id.",
    spec="basic#notifications",
    about="pairing",
    fails="""
        = 2025-06-18
        > notifications/roots/list_changed
        < | {"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"}}
    """,
    passes="""
        = 2025-06-18
        > notifications/roots/list_changed
    """,
    on=(Result, Error, Invalid),
    loss="The server answers notifications",
)
class NotificationAnswered(StatefulCheck):
    """Report an answer without an id or with the id null after a notification, or one that knows no such method.

    It may also be the answer to a malformed message, or to a request that waits; over HTTP `http/notification-status`
    reports it.
    """

    learns_from: ClassVar = {Notification: (*_OF_CLIENTS, None), Invalid: (), Result: (None,), Error: (None,)}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sent: dict[int, str] = {}  # by line number: the method of the client's latest notifications
        self._undecided: dict[int, Sequence[Exchange]] = {}
        """By line number: an answer without an id, and the requests that waited."""
        self.malformed = False
        """The latest message of the client could not be read, or answers no request, and was not refused yet."""

    def learn(self, message: Message) -> None:
        """Remember the notification that may be answered next, or another message that has to be refused."""
        if message.sender == "client":
            if isinstance(message.body, Notification):
                self._sent[message.n] = message.body.method
                if len(self._sent) > _FEW:
                    del self._sent[next(iter(self._sent))]
            elif message.exchange is None:
                self.malformed = True

    def check(self, message: Message) -> Iterator[Fault | Later]:
        """Look for the notification that an answer without an id belongs to."""
        if not self._may_answer(message):
            return
        strange = message.body.value.get("id") is not None
        if self.malformed and not strange:
            self.malformed = False  # this is its answer
            return
        sent = [it for it in self._sent.items() if it[0] > self.session.last_answered]
        waiting = list(islice(self.session.exchanges(), _FEW + 1))
        waiting = [it for it in waiting if it.request.sender == "client" and not it.cancelled]
        if not sent or len(waiting) > _FEW or any(n >= sent[0][0] for n in self.session.explained):
            return  # it may refuse a request with a fault
        if strange and waiting:
            return  # it may answer one of them
        text = str(member(message.body.value, "error", "message"))
        notification = next((it for it in sent if it[1] in text), sent[-1])
        del self._sent[notification[0]]
        keep(self._undecided, message.n, waiting)
        if waiting:
            yield Later(self._later(message, notification))
        else:
            yield self._fault(message, notification)

    def decided(self, message: Message) -> bool:
        """Return whether an answer without an id was one to a notification: the requests that waited got theirs."""
        waiting = self._undecided.get(message.n)
        return waiting is not None and all(it.answered is not None for it in waiting)

    def _may_answer(self, message: Message) -> bool:
        value = message.body.value
        if message.sender != "server" or (message.http and not message.http.legacy) or self.session.lossy:
            return False
        if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
            return False
        if value.get("id") is not None:  # of an earlier request, or made up
            return message.exchange is None and member(value, "error", "code") == _METHOD_MISSING
        return "method" not in value and (
            "result" in value or member(value, "error", "code") not in (None, _PARSE_ERROR)
        )

    def _later(self, message: Message, notification: tuple[int, str]) -> Iterator[Fault]:
        """Decide if requests were waiting: if they were answered later, none of them was meant."""
        if self.decided(message):
            yield self._fault(message, notification)

    def _fault(self, message: Message, notification: tuple[int, str]) -> Fault:
        (n, method), code = notification, member(message.body.value, "error", "code")
        what = "a result" if code is None else f"error {excerpt(code)}"
        number = _id(message)
        what += f" and id {number.excerpt}" if number.kind not in ("null", "absent") else ""
        return Fault(f"{method} is answered with {what}; a notification has no answer", "", (n,))


@rule(
    "pairing/answered-late",
    "warning",
    """The request was answered after its sender had given up, because of a time-out or after it had waited as long as
    clients do. The answer is lost, and the user sees a failure. The time in which a person had to answer a question
    does not count. The severity is info if progress was reported until then.""",
    fix="""Answer sooner: do slow work after `initialize`, or in the background. Report progress during a long call, so
    that the client goes on waiting.""",
    meanwhile="Raise the time-out of the client, and restart it with each progress notification.",
    spec="basic/lifecycle#timeouts",
    about="pairing",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        @60 > notifications/cancelled {"requestId":2,"reason":"Request timed out"}
        @75 < 2 = {"content":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        @50 < 2 = {"content":[]}
    """,
    on=(Result, Error),
)
def answered_late(message: Message, session: Session) -> Iterator[Fault]:
    """Report an answer that came after a time-out, with both times."""
    exchange = message.exchange
    if exchange is None or exchange.outcome != "timed-out" or exchange.fate is None:
        return
    if exchange.method == "initialize" and isinstance(message.body, Error):
        return  # `lifecycle/handshake-failed` reports it
    request, given_up = exchange.request, exchange.fate.t
    alive = given_up - _heard(request, session) < patience(exchange) and _heard(request, session) != request.t
    took, kept = duration_text(exchange.latency or 0), duration_text(waited(exchange, given_up))
    related = (request.n, exchange.fate.n) if exchange.fate.n else (request.n,)
    yield Fault(f"{exchange.method} was answered after {took}; the {request.sender} waited {kept}", "/id", related,
                severity="info" if alive or exchange.method in _PATIENT else None)  # fmt: skip


def _heard(request: Message, session: Session) -> int:
    """Return when a request was sent, or when its last progress arrived."""
    token = member(request.body.value, "params", "_meta", "progressToken")
    known = session.progress.get((request.sender, Id.of(token))) if token is not None else None
    return known.t if known and known.request == request.n and known.t else request.t


def _id(message: Message) -> Id:
    body = message.body
    found = body.id if isinstance(body, _WITH_ID) else None
    return found or _ABSENT


def _is_empty(answer: HttpChannel | None) -> bool:
    return answer is not None and says_empty(answer.opened.head)


_EXAMINED = 32  # exchanges without an answer that are examined
_COMPARED = 8  # of these that a result is compared with
_NAMED = 4  # of these that a finding names


def waiting_clause(message: Message, since: int | None = None) -> tuple[str, tuple[int, ...]]:
    """Return which requests wait while a response has a wrong id, as a clause, and the one that it was meant for.

    It was meant for the only one that waits, or the only one that it fits, apart from those whose answer is known to be
    lost. If `since` is given, that one must also be sent at this time or later, and fit the response.
    """
    asked = message.http.request if message.http else None
    carried = [it.exchange for it in asked.carried if it.exchange] if asked else []
    every = islice(carried or message.session.exchanges(), _EXAMINED)
    waiting = [it for it in every if it.request.sender != message.sender and it.response is None and not it.cancelled]
    left = [it for it in waiting if it.request.n not in message.session.explained]
    compared = 1 < len(left) <= _COMPARED and "result" in message.body.value
    fit = [it for it in left if _may_answer(message, it)] if compared else left
    meant = fit[0] if len(fit) == 1 else None
    if meant and since is not None and not (meant.request.t >= since and _may_answer(message, meant)):
        meant = None
    related = (meant.request.n,) if meant else ()
    if meant and len(left) > 1:
        told = f"#{meant.request.n} ({meant.method}, id {meant.key[1].beside(message.id or _ABSENT)})"
        return f"; of {len(left)} waiting requests it fits {told}", related
    if len(left) > 1:
        few = ", ".join(f"#{it.request.n} (id {it.key[1].excerpt})" for it in left[:_NAMED])
        return f"; {few}{', …' if len(left) > _NAMED else ''} are waiting", related
    which = "the request of its POST" if carried else "the only waiting request"
    told = f"; {which} is #{meant.request.n}, id {meant.key[1].beside(message.id or _ABSENT)}" if meant else ""
    return told, related


def _may_answer(message: Message, exchange: Exchange) -> bool:
    """Return whether a response has a shape that an answer to the request may have."""
    revision, value = exchange.revision, message.body.value
    method = methods(revision).get(exchange.method) if revision else None
    if revision is None or method is None or not method.result or "result" not in value:
        return True
    definition = result_definition(method, exchange.request.body.value.get("params"), value["result"])
    return verdict(revision, definition, value["result"])
