"""Rules about what goes on over several messages: progress, pages, rounds of questions, subscriptions.

What a message continues may be recorded a moment after it, so a rule that misses the beginning asks again later; after
a gap nothing is called missing.
"""

from collections.abc import Iterator

from mcpspy.jsonrpc import Id, Notification, Request
from mcpspy.protocol.revisions import Revision
from mcpspy.protocol.rules.rule import RULES, Fault, member, rule
from mcpspy.protocol.rules.state import Round, State, mark, other, round_key, subscription
from mcpspy.protocol.session import Message

_PROGRESS = "basic/utilities/progress"
_MODERN = (Revision.R2026_07_28,)


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
    if key in state.progress or state.lossy or state.progress_forgotten or token is None:
        return

    def question() -> Iterator[Fault]:
        if key not in state.progress and not state.progress_forgotten:
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
    if member(params, "inputResponses") is None or member(params, "requestState") is not None:
        return

    def question() -> Iterator[Fault]:
        rounds = _rounds(message, state)
        if rounds and all(known.state is not None for known in rounds):
            answer = rounds[-1].answer
            yield Fault(f"the retry lacks the requestState of #{answer}", "/params", (answer,))

    state.ask_later(RULES["mrtr/state-missing"], message, question)
    yield from ()


def _rounds(message: Message, state: State) -> list[Round]:
    """The answers that a retry may continue: those that its client had when it sent it."""
    return [known for known in state.rounds.get(round_key(message), ()) if known.t <= message.t]


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
    if echoed is None:
        return

    def question() -> Iterator[Fault]:
        rounds = _rounds(message, state)
        if rounds and all(known.state != mark(echoed) for known in rounds):
            known = rounds[-1]
            what = "a requestState, and none was given by" if known.state is None else "another requestState than"
            yield Fault(f"the retry has {what} #{known.answer}", "/params/requestState", (known.answer,))

    state.ask_later(RULES["mrtr/state-changed"], message, question)
    yield from ()


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
    """Answers without a question, the first of a retry."""
    params = member(message.body.value, "params")
    given = member(params, "inputResponses")
    if not isinstance(given, dict):
        return

    def question() -> Iterator[Fault]:
        rounds = [it for it in _rounds(message, state) if it.state == mark(params.get("requestState"))]
        asked = {name for known in rounds for name in known.asked}
        name = next((name for name in given if name not in asked), None)
        if rounds and name is not None:
            answer = rounds[-1].answer
            yield Fault(f"#{answer} did not ask for {name[:60]!r}", "/params/inputResponses", (answer,))

    state.ask_later(RULES["mrtr/unrequested-input"], message, question)
    yield from ()


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
