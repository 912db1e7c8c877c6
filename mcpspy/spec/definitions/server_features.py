"""What servers offer: tools, resources, prompts with completion, and the content that they and sampling exchange."""

from mcpspy.spec.definitions.base import PAGE, notification, request, response
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    BASE64,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    URI,
    URI_TEMPLATE,
    Definitions,
    array,
    changed,
    const,
    deprecated,
    either,
    enum,
    mapping,
    named_since,
    only,
    open_record,
    optional,
    record,
    since,
    until,
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


_META = since(R2025_06_18, "MetaObject")

_CONTENTS: Definitions = {
    "Resource": record(
        {
            "uri": URI,
            "description?": STRING,
            "mimeType?": STRING,
            "annotations?": "Annotations",
            "size?": INTEGER,
            "_meta?": _META,
        },
        "BaseMetadata",
        "Icons",
    ),
    "ResourceTemplate": record(
        {
            "uriTemplate": URI_TEMPLATE,
            "description?": STRING,
            "mimeType?": STRING,
            "annotations?": "Annotations",
            "_meta?": _META,
        },
        "BaseMetadata",
        "Icons",
    ),
    "ResourceContents": record({"uri": URI, "mimeType?": STRING, "_meta?": _META}),
    "TextResourceContents": record({"text": STRING}, "ResourceContents"),
    "BlobResourceContents": record({"blob": BASE64}, "ResourceContents"),
}

_READING: Definitions = {
    "ListResourcesRequest": request("resources/list", PAGE),
    "ListResourcesResult": record({"resources": array("Resource")}, "PaginatedResult", "CacheableResult"),
    "ListResourcesResultResponse": response("ListResourcesResult"),
    "ListResourceTemplatesRequest": request("resources/templates/list", PAGE),
    "ListResourceTemplatesResult": record(
        {"resourceTemplates": array("ResourceTemplate")}, "PaginatedResult", "CacheableResult"
    ),
    "ListResourceTemplatesResultResponse": response("ListResourceTemplatesResult"),
    "ReadResourceRequest": request("resources/read", "ReadResourceRequestParams"),
    "ResourceRequestParams": named_since(R2025_11_25, record({"uri": URI}, since(R2025_11_25, "RequestParams"))),
    "ReadResourceRequestParams": named_since(
        R2025_11_25, record({}, "ResourceRequestParams", "InputResponseRequestParams")
    ),
    "ReadResourceResult": record(
        {"contents": array(either("TextResourceContents", "BlobResourceContents"))}, "Result", "CacheableResult"
    ),
    "ReadResourceResultResponse": response(either("InputRequiredResult", "ReadResourceResult")),
}

_CHANGES: Definitions = {
    "SubscribeRequest": until(R2025_11_25, request("resources/subscribe", "SubscribeRequestParams")),
    "SubscribeRequestParams": until(R2025_11_25, named_since(R2025_11_25, record({}, "ResourceRequestParams"))),
    "UnsubscribeRequest": until(R2025_11_25, request("resources/unsubscribe", "UnsubscribeRequestParams")),
    "UnsubscribeRequestParams": until(R2025_11_25, named_since(R2025_11_25, record({}, "ResourceRequestParams"))),
    "ResourceListChangedNotification": notification(
        "notifications/resources/list_changed", optional("NotificationParams")
    ),
    "ResourceUpdatedNotification": notification("notifications/resources/updated", "ResourceUpdatedNotificationParams"),
    "ResourceUpdatedNotificationParams": named_since(
        R2025_11_25, record({"uri": URI}, since(R2025_11_25, "NotificationParams"))
    ),
}

_REFERENCE = record({"type": const("ref/resource"), "uri": URI_TEMPLATE})

RESOURCES: Definitions = (
    _CONTENTS
    | _READING
    | _CHANGES
    | {  # the references of `completion/complete`; renamed in 2025-06-18
        "ResourceReference": until(R2025_03_26, _REFERENCE),
        "ResourceTemplateReference": since(R2025_06_18, _REFERENCE),
    }
)


