"""Which request a message belongs to that is not its response: by progress token, subscription, request id or task.

The theory. A request may ask for progress by a token that its sender chooses; the latest request with a token owns it.
A notification of a subscription names the `subscriptions/listen` request by its id (2026-07-28). A cancellation names a
request of its own sender. If a request is answered by a task, its result is in the response to `tasks/result`
(2025-11-25).

The link is the ordinal of the exchange. Notifications may come long after the response, and a finished exchange is not
kept for them. Each table forgets its oldest entries.
"""

from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.model import ENDLESS, Exchange, Message
from mcpspy.json_values import member
from mcpspy.spec.revisions import SUBSCRIPTION_ID
from mcpspy.wire.jsonrpc import Id, Notification, Request, exact_id


def enter(message: Message, body: Request, ordinal: int) -> None:
    """Store the names by which later notifications may refer to a request."""
    session = message.session
    token = member(body.params, "_meta", "progressToken")
    if token is not None:
        session.tokens[message.side, Id.of(token)] = ordinal
        if len(session.tokens) > bounds.EXCHANGES + bounds.FORGOTTEN:
            bounds.forget(session.tokens)
    if body.method == ENDLESS:
        session.subscriptions[body.id] = ordinal
        if len(session.subscriptions) > bounds.EXCHANGES + bounds.FORGOTTEN:
            bounds.forget(session.subscriptions)


def follow(message: Message, body: Notification) -> None:
    """Link a notification to the exchange that it names.

    Mark an exchange as cancelled if the notification cancels it.
    """
    session = message.session
    message.revision = session.negotiated or session.stated or message.revision
    subscription = member(body.params, "_meta", SUBSCRIPTION_ID)
    if subscription is not None:
        listen = exact_id(subscription, message.frame.raw, message.part, "params", "_meta", SUBSCRIPTION_ID)
        message.link = session.subscriptions.get(listen)
        for exchange in session.pending.get(("client", listen), ()):
            message.revision = exchange.revision
    elif body.method == "notifications/progress":
        token = member(body.params, "progressToken")
        if token is not None:
            message.link = session.tokens.get(("client" if message.side == "server" else "server", Id.of(token)))
    if body.method == "notifications/cancelled":
        requested = member(body.params, "requestId")
        target = exact_id(requested, message.frame.raw, message.part, "params", "requestId")
        for exchange in session.pending.get((message.side, target), ()):
            exchange.cancelled = True
            message.cancels = exchange


def follow_task(sender: str, exchange: Exchange, result: Any) -> None:
    """Follow a request that was answered by a task: its result comes in response to `tasks/result`."""
    tasks = exchange.request.session.task_methods
    if exchange.method == "tasks/result":
        wanted = member(exchange.request.body.value.get("params"), "taskId")
        exchange.underlying = tasks.get((sender, wanted)) if isinstance(wanted, str) else None
        return
    given = member(result, "task", "taskId")
    if isinstance(given, str):
        tasks[sender, given] = exchange.method
        if len(tasks) > bounds.EXCHANGES:
            bounds.forget(tasks)
