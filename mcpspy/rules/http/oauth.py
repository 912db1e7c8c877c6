"""Rules about logins over OAuth: what a server must tell a client that has to log in, and what clients refuse.

A server that wants a login answers 401 with a challenge (RFC 9110, 15.5.2), which names the metadata of the protected
resource (RFC 9728, 5.1). Clients also try well-known URLs. In the metadata, `resource` must be the URL in use
(RFC 9728, 3.3): many clients compare it whole; the SDKs accept the same origin with a parent path.

Behind a reverse proxy the URL in use is not the one that the server knows. `mcpspy.relay.http.own_gates` warns the
user while this happens, and can rewrite the metadata (O-01).

A client asks for the documents in one session and tries again in the next one. So the documents belong to the capture,
the refused requests to their session. What cost nobody a login becomes clear at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.context import asked, asks_for_stream
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.conversation.refusals import has_credentials
from mcpspy.json_values import excerpt, member
from mcpspy.rules.http.posting import remembered
from mcpspy.rules.http.sessions import refuses_session
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.secrets.redactor import is_oauth_endpoint
from mcpspy.wire.http_head import authority, header, media_type, status
from mcpspy.wire.jsonrpc import Error

_WELL_KNOWN, _RESOURCE = "/.well-known/", "oauth-protected-resource"
_METADATA = (_RESOURCE, "oauth-authorization-server", "openid-configuration")
_LARGEST = 65536  # bytes of a metadata document
_SHOWN = 200
_ROWS = 3  # documents that a finding names
_UNAUTHORIZED, _NOT_ACCEPTABLE = 401, 406
_RFC_9728 = "https://www.rfc-editor.org/rfc/rfc9728"


@dataclass(slots=True)
class _Document:
    """The answer to a request for a metadata document."""

    n: int
    name: str
    """The well-known name."""
    host: str
    path: str
    """The path that it is about."""
    status: int
    html: bool
    event: HttpUnit
    """Its head."""
    found: dict[str, Any] | None = None
    """The metadata."""
    rewritten: bool = False
    """The relay rewrote it for the client."""

    @property
    def resource(self) -> str | None:
        """The `resource` that it names."""
        named = member(self.found, "resource") if self.name == _RESOURCE and not self.rewritten else None
        return named if isinstance(named, str) else None


@dataclass(slots=True)
class _Documents:
    """The metadata documents that the clients of a capture requested."""

    known: dict[int, _Document] = field(default_factory=dict)
    """By the line number of the head of the answer."""
    went_on: int = 0
    """The latest line number at which a client registered itself or got a token."""
    reported: dict[tuple[str, str], None] = field(default_factory=dict)
    """The hosts and paths whose `resource` was reported."""


@dataclass(slots=True)
class _Refusal:
    """A request that was answered with 401."""

    event: Message | HttpUnit
    """The first event of the answer."""
    request: HttpChannel

    @property
    def n(self) -> int:
        """The line number of the request."""
        return self.request.carried[0].n if self.request.carried else self.request.first or self.event.n

    def failed(self, session: Session) -> bool:
        """Return whether the request has failed for good: it did not succeed when it was sent again."""
        exchanges = [it.exchange for it in self.request.carried if it.exchange]
        if exchanges:
            return any(map(still_failed, exchanges))
        return (self.request.first, 0) not in session.expected


class _LoginCheck(StatefulCheck):
    """What the rules about logins know: refused requests of the session, metadata documents of the capture."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._documents = session.of_capture(_Documents)
        self._refusals: dict[int, _Refusal] = {}  # by line number of the answer

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Learn from the answer to a request."""
        place, request = message.http, message.http.request if message.http else None
        if place is None or request is None or place.opened.sender != "server":
            return iter(())
        target = _target(request)
        if _WELL_KNOWN in target:
            name = _metadata_name(target)
            if name and isinstance(message, HttpUnit):
                self._take_document(message, request, name)
        elif asked(message) is request:
            if place.summary["status"] == _UNAUTHORIZED and _is_mcp(request):
                kept = remembered(message)
                if kept:
                    keep(self._refusals, message.n, _Refusal(kept, request))
            elif not request.carried and is_oauth_endpoint(target):
                self._documents.went_on = message.n
        return iter(())

    def failures(self) -> list[_Refusal]:
        """Return the requests that were refused for good, the first one first."""
        return [it for it in self._refusals.values() if it.failed(self.session)]

    def _take_document(self, unit: HttpUnit, request: HttpChannel, name: str) -> None:
        head, documents = unit.http.opened.head, self._documents.known
        n = unit.http.first or unit.n
        document = documents.get(n)
        if document is None:
            before, _, after = _target(request).partition(_WELL_KNOWN)
            path = after[len(name) :] or before
            html = media_type(head) == "text/html"
            document = _Document(n, name, _host(request), _normal(path), status(head), html, unit)
            keep(documents, n, document)
        if unit.frame and document.status == 200 and len(unit.raw) <= _LARGEST:
            document.html = document.html or unit.raw.lstrip()[:1] == b"<"
            document.found, document.rewritten = _metadata(unit.raw), unit.frame.by is not None


@rule(
    "http/oauth-origin",
    "warning",
    """The server's protected-resource metadata names another origin than the one the client connects to, so clients
    must refuse to log in. With `mcpspy proxy` this is expected, because the client connects to the proxy;
    `--rewrite-oauth` helps if the authorization server ignores the `resource` parameter. Reported once per session.""",
    fix="Set the public URL of the server to the one that clients use. With `mcpspy proxy`, add `--rewrite-oauth`.",
    meanwhile="Run `mcpspy proxy` with `--rewrite-oauth`, or record with `mcpspy mitm`, which keeps the URL.",
    blame="server",
    spec=f"{_RFC_9728}#section-3.3",
    about="login",
    fails="""
        >> GET /.well-known/oauth-protected-resource/mcp
        << 200 | {"resource":"https://mcp.example.com/mcp"}
    """,
    passes="""
        >> GET /.well-known/oauth-protected-resource/mcp
        << 200 | {"resource":"http://127.0.0.1:6278/mcp"}
    """,
    on=(Error, HttpUnit),
    explains=("refused",),
)
class OAuthOrigin(_LoginCheck):
    """Report metadata that a client will refuse, or whose URL is on another origin."""

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Check a challenge or a document."""
        yield from super().check(message)
        place = message.http
        request = place.request if place else None
        if place is None or request is None or place.opened.sender != "server":
            return
        there = authority(_metadata_url(place) or self._resource(message) or "")
        dialled = _host(request)
        if there and dialled and there != dialled and self.session.once("oauth-origin"):
            yield Fault(
                f"login will fail: the metadata names {there[:_SHOWN]}; expected {dialled[:_SHOWN]}, where the client "
                "connects",
                related=tuple(it.n for it in [*self._refusals.values()][-1:]),
            )

    def _resource(self, message: Message | HttpUnit) -> str | None:
        place = message.http
        document = self._documents.known.get(place.first or 0) if place else None
        return document.resource if document and message.frame else None


