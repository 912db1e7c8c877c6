"""Messages about other exchanges: progress, cancellation, the server's log, tasks, rounds and subscriptions.

Tasks are requests whose result is fetched later: in the protocol only in 2025-11-25, later an extension. Requests in
several rounds and subscriptions replace server requests and sessions in 2026-07-28.
"""

from mcpspy.spec.definitions.base import META, notification, request, response
from mcpspy.spec.revisions import R2025_03_26, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Definitions,
    array,
    both,
    changed,
    deprecated,
    either,
    enum,
    mapping,
    named_since,
    only,
    optional,
    record,
    since,
    until,
)

_FLOW: Definitions = {
    "ProgressNotification": notification("notifications/progress", "ProgressNotificationParams"),
    "ProgressNotificationParams": named_since(
        R2025_11_25,
        record(
            {
                "progressToken": "ProgressToken",
                "progress": NUMBER,
                "total?": NUMBER,
                "message?": since(R2025_03_26, STRING),
            },
            since(R2025_11_25, "NotificationParams"),
        ),
    ),
    "CancelledNotification": notification("notifications/cancelled", "CancelledNotificationParams"),
    "CancelledNotificationParams": named_since(
        R2025_11_25,
        record(
            {
                # 2025-11-25 cancels a task with `tasks/cancel`, and made the id optional here
                "requestId": changed("RequestId", {R2025_11_25: optional("RequestId"), R2026_07_28: "RequestId"}),
                "reason?": STRING,
            },
            since(R2025_11_25, "NotificationParams"),
        ),
    ),
}

_LOGGING: Definitions = {
    "LoggingLevel": deprecated(
        R2026_07_28,
        enum("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"),
    ),
    "SetLevelRequest": until(R2025_11_25, request("logging/setLevel", "SetLevelRequestParams")),
    "SetLevelRequestParams": until(
        R2025_11_25,
        named_since(R2025_11_25, record({"level": "LoggingLevel"}, since(R2025_11_25, "RequestParams"))),
    ),
    "LoggingMessageNotification": deprecated(
        R2026_07_28, notification("notifications/message", "LoggingMessageNotificationParams")
    ),
    "LoggingMessageNotificationParams": named_since(
        R2025_11_25,
        deprecated(
            R2026_07_28,
            record({"level": "LoggingLevel", "logger?": STRING, "data": ANY}, since(R2025_11_25, "NotificationParams")),
        ),
    ),
}

FLOW: Definitions = _FLOW | _LOGGING


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


_ROUND_TRIPS: Definitions = {
    "InputRequiredResult": record({"inputRequests?": "InputRequests", "requestState?": STRING}, "Result"),
    "InputRequest": either("CreateMessageRequest", "ListRootsRequest", "ElicitRequest"),
    "InputRequests": mapping("InputRequest"),
    "InputResponse": either("CreateMessageResult", "ListRootsResult", "ElicitResult"),
    "InputResponses": mapping("InputResponse"),
    "InputResponseRequestParams": record(
        {"inputResponses?": "InputResponses", "requestState?": STRING}, "RequestParams"
    ),
}

_SUBSCRIPTIONS: Definitions = {
    "SubscriptionFilter": record(
        {
            "toolsListChanged?": BOOLEAN,
            "promptsListChanged?": BOOLEAN,
            "resourcesListChanged?": BOOLEAN,
            "resourceSubscriptions?": array(STRING),
        }
    ),
    "SubscriptionsListenRequest": request("subscriptions/listen", "SubscriptionsListenRequestParams"),
    "SubscriptionsListenRequestParams": record({"notifications": "SubscriptionFilter"}, "RequestParams"),
    "SubscriptionsListenResult": record({"_meta": "SubscriptionsListenResultMetaObject"}, "Result"),
    "SubscriptionsListenResultMetaObject": record({META + "subscriptionId": "RequestId"}, "ResultMetaObject"),
    "SubscriptionsListenResultResponse": response("SubscriptionsListenResult"),
    "SubscriptionsAcknowledgedNotification": notification(
        "notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotificationParams"
    ),
    "SubscriptionsAcknowledgedNotificationParams": record(
        {"notifications": "SubscriptionFilter"}, "NotificationParams"
    ),
}

STATELESS: Definitions = {name: since(R2026_07_28, shape) for name, shape in (_ROUND_TRIPS | _SUBSCRIPTIONS).items()}
