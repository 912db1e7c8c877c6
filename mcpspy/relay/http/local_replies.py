"""Our own responses: to a request that is refused, or that the upstream could not answer.

A client that sent a JSON-RPC request gets a JSON-RPC error with the id of its request, so that its user sees the reason
and not a parse error.
"""

import json
from http import HTTPStatus

from mcpspy.gate.gate import Refuse, Reply
from mcpspy.relay.http.heads import Head
from mcpspy.wire.jsonrpc import Request, parse

_SERVER_ERROR = -32000  # in the range that JSON-RPC leaves to implementations; SDKs read it as a closed connection


def reason(status: int) -> str:
    """Return the reason phrase of a status (RFC 9110, 15); empty if it has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def answer(status: int, why: str, *, json_request: bytes | None) -> tuple[Head, bytes]:
    """Return the head and the body of a response; `json_request` is the request, None if it was not JSON."""
    kind, body = b"text/plain; charset=utf-8", f"mcpspy: {why}\n".encode()
    if json_request is not None:
        kind, body = b"application/json", _error(why, json_request)
    headers = [(b"Content-Type", kind), (b"Content-Length", b"%d" % len(body))]
    return Head(f"HTTP/1.1 {status} {reason(status)}".encode(), headers), body


def gated_answer(verdict: Reply | Refuse | None, request: bytes) -> tuple[int, Head, bytes]:
    """Return status, head and body of a gate's answer to a JSON request; for None, an empty 202 response."""
    if isinstance(verdict, Refuse):
        head, body = answer(verdict.status, f"{verdict.by} answers with this status", json_request=request)
        return verdict.status, head, body
    status, body = (200, verdict.frame) if verdict else (202, b"")
    headers = [(b"Content-Type", b"application/json")] if verdict else []
    line = f"HTTP/1.1 {status} {reason(status)}".encode()
    return status, Head(line, [*headers, (b"Content-Length", b"%d" % len(body))]), body


def _error(why: str, json_request: bytes) -> bytes:
    (request, *others) = parse(json_request)
    answerable = isinstance(request, Request) and request.id.kind in ("string", "number") and not others
    request_id = request.value["id"] if answerable else None
    error = {"code": _SERVER_ERROR, "message": f"mcpspy: {why}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
