"""Rules about cancellations: `notifications/cancelled` names a request that its sender has in flight."""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.history import REMEMBERED, SessionHistory
from mcpspy.conversation.model import HOLD, Message
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import TASKS, Revision, since
from mcpspy.wire.jsonrpc import Id, Notification

_CANCEL = "basic/utilities/cancellation"


@rule(
    "cancel/unknown-request",
    "warning",
    """A cancellation must name a request that its sender has sent and that is still in flight. No request had this id.
    A cancellation of a request that was just answered is allowed.""",
    fix="Send the `id` of the request as `requestId`, with the same JSON type.",
    meanwhile="Ignore the notification.",
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
    if _names_task(requested, history):  # `cancel/task` says that
        return
    if (message.sender, number) in session.completed or _is_listen(message, number, history):
        return
    yield Fault(f"the {message.sender} has sent no request with id {str(number)[:60]}", "/params/requestId")


def _is_listen(message: Message, number: Id, history: SessionHistory) -> bool:
    """Whether a server ends a subscription (2026-07-28): its cancellation names the client's request."""
    return message.sender == "server" and number in history.listens


@rule(
    "cancel/repeated",
    "warning",
    "A request is cancelled for the second time. One cancellation is enough: the first was received, or came too late.",
    fix="Remember which requests you have cancelled, and send each cancellation once.",
    meanwhile="Ignore the second cancellation.",
    spec=_CANCEL,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
        > notifications/cancelled {"requestId":2}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
)
class RepeatedCancel(StatefulCheck):
    """Remembers which cancellation of a request was the first."""

    def __init__(self, history: SessionHistory) -> None:
        super().__init__(history)
        self._first: dict[tuple[int, Id], tuple[int, int]] = {}
        """By the line number of a request and its id, for a batch has several: line and part of its first one."""

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare with the first one."""
        request = _cancelled(message)
        if request is None:
            return
        first = self._first.setdefault(request, (message.n, message.part))
        if first != (message.n, message.part):
            yield Fault(f"request #{request[0]} is cancelled again", "/params/requestId", (request[0], first[0]))
        if len(self._first) > REMEMBERED:
            del self._first[next(iter(self._first))]

    def is_first(self, request: tuple[int, Id], message: Message) -> bool:
        """Whether the request was not cancelled before the message."""
        return self._first.get(request) == (message.n, message.part)


@rule(
    "cancel/already-answered",
    "info",
    """The request was answered before it was cancelled. The specification allows this race, since the answer and the
    cancellation can cross. A client that cancels every answered request sends a useless message for each.""",
    fix="Cancel only requests that are not answered yet.",
    meanwhile="Ignore the cancellation.",
    spec=_CANCEL,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"quick"}
        < 2 = {"content":[]}
        > notifications/cancelled {"requestId":2}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
)
def already_answered(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Cancellations that came too late; of a second one see `cancel/repeated`, of a task's `cancel/task`."""
    request = _cancelled(message)
    if message.cancels or request is None or not history.of(RepeatedCancel).is_first(request, message):
        return
    n, number = request
    if number in history.tasks and message.sender == "client":
        return
    answered = message.session.completed[message.sender, number]
    yield Fault(f"request #{n} was answered by #{answered[1]} before it was cancelled", "/params/requestId", answered)


def _cancelled(message: Message) -> tuple[int, Id] | None:
    """The line number and the id of the request that a cancellation names: one in flight, or one that was answered."""
    if message.cancels:
        return message.cancels.request.n, message.cancels.key[1]
    requested = member(message.body.value, "params", "requestId")
    if requested is None:
        return None
    answered = message.session.completed.get((message.sender, number := Id.of(requested)))
    return (answered[0], number) if answered else None


@rule(
    "cancel/initialize",
    "error",
    "A client must not cancel its `initialize` request.",
    fix="Do not cancel `initialize`: close the connection or end the process.",
    meanwhile="Ignore the cancellation, and answer `initialize`.",
    blame="client",
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


@rule(
    "cancel/task",
    "error",
    """Only `tasks/cancel` cancels a task (of 2025-11-25 or of the extension `io.modelcontextprotocol/tasks`). The tool
    call was already answered when the task was created, so `notifications/cancelled` has no effect and the task
    continues.""",
    fix="Send `tasks/cancel` with the `taskId` of the result.",
    meanwhile="Ignore the notification: the call that it names has already been answered.",
    blame="client",
    spec="https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md#task-cancellation",
    revisions=since(Revision.R2025_11_25),
    fails="""
        > 1 tools/call {META with io.modelcontextprotocol/tasks "name":"build","arguments":{}}
        < 1 = {"resultType":"task","taskId":"t-1","status":"working","createdAt":"2026-11-20T10:00:00Z",\
"lastUpdatedAt":"2026-11-20T10:00:00Z","ttlMs":null}
        @5 > notifications/cancelled {"requestId":1}
    """,
    passes="""
        > 1 tools/call {META with io.modelcontextprotocol/tasks "name":"build","arguments":{}}
        < 1 = {"resultType":"task","taskId":"t-1","status":"working","createdAt":"2026-11-20T10:00:00Z",\
"lastUpdatedAt":"2026-11-20T10:00:00Z","ttlMs":null}
        @5 > 2 tasks/cancel {META with io.modelcontextprotocol/tasks "taskId":"t-1"}
        < 2 = {"resultType":"complete"}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
)
def cancel_task(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Cancellations of requests that a task has answered, or of tasks by their ids; a race is no fault."""
    requested = member(message.body.value, "params", "requestId")
    if message.sender != "client" or message.cancels or requested is None:
        return
    named = _names_task(requested, history)
    created = history.tasks.get(requested if named else Id.of(requested))
    if created and (named or message.t > created.t + HOLD):
        task = excerpt(created.task)
        sentence = f"the task {task} is cancelled by `notifications/cancelled`; expected `tasks/cancel`"
        page = _CANCEL if message.revision in TASKS else None
        yield Fault(sentence, "/params/requestId", (created.n,), source=page)


def _names_task(requested: Any, history: SessionHistory) -> bool:
    """Whether a cancellation names a task where a request should stand."""
    return isinstance(requested, str) and requested in history.tasks
