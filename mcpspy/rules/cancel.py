"""Rules about cancellations: `notifications/cancelled` names a request that its sender has in flight."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.context import other
from mcpspy.conversation.model import HOLD, Exchange, Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import TASKS, Revision, since
from mcpspy.wire.jsonrpc import Id, Notification

_CANCEL = "basic/utilities/cancellation"
_LATEST = 100  # requests in flight whose ids are compared with that of a cancellation


@rule(
    "cancel/unknown-request",
    "warning",
    """A cancellation names an id, but its sender has sent no request with this id. A late cancellation,
    of a request that is already answered, is allowed.""",
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
def cancel_unknown_request(message: Message, session: Session) -> Iterator[Fault]:
    """Report a cancellation that names no request of its sender."""
    requested = member(message.body.value, "params", "requestId")
    if requested is None or message.cancels or session.lossy:
        return
    number = Id.of(requested)
    if _names_task(requested, session):  # reported by `cancel/task`
        return
    if (message.sender, number) in message.session.completed or _is_listen(message, number, session):
        return
    similar = _similar(message, number)
    if any(it.key[0] == message.sender for it in similar):  # reported by `cancel/id-loose-match`
        return
    hint = f"; #{similar[0].request.n} is a request of the {other(message.sender)}" if similar else ""
    near = (it for kind in ("number", "string") if (it := Id(kind, number.loose)) != number)
    answered = next((it for it in near if (message.sender, it) in message.session.completed), None)
    if answered:
        request, response = message.session.completed[message.sender, answered][:2]
        hint = f"; {answered.beside(number)} was answered: #{request} by #{response}"
    yield Fault(f"the {message.sender} has sent no request with id {number.excerpt}{hint}", "/params/requestId")


@rule(
    "cancel/id-loose-match",
    "warning",
    """The id of a cancellation is similar to one in flight, but not equal: "3" is not 3. Peers compare ids exactly, so
    the request is not cancelled, and the work goes on.""",
    fix="Send the `id` of the request as `requestId`, with the same JSON type.",
    meanwhile="Ignore the notification.",
    spec=_CANCEL,
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":"2"}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
    """,
    on=(Notification,),
    methods=("notifications/cancelled",),
    loss="A cancellation had no effect",
)
def id_loose_match(message: Message, session: Session) -> Iterator[Fault]:
    """Report a cancellation with an id of another type, or with other digits."""
    requested = member(message.body.value, "params", "requestId")
    number = Id.of(requested)
    if requested is None or message.cancels or session.lossy or _names_task(requested, session):
        return
    if (message.sender, number) in message.session.completed or _is_listen(message, number, session):
        return
    near = next((it for it in _similar(message, number) if it.key[0] == message.sender), None)
    if near:
        meant = near.key[1].beside(number)
        yield Fault(f"request {number.excerpt} is not in flight; {meant} is, in #{near.request.n}",
                    "/params/requestId", (near.request.n,))  # fmt: skip


def _similar(message: Message, number: Id) -> list[Exchange]:
    """Return the latest requests in flight of both sides whose id a careless peer would take for this one."""
    latest = islice(reversed(message.session.pending.items()), _LATEST)
    return [exchanges[-1] for key, exchanges in latest if key[1].loose == number.loose]


def _is_listen(message: Message, number: Id, session: Session) -> bool:
    """Return whether a server ends a subscription (2026-07-28): it cancels the client's `subscriptions/listen`."""
    return message.sender == "server" and number in session.listens


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
    """Report the second cancellation of a request. Remember which cancellation was the first."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._first: dict[tuple[int, Id], tuple[int, int]] = {}
        """By line number and id of the request (a batch has several ids): line and part of the first cancellation."""

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare a cancellation with the first one of its request."""
        request = _cancelled(message)
        if request is None:
            return
        first = self._first.setdefault(request, (message.n, message.part))
        if first != (message.n, message.part):
            yield Fault(f"request #{request[0]} is cancelled again", "/params/requestId", (request[0], first[0]))
        if len(self._first) > bounds.FACTS:
            del self._first[next(iter(self._first))]

    def is_first(self, request: tuple[int, Id], message: Message) -> bool:
        """Return whether the message is the first cancellation of the request."""
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
def already_answered(message: Message, session: Session) -> Iterator[Fault]:
    """Report a cancellation that came too late, unless `cancel/repeated` or `cancel/task` reports it."""
    request = _cancelled(message)
    if message.cancels or request is None or not session.of(RepeatedCancel).is_first(request, message):
        return
    n, number = request
    if number in session.tasks and message.sender == "client":
        return
    answered = message.session.completed[message.sender, number]
    yield Fault(f"request #{n} was answered by #{answered[1]} before it was cancelled", "/params/requestId", answered)


def _cancelled(message: Message) -> tuple[int, Id] | None:
    """Return line number and id of the request that a cancellation names, in flight or already answered."""
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
    """A client must not cancel its `initialize` request. Not reported if the server did not answer it in time
    (`pairing/answered-late`, `lifecycle/handshake-failed`).""",
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
def cancel_initialize(message: Message, session: Session) -> Iterator[Fault]:
    """Report the cancellation of `initialize`."""
    cancelled = message.cancels
    if cancelled and cancelled.method == "initialize" and cancelled.outcome != "timed-out":
        yield Fault("`initialize` must not be cancelled", "/params/requestId", (cancelled.request.n,))


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
def cancel_task(message: Message, session: Session) -> Iterator[Fault]:
    """Report a cancellation that names a task, or a request that created one. A race is not reported."""
    requested = member(message.body.value, "params", "requestId")
    if message.sender != "client" or message.cancels or requested is None:
        return
    named = _names_task(requested, session)
    created = session.tasks.get(requested if named else Id.of(requested))
    if created and (named or message.t > created.t + HOLD):
        task = excerpt(created.task)
        sentence = f"the task {task} is cancelled by `notifications/cancelled`; expected `tasks/cancel`"
        page = _CANCEL if message.revision in TASKS else None
        yield Fault(sentence, "/params/requestId", (created.n,), source=page)


def _names_task(requested: Any, session: Session) -> bool:
    """Return whether a cancellation has the id of a task as its `requestId`."""
    return isinstance(requested, str) and requested in session.tasks
