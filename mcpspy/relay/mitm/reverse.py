"""The port of a reverse mode takes the place of a server, so it checks Host and Origin in the server's place (A-06).

mitmproxy is configured to keep the client's Host. A request that passes gets the Host of its server here, as mitmproxy
would have set it; one that does not pass is answered with 403.
"""

from typing import Any

from mcpspy.relay.http.heads import Head, every
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.local_replies import answer
from mcpspy.wire.http_head import authority_of


def refusal(guard: Guard, flow: Any) -> str | None:
    """Why the request of a flow may not pass; None if it may, and then its Host is that of the server."""
    request, server = flow.request, flow.server_conn
    headers = list(request.headers.fields)
    if request.authority and "host" not in request.headers:  # HTTP/2
        headers.append((b"host", request.authority.encode()))
    why = guard.refusal(headers)
    if why is None:
        request.host_header = authority_of("https" if server.tls else "http", *server.address[:2])
    return why


def forbidden(request: Any, why: str) -> tuple[Head, bytes]:
    """The answer to a request, whose body has arrived, that may not pass."""
    is_json = request.method == "POST" and "json" in every(list(request.headers.fields), b"content-type").lower()
    return answer(403, why, json_request=(request.raw_content or b"null") if is_json else None)
