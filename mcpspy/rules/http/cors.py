"""Rules about clients in a browser (CORS; https://fetch.spec.whatwg.org).

Before a browser sends a request with a header such as `MCP-Protocol-Version` to another origin, it asks by OPTIONS (a
preflight). If the answer does not allow the request, the browser never sends it, and the page learns no reason. Of an
answer, the page can read a header such as `Mcp-Session-Id` only if the server exposes it.

A client that is not in a browser may send an Origin as well and needs none of this. So a finding needs the reaction:
the request that did not follow, or the session id that the client did not send. The proxy may have changed the Origin
for the server; an answer that allows either one is right.
"""

from collections.abc import Iterator
from typing import ClassVar

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.context import asked
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.json_values import excerpt
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import HTTP_SESSIONS
from mcpspy.wire.http_head import Head, header, status, values
from mcpspy.wire.jsonrpc import Error, Result

_FETCH = "https://fetch.spec.whatwg.org"
_SIMPLE = ("GET", "HEAD", "POST")  # methods that a preflight need not allow
_SHOWN = 60
_WELL_KNOWN = "/.well-known/"


@rule(
    "http/preflight",
    "error",
    """A browser asked by OPTIONS whether a page may send a request, and the answer does not allow it: a status that is
    not 2xx, another origin, a method or a header that is missing. The browser did not send the request, and the page
    learns no reason. `*` does not stand for `Authorization`. It is a warning for a GET. A DELETE and the documents of
    OAuth are not reported, because servers need not support them.""",
    fix="""Answer OPTIONS with 204 and without a login. In `Access-Control-Allow-Headers`, list `Content-Type`,
    `Authorization`, `MCP-Protocol-Version`, `Mcp-Session-Id` and the other headers of MCP.""",
    meanwhile="Connect through a proxy on the origin of the page, or use a client that is not in a browser.",
    blame="server",
    spec=f"{_FETCH}/#cors-preflight-fetch",
    about="login",
    fails="""
        >> notifications/initialized
        << 202
        >> OPTIONS [origin: http://localhost:3000] [access-control-request-method: POST] \
[access-control-request-headers: content-type,mcp-protocol-version]
        << 204 [access-control-allow-origin: *] [access-control-allow-headers: Content-Type]
    """,
    passes="""
        >> notifications/initialized
        << 202
        >> OPTIONS [origin: http://localhost:3000] [access-control-request-method: POST] \
[access-control-request-headers: content-type,mcp-protocol-version]
        << 204 [access-control-allow-origin: *] [access-control-allow-headers: Content-Type, MCP-Protocol-Version]
    """,
    on=(HttpUnit,),
    explains=("refused",),
    loss="A page in a browser could not send its requests",
)
class Preflight(StatefulCheck):
    """Report preflights that were not followed by their request."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._refused: dict[int, tuple[HttpUnit, str]] = {}  # by line number: the answer, and what is wrong

    def check(self, unit: HttpUnit) -> Iterator[Fault]:
        """Take the answer to a preflight."""
        place, request = unit.http, unit.http.request
        if request is None or unit.frame or place.summary["method"] != "OPTIONS" or place.opened.sender != "server":
            return iter(())
        method = header(request.opened.head, "access-control-request-method")
        optional = method == "DELETE" or _WELL_KNOWN in str(request.summary["target"])
        if method and not optional and _origin(request) and place.opened.head:
            wrong = _refusal(request, place.opened.head, method)
            if wrong:
                keep(self._refused, unit.n, (unit, wrong))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report what was not followed by its request."""
        for answer, wrong in self._refused.values() if not self.session.gaps else ():
            request = answer.http.request
            if request and not request.followed:
                get = header(request.opened.head, "access-control-request-method") == "GET"
                yield Fault(wrong, related=(request.first,) if request.first else (), blame="server", at=answer,
                            severity="warning" if get else None)  # fmt: skip


