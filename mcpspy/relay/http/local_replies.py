"""The answers that are our own: to a request that may not pass, or that the upstream could not answer.

A client that asked by JSON-RPC gets a JSON-RPC error with the id of its request, so that its user sees the reason and
not a parser's complaint.
"""

import json

from mcpspy.relay.http.heads import Head
from mcpspy.wire.jsonrpc import Request, parse

REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 504: "Gateway Timeout"}
_SERVER_ERROR = -32000  # what JSON-RPC leaves to implementations; SDKs read it as a closed connection


def answer(status: int, why: str, *, json_request: bytes | None) -> tuple[Head, bytes]:
    """The head and the body of an answer; `json_request` is the request, None where it was no JSON."""
    kind, body = b"text/plain; charset=utf-8", f"mcpspy: {why}\n".encode()
    if json_request is not None:
        kind, body = b"application/json", _error(why, json_request)
    headers = [(b"Content-Type", kind), (b"Content-Length", b"%d" % len(body))]
    return Head(f"HTTP/1.1 {status} {REASONS[status]}".encode(), headers), body


def _error(why: str, json_request: bytes) -> bytes:
    (request, *others) = parse(json_request)
    answerable = isinstance(request, Request) and request.id.kind in ("string", "number") and not others
    request_id = request.value["id"] if answerable else None
    error = {"code": _SERVER_ERROR, "message": f"mcpspy: {why}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
