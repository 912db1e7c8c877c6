"""Check Host and Origin for a reverse mode, whose port takes the place of a server (A-06).

mitmproxy is configured to keep the client's Host. An accepted request gets the Host of its server here, as mitmproxy
would have set it. A refused request is answered with 403.
"""

from typing import Any

from mcpspy.relay.http.heads import Head, every
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.local_replies import answer
from mcpspy.wire.http_head import authority_of


def reverse_refusal(guard: Guard, flow: Any) -> str | None:
    """Return why the request of a flow is refused; None if it is accepted, and then set the Host of its server."""
    request, server = flow.request, flow.server_conn
    headers = list(request.headers.fields)
    if request.authority and "host" not in request.headers:  # HTTP/2
        headers.append((b"host", request.authority.encode()))
    why = guard.refusal(headers)
    if why is None:
        request.host_header = authority_of("https" if server.tls else "http", *server.address[:2])
    return why


def forbidden(request: Any, why: str) -> tuple[Head, bytes]:
    """Return the answer to a refused request, whose body has arrived."""
    is_json = request.method == "POST" and "json" in every(list(request.headers.fields), b"content-type").lower()
    return answer(403, why, json_request=(request.raw_content or b"null") if is_json else None)
