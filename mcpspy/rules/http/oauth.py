"""Rules about OAuth through a proxy (RFC 9728; O-01): what a client will refuse, and why.

The protected-resource metadata of a server names the URL for which tokens are issued. Clients require that it is the
URL they connected to. Behind a reverse proxy it is not. `mcpspy.relay.http.gates.oauth` warns the user while this
happens, and can rewrite the metadata. This rule reports it as a finding about a capture.
"""

from collections.abc import Iterator

import orjson

from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, rule
from mcpspy.wire.http_head import authority, header, status
from mcpspy.wire.jsonrpc import Error

_METADATA = "/.well-known/oauth-protected-resource"
_LARGEST = 65536  # bytes of a metadata document


@rule(
    "http/oauth-origin",
    "warning",
    """The server's protected-resource metadata names another origin than the one the client connects to, so clients
    must refuse to log in. With `mcpspy proxy` this is expected, because the client connects to the proxy;
    `--rewrite-oauth` helps if the authorization server ignores the `resource` parameter. Reported once per session.""",
    fix="Without a proxy: set the public URL of the server to the one that clients use.",
    meanwhile="Run `mcpspy proxy` with `--rewrite-oauth`, or record with `mcpspy mitm`, which keeps the URL.",
    blame="server",
    spec="https://www.rfc-editor.org/rfc/rfc9728#section-3.3",
    about="http",
    fails="""
        >> GET /.well-known/oauth-protected-resource/mcp
        << 200 | {"resource":"https://mcp.example.com/mcp"}
    """,
    passes="""
        >> GET /.well-known/oauth-protected-resource/mcp
        << 200 | {"resource":"http://127.0.0.1:6278/mcp"}
    """,
    on=(Error, HttpUnit),
)
def oauth_origin(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report metadata that a client will refuse, or whose URL is on another origin."""
    place = event.http
    request = place.request if place else None
    if place is None or request is None or place.opened.sender != "server":
        return
    named = _metadata_url(place) or (_resource(event, request) if isinstance(event, HttpUnit) else None)
    dialled = authority(f"//{header(request.opened.head, 'host') or ''}")
    there = authority(named or "")
    if there and dialled and there != dialled and session.once("oauth-origin"):
        yield Fault(
            f"login will fail: the metadata names {there[:200]}; expected {dialled[:200]}, where the client connects"
        )


def _metadata_url(place: HttpChannel) -> str | None:
    """Return the metadata URL in a challenge, or None if there is none or it was rewritten by the relay."""
    opened = place.opened
    challenge = header(opened.head, "www-authenticate") or ""
    start = challenge.lower().find('resource_metadata="')
    if status(opened.head) != 401 or start < 0 or "oauth" in (opened.by or ""):
        return None
    return challenge[start:].split('"')[1]


def _resource(remark: HttpUnit, request: HttpChannel) -> str | None:
    """Return the `resource` of the metadata, or None if this is not metadata or it was rewritten by the relay."""
    target = str(request.summary["target"]).partition("?")[0]
    wanted = target.endswith(_METADATA) or f"{_METADATA}/" in target
    if not wanted or remark.frame is None or remark.frame.by or len(remark.raw) > _LARGEST:
        return None
    try:
        found = member(orjson.loads(remark.raw), "resource")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, str) else None
