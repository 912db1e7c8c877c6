"""The HTTP heads of a capture: their fields, and whether messages follow them (RFC 9110)."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Head = dict[str, Any]
"""A request has `method`, `target`, `version`; a response `status`, `reason`; both `headers`, as pairs in order."""

SIGN_OF_MCP = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"|^event: ?endpoint\s*$', re.MULTILINE)
"""Matches a body that is MCP: it has a message, or it begins with the first event of legacy HTTP+SSE."""

PORTS = {"http": 80, "https": 443}
"""The default port of each scheme."""

_SPOKEN = ("application/json", "text/event-stream")
"""The media types that carry messages."""


def speaks_mcp(headers: Iterable[Sequence[str]]) -> bool:
    """Return whether one of these headers is an MCP header, or lists `mcp` as a WebSocket subprotocol."""
    for name, value in headers:
        lower = name.lower()
        if lower.startswith("mcp-"):
            return True
        if lower == "sec-websocket-protocol" and "mcp" in value.lower().replace(" ", "").split(","):
            return True
    return False


def may_hold_messages(content_type: str) -> bool:
    """Return whether a body with this `Content-Type` can contain MCP. HTML cannot, even if it displays messages."""
    return any(word in content_type.lower() for word in ("json", "text/event-stream"))


def header(head: Head | None, name: str) -> str | None:
    """Return the value of the first field with that name, given in lower case; None if there is none."""
    fields = head.get("headers") if head else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, list) and len(field) == 2 and str(field[0]).lower() == name:
            return str(field[1])
    return None


def values(head: Head, name: str) -> str:
    """Return the values of all fields with a name in lower case, joined as one list (RFC 9110, 5.3)."""
    size = len(name)  # a quick test that excludes most fields
    return ", ".join([value for key, value in head["headers"] if len(key) == size and key.lower() == name])


def status(head: Head | None) -> int:
    """Return the status of a response; 0 if the head has none."""
    found = head.get("status") if head else None
    return found if type(found) is int else 0


def media_type(head: Head | None) -> str:
    """Return the media type without its parameters; empty if the head has none."""
    return (header(head, "content-type") or "").partition(";")[0].strip().lower()


def authority(url: str) -> str:
    """Return the host and port of a URL, without a default port; empty if the URL has no host."""
    try:
        found = urlsplit(url).netloc.lower().rpartition("@")[2]
    except ValueError:
        return ""
    return found.removesuffix(":443").removesuffix(":80")


def authority_of(scheme: str, host: str, port: int) -> str:
    """Return the authority of a URL: the host, and the port unless it is the default of the scheme."""
    name = f"[{host}]" if ":" in host else host
    return name if port == PORTS.get(scheme) else f"{name}:{port}"


LEGACY_SESSION = ("session_id", "sessionId")
"""The query parameters with which the SDKs name a session of HTTP+SSE."""


def query(target: str, *names: str) -> str | None:
    """Return the value of the first query parameter that has one of these names."""
    for name, value in parse_qsl(target.partition("?")[2], keep_blank_values=True):
        if name in names:
            return value
    return None


def stands_alone(head: Head, request: Head | None) -> bool:
    """Return whether no message follows a head, so that the head gets a row of its own.

    `request` is the head of the request that a response answers.
    """
    if "status" not in head:
        return head.get("method") not in ("POST", "PUT", "PATCH") or header(head, "content-length") == "0"
    if request is not None and request.get("method") != "POST":
        return True
    status = head.get("status")
    empty = status in (202, 204, 304) or header(head, "content-length") == "0"
    return empty or media_type(head) not in _SPOKEN


def title(head: Head) -> str:
    """Return a head in one line, such as `GET /sse` or `202 Accepted`."""
    if "status" in head:
        kind = media_type(head)
        return " ".join(str(part) for part in (head.get("status"), head.get("reason") or "", kind) if part)
    return f"{head.get('method', '')} {head.get('target', '')}".strip()