@rule(
    "http/oauth-resource",
    "warning",
    """The `resource` of the protected-resource metadata is on the origin in use, but has another path than the URL in
    use. It must be identical to that URL. Many clients compare all of it and refuse to log in; the SDKs accept a parent
    path, and nothing else. Reported only if a login failed.""",
    fix="""Set `resource` to the URL of the MCP endpoint, with its path, and serve the metadata at the well-known URL
    with that path.""",
    meanwhile="""Accept a parent path on the same origin, and send the `resource` of the metadata to the authorization
    server.""",
    blame="server",
    spec=f"{_RFC_9728}#section-3.3",
    about="login",
    fails="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401 [www-authenticate: Bearer] |
        >> GET /.well-known/oauth-protected-resource
        << 200 | {"resource":"http://127.0.0.1:6278"}
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401 [www-authenticate: Bearer] |
        >> GET /.well-known/oauth-protected-resource
        << 200 | {"resource":"http://127.0.0.1:6278/mcp"}
    """,
    on=(Error, HttpUnit),
    explains=("refused",),
)
class OAuthResource(_LoginCheck):
    """Report metadata of another path, if a login failed and no client went on after it read the metadata."""

    def close(self) -> Iterator[Fault]:
        """Compare the documents with the URL of the first request that was refused for good; not after a gap."""
        known = self._documents
        for refusal in self.failures()[:1] if not self.session.gaps else ():
            path, host = _normal(_target(refusal.request)), _host(refusal.request)
            about = [
                it
                for it in known.known.values()
                if it.resource and authority(it.resource) == host and (it.path in ("", path) or _names(refusal, it))
            ]
            fits = any(_normal(_path_of(it.resource or "")) == path for it in about)
            if about and not fits and known.went_on <= about[0].n and (host, path) not in known.reported:
                keep(known.reported, (host, path), None)
                yield Fault(
                    f"the metadata names the resource {excerpt(about[0].resource)}; expected one with the path "
                    f"{path[:_SHOWN] or '/'}, to which the client connects",
                    related=(refusal.n, refusal.event.n),
                    blame="server",
                    at=about[0].event,
                )


@rule(
    "http/oauth-document",
    "warning",
    """A well-known URL of OAuth answers with an HTML page, or with 406. Clients expect the metadata as JSON, or 404 if
    there is none; most give up when they cannot parse the answer. Often an application answers every unknown URL with
    its page, or checks `Accept` on all URLs. It is only an info if no login failed.""",
    fix="Serve the metadata as `application/json` at this URL, or answer 404.",
    meanwhile="Treat a document that is not JSON as missing.",
    blame="server",
    spec=f"{_RFC_9728}#section-3.2",
    about="login",
    fails="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401 [www-authenticate: Bearer] |
        >> GET /.well-known/oauth-protected-resource
        << 200 [content-type: text/html] | <!DOCTYPE html>
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401 [www-authenticate: Bearer] |
        >> GET /.well-known/oauth-protected-resource
        << 200 | {"resource":"http://127.0.0.1:6278/mcp"}
    """,
    on=(Error, HttpUnit),
    explains=("refused",),
)
class OAuthDocument(_LoginCheck):
    """Report documents that are pages, or are refused for their type."""

    def close(self) -> Iterator[Fault]:
        """Report each document once for all sessions; the session of the client that requested it is the one."""
        failed = [it.n for it in self.failures()[:1]]
        for document in self._documents.known.values():
            if document.event.session is not self.session:
                continue
            if document.html and document.status == 200:
                told = "is answered with an HTML page; expected JSON, or 404"
            elif document.status == _NOT_ACCEPTABLE:
                told = "is answered with 406; expected JSON, or 404"
            else:
                continue
            yield Fault(
                f"the request for {document.name} {told}",
                related=tuple(failed),
                blame="server",
                at=document.event,
                severity=None if failed else "info",
            )


