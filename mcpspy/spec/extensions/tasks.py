"""Tasks: a tool call that is answered with a task, whose result is fetched later (SEP-2663, since 2026-07-28).

https://github.com/modelcontextprotocol/ext-tasks. The tasks of 2025-11-25 itself are different ones
(`mcpspy.spec.definitions.flow`).
"""

from mcpspy.spec.definitions.base import notification, request
from mcpspy.spec.extensions.extension import Extension
from mcpspy.spec.revisions import R2026_07_28
from mcpspy.spec.shapes import INTEGER, STRING, Definitions, Type, Union, array, const, either, enum, record, since
from mcpspy.wire.jsonrpc import Notification, Request

_STATES: dict[str, dict[str, Type]] = {
    "working": {},
    "input_required": {"inputRequests": "InputRequests"},
    "completed": {"result": "JSONObject"},
    "failed": {"error": "Error"},
    "cancelled": {},
}
"""By status: the members that a task has only in that state."""


def _detailed(*bases: Type) -> Union:
    """Define a task with the members of its state."""
    states = (record({"status": const(status)} | own, *bases, "tasks.Task") for status, own in _STATES.items())
    return either(*states)


_COMPLETE: Type = record({"resultType": const("complete")}, "Result")
_NAMED: Type = record({"taskId": STRING}, "RequestParams")
_FILTER: Type = record({"notifications": record({"taskIds?": array(STRING)})})

_TASK_SHAPES: Definitions = {
    "tasks.Task": record(
        {
            "taskId": STRING,
            "status": enum(*_STATES),
            "statusMessage?": STRING,
            "createdAt": STRING,
            "lastUpdatedAt": STRING,
            "ttlMs": {"type": ["integer", "null"]},
            "pollIntervalMs?": INTEGER,
        }
    ),
    "tasks.CreateTaskResult": record({"resultType": const("task")}, "Result", "tasks.Task"),
    "tasks.GetTaskRequest": request("tasks/get", _NAMED),
    "tasks.GetTaskResult": _detailed(_COMPLETE),
    "tasks.UpdateTaskRequest": request("tasks/update", record({"inputResponses": "InputResponses"}, _NAMED)),
    "tasks.UpdateTaskResult": _COMPLETE,
    "tasks.CancelTaskRequest": request("tasks/cancel", _NAMED),
    "tasks.CancelTaskResult": _COMPLETE,
    "tasks.TaskStatusNotification": notification("notifications/tasks", "tasks.TaskStatusNotificationParams"),
    "tasks.TaskStatusNotificationParams": _detailed("NotificationParams"),
    "tasks.ClientRequest": either("tasks.GetTaskRequest", "tasks.UpdateTaskRequest", "tasks.CancelTaskRequest"),
    "tasks.ServerNotification": either("tasks.TaskStatusNotification"),
    "tasks.Subscription": record({"params": _FILTER}),
}

TASKS = Extension(
    "io.modelcontextprotocol/tasks",
    needs=("client", "server"),
    prefix="tasks.",
    definitions={name: since(R2026_07_28, shape) for name, shape in _TASK_SHAPES.items()},
    result_types={"task": {"tools/call": "tasks.CreateTaskResult"}},
    filters=("taskIds",),
    additions={
        ("subscriptions/listen", Request): "tasks.Subscription",
        ("notifications/subscriptions/acknowledged", Notification): "tasks.Subscription",
    },
)
