"""OAuth through a proxy: what a client will refuse, and what may be rewritten (RFC 9728; O-01).

A server's protected-resource metadata names the URL that tokens are for, and both SDKs insist that it has the origin
they dialled. Through a reverse proxy it has not, so a login fails. Rewriting the metadata gets past that check; but the
client then asks the authorization server for a token for *our* URL, which only a server that ignores the `resource`
parameter grants, and only a resource server that does not look at the audience accepts. Where both look, the client has
to keep the server's own URL: `mcpspy mitm`.

Nothing here touches a peer; the relay decides when to ask.
"""

import json
import re
from collections.abc import Callable, Container
from urllib.parse import urlsplit

from mcpspy.gate.facts import Facts
from mcpspy.gate.verdicts import PASS, Pass, Send
from mcpspy.relay.http.heads import Origin, RawHeaders, every, origin_of
from mcpspy.wire.http_head import authority_of

LARGEST = 65536
"""Bytes of a metadata document that is looked at."""

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_PARAMETER = re.compile(rb'(?i)(\bresource_metadata\s*=\s*")([^"]*)(?=")')

Mapping = Callable[[str], str | None]
"""As `heads.mapped_reference` for one request: a URL at the upstream's origin as the client has to see it, or None."""


class MetadataGate:
    """Decides on protected-resource metadata; without `mapped` it is only looked at."""

    by = "oauth"
    follows = waits = False

    def __init__(self, mapped: Mapping | None) -> None:
        self._mapped = mapped
        self.resource: str | None = None
        """What the metadata is about, once it was decided on."""

    def wants(self, facts: Facts) -> bool:  # noqa: ARG002 (as every gate has it)
        """It never asks for the request of a response."""
        return False

    def decide(self, frame: bytes, facts: Facts, t: int) -> Pass | Send:  # noqa: ARG002 (as every gate has it)
        """The document with the URL that the client dialled; Pass where it needs no change."""
        self.resource = resource_of(frame)
        sent = rewritten_metadata(frame, self._mapped) if self._mapped else None
        return PASS if sent is None else Send((sent,), self.by)


def is_metadata(target: str, named: Container[str] = ()) -> bool:
    """Whether a request asks for protected-resource metadata (RFC 9728); challenges `named` some paths of it."""
    path = target.partition("?")[0]
    return path.endswith(_WELL_KNOWN) or _WELL_KNOWN + "/" in path or path in named


def named_path(headers: RawHeaders, challenged: str) -> str | None:
    """The path that a challenge names for metadata; None if it is that of the challenged request itself."""
    try:
        path = urlsplit(named_resource(headers) or "").path
    except ValueError:
        return None
    return path if path not in ("", challenged.partition("?")[0]) else None


def named_resource(headers: RawHeaders) -> str | None:
    """The metadata URL that a challenge names."""
    found = _PARAMETER.search(every(headers, b"www-authenticate").encode())
    return found[2].decode() if found else None


def resource_of(document: bytes) -> str | None:
    """The resource that metadata is about; None for what is no such document."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return None
    resource = value.get("resource") if isinstance(value, dict) else None
    return resource if isinstance(resource, str) else None


def rewritten_challenge(value: bytes, mapped: Mapping) -> bytes | None:
    """A WWW-Authenticate value whose metadata is fetched through us; None where it needs no change."""
    found = _PARAMETER.search(value)
    url = mapped(found[2].decode("utf-8", "replace")) if found else None
    if found is None or url is None:
        return None
    return value[: found.start(2)] + url.encode() + value[found.end(2) :]


def rewritten_metadata(document: bytes, mapped: Mapping) -> bytes | None:
    """Metadata about the URL that the client dialled; every other byte stays. None where it needs no change."""
    resource = resource_of(document)
    url = mapped(resource) if resource is not None else None
    if url is None:
        return None
    member = re.compile(rb'("resource"\s*:\s*)"(?:[^"\\]|\\.)*"')
    rewritten = member.sub(lambda found: found[1] + json.dumps(url).encode(), document, count=1)
    return rewritten if resource_of(rewritten) == url else None


def diagnosis(named: str, own: Origin | None, upstream: str) -> str | None:
    """What to tell the user about a resource, or the URL of its metadata, at another origin than the client dialled."""
    there = origin_of(named)
    if there is None or there == own:
        return None
    return (
        f"a login at {upstream} will fail: it says that it is {there[0]}://{authority_of(*there)}, and clients that"
        " dialled this proxy refuse that. '--rewrite-oauth' helps if its authorization server ignores the resource"
        " asked for; else 'mcpspy mitm', which leaves the server its own URL"
    )


def refusal(upstream: str) -> str:
    """What to tell the user about a token that is refused although the metadata was rewritten."""
    return (
        f"{upstream} refuses a client's token. If the login was new, the token was asked for this proxy's URL and is"
        " refused for that; '--rewrite-oauth' cannot help then, but 'mcpspy mitm', which leaves the server its own URL"
    )
