"""The two gates that the proxy itself has: the endpoint event of HTTP+SSE, and OAuth metadata.

**The endpoint event** (H-08; specification 2024-11-05). The first event of the stream, `endpoint`, has the URL that the
client must post to. An absolute URL at the upstream's own origin would bypass the proxy, and the client would refuse
it. A path would lack the prefix of a route. Only the URL is changed; every other byte of the event stays.

**OAuth** (RFC 9728; O-01). The protected-resource metadata of a server names the URL that tokens are for. Both SDKs
require it to have the origin that they connected to. Through a reverse proxy it has another origin, so a login fails.
`--rewrite-oauth` rewrites the metadata and passes that check. But then the client requests a token for *our* URL from
the authorization server. That works only if the authorization server ignores the `resource` parameter, or if it issues
such a token and the resource server does not check the audience. If both check, the client must keep the server's own
URL: `mcpspy mitm`.

Nothing here communicates with a peer; the relay decides when to call it.
"""

import json
import re
from collections.abc import Callable, Container
from urllib.parse import urlsplit

from mcpspy.gate.gate import PASS, Facts, Pass, Send
from mcpspy.json_values import parsed
from mcpspy.relay.http.heads import Origin, RawHeaders, every, origin_of
from mcpspy.wire.http_head import authority_of
from mcpspy.wire.sse import parse_event

_DATA = re.compile(rb"(?m)(?<![^\r\n])(data: ?)([^\r\n]*)")


class EndpointGate:
    """Decides on the first event with data of one stream, and lets all others pass.

    `mapped` is `heads.mapped_reference` for the request.
    """

    by = "endpoint"
    follows = waits = False

    def __init__(self, mapped: Callable[[str], str | None]) -> None:
        self._mapped = mapped
        self._done = False

    def wants(self, facts: Facts) -> bool:  # noqa: ARG002 (as every gate has it)
        """Return False: this gate never needs the request of a response."""
        return False

    def decide(self, frame: bytes, facts: Facts, t: int) -> Pass | Send:  # noqa: ARG002 (as every gate has it)
        """Return the event with the URL that the client needs; Pass if the URL needs no change."""
        if self._done:
            return PASS
        event = parse_event(frame)
        self._done = event.data is not None
        if event.name != "endpoint" or event.data is None:
            return PASS
        mapped = self._mapped(event.data.decode("utf-8", "surrogateescape"))
        if mapped is None:
            return PASS
        url = mapped.encode("utf-8", "surrogateescape")
        return Send((_DATA.sub(lambda line: line[1] + url, frame, count=1),), self.by)


LARGEST = 65536
"""The most bytes of a metadata document that is inspected."""

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_PARAMETER = re.compile(rb'(?i)(\bresource_metadata\s*=\s*")([^"]*)(?=")')

Mapping = Callable[[str], str | None]
"""As `heads.mapped_reference` for one request: map a URL at the upstream's origin to one for the client, or to None."""


class MetadataGate:
    """Decides on protected-resource metadata; without `mapped` it only reads it."""

    by = "oauth"
    follows = waits = False

    def __init__(self, mapped: Mapping | None) -> None:
        self._mapped = mapped
        self.resource: str | None = None
        """The resource that the metadata names, once it was decided on."""

    def wants(self, facts: Facts) -> bool:  # noqa: ARG002 (as every gate has it)
        """Return False: this gate never needs the request of a response."""
        return False

    def decide(self, frame: bytes, facts: Facts, t: int) -> Pass | Send:  # noqa: ARG002 (as every gate has it)
        """Return the document with the URL that the client connected to; Pass if it needs no change."""
        self.resource = resource_of(frame)
        sent = rewritten_metadata(frame, self._mapped) if self._mapped else None
        return PASS if sent is None else Send((sent,), self.by)


def is_metadata(target: str, named: Container[str] = ()) -> bool:
    """Return whether a request is for protected-resource metadata (RFC 9728); `named` has paths from challenges."""
    path = target.partition("?")[0]
    return path.endswith(_WELL_KNOWN) or _WELL_KNOWN + "/" in path or path in named


def named_path(headers: RawHeaders, challenged: str) -> str | None:
    """Return the metadata path that a challenge names; None if it is the path of the challenged request."""
    try:
        path = urlsplit(named_resource(headers) or "").path
    except ValueError:
        return None
    return path if path not in ("", challenged.partition("?")[0]) else None


def named_resource(headers: RawHeaders) -> str | None:
    """Return the metadata URL that a challenge names."""
    found = _PARAMETER.search(every(headers, b"www-authenticate").encode())
    return found[2].decode() if found else None


def resource_of(document: bytes) -> str | None:
    """Return the resource that a metadata document names; None if it is not such a document."""
    try:
        value = parsed(document)
    except ValueError:
        return None
    resource = value.get("resource") if isinstance(value, dict) else None
    return resource if isinstance(resource, str) else None


def rewritten_challenge(value: bytes, mapped: Mapping) -> bytes | None:
    """Return a WWW-Authenticate value with the metadata URL at our origin; None if it needs no change."""
    found = _PARAMETER.search(value)
    url = mapped(found[2].decode("utf-8", "replace")) if found else None
    if found is None or url is None:
        return None
    return value[: found.start(2)] + url.encode() + value[found.end(2) :]


def rewritten_metadata(document: bytes, mapped: Mapping) -> bytes | None:
    """Return metadata with the URL that the client connected to; every other byte stays. None if it needs no change."""
    resource = resource_of(document)
    url = mapped(resource) if resource is not None else None
    if url is None:
        return None
    member = re.compile(rb'("resource"\s*:\s*)"(?:[^"\\]|\\.)*"')
    rewritten = member.sub(lambda found: found[1] + json.dumps(url).encode(), document, count=1)
    return rewritten if resource_of(rewritten) == url else None


def oauth_diagnosis(named: str, own: Origin | None, upstream: str) -> str | None:
    """Return the notice about `named` (a resource or its metadata URL) if it has another origin than the proxy.

    None if the origin is the same.
    """
    there = origin_of(named)
    if there is None or there == own:
        return None
    return (
        f"a login at {upstream} will fail: its metadata names {there[0]}://{authority_of(*there)}, and clients that"
        " connected to this proxy reject that. '--rewrite-oauth' helps if its authorization server ignores the"
        " parameter 'resource'. Otherwise use 'mcpspy mitm', which keeps the server's own URL"
    )


def oauth_refusal(upstream: str) -> str:
    """Return the notice about a token that is refused although the metadata was rewritten."""
    return (
        f"{upstream} refuses a client's token. After a new login, the reason is that the token was requested for this"
        " proxy's URL: '--rewrite-oauth' cannot help then. Use 'mcpspy mitm', which keeps the server's own URL"
    )
