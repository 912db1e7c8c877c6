"""The attributes of a span, by the OpenTelemetry conventions for MCP.

Names without a convention begin with `mcpspy.`. Arguments and results are not included, except on request.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from mcpspy.capture.records import Header
from mcpspy.conversation.model import Exchange, HttpChannel
from mcpspy.json_values import member
from mcpspy.spec.revisions import STATELESS
from mcpspy.telemetry.span import Value
from mcpspy.wire.jsonrpc import Error

_CALL = "tools/call"
_PROMPT = "prompts/get"
_OF_RESOURCES = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_FAILURES = {"tool-error": "tool_error", "cancelled": "cancelled", "unanswered": "unanswered", "dropped": "dropped"}
"""`error.type` by the status of an exchange, if there is no code."""
PEERS = frozenset(
    (
        "error.type",
        "gen_ai.prompt.name",
        "gen_ai.tool.name",
        "jsonrpc.protocol.version",
        "jsonrpc.request.id",
        "mcp.method.name",
        "mcp.resource.uri",
        "mcp.session.id",
        "network.protocol.version",
        "rpc.response.status_code",
    )
)
"""Attributes whose values a peer chooses, so they may have any length and contain secrets."""
_VARIABLES, _NAME = 64, 128  # arguments of a prompt that are sent, characters of their names
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def span_name(exchange: Exchange) -> str:
    """Return the method, with the tool or prompt if there is one; a URI would have too many values."""
    target = exchange.name if exchange.method in (_CALL, _PROMPT) else None
    return f"{exchange.method} {target}" if target else exchange.method


def span_attributes(exchange: Exchange, status: str, server: dict[str, Value]) -> dict[str, Value]:
    """Return the attributes of an exchange with its final status; `server` is the result of `server_attributes`."""
    request = exchange.request
    found: dict[str, Value] = {"mcp.method.name": exchange.method}
    if request.id is not None and request.id.kind != "null":
        found["jsonrpc.request.id"] = request.id.token
    version = member(request.body.value, "jsonrpc")
    if isinstance(version, str) and version != "2.0":
        found["jsonrpc.protocol.version"] = version
    if exchange.revision:
        found["mcp.protocol.version"] = exchange.revision.value
    if request.session.name and exchange.revision not in STATELESS:
        found["mcp.session.id"] = request.session.name
    found |= _subject(exchange) | server | network_attributes(request.http) | _failure(exchange, status)
    act = request.act
    if act and act.held:
        found["mcpspy.held"] = act.held / 1e9
    return found | {"mcpspy.frame": request.n, "mcpspy.outcome": exchange.outcome}


def server_attributes(header: Header, redact: Callable[[str], str]) -> dict[str, Value]:
    """Return the address of the server behind the proxy, as the conventions require."""
    if header.url is None:
        return {}
    try:
        url = urlsplit(header.url)
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return {}
    if not url.hostname:
        return {}
    found: dict[str, Value] = {"server.address": redact(url.hostname)}
    return found if port is None else found | {"server.port": port}


def content_attributes(exchange: Exchange) -> dict[str, Any]:
    """Return the arguments and the result of a tool call, and the arguments of a prompt, as JSON values."""
    found: dict[str, Any] = {}
    params = member(exchange.request.body.value, "params")
    arguments = member(params, "arguments")
    if exchange.method == _PROMPT and isinstance(arguments, dict):
        few = islice(arguments.items(), _VARIABLES)
        return {f"gen_ai.prompt.variable.{name[:_NAME]}": value for name, value in few}
    if exchange.method != _CALL:
        return found
    if arguments is not None:
        found["gen_ai.tool.call.arguments"] = arguments
    response = exchange.response
    result = member(response.body.value, "result") if response else None
    if result is not None:
        found["gen_ai.tool.call.result"] = result
    return found


def _subject(exchange: Exchange) -> dict[str, Value]:
    """Return the attributes for the tool, prompt or resource."""
    name = exchange.name
    if exchange.method == _CALL:
        found: dict[str, Value] = {"gen_ai.operation.name": "execute_tool"}
        return found | {"gen_ai.tool.name": name} if name else found
    if not name:
        return {}
    if exchange.method == _PROMPT:
        return {"gen_ai.prompt.name": name}
    return {"mcp.resource.uri": name} if exchange.method in _OF_RESOURCES else {}


def network_attributes(channel: HttpChannel | None) -> dict[str, Value]:
    """Return the attributes for the transport of a message; `channel` is `None` for stdio."""
    if channel is None:
        return {"network.transport": "pipe"}
    found: dict[str, Value] = {"network.transport": "tcp"}
    if channel.opened.role == "ws":
        return found | {"network.protocol.name": "websocket"}
    found["network.protocol.name"] = "http"
    head = (channel.request or channel).opened.head or {}
    version = str(head.get("version") or "").upper().removeprefix("HTTP/")
    return found | {"network.protocol.version": version} if version else found


def _failure(exchange: Exchange, status: str) -> dict[str, Value]:
    """Return the attributes for the failure of an exchange, if it failed."""
    body = exchange.response.body if exchange.response else None
    if isinstance(body, Error):
        code = member(body.value, "error", "code")
        text = str(code) if isinstance(code, int | float | str) else "_OTHER"
        return {"error.type": text, "rpc.response.status_code": text}
    if status == "error":  # over HTTP a status of failure came, without a message
        return {"error.type": "_OTHER"}
    return {"error.type": _FAILURES[status]} if status in _FAILURES else {}
