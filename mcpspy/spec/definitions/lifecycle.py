"""How client and server introduce themselves: handshake, discovery, capabilities, identity; and `ping`.

The handshake exists up to 2025-11-25. Since 2026-07-28 each request names its revision and the client's capabilities
(`RequestMetaObject`), and `server/discover` returns those of the server.
"""

from mcpspy.spec.definitions.base import notification, request, response
from mcpspy.spec.revisions import R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    BOOLEAN,
    STRING,
    URI,
    Definitions,
    array,
    changed,
    deprecated,
    enum,
    mapping,
    named_since,
    only,
    optional,
    record,
    since,
    until,
)

_LIST_CHANGED = record({"listChanged?": BOOLEAN})

_CAPABILITIES: Definitions = {
    "ClientCapabilities": record(
        {
            "experimental?": mapping("JSONObject"),
            "roots?": deprecated(R2026_07_28, record({"listChanged?": until(R2025_11_25, BOOLEAN)})),
            "sampling?": deprecated(
                R2026_07_28,
                changed(
                    "JSONObject",
                    {R2025_11_25: record({"context?": "JSONObject", "tools?": "JSONObject"})},
                ),
            ),
            "elicitation?": since(
                R2025_06_18,
                changed("JSONObject", {R2025_11_25: record({"form?": "JSONObject", "url?": "JSONObject"})}),
            ),
            "tasks?": only(
                R2025_11_25,
                record(
                    {
                        "list?": "JSONObject",
                        "cancel?": "JSONObject",
                        "requests?": record(
                            {
                                "sampling?": record({"createMessage?": "JSONObject"}),
                                "elicitation?": record({"create?": "JSONObject"}),
                            }
                        ),
                    }
                ),
            ),
            "extensions?": since(R2026_07_28, mapping("JSONObject")),
        }
    ),
    "ServerCapabilities": record(
        {
            "experimental?": mapping("JSONObject"),
            "logging?": deprecated(R2026_07_28, "JSONObject"),
            "completions?": since(R2025_03_26, "JSONObject"),
            "prompts?": _LIST_CHANGED,
            "resources?": record({"subscribe?": BOOLEAN}, _LIST_CHANGED),
            "tools?": _LIST_CHANGED,
            "tasks?": only(
                R2025_11_25,
                record(
                    {
                        "list?": "JSONObject",
                        "cancel?": "JSONObject",
                        "requests?": record({"tools?": record({"call?": "JSONObject"})}),
                    }
                ),
            ),
            "extensions?": since(R2026_07_28, mapping("JSONObject")),
        }
    ),
}

_IDENTITY: Definitions = {
    "BaseMetadata": named_since(R2025_06_18, record({"name": STRING, "title?": since(R2025_06_18, STRING)})),
    "Icon": since(
        R2025_11_25,
        record({"src": URI, "mimeType?": STRING, "sizes?": array(STRING), "theme?": enum("light", "dark")}),
    ),
    "Icons": since(R2025_11_25, record({"icons?": array("Icon")})),
    "Implementation": record(
        {
            "version": STRING,
            "description?": since(R2025_11_25, STRING),
            "websiteUrl?": since(R2025_11_25, URI),
        },
        "BaseMetadata",
        "Icons",
    ),
}

LIFECYCLE: Definitions = (
    _CAPABILITIES
    | _IDENTITY
    | {
        "InitializeRequest": until(R2025_11_25, request("initialize", "InitializeRequestParams")),
        "InitializeRequestParams": until(
            R2025_11_25,
            named_since(
                R2025_11_25,
                record(
                    {
                        "protocolVersion": STRING,
                        "capabilities": "ClientCapabilities",
                        "clientInfo": "Implementation",
                    },
                    since(R2025_11_25, "RequestParams"),
                ),
            ),
        ),
        "InitializeResult": until(
            R2025_11_25,
            record(
                {
                    "protocolVersion": STRING,
                    "capabilities": "ServerCapabilities",
                    "serverInfo": "Implementation",
                    "instructions?": STRING,
                },
                "Result",
            ),
        ),
        "InitializedNotification": until(
            R2025_11_25, notification("notifications/initialized", optional("NotificationParams"))
        ),
        "PingRequest": until(R2025_11_25, request("ping", optional("RequestParams"))),
        "DiscoverRequest": since(R2026_07_28, request("server/discover", "RequestParams")),
        "DiscoverResult": since(
            R2026_07_28,
            record(
                {
                    "supportedVersions": array(STRING),
                    "capabilities": "ServerCapabilities",
                    "instructions?": STRING,
                },
                "CacheableResult",
            ),
        ),
        "DiscoverResultResponse": response("DiscoverResult"),
    }
)
