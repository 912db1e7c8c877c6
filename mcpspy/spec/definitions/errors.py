"""Errors: what a response has in place of a result.

`Error` is the object itself, and so are the definitions of JSON-RPC's five codes. The definitions of MCP's own codes
describe the whole response.
"""

from mcpspy.spec.definitions.base import JSONRPC
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28
from mcpspy.spec.shapes import (
    ANY,
    INTEGER,
    STRING,
    Definitions,
    Type,
    Varying,
    array,
    both,
    const,
    named_since,
    only,
    record,
    since,
    until,
)


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