@rule(
    "http/challenge-missing",
    "error",
    """The server answers 401 without `WWW-Authenticate`, and serves no OAuth metadata at the well-known URLs. So no
    client can find out how to log in. It is a warning if the metadata exists, because clients then find it by trying,
    if no client requested it, if only the optional GET was refused, or if the request succeeded later. Requests with
    credentials are not reported: those were refused.""",
    fix="""Send `WWW-Authenticate: Bearer resource_metadata="…"` with each 401, and serve the metadata of RFC 9728. If
    the server wants a fixed key, say so in the documentation and in the text of the answer.""",
    meanwhile="Try the well-known URLs. As a user: set the credentials in the configuration of the client.",
    blame="server",
    spec="https://www.rfc-editor.org/rfc/rfc9110#section-15.5.2",
    about="login",
    fails="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401
        >> GET /.well-known/oauth-protected-resource
        << 404
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 401 [www-authenticate: Bearer] |
    """,
    on=(Error, HttpUnit),
    explains=("refused", "error"),
)
class ChallengeMissing(_LoginCheck):
    """Report a 401 that does not tell how to log in, once per session."""

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Learn from an answer. A request that is refused in this way needs no other explanation."""
        yield from super().check(message)
        refusal = self._refusals.get(message.n)
        for carried in refusal.request.carried if refusal and _is_bare(refusal) else ():
            keep(self.session.explained, carried.n, None)

    def close(self) -> Iterator[Fault]:
        """Report the first one, if possible one that was not repaired later."""
        bare = [it for it in self._refusals.values() if _is_bare(it)]
        failed = [it for it in bare if it.failed(self.session)]
        failed.sort(key=lambda it: not it.request.carried)  # a GET is optional
        for refusal in (failed or bare)[:1]:
            known = [it for it in self._documents.known.values() if it.host == _host(refusal.request)]
            served = next((it.n for it in known if it.found), None)
            sentence = "the answer 401 has no WWW-Authenticate"
            if served:
                yield Fault(f"{sentence}; clients find the metadata only by trying", related=(refusal.n, served),
                            blame="server", at=refusal.event, severity="warning")  # fmt: skip
            elif not failed or self.session.gaps or not known:
                untried = ", and no client requested OAuth metadata" if failed and not self.session.gaps else ""
                yield Fault(sentence + untried, related=(refusal.n,), blame="server", at=refusal.event,
                            severity="warning")  # fmt: skip
            else:
                tried = tuple(it.n for it in known[:_ROWS])
                optional = not refusal.request.carried and self.session.answered
                end = "" if optional else ": no client can log in"
                yield Fault(f"{sentence}, and the server serves no OAuth metadata{end}", related=(refusal.n, *tried),
                            blame="server", at=refusal.event, severity="warning" if optional else None)  # fmt: skip


def _is_bare(refusal: _Refusal) -> bool:
    """Return whether a 401 has no challenge, its request had no credentials, and it is not about the session."""
    place = refusal.event.http
    challenged = place is None or header(place.opened.head, "www-authenticate") is not None
    return not (challenged or has_credentials(refusal.request) or refuses_session(refusal.event))


def _names(refusal: _Refusal, document: _Document) -> bool:
    """Return whether the challenge of a 401 names a metadata document."""
    place = refusal.event.http
    url = _metadata_url(place) if place else None
    return url is not None and _normal(_path_of(url)).endswith(f"{_WELL_KNOWN}{document.name}{document.path}")


def _is_mcp(request: HttpChannel) -> bool:
    """Return whether a request carries messages, or opens a stream of them."""
    return asks_for_stream(request) or bool(request.carried)


def _target(request: HttpChannel) -> str:
    """Return the path of a request."""
    return str(request.summary["target"]).partition("?")[0]


def _host(request: HttpChannel) -> str:
    """Return the host and port to which the client connects."""
    return authority(f"//{header(request.opened.head, 'host') or ''}")


def _metadata_name(target: str) -> str | None:
    """Return the well-known name of the metadata that a request is for."""
    after = target.partition(_WELL_KNOWN)[2]
    return next((name for name in _METADATA if after == name or after.startswith(f"{name}/")), None)


def _metadata(raw: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _metadata_url(place: HttpChannel) -> str | None:
    """Return the metadata URL in a challenge, or None if there is none or it was rewritten by the relay."""
    opened = place.opened
    challenge = header(opened.head, "www-authenticate") or ""
    start = challenge.lower().find('resource_metadata="')
    if status(opened.head) != _UNAUTHORIZED or start < 0 or "oauth" in (opened.by or ""):
        return None
    return challenge[start:].split('"')[1]


def _path_of(url: str) -> str:
    """Return the path of a URL with a host."""
    _, slash, path = url.partition("://")[2].partition("/")
    return (slash + path).partition("?")[0]


def _normal(path: str) -> str:
    """Return a path in the form in which two are compared: a slash at the end does not count."""
    return path.rstrip("/")
