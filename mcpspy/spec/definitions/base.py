"""Requests, notifications, results and errors in general: their common members, and their JSON-RPC envelope.

Until 2025-06-18 the definitions of requests and notifications left `jsonrpc` and `id` to JSONRPCRequest and
JSONRPCNotification. Since 2025-11-25 each definition has them itself. The input requests of a server in an
InputRequiredResult (2026-07-28) are not JSON-RPC messages, and have neither.

`Error` is the object itself, and so are the definitions of JSON-RPC's five codes. The definitions of MCP's own codes
describe the whole response.
"""

from collections.abc import Callable

from mcpspy.spec.revisions import R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from mcpspy.spec.shapes import (
    ANY,
    INTEGER,
    OBJECT,
    STRING,
    Definitions,
    Record,
    Type,
    Varying,
    array,
    both,
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

JSONRPC = const("2.0")
META = "io.modelcontextprotocol/"
"""The prefix of the `_meta` keys that the protocol itself defines."""

PAGE = changed(optional("PaginatedRequestParams"), {R2026_07_28: "PaginatedRequestParams"})
"""The params of a request for a listing."""


def request(method: str, params: Type, *, envelope: Callable[[Revision, Type], Varying] = since) -> Record:
    """Define a request. `envelope` sets when it is a JSON-RPC message by itself: `since` or `only` 2025-11-25."""
    return record(
        {
            "jsonrpc": envelope(R2025_11_25, JSONRPC),
            "id": envelope(R2025_11_25, "RequestId"),
            "method": const(method),
            "params": params,
        }
    )


def input_request(method: str, params: Type) -> Record:
    """Define a request of the server to the client. 2026-07-28 puts it into an InputRequiredResult."""
    return request(method, params, envelope=only)


def notification(method: str, params: Type) -> Record:
    """Define a notification."""
    return record({"jsonrpc": since(R2025_11_25, JSONRPC), "method": const(method), "params": params})


def response(result: Type) -> Varying:
    """Define the whole response to a request. Only 2026-07-28 has such a definition for each."""
    return since(R2026_07_28, record({"jsonrpc": JSONRPC, "id": "RequestId", "result": result}))


_ID: Type = {"type": ["string", "integer"]}
_RESULT_RESPONSE = record({"jsonrpc": JSONRPC, "id": "RequestId", "result": "Result"})
_BATCH_REQUEST = array(either("JSONRPCRequest", "JSONRPCNotification"))
_BATCH_RESPONSE = array(either("JSONRPCResponse", "JSONRPCError"))

_PARAMETERS: Definitions = {
    "MetaObject": named_since(R2026_07_28, OBJECT),
    "RequestMetaObject": named_since(
        R2026_07_28,
        record(
            {
                "progressToken?": "ProgressToken",
                META + "protocolVersion": since(R2026_07_28, STRING),
                META + "clientInfo?": since(R2026_07_28, "Implementation"),
                META + "clientCapabilities": since(R2026_07_28, "ClientCapabilities"),
                META + "logLevel?": since(R2026_07_28, deprecated(R2026_07_28, "LoggingLevel")),
            }
        ),
    ),
    "NotificationMetaObject": named_since(
        R2026_07_28, record({META + "subscriptionId?": since(R2026_07_28, "RequestId")})
    ),
    "ResultMetaObject": named_since(R2026_07_28, record({META + "serverInfo?": since(R2026_07_28, "Implementation")})),
    "RequestParams": named_since(
        R2025_11_25,
        record({"_meta": changed(optional("RequestMetaObject"), {R2026_07_28: "RequestMetaObject"})}),
    ),
    "NotificationParams": named_since(R2025_11_25, record({"_meta?": "NotificationMetaObject"})),
    "PaginatedRequestParams": named_since(
        R2025_11_25, record({"cursor?": STRING}, since(R2025_11_25, "RequestParams"))
    ),
    "ProgressToken": _ID,
    "Cursor": STRING,
    "Role": enum("user", "assistant"),
}

_JSON: Definitions = {
    "JSONValue": since(
        R2026_07_28,
        either("JSONObject", array("JSONValue"), {"type": ["string", "number", "boolean", "null"]}),
    ),
    "JSONObject": named_since(R2026_07_28, changed(OBJECT, {R2026_07_28: mapping("JSONValue")})),
    "JSONArray": since(R2026_07_28, array("JSONValue")),
}

_MESSAGES: Definitions = {
    "Request": record({"method": STRING, "params?": changed("RequestParams", {R2025_11_25: OBJECT})}),
    "Notification": record({"method": STRING, "params?": changed("NotificationParams", {R2025_11_25: OBJECT})}),
    "Result": record({"_meta?": "ResultMetaObject", "resultType": since(R2026_07_28, STRING)}),
    "ResultType": since(R2026_07_28, STRING),
    "EmptyResult": "Result",
    "PaginatedRequest": record(
        {
            "jsonrpc": since(R2025_11_25, JSONRPC),
            "id": since(R2025_11_25, "RequestId"),
            "method": STRING,
            "params": PAGE,
        }
    ),
    "PaginatedResult": record({"nextCursor?": STRING}, "Result"),
    "CacheableResult": since(
        R2026_07_28,
        record({"ttlMs": INTEGER | {"minimum": 0}, "cacheScope": enum("public", "private")}, "Result"),
    ),
}

_JSONRPC: Definitions = {
    "RequestId": _ID,
    "JSONRPCRequest": record({"jsonrpc": JSONRPC, "id": "RequestId"}, "Request"),
    "JSONRPCNotification": record({"jsonrpc": JSONRPC}, "Notification"),
    "JSONRPCResponse": changed(
        _RESULT_RESPONSE, {R2025_11_25: either("JSONRPCResultResponse", "JSONRPCErrorResponse")}
    ),
    "JSONRPCResultResponse": since(R2025_11_25, _RESULT_RESPONSE),
    "JSONRPCBatchRequest": only(R2025_03_26, _BATCH_REQUEST),
    "JSONRPCBatchResponse": only(R2025_03_26, _BATCH_RESPONSE),
    "JSONRPCMessage": either(
        "JSONRPCRequest",
        "JSONRPCNotification",
        only(R2025_03_26, _BATCH_REQUEST),
        until(R2025_06_18, "JSONRPCResponse"),
        "JSONRPCResultResponse",
        "JSONRPCError",
        "JSONRPCErrorResponse",
        only(R2025_03_26, _BATCH_RESPONSE),
    ),
}

BASE: Definitions = _PARAMETERS | _JSON | _MESSAGES | _JSONRPC


def _standard(code: int) -> Varying:
    return since(R2026_07_28, record({"code": const(code)}, "Error"))


def _with_code(error: Type) -> Type:
    """Define a response with a more specific error."""
    return record({"jsonrpc": JSONRPC, "id?": "RequestId", "error": both("Error", error)})


ERRORS: Definitions = {
    "Error": named_since(R2025_11_25, record({"code": INTEGER, "message": STRING, "data?": ANY})),
    "JSONRPCError": until(R2025_06_18, record({"jsonrpc": JSONRPC, "id": "RequestId", "error": "Error"})),
    "JSONRPCErrorResponse": since(R2025_11_25, record({"jsonrpc": JSONRPC, "id?": "RequestId", "error": "Error"})),
    "ParseError": _standard(-32700),
    "InvalidRequestError": _standard(-32600),
    "MethodNotFoundError": _standard(-32601),
    "InvalidParamsError": _standard(-32602),
    "InternalError": _standard(-32603),
    "URLElicitationRequiredError": only(
        R2025_11_25,
        _with_code(
            record({"code": const(-32042), "data": record({"elicitations": array("ElicitRequestURLParams")})}),
        ),
    ),
    "HeaderMismatchError": since(R2026_07_28, _with_code(record({"code": const(-32020)}))),
    "MissingRequiredClientCapabilityError": since(
        R2026_07_28,
        _with_code(
            record({"code": const(-32021), "data": record({"requiredCapabilities": "ClientCapabilities"})}),
        ),
    ),
    "UnsupportedProtocolVersionError": since(
        R2026_07_28,
        _with_code(
            record(
                {"code": const(-32022), "data": record({"supported": array(STRING), "requested": STRING})},
            ),
        ),
    ),
}
