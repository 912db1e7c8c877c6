"""What servers request of clients: sampling from their language model, the roots that they work in, and elicitation.

Sampling and roots are deprecated since 2026-07-28, where they are requested inside an InputRequiredResult. Elicitation
asks the user, with a form (since 2025-06-18) or a web page (since 2025-11-25). The fields of a form use a small part of
JSON Schema: strings, numbers, booleans, and a choice of one or several values, with or without titles.
"""

from mcpspy.spec.definitions.base import input_request, notification
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    URI,
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


_TITLED = record({"title?": STRING, "description?": STRING})
_DEFAULT = since(R2025_11_25, STRING)
_CHOICES = array(record({"const": STRING, "title": STRING}))
_SEVERAL = record(
    {"type": const("array"), "minItems?": INTEGER, "maxItems?": INTEGER, "default?": array(STRING)}, _TITLED
)
_ENUM_NAMES = record(
    {"type": const("string"), "enum": array(STRING), "enumNames?": array(STRING), "default?": _DEFAULT}, _TITLED
)
_ENUM_SCHEMAS = (
    "UntitledSingleSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "UntitledMultiSelectEnumSchema",
    "TitledMultiSelectEnumSchema",
    "LegacyTitledEnumSchema",
)

_REQUESTS: Definitions = {
    "ElicitRequest": since(R2025_06_18, input_request("elicitation/create", "ElicitRequestParams")),
    "ElicitRequestParams": since(
        R2025_06_18, named_since(R2025_11_25, either("ElicitRequestFormParams", "ElicitRequestURLParams"))
    ),
    "ElicitRequestFormParams": since(
        R2025_06_18,
        named_since(
            R2025_11_25,
            record(
                {
                    "mode?": since(R2025_11_25, const("form")),
                    "message": STRING,
                    "requestedSchema": record(
                        {
                            "$schema?": since(R2025_11_25, STRING),
                            "type": const("object"),
                            "properties": mapping("PrimitiveSchemaDefinition"),
                            "required?": array(STRING),
                        }
                    ),
                },
                "TaskAugmentedRequestParams",
            ),
        ),
    ),
    "ElicitRequestURLParams": since(
        R2025_11_25,
        record(
            {
                "mode": const("url"),
                "message": STRING,
                "elicitationId": only(R2025_11_25, STRING),
                "url": URI,
            },
            "TaskAugmentedRequestParams",
        ),
    ),
    "ElicitResult": since(
        R2025_06_18,
        record(
            {
                "action": enum("accept", "decline", "cancel"),
                "content?": mapping(
                    either({"type": ["string", "number", "boolean"]}, since(R2025_11_25, array(STRING))),
                ),
            },
            until(R2025_11_25, "Result"),
        ),
    ),
    "ElicitationCompleteNotification": only(
        R2025_11_25, notification("notifications/elicitation/complete", record({"elicitationId": STRING}))
    ),
}

_QUESTIONS: Definitions = {
    "PrimitiveSchemaDefinition": since(
        R2025_06_18,
        either("StringSchema", "NumberSchema", "BooleanSchema", until(R2025_06_18, "EnumSchema"), *_ENUM_SCHEMAS),
    ),
    "StringSchema": since(
        R2025_06_18,
        record(
            {
                "type": const("string"),
                "minLength?": INTEGER,
                "maxLength?": INTEGER,
                "format?": enum("email", "uri", "date", "date-time"),
                "default?": _DEFAULT,
            },
            _TITLED,
        ),
    ),
    "NumberSchema": since(
        R2025_06_18,
        record(
            {
                "type": enum("number", "integer"),
                "minimum?": NUMBER,
                "maximum?": NUMBER,
                "default?": since(R2025_11_25, NUMBER),
            },
            _TITLED,
        ),
    ),
    "BooleanSchema": since(R2025_06_18, record({"type": const("boolean"), "default?": BOOLEAN}, _TITLED)),
    "EnumSchema": since(R2025_06_18, changed(_ENUM_NAMES, {R2025_11_25: either(*_ENUM_SCHEMAS)})),
    "LegacyTitledEnumSchema": since(R2025_11_25, _ENUM_NAMES),
    "SingleSelectEnumSchema": since(
        R2025_11_25, either("UntitledSingleSelectEnumSchema", "TitledSingleSelectEnumSchema")
    ),
    "UntitledSingleSelectEnumSchema": since(
        R2025_11_25, record({"type": const("string"), "enum": array(STRING), "default?": STRING}, _TITLED)
    ),
    "TitledSingleSelectEnumSchema": since(
        R2025_11_25, record({"type": const("string"), "oneOf": _CHOICES, "default?": STRING}, _TITLED)
    ),
    "MultiSelectEnumSchema": since(R2025_11_25, either("UntitledMultiSelectEnumSchema", "TitledMultiSelectEnumSchema")),
    "UntitledMultiSelectEnumSchema": since(
        R2025_11_25, record({"items": record({"type": const("string"), "enum": array(STRING)})}, _SEVERAL)
    ),
    "TitledMultiSelectEnumSchema": since(R2025_11_25, record({"items": record({"anyOf": _CHOICES})}, _SEVERAL)),
}

ELICITATION: Definitions = _REQUESTS | _QUESTIONS
