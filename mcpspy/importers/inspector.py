"""Exports of the MCP Inspector: its history, an array of messages, and its network log, an array of HTTP requests.

The shapes are `MessageEntry` and `FetchRequestEntry` of its `core/mcp/types.ts` (Inspector 2). Messages were parsed and
serialized again, so they are the same JSON but not the same bytes. A response is stored with its request, and came
`duration` later. Streams have no body in the network log.
"""

import json
from typing import Any, BinaryIO

from mcpspy.importers.captures import Captures, Steps, iso, play
from mcpspy.importers.exchange import Headers, RecordedExchange, Web, split
from mcpspy.importers.text import checked, elements

_ROLES = {"client": "stdin", "server": "stdout"}
_OTHER = {"client": "server", "server": "client"}


def record_history(file: BinaryIO, captures: Captures) -> None:
    """Record the messages of a history. Raises CaptureError if captures cannot be written."""

    def begin(entry: dict[str, Any]) -> Steps:
        return _steps(entry, captures)

    play(file, elements(file, ()), lambda raw: json.loads(checked(raw)), begin, captures.account)


def record_network(file: BinaryIO, captures: Captures) -> None:
    """Record the requests of a network log. Raises CaptureError if captures cannot be written."""
    play(file, elements(file, ()), _exchange, Web(captures).start, captures.account)


def _steps(entry: dict[str, Any], captures: Captures) -> Steps:
    wall = iso(entry["timestamp"])
    answered = wall + round(max(float(entry.get("duration") or 0), 0.0) * 1e6)
    sender = entry.get("origin") or ("server" if entry["direction"] == "response" else "client")
    role, other = _ROLES[sender], _ROLES[_OTHER[sender]]
    message, response = _written(entry["message"]), entry.get("response") and _written(entry["response"])
    yield wall
    fields = {"transport": "stdio", "argv": []}
    captures.get("", wall, captures.name, fields).line(role, wall, message)
    if response:
        yield answered
        captures.get("", answered, captures.name, fields).line(other, answered, response)


def _written(message: Any) -> bytes:
    if not isinstance(message, dict):
        raise TypeError
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _exchange(raw: bytes) -> RecordedExchange:
    entry = json.loads(checked(raw))
    asked = iso(entry["timestamp"])
    ended = asked + round(max(float(entry.get("duration") or 0), 0.0) * 1e6)
    origin, target = split(entry["url"])
    method, answer, status = str(entry["method"]), entry.get("responseBody"), entry.get("responseStatus")
    return RecordedExchange(
        origin=origin,
        asked=asked,
        answered=ended,
        ended=ended,
        head={"method": method, "target": target, "version": ""},
        headers=_headers(entry.get("requestHeaders")),
        body=None if entry.get("requestBody") is None else entry["requestBody"].encode("utf-8", "replace"),
        status=int(status) if status else None,
        reason=str(entry.get("responseStatusText") or ""),
        response_headers=_headers(entry.get("responseHeaders")),
        answer=None if answer is None else ((ended, answer.encode("utf-8", "replace")),),
        broken=str(entry.get("error") or ""),
    )


def _headers(fields: dict[str, Any] | None) -> Headers:
    return [(str(name), str(value)) for name, value in (fields or {}).items()]
