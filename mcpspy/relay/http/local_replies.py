"""The answers that are our own: to a request that may not pass, or that the upstream could not answer.

A client that asked by JSON-RPC gets a JSON-RPC error with the id of its request, so that its user sees the reason and
not a parser's complaint.
"""

import json

from mcpspy.relay.http.heads import Head
from mcpspy.wire.jsonrpc import Request, parse

REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 504: "Gateway Timeout"}
_SERVER_ERROR = -32000  # what JSON-RPC leaves to implementations; SDKs read it as a closed connection


def answer(status: int, why: str, *, asked: bytes | None) -> tuple[Head, bytes]:
    """The head and the body of an answer; `asked` is the JSON of the request, None where it was something else."""
    kind, body = b"text/plain; charset=utf-8", f"mcpspy: {why}\n".encode()
    if asked is not None:
        kind, body = b"application/json", _error(why, asked)
    headers = [(b"Content-Type", kind), (b"Content-Length", b"%d" % len(body))]
    return Head(f"HTTP/1.1 {status} {REASONS[status]}".encode(), headers), body


def _error(why: str, asked: bytes) -> bytes:
    (request, *others) = parse(asked)
    answerable = isinstance(request, Request) and request.id.kind in ("string", "number") and not others
    request_id = request.value["id"] if answerable else None
    error = {"code": _SERVER_ERROR, "message": f"mcpspy: {why}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