@rule(
    "http/expose-headers",
    "error",
    """The answer to `initialize` has an `Mcp-Session-Id`, but does not list it in `Access-Control-Expose-Headers`, and
    the client came back without the session id: a page in a browser cannot read a header that is not exposed. Reported
    once per session, and only for requests with an Origin.""",
    fix="Send `Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate` with every answer.",
    meanwhile="Connect through a proxy on the origin of the page, or use a client that is not in a browser.",
    blame="server",
    spec=f"{_FETCH}/#http-access-control-expose-headers",
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        >> [origin: http://localhost:3000] 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: s-1] 1 = {"protocolVersion":"2025-06-18","capabilities":{},\
"serverInfo":{"name":"s","version":"1"}}
        >> [origin: http://localhost:3000] [mcp-session-id:] 2 ping
        << 400
    """,
    passes="""
        >> [origin: http://localhost:3000] 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: s-1] [access-control-expose-headers: Mcp-Session-Id] 1 = \
{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
        >> [origin: http://localhost:3000] [mcp-session-id: s-1] [mcp-protocol-version: 2025-06-18] 2 ping
        << 200 2 = {}
    """,
    on=(Error, HttpUnit),
    explains=("refused", "error"),
)
class ExposeHeaders(StatefulCheck):
    """Report a session id that a page cannot read, at the first answer to a request without it."""

    learns_from: ClassVar = {Result: ("initialize",)}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._answer: Message | None = None

    def learn(self, message: Message) -> None:
        """Take the answer to `initialize`."""
        self._answer = message

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Take the answer to a request without the session id. An answer with a result shows that it is not needed."""
        given, answer = self.session.given, self._answer
        if answer is None or given is None or given.n != answer.n or not given.hidden:
            return
        request = asked(message)
        if request is None or request.named or not request.carried or _origin(request) is None:
            return
        carried = request.carried[0]
        if carried.method != "initialize":
            self._answer = None
            keep(self.session.explained, carried.n, None)  # it is refused, and this tells why
            yield Fault(
                "the answer has an Mcp-Session-Id, but no Access-Control-Expose-Headers for it, so a page in a browser "
                f"cannot read it; #{carried.n} comes without it",
                related=(carried.n,),
                blame="server",
                at=answer,
            )


def _refusal(request: HttpChannel, head: Head, method: str) -> str | None:
    """Return why a browser does not send a request after the answer to its preflight; None if it does."""
    code = status(head)
    if not 200 <= code < 300:
        return f"the preflight is answered with status {code}; browsers send the {method[:_SHOWN]} only after a 2xx"
    allowed = header(head, "access-control-allow-origin")
    if allowed is None or allowed.strip() not in ("*", *_origins(request)):
        got = "has none" if allowed is None else f"has {excerpt(allowed[:_SHOWN])}"
        return f"expected Access-Control-Allow-Origin with {excerpt(_origin(request))}; the answer {got}"
    methods = values(head, "access-control-allow-methods").replace(" ", "").split(",")
    if method not in (*_SIMPLE, *methods) and "*" not in methods:
        return f"Access-Control-Allow-Methods does not have {method[:_SHOWN]}"
    wanted = _listed(request.opened.head or {}, "access-control-request-headers")
    listed = frozenset(_listed(head, "access-control-allow-headers"))
    missing = [name for name in wanted if name not in listed and ("*" not in listed or name == "authorization")]
    if missing:
        told = ", ".join(missing[:_SHOWN])[:_SHOWN]
        return f"Access-Control-Allow-Headers does not have {told}, which the request needs"
    return None


def _listed(head: Head, name: str) -> list[str]:
    """Return the names in a list of header names, in lower case."""
    return [it for it in values(head, name).lower().replace(" ", "").split(",") if it]


def _origin(request: HttpChannel) -> str | None:
    """Return the Origin of a request, as the client sent it."""
    return header(request.opened.head, "origin")


def _origins(request: HttpChannel) -> list[str]:
    """Return the Origin of a request, and the one that the relay sent in its place."""
    found = (_origin(request), header(request.opened.sent, "origin"))
    return [it for it in found if it]
