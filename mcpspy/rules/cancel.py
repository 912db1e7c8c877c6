"""Rules about cancellations: `notifications/cancelled` names a request that its sender has in flight."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from mcpspy.conversation.history import SessionHistory, keep
from mcpspy.conversation.model import HOLD, Message
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Id, Notification, Result

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
    if history.of(CancelTask).names_task(requested):  # `cancel/task` says that
        return
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


@rule(
    "cancel/task",
    "error",
    """A task of the extension `io.modelcontextprotocol/tasks` is cancelled by `tasks/cancel` only. Its tool call was
    answered when the task was created, so `notifications/cancelled` cancels nothing and the task goes on.""",
    spec="https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md#task-cancellation",
    revisions=STATELESS,
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
class CancelTask(StatefulCheck):
    """Cancellations of requests that a task has answered, or of tasks by their ids; a race is no fault."""

    learns_from: ClassVar = {Result: ("tools/call",)}

    def __init__(self, history: SessionHistory) -> None:
        super().__init__(history)
        self._answers: dict[Id, _Created] = {}
        self._tasks: dict[str, _Created] = {}

    def learn(self, message: Message) -> None:
        """Remember an answer that is a task."""
        result = message.body.value["result"]
        task = member(result, "taskId")
        if member(result, "resultType") == "task" and isinstance(task, str) and message.id:
            created = _Created(message.n, message.t, task)
            keep(self._answers, message.id, created)
            keep(self._tasks, task, created)

    def names_task(self, requested: Any) -> bool:
        """Whether a cancellation names a task where a request should stand."""
        return isinstance(requested, str) and requested in self._tasks

    def check(self, message: Message) -> Iterator[Fault]:
        """Look at a cancellation of the client's."""
        requested = member(message.body.value, "params", "requestId")
        if message.sender != "client" or message.cancels or requested is None:
            return
        answer = self._tasks.get(requested) if self.names_task(requested) else self._answers.get(Id.of(requested))
        if answer and (self.names_task(requested) or message.t > answer.t + HOLD):
            task = f"{answer.task[:60]!r}"
            sentence = f"the task {task} is cancelled by `notifications/cancelled`; expected `tasks/cancel`"
            yield Fault(sentence, "/params/requestId", (answer.n,))


class _Created(NamedTuple):
    """The answer by which a task was created."""

    n: int
    t: int
    task: str
