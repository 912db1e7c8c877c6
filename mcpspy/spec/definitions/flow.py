"""Messages about other exchanges: progress, cancellation, and the server's log."""

from mcpspy.spec.definitions.base import notification, request
from mcpspy.spec.revisions import R2025_03_26, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    NUMBER,
    STRING,
    Definitions,
    changed,
    deprecated,
    enum,
    named_since,
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
