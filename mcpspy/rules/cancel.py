"""Rules about cancellations: `notifications/cancelled` names a request that its sender has in flight."""

from collections.abc import Iterator

from mcpspy.conversation.history import SessionHistory
from mcpspy.conversation.model import Message
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, rule
from mcpspy.wire.jsonrpc import Id, Notification

_CANCEL = "basic/utilities/cancellation"


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
def cancel_unknown_request(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Cancellations of nothing."""
    requested = member(message.body.value, "params", "requestId")
    if requested is None or message.cancels or history.lossy:
        return
    session, number = message.session, Id.of(requested)
    if (message.sender, number) in session.completed or _is_listen(message, number, history):
        return
    yield Fault(f"the {message.sender} has issued no request with the id {str(number)[:60]}", "/params/requestId")


def _is_listen(message: Message, number: Id, history: SessionHistory) -> bool:
    """Whether a server ends a subscription (2026-07-28): its cancellation names the client's request."""
    return message.sender == "server" and number in history.listens


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
def cancel_initialize(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Cancellations of the handshake."""
    if message.cancels and message.cancels.method == "initialize":
        yield Fault("`initialize` must not be cancelled", "/params/requestId", (message.cancels.request.n,))
