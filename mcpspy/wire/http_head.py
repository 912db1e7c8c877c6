"""The HTTP heads of a capture: their fields, and whether a message follows (RFC 9110)."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Head = dict[str, Any]
"""Of a request `method`, `target`, `version`; of a response `status`, `reason`; `headers` as pairs, in order."""

SIGN_OF_MCP = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"|^event: ?endpoint\s*$', re.MULTILINE)
"""Matches a body that is MCP: by a message, or by the first event of legacy HTTP+SSE."""

PORTS = {"http": 80, "https": 443}
"""The default port of each scheme."""

_SPOKEN = ("application/json", "text/event-stream")
"""The media types that carry messages."""


def speaks_mcp(headers: Iterable[Sequence[str]]) -> bool:
    """Whether one of these pairs of name and value is MCP's own, or names it as the subprotocol of a WebSocket."""
    for name, value in headers:
        lower = name.lower()
        if lower.startswith("mcp-"):
            return True
        if lower == "sec-websocket-protocol" and "mcp" in value.lower().replace(" ", "").split(","):
            return True
    return False


def may_hold_messages(content_type: str) -> bool:
    """Whether a body of this `Content-Type` may be MCP. A page is not, even if it shows messages."""
    return any(word in content_type.lower() for word in ("json", "text/event-stream"))


def header(head: Head | None, name: str) -> str | None:
    """The first field of that name, in whatever case."""
    fields = head.get("headers") if head else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, list) and len(field) == 2 and str(field[0]).lower() == name:
            return str(field[1])
    return None


def values(head: Head, name: str) -> str:
    """The values of all fields of a name in lower case, joined as one list (RFC 9110, 5.3)."""
    size = len(name)  # which tells most fields apart
    return ", ".join([value for key, value in head["headers"] if len(key) == size and key.lower() == name])


def status(head: Head | None) -> int:
    """The status of a response, 0 where the head has none."""
    found = head.get("status") if head else None
    return found if type(found) is int else 0


def media_type(head: Head | None) -> str:
    """The media type without its parameters; empty where the head has none."""
    return (header(head, "content-type") or "").partition(";")[0].strip().lower()


def authority(url: str) -> str:
    """Host and port of a URL, without a default port; empty if the URL has no host."""
    try:
        found = urlsplit(url).netloc.lower().rpartition("@")[2]
    except ValueError:
        return ""
    return found.removesuffix(":443").removesuffix(":80")


def authority_of(scheme: str, host: str, port: int) -> str:
    """The authority of a URL: the host, and the port unless it is the default of the scheme."""
    name = f"[{host}]" if ":" in host else host
    return name if port == PORTS[scheme] else f"{name}:{port}"


LEGACY_SESSION = ("session_id", "sessionId")
"""The query parameters that name a session of HTTP+SSE, in the SDKs."""


def query(target: str, *names: str) -> str | None:
    """The value of the first query parameter that has one of these names."""
    for name, value in parse_qsl(target.partition("?")[2], keep_blank_values=True):
        if name in names:
            return value
    return None


def stands_alone(head: Head, request: Head | None) -> bool:
    """Whether no message follows a head, so that it is shown in a row of its own.

    `request` is the head that a response answers.
    """
    if "status" not in head:
        return head.get("method") not in ("POST", "PUT", "PATCH") or header(head, "content-length") == "0"
    if request is not None and request.get("method") != "POST":
        return True
    status = head.get("status")
    empty = status in (202, 204, 304) or header(head, "content-length") == "0"
    return empty or media_type(head) not in _SPOKEN


def title(head: Head) -> str:
    """A head in one line: `GET /sse`, `202 Accepted`."""
    if "status" in head:
        kind = media_type(head)
        return " ".join(str(part) for part in (head.get("status"), head.get("reason") or "", kind) if part)
    return f"{head.get('method', '')} {head.get('target', '')}".strip()
