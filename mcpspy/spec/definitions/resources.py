"""Resources: what clients can read from a server, resource templates, and the handshake era's subscriptions."""

from mcpspy.spec.definitions.base import PAGE, notification, request, response
from mcpspy.spec.revisions import R2025_03_26, R2025_06_18, R2025_11_25
from mcpspy.spec.shapes import (
    BASE64,
    INTEGER,
    STRING,
    URI,
    URI_TEMPLATE,
    Definitions,
    array,
    const,
    either,
    named_since,
    optional,
    record,
    since,
    until,
)

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
