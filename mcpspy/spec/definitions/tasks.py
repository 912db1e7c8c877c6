"""Tasks: requests whose result is fetched later. In the protocol only in 2025-11-25, later an extension."""

from mcpspy.spec.definitions.base import notification, request
from mcpspy.spec.revisions import R2025_11_25
from mcpspy.spec.shapes import INTEGER, STRING, Definitions, array, both, enum, only, optional, record

_TASK_ID = record({"taskId": STRING})

_TASKS: Definitions = {
    "Task": record(
        {
            "status": "TaskStatus",
            "statusMessage?": STRING,
            "createdAt": STRING,
            "lastUpdatedAt": STRING,
            "ttl": {"type": ["integer", "null"]},
            "pollInterval?": INTEGER,
        },
        _TASK_ID,
    ),
    "TaskStatus": enum("working", "input_required", "completed", "failed", "cancelled"),
    "TaskMetadata": record({"ttl?": INTEGER}),
    "RelatedTaskMetadata": _TASK_ID,
    "TaskAugmentedRequestParams": record({"task?": "TaskMetadata"}, "RequestParams"),
    "CreateTaskResult": record({"task": "Task"}, "Result"),
    "GetTaskRequest": request("tasks/get", _TASK_ID),
    "GetTaskResult": both("Result", "Task"),
    "GetTaskPayloadRequest": request("tasks/result", _TASK_ID),
    "GetTaskPayloadResult": record({}, "Result"),
    "CancelTaskRequest": request("tasks/cancel", _TASK_ID),
    "CancelTaskResult": both("Result", "Task"),
    "ListTasksRequest": request("tasks/list", optional("PaginatedRequestParams")),
    "ListTasksResult": record({"tasks": array("Task")}, "PaginatedResult"),
    "TaskStatusNotification": notification("notifications/tasks/status", "TaskStatusNotificationParams"),
    "TaskStatusNotificationParams": both("NotificationParams", "Task"),
}

TASKS: Definitions = {name: only(R2025_11_25, shape) for name, shape in _TASKS.items()}
