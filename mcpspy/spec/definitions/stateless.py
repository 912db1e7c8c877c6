"""What replaced server requests and sessions in 2026-07-28: requests in several rounds, and subscriptions."""

from mcpspy.spec.definitions.base import META, notification, request, response
from mcpspy.spec.revisions import R2026_07_28
from mcpspy.spec.shapes import BOOLEAN, STRING, Definitions, array, either, mapping, record, since

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
