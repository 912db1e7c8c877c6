"""Rules about what belongs together: requests and responses, progress, cancellation, pages, rounds, subscriptions.

A wrong link is worse than none: a race that the specification allows is no finding, and after a gap, or where a peer
was still being heard, nothing is called missing.
"""

from collections.abc import Iterator

from mcpspy.jsonrpc import Error, Id, Notification, Request, Result
from mcpspy.protocol.revisions import Revision
from mcpspy.protocol.rules.rule import RULES, Fault, member, rule
from mcpspy.protocol.rules.state import State, other, round_key, subscription
from mcpspy.protocol.session import ENDLESS, Exchange, Message

_RESPONSES = "basic#responses"
_REQUESTS = "basic#requests"
_PROGRESS = "basic/utilities/progress"
_CANCEL = "basic/utilities/cancellation"
_MODERN = (Revision.R2026_07_28,)


@rule(
    "pairing/orphan-response",
    "error",
    """The response answers no request: nobody has sent one with this id, or it was answered so long ago that it is
    forgotten (then it is perhaps a duplicate).""",
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
def orphan_response(message: Message, state: State) -> Iterator[Fault]:
    """Responses to nothing at all."""
    if _unpaired(message, state) and not _why_unpaired(message):
        yield Fault(f"no request has the id {_id_text(message)}", "/id")


@rule(
    "pairing/duplicate-response",
    "error",
    "The request was answered before. The Python SDK's client breaks when it ends after a second answer.",
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
def duplicate_response(message: Message, state: State) -> Iterator[Fault]:
    """Second answers."""
    if _unpaired(message, state) and _why_unpaired(message) == "duplicate":
        related = message.session.completed[other(message.sender), _id(message)]
        yield Fault(f"the request #{related[0]} was answered by #{related[1]}", "/id", related)


@rule(
    "pairing/id-loose-match",
    "error",
    """The id of the response resembles one in flight and is not the same: "1" is not 1, and 1.0 may not be 1 either.
    Some SDKs take it all the same, others wait for ever.""",
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
def id_loose_match(message: Message, state: State) -> Iterator[Fault]:
    """Ids of another type, or of other digits."""
    if _unpaired(message, state) and _why_unpaired(message) == "loose":
        exchange = next(_loose_matches(message))
        asked = getattr(exchange.request.body, "id", "")
        yield Fault(f"the id {_id_text(message)} is not {asked}, which #{exchange.request.n} asked with", "/id",
                    (exchange.request.n,))  # fmt: skip


@rule(
    "pairing/response-by-wrong-side",
    "error",
    "A side has answered its own request.",
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
def response_by_wrong_side(message: Message, state: State) -> Iterator[Fault]:
    """Responses by who asked."""
    if _unpaired(message, state) and _why_unpaired(message) == "side":
        yield Fault(f"the {message.sender} answers its own request {_id_text(message)}", "/id")


def _unpaired(message: Message, state: State) -> bool:
    return message.exchange is None and not state.lossy and _id(message).kind not in ("null", "absent")


def _why_unpaired(message: Message) -> str:
    """What a response that belongs to no request is, if it is more than an orphan."""
    session, number = message.session, _id(message)
    if (other(message.sender), number) in session.completed:
        return "duplicate"
    if next(_loose_matches(message), None):
        return "loose"
    return "side" if (message.sender, number) in session.pending else ""


def _loose_matches(message: Message) -> Iterator[Exchange]:
    """The requests in flight whose id a careless peer would take for that of the response."""
    loose = _loosely(_id(message))
    for (side, number), exchanges in message.session.pending.items():
        if side != message.sender and _loosely(number) == loose:
            yield from exchanges


def _loosely(number: Id) -> str:
    try:
        value = float(number.token)
        return str(int(value)) if value.is_integer() else number.token
    except (ValueError, OverflowError):
        return number.token


@rule(
    "pairing/id-in-flight",
    "error",
    "The id belongs to a request that is not answered yet. Once it is, the id is free again.",
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
def id_in_flight(message: Message, state: State) -> Iterator[Fault]:
    """Ids that are taken; an answer that is recorded a moment too late makes them free."""
    key = (message.sender, _id(message))
    if len(message.session.pending.get(key, ())) < 2:
        return
    earlier = [exchange for exchange in message.session.pending[key] if exchange.request is not message]

    def question() -> Iterator[Fault]:
        taken = [it for it in earlier if not it.in_doubt and (it.response is None or it.response.t > message.t)]
        if taken:
            number = taken[0].request.n
            yield Fault(f"the id {_id_text(message)} is that of #{number}, which is not answered yet", "/id", (number,))

    state.ask_later(RULES["pairing/id-in-flight"], message, question)
    yield from ()


@rule(
    "pairing/unanswered",
    "warning",
    """The request was never answered, while others that came after it were. Where the stream ended or the request was
    cancelled that is no more than worth knowing; `subscriptions/listen` is answered only at its end.""",
    spec=_RESPONSES,
    fails="""
        = 2025-06-18
        > 2 tools/list
        > 3 prompts/list
        < 3 = {"prompts":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[]}
    """,
    on=(),
)
def unanswered(message: Message, state: State) -> Iterator[Fault]:
    """Asked of each request that is left at the end (by `mcpspy.protocol.judge`)."""
    exchange = message.exchange
    if exchange is None or exchange.in_doubt or exchange.method == ENDLESS:
        return
    answered = max((request for request, _ in message.session.completed.values()), default=0)
    if exchange.cancelled:
        yield Fault(f"{exchange.method} was cancelled and not answered", severity="info", blame=other(message.sender))
    elif answered < message.n:
        yield Fault(f"{exchange.method} was not answered when the stream ended", severity="info",
                    blame=other(message.sender))  # fmt: skip
    else:
        yield Fault(f"{exchange.method} was not answered, later requests were", blame=other(message.sender))


@rule(
    "pairing/late-after-cancel",
    "info",
    "The request had been cancelled when it was answered: a race that is allowed. The answer is to be ignored.",
    spec=_CANCEL,
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
def late_after_cancel(message: Message, state: State) -> Iterator[Fault]:
    """Answers that nobody waits for."""
    if message.exchange and message.exchange.cancelled and message.exchange.method != ENDLESS:
        number = message.exchange.request.n
        yield Fault(f"the request #{number} had been cancelled", "/id", (number,))


@rule(
    "progress/unknown-token",
    "error",
    "Progress is reported on a request that gave its token, while it is in flight. Nobody gave this one.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        < notifications/progress {"progressToken":2,"progress":1}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"slow"}}
        < notifications/progress {"progressToken":"slow","progress":1}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def unknown_token(message: Message, state: State) -> Iterator[Fault]:
    """Tokens that no request has; asked again later, when the request may have been recorded."""
    token = member(message.body.value, "params", "progressToken")
    key = (other(message.sender), Id.of(token))
    if key in state.progress or state.lossy or token is None:
        return

    def question() -> Iterator[Fault]:
        if key not in state.progress:
            yield Fault(f"no request gave the progress token {str(Id.of(token))[:60]}", "/params/progressToken")

    state.ask_later(RULES["progress/unknown-token"], message, question)
    yield from ()


@rule(
    "progress/token-reused",
    "error",
    "The progress token belongs to another request that is still in flight: its reports cannot be told apart.",
    spec=_PROGRESS,
    about="meta",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"a","_meta":{"progressToken":"t"}}
        > 3 tools/call {"name":"b","_meta":{"progressToken":"t"}}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"a","_meta":{"progressToken":"t"}}
        < 2 = {"content":[]}
        > 3 tools/call {"name":"b","_meta":{"progressToken":"t"}}
    """,
    on=(Request,),
)
def token_reused(message: Message, state: State) -> Iterator[Fault]:
    """Tokens that are taken; an answer that is recorded a moment too late makes them free."""
    token = member(message.body.value, "params", "_meta", "progressToken")
    known = state.progress.get((message.sender, Id.of(token))) if token is not None else None
    if known is None or known.ended is not None or known.cancelled or state.lossy:
        return

    def question() -> Iterator[Fault]:
        if known.ended is None or known.ended > message.t:
            yield Fault(f"the progress token is that of #{known.request}", "/params/_meta/progressToken",
                        (known.request,))  # fmt: skip

    state.ask_later(RULES["progress/token-reused"], message, question)
    yield from ()


@rule(
    "progress/not-increasing",
    "error",
    "The value of `progress` must grow with each report, even where the total is unknown.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < notifications/progress {"progressToken":"t","progress":5}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < notifications/progress {"progressToken":"t","progress":5.5}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def not_increasing(message: Message, state: State) -> Iterator[Fault]:
    """Reports that say no more than the one before."""
    params = member(message.body.value, "params")
    known = state.progress.get((other(message.sender), Id.of(member(params, "progressToken"))))
    value = member(params, "progress")
    if known and known.last is not None and type(value) in (int, float) and value <= known.last:
        yield Fault(f"the progress is {value}, and was {known.last} before", "/params/progress")


@rule(
    "progress/after-completion",
    "warning",
    "Reports must stop when the request is answered.",
    spec=_PROGRESS,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < 2 = {"content":[]}
        < notifications/progress {"progressToken":"t","progress":5}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
        < 2 = {"content":[]}
    """,
    on=(Notification,),
    methods=("notifications/progress",),
)
def after_completion(message: Message, state: State) -> Iterator[Fault]:
    """Reports on what is over; a cancelled request may still be reported on, and a task goes on after its answer."""
    token = member(message.body.value, "params", "progressToken")
    known = state.progress.get((other(message.sender), Id.of(token)))
    if known and known.ended is not None and known.ended < message.t and not known.cancelled and not known.task:
        yield Fault(f"the request #{known.request} was answered before", "/params/progressToken", (known.request,))


@rule(
    "cancel/unknown-request",
    "warning",
    """A cancellation names a request that its sender has issued and believes to be in flight. This id was never one; an
    id that was answered a moment ago is an allowed race.""",
    spec=_CANCEL,
    fails="""
        = 2025-06-18
        > notifications/cancelled {"requestId":99}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
)
def cancel_unknown_request(message: Message, state: State) -> Iterator[Fault]:
    """Cancellations of nothing."""
    requested = member(message.body.value, "params", "requestId")
    if requested is None or message.cancels or state.lossy:
        return
    session, number = message.session, Id.of(requested)
    if (message.sender, number) in session.completed or _is_listen(message, number, state):
        return
    yield Fault(f"the {message.sender} has issued no request with the id {str(number)[:60]}", "/params/requestId")


def _is_listen(message: Message, number: Id, state: State) -> bool:
    """Whether a server ends a subscription (2026-07-28): its cancellation names the client's request."""
    return message.sender == "server" and number in state.listens


@rule(
    "cancel/initialize",
    "error",
    "A client must not cancel its `initialize` request.",
    spec=_CANCEL,
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        > notifications/cancelled {"requestId":1}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        > notifications/cancelled {"requestId":2}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
)
def cancel_initialize(message: Message, state: State) -> Iterator[Fault]:
    """Cancellations of the handshake."""
    if message.cancels and message.cancels.method == "initialize":
        yield Fault("`initialize` must not be cancelled", "/params/requestId", (message.cancels.request.n,))


@rule(
    "paging/unknown-cursor",
    "warning",
    "A cursor comes from the `nextCursor` of an earlier page of the same listing; clients must not make up their own.",
    spec="server/utilities/pagination",
    fails="""
        = 2025-06-18
        > 2 tools/list {"cursor":"page-2"}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"page-2"}
        > 3 tools/list {"cursor":"page-2"}
    """,
    on=(Request,),
    methods=("tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list"),
)
def unknown_cursor(message: Message, state: State) -> Iterator[Fault]:
    """Cursors that nobody issued; asked again later, when the page may have been recorded."""
    method, cursor = member(message.body.value, "method"), member(message.body.value, "params", "cursor")
    if not isinstance(cursor, str) or state.lossy or cursor in state.cursors.get(method, ()):
        return

    def question() -> Iterator[Fault]:
        if cursor not in state.cursors.get(method, ()):
            yield Fault(f"no page of {method} has issued this cursor", "/params/cursor")

    state.ask_later(RULES["paging/unknown-cursor"], message, question)
    yield from ()


@rule(
    "mrtr/state-missing",
    "error",
    """The server asked back and gave a `requestState`; the retry must echo it, or the server cannot know what it is the
    answer to.""",
    spec="basic/patterns/mrtr",
    about="meta",
    revisions=_MODERN,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}}}
    """,
    passes="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}
    """,
    on=(Request,),
)
def state_missing(message: Message, state: State) -> Iterator[Fault]:
    """Retries without the state."""
    params = member(message.body.value, "params")
    if member(params, "inputResponses") is None or not state.rounds:
        return
    known = state.rounds.get(round_key(message))
    if known and known.state is not None and member(params, "requestState") is None:
        yield Fault(f"the retry lacks the requestState of #{known.answer}", "/params", (known.answer,))


@rule(
    "mrtr/state-changed",
    "error",
    "The retry must echo `requestState` exactly, and have none where the server gave none.",
    spec="basic/patterns/mrtr",
    about="meta",
    revisions=_MODERN,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s2"}
    """,
    passes="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}
    """,
    on=(Request,),
)
def state_changed(message: Message, state: State) -> Iterator[Fault]:
    """Retries with another state."""
    echoed = member(message.body.value, "params", "requestState")
    if echoed is None or not state.rounds:
        return
    known = state.rounds.get(round_key(message))
    if known and known.state != echoed and not known.several:
        what = "another requestState than" if known.state is not None else "a requestState, and none was given by"
        yield Fault(f"the retry has {what} #{known.answer}", "/params/requestState", (known.answer,))


@rule(
    "mrtr/unrequested-input",
    "warning",
    "The client answers something that the server did not ask for; servers ignore it.",
    spec="basic/patterns/mrtr",
    about="meta",
    revisions=_MODERN,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        > 2 tools/call {META "name":"book","inputResponses":{"root":{"roots":[]}}}
    """,
    passes="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}}}
    """,
    on=(Request,),
)
def unrequested_input(message: Message, state: State) -> Iterator[Fault]:
    """Answers without a question."""
    given = member(message.body.value, "params", "inputResponses")
    if not isinstance(given, dict) or not state.rounds:
        return
    known = state.rounds.get(round_key(message))
    for name in given:
        if known and not known.several and name not in known.asked:
            yield Fault(f"#{known.answer} did not ask for {name[:60]!r}", "/params/inputResponses", (known.answer,))
            return


@rule(
    "subscription/unacknowledged",
    "error",
    "The first message of a subscription is its acknowledgement; nothing may come on it before.",
    spec="basic/patterns/subscriptions",
    about="meta",
    revisions=_MODERN,
    fails="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
    """,
    passes="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{"toolsListChanged":true}}
        < notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
    """,
    on=(Notification,),
)
def unacknowledged(message: Message, state: State) -> Iterator[Fault]:
    """Events of a subscription that has not begun."""
    if not state.listens or state.lossy or not isinstance(message.body, Notification):
        return
    if message.body.method in ("notifications/subscriptions/acknowledged", "notifications/cancelled"):
        return
    listen = state.listens.get(Id.of(subscription(message)))
    if listen and not listen.acknowledged:
        yield Fault(f"the subscription #{listen.request} is not acknowledged yet", "/params/_meta", (listen.request,))


@rule(
    "subscription/unknown-id",
    "error",
    "The notification names a subscription that the client never opened.",
    spec="basic/patterns/subscriptions",
    about="meta",
    revisions=_MODERN,
    fails="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":2},\
"notifications":{"toolsListChanged":true}}
    """,
    passes="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{"toolsListChanged":true}}
    """,
    on=(Notification,),
)
def unknown_subscription(message: Message, state: State) -> Iterator[Fault]:
    """Ids of no subscription; asked again later, when the request may have been recorded."""
    found = subscription(message)
    if found is None or state.lossy or Id.of(found) in state.listens:
        return

    def question() -> Iterator[Fault]:
        if Id.of(found) not in state.listens:
            yield Fault(f"no subscription has the id {str(Id.of(found))[:60]}", "/params/_meta")

    state.ask_later(RULES["subscription/unknown-id"], message, question)
    yield from ()


def _id(message: Message) -> Id:
    body = message.body
    found = body.id if isinstance(body, Request | Result | Error) else None
    return found or Id("absent", "")


def _id_text(message: Message) -> str:
    return str(_id(message))[:60]
