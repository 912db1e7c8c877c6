"""Content: the blocks that tools, prompts and sampling exchange."""

from mcpspy.spec.definitions.tools import STRUCTURED
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    BASE64,
    BOOLEAN,
    NUMBER,
    OBJECT,
    STRING,
    Definitions,
    array,
    const,
    deprecated,
    either,
    named_since,
    only,
    record,
    since,
)

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
