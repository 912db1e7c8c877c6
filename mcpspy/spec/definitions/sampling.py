"""What servers request of clients: sampling from their language model, and the roots that they work in.

Both are deprecated since 2026-07-28, where they are requested inside an InputRequiredResult.
"""

from mcpspy.spec.definitions.base import input_request, notification
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    INTEGER,
    NUMBER,
    STRING,
    URI,
    Definitions,
    array,
    changed,
    deprecated,
    either,
    enum,
    named_since,
    optional,
    record,
    since,
    until,
)

_PRIORITY = NUMBER | {"minimum": 0, "maximum": 1}
_BLOCKS = ("TextContent", "ImageContent", "AudioContent", "ToolUseContent", "ToolResultContent")

_SAMPLING: Definitions = {
    "CreateMessageRequest": deprecated(
        R2026_07_28, input_request("sampling/createMessage", "CreateMessageRequestParams")
    ),
    "CreateMessageRequestParams": named_since(
        R2025_11_25,
        deprecated(
            R2026_07_28,
            record(
                {
                    "messages": array("SamplingMessage"),
                    "modelPreferences?": "ModelPreferences",
                    "systemPrompt?": STRING,
                    "includeContext?": deprecated(R2025_11_25, enum("none", "thisServer", "allServers")),
                    "temperature?": NUMBER,
                    "maxTokens": INTEGER,
                    "stopSequences?": array(STRING),
                    "metadata?": "JSONObject",
                    "tools?": since(R2025_11_25, array("Tool")),
                    "toolChoice?": since(R2025_11_25, "ToolChoice"),
                },
                "TaskAugmentedRequestParams",
            ),
        ),
    ),
    "SamplingMessage": deprecated(
        R2026_07_28,
        record(
            {
                "role": "Role",
                "content": either(*_BLOCKS, since(R2025_11_25, array("SamplingMessageContentBlock"))),
                "_meta?": since(R2025_11_25, "MetaObject"),
            }
        ),
    ),
    "SamplingMessageContentBlock": since(R2025_11_25, deprecated(R2026_07_28, either(*_BLOCKS))),
    "CreateMessageResult": deprecated(
        R2026_07_28,
        record({"model": STRING, "stopReason?": STRING}, until(R2025_11_25, "Result"), "SamplingMessage"),
    ),
    "ModelPreferences": deprecated(
        R2026_07_28,
        record(
            {
                "hints?": array("ModelHint"),
                "costPriority?": _PRIORITY,
                "speedPriority?": _PRIORITY,
                "intelligencePriority?": _PRIORITY,
            }
        ),
    ),
    "ModelHint": deprecated(R2026_07_28, record({"name?": STRING})),
    "ToolChoice": since(R2025_11_25, deprecated(R2026_07_28, record({"mode?": enum("auto", "required", "none")}))),
}

_ROOTS: Definitions = {
    "ListRootsRequest": deprecated(
        R2026_07_28,
        input_request(
            "roots/list",
            changed(optional("RequestParams"), {R2026_07_28: optional(record({"_meta?": "MetaObject"}))}),
        ),
    ),
    "ListRootsResult": deprecated(R2026_07_28, record({"roots": array("Root")}, until(R2025_11_25, "Result"))),
    "Root": deprecated(R2026_07_28, record({"uri": URI, "name?": STRING, "_meta?": since(R2025_06_18, "MetaObject")})),
    "RootsListChangedNotification": until(
        R2025_11_25, notification("notifications/roots/list_changed", optional("NotificationParams"))
    ),
}

SAMPLING: Definitions = _SAMPLING | _ROOTS
