"""Rules about subscriptions (2026-07-28): what a server tells only those who have asked for it.

A `subscriptions/listen` names in a filter what it asks for; the server acknowledges it, and each notification says by
the request's id to which subscription it belongs. Over HTTP it comes on the stream that answers the request, by which
clients with equal ids are told apart.
"""

from collections.abc import Iterator

from mcpspy.conversation.history import Listen, SessionHistory, is_about, subscription
from mcpspy.conversation.model import Message
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
"""By method: the member of the filter that asks for it."""
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
def unacknowledged(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Events of a subscription that has not begun."""
    if not history.listens or not isinstance(message.body, Notification):
        return
    if message.body.method in ("notifications/subscriptions/acknowledged", "notifications/cancelled"):
        return
    listen = _listen(message, history)
    if listen and not listen.acknowledged:
        yield Fault(f"subscription #{listen.request} is not acknowledged yet", "/params/_meta", (listen.request,))


def _listen(message: Message, history: SessionHistory) -> Listen | None:
    """The subscription in flight that a notification belongs to, None where that is uncertain."""
    listen = history.listens.get(Id.of(subscription(message)))
    if listen is None or listen.ended or (history.lossy and not message.http):
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
def unrequested(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Notifications that nobody asked for there; which resource it is about is not looked at: it may be a part of one.

    There is no finding while the request is not recorded yet.
    """
    if not isinstance(message.body, Notification):
        return
    method, listen = message.body.method, _listen(message, history)
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
def missing_id(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Changes without a subscription; on stdio only where no session of another era can have been missed."""
    if subscription(message) is None and (message.http or not history.lossy) and message.sender == "server":
        # the example in the text of tasks has no id; the protocol says that every notification has one
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
def unknown_subscription(message: Message, history: SessionHistory) -> Iterator[Fault | Later]:
    """Ids of no subscription; asked again later, when the request may have been recorded."""
    found = subscription(message)
    if found is None or history.lossy or Id.of(found) in history.listens:
        return

    def question() -> Iterator[Fault]:
        if Id.of(found) not in history.listens:
            yield Fault(f"no subscription has the id {str(Id.of(found))[:60]}", "/params/_meta")

    yield Later(question())
