"""Rules about subscriptions (2026-07-28): what a server sends only to clients that requested it.

The filter of a `subscriptions/listen` names what the client requests. The server acknowledges it. Each notification has
the id of that request, which names its subscription. Over HTTP it is on the stream that answers the request, so clients
with equal ids can be told apart.
"""

from collections.abc import Iterator

from mcpspy.conversation.context import is_about, subscription
from mcpspy.conversation.facts import Listen
from mcpspy.conversation.model import Message, Session
from mcpspy.rules.rule import Fault, Later, Severity, rule
from mcpspy.spec.revisions import SUBSCRIPTIONS
from mcpspy.wire.jsonrpc import Id, Notification

_SUBSCRIPTIONS = "basic/patterns/subscriptions"
_FILTERS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
    "notifications/tasks": "taskIds",
}
"""By method: the member of the filter that requests it."""
_IN_OTHER_STREAMS = ("notifications/message",)


@rule(
    "subscription/unacknowledged",
    "error",
    "The first message of a subscription must be its acknowledgement.",
    fix="Send `notifications/subscriptions/acknowledged` first on each subscription.",
    blame="server",
    spec=_SUBSCRIPTIONS,
    about="meta",
    revisions=SUBSCRIPTIONS,
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
def unacknowledged(message: Message, session: Session) -> Iterator[Fault]:
    """Report notifications of a subscription before its acknowledgement."""
    if not session.listens or not isinstance(message.body, Notification):
        return
    if message.body.method in ("notifications/subscriptions/acknowledged", "notifications/cancelled"):
        return
    listen = _listen(message, session)
    if listen and not listen.acknowledged:
        yield Fault(f"subscription #{listen.request} is not acknowledged yet", "/params/_meta", (listen.request,))


def _listen(message: Message, session: Session) -> Listen | None:
    """Return the subscription in flight that a notification belongs to, or None if that is uncertain."""
    listen = session.listens.get(Id.of(subscription(message)))
    if listen is None or listen.ended or (session.lossy and not message.http):
        return None
    return listen if is_about(message, listen.request) else None


@rule(
    "subscription/unrequested",
    "error",
    """The notification is sent on a subscription that does not request it. A server must send only the requested
    notifications, and log messages only on the stream of the request that they belong to.""",
    fix="Send only what the `notifications` of the subscription name.",
    meanwhile="Ignore the notification, or add it to `notifications` if you need it.",
    blame="server",
    spec=f"{_SUBSCRIPTIONS}#opening-a-stream",
    about="meta",
    revisions=SUBSCRIPTIONS,
    fails="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{"toolsListChanged":true}}
        < notifications/prompts/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
    """,
    passes="""
        > 1 subscriptions/listen {META "notifications":{"promptsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{"promptsListChanged":true}}
        < notifications/prompts/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
    """,
    on=(Notification,),
    methods=(*_FILTERS, *_IN_OTHER_STREAMS),
)
def unrequested(message: Message, session: Session) -> Iterator[Fault]:
    """Report a notification that the subscription did not request.

    The URI of a resource is not compared, because it may be a part of the requested one. There is no finding while the
    request is not recorded yet.
    """
    if not isinstance(message.body, Notification):
        return
    method, listen = message.body.method, _listen(message, session)
    if listen and _FILTERS.get(method) not in listen.asked:
        yield Fault(
            f"{method} is not among the notifications that subscription #{listen.request} requests",
            "/method",
            (listen.request,),
        )


@rule(
    "subscription/missing-id",
    "error",
    """A notification about a change belongs to a subscription, and must have the id of its `subscriptions/listen`
    request. On stdio a client cannot match it otherwise.""",
    fix='Copy the `id` of the `subscriptions/listen` request into `_meta["io.modelcontextprotocol/subscriptionId"]`.',
    meanwhile="Treat it as a change on each of your subscriptions.",
    blame="server",
    spec=f"{_SUBSCRIPTIONS}#receiving-notifications",
    revisions=SUBSCRIPTIONS,
    fails="""
        > 1 tools/list {META}
        < notifications/tools/list_changed
    """,
    passes="""
        > 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{"toolsListChanged":true}}
        < notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
    """,
    on=(Notification,),
    methods=("notifications/subscriptions/acknowledged", *_FILTERS),
)
def missing_id(message: Message, session: Session) -> Iterator[Fault]:
    """Report a notification without the id of a subscription. On stdio only if no record was lost."""
    if subscription(message) is None and (message.http or not session.lossy) and message.sender == "server":
        # the example in the tasks extension has no id; the protocol requires one
        severity: Severity | None = "warning" if message.method == "notifications/tasks" else None
        yield Fault(
            "the notification has no io.modelcontextprotocol/subscriptionId in params._meta",
            "/params",
            severity=severity,
        )


@rule(
    "subscription/unknown-id",
    "error",
    "The notification names a subscription that the client never opened.",
    fix="Copy the `id` of the `subscriptions/listen` request with its JSON type.",
    meanwhile="Ignore the notification.",
    blame="server",
    spec=_SUBSCRIPTIONS,
    about="meta",
    revisions=SUBSCRIPTIONS,
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
def unknown_subscription(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report the id of an unknown subscription. Checked later, because the request may be recorded late."""
    found = subscription(message)
    if found is None or session.lossy or Id.of(found) in session.listens:
        return

    def question() -> Iterator[Fault]:
        if Id.of(found) not in session.listens:
            yield Fault(f"no subscription has the id {str(Id.of(found))[:60]}", "/params/_meta")

    yield Later(question())