_PROMPTS: Definitions = {
    "Prompt": record(
        {
            "description?": STRING,
            "arguments?": array("PromptArgument"),
            "_meta?": since(R2025_06_18, "MetaObject"),
        },
        "BaseMetadata",
        "Icons",
    ),
    "PromptArgument": record({"description?": STRING, "required?": BOOLEAN}, "BaseMetadata"),
    "PromptMessage": record({"role": "Role", "content": "ContentBlock"}),
    "ListPromptsRequest": request("prompts/list", PAGE),
    "ListPromptsResult": record({"prompts": array("Prompt")}, "PaginatedResult", "CacheableResult"),
    "ListPromptsResultResponse": response("ListPromptsResult"),
    "GetPromptRequest": request("prompts/get", "GetPromptRequestParams"),
    "GetPromptRequestParams": named_since(
        R2025_11_25,
        record(
            {"name": STRING, "arguments?": mapping(STRING)},
            since(R2025_11_25, "RequestParams"),
            "InputResponseRequestParams",
        ),
    ),
    "GetPromptResult": record({"description?": STRING, "messages": array("PromptMessage")}, "Result"),
    "GetPromptResultResponse": response(either("InputRequiredResult", "GetPromptResult")),
    "PromptListChangedNotification": notification("notifications/prompts/list_changed", optional("NotificationParams")),
    "PromptReference": record({"type": const("ref/prompt")}, "BaseMetadata"),
}

_COMPLETION: Definitions = {
    "CompleteRequest": request("completion/complete", "CompleteRequestParams"),
    "CompleteRequestParams": named_since(
        R2025_11_25,
        record(
            {
                "ref": either("PromptReference", "ResourceReference", "ResourceTemplateReference"),
                "argument": record({"name": STRING, "value": STRING}),
                "context?": since(R2025_06_18, record({"arguments?": mapping(STRING)})),
            },
            since(R2025_11_25, "RequestParams"),
        ),
    ),
    "CompleteResult": record(
        {
            "completion": record(
                {
                    "values": changed(array(STRING), {R2026_07_28: array(STRING, at_most=100)}),
                    "total?": INTEGER,
                    "hasMore?": BOOLEAN,
                }
            ),
        },
        "Result",
    ),
    "CompleteResultResponse": response("CompleteResult"),
}

PROMPTS: Definitions = _PROMPTS | _COMPLETION


# The members that every block may have.
_ANNOTATED = record({"annotations?": "Annotations", "_meta?": since(R2025_06_18, "MetaObject")})

CONTENT: Definitions = {
    "Annotated": only(R2024_11_05, record({"annotations?": "Annotations"})),
    "Annotations": named_since(
        R2025_03_26,
        record(
            {
                "audience?": array("Role"),
                "priority?": NUMBER | {"minimum": 0, "maximum": 1},
                "lastModified?": since(R2025_06_18, STRING),
            }
        ),
    ),
    "ContentBlock": named_since(
        R2025_06_18,
        either("TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"),
    ),
    "TextContent": record({"type": const("text"), "text": STRING}, _ANNOTATED),
    "ImageContent": record({"type": const("image"), "data": BASE64, "mimeType": STRING}, _ANNOTATED),
    "AudioContent": since(
        R2025_03_26, record({"type": const("audio"), "data": BASE64, "mimeType": STRING}, _ANNOTATED)
    ),
    "ResourceLink": since(R2025_06_18, record({"type": const("resource_link")}, "Resource")),
    "EmbeddedResource": record(
        {"type": const("resource"), "resource": either("TextResourceContents", "BlobResourceContents")}, _ANNOTATED
    ),
    "ToolUseContent": since(
        R2025_11_25,
        deprecated(
            R2026_07_28,
            record(
                {
                    "type": const("tool_use"),
                    "id": STRING,
                    "name": STRING,
                    "input": OBJECT,
                    "_meta?": "MetaObject",
                }
            ),
        ),
    ),
    "ToolResultContent": since(
        R2025_11_25,
        deprecated(
            R2026_07_28,
            record(
                {
                    "type": const("tool_result"),
                    "toolUseId": STRING,
                    "content": array("ContentBlock"),
                    "structuredContent?": STRUCTURED,
                    "isError?": BOOLEAN,
                    "_meta?": "MetaObject",
                }
            ),
        ),
    ),
}
