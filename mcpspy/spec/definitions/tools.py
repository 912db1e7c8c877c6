"""Tools: what a server can do, and how it is called."""

from mcpspy.spec.definitions.base import PAGE, notification, request, response
from mcpspy.spec.revisions import R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    BOOLEAN,
    OBJECT,
    STRING,
    Definitions,
    array,
    changed,
    const,
    either,
    enum,
    mapping,
    named_since,
    only,
    open_record,
    optional,
    record,
    since,
)

# The JSON Schema of a tool's arguments or result. Until 2025-11-25 only a plain object, then any keywords.
_OBJECT_SCHEMA = open_record(
    {
        "$schema?": since(R2025_11_25, STRING),
        "type": const("object"),
        "properties?": mapping(OBJECT),
        "required?": array(STRING),
    }
)
_INPUT_SCHEMA = changed(_OBJECT_SCHEMA, {R2026_07_28: open_record({"$schema?": STRING, "type": const("object")})})
_OUTPUT_SCHEMA = changed(_OBJECT_SCHEMA, {R2026_07_28: open_record({"$schema?": STRING})})

STRUCTURED = changed(OBJECT, {R2026_07_28: ANY})
"""A result for programs."""

TOOLS: Definitions = {
    "Tool": record(
        {
            "description?": STRING,
            "inputSchema": _INPUT_SCHEMA,
            "outputSchema?": since(R2025_06_18, _OUTPUT_SCHEMA),
            "annotations?": since(R2025_03_26, "ToolAnnotations"),
            "execution?": only(R2025_11_25, "ToolExecution"),
            "_meta?": since(R2025_06_18, "MetaObject"),
        },
        "BaseMetadata",
        "Icons",
    ),
    "ToolAnnotations": since(
        R2025_03_26,
        record(
            {
                "title?": STRING,
                "readOnlyHint?": BOOLEAN,
                "destructiveHint?": BOOLEAN,
                "idempotentHint?": BOOLEAN,
                "openWorldHint?": BOOLEAN,
            }
        ),
    ),
    "ToolExecution": only(R2025_11_25, record({"taskSupport?": enum("forbidden", "optional", "required")})),
    "ListToolsRequest": request("tools/list", PAGE),
    "ListToolsResult": record({"tools": array("Tool")}, "PaginatedResult", "CacheableResult"),
    "ListToolsResultResponse": response("ListToolsResult"),
    "CallToolRequest": request("tools/call", "CallToolRequestParams"),
    "CallToolRequestParams": named_since(
        R2025_11_25,
        record({"name": STRING, "arguments?": OBJECT}, "TaskAugmentedRequestParams", "InputResponseRequestParams"),
    ),
    "CallToolResult": record(
        {
            "content": array("ContentBlock"),
            "structuredContent?": since(R2025_06_18, STRUCTURED),
            "isError?": BOOLEAN,
        },
        "Result",
    ),
    "CallToolResultResponse": response(either("InputRequiredResult", "CallToolResult")),
    "ToolListChangedNotification": notification("notifications/tools/list_changed", optional("NotificationParams")),
}
