"""Prompts, and the completion of the arguments of prompts and resource templates."""

from mcpspy.spec.definitions.base import PAGE, notification, request, response
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    BOOLEAN,
    INTEGER,
    STRING,
    Definitions,
    array,
    changed,
    const,
    either,
    mapping,
    named_since,
    optional,
    record,
    since,
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
