"""Rules about POSTs that are refused by a status of HTTP, without a JSON-RPC answer.

A refusal may turn out to be normal: the client logs in, begins a new session, or repeats the request with success. So
it is judged at the end, unless the status alone shows the fault. `initialize` has a rule of its own
(`lifecycle/handshake-failed`), unless its credentials are refused. A status of mcpspy itself says that the server could
not be reached, and is reported by `lifecycle/server-exit`.
"""

import re
from collections.abc import Iterator

from mcpspy.conversation import bounds
from mcpspy.conversation.context import asked, asked_over_http
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.conversation.refusals import has_credentials, leads_to, leads_to_login, refusal, status_line
from mcpspy.json_values import excerpt
from mcpspy.rules.http.posting import SENDING, asks_for_refusal, is_about_call, remembered
from mcpspy.rules.rule import Fault, Severity, StatefulCheck, rule
from mcpspy.spec.revisions import HTTP_SESSIONS
from mcpspy.wire.http_head import header, media_type, status
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

_REDIRECTION = 300
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _NOT_ACCEPTABLE = 400, 401, 403, 404, 406
_UNSUPPORTED, _MISDIRECTED = 415, 421
_BEGINNINGS = ("initialize", "server/discover")  # the first has a rule of its own, the second may be a probe
_MILD = (307, 308, 429, 503)
"""Statuses after which a client can do something: follow, wait."""
_ABOUT_HOST = re.compile(
    r"(?<![a-z])host(?![a-z]).{0,40}(?:invalid|not allowed|denied|rejected|forbidden|mismatch|not permitted|unknown)"
    r"|(?:invalid|disallowed|forbidden|unknown|rejected|untrusted|blocked)(?:[- _]|HTTP){0,9}host(?![a-z])",
    re.IGNORECASE,
)
_ABOUT_ORIGIN = re.compile(
    r"\borigin\b.{0,80}(?:invalid|n[o']t (?:allowed|permitted|trusted)|denied|rejected|forbidden|mismatch|unknown)"
    r"|(?:invalid|disallowed|forbidden|unknown|rejected|untrusted|blocked)(?:[- _:]|http|cors|request){0,4}origin\b",
    re.IGNORECASE,
)
_ABOUT_VERSION = re.compile(
    r"(?:unsupported|not supported|invalid|unknown|unrecogni[sz]ed|wrong|bad)\W.{0,40}protocol[- _]?version"
    r"|protocol[- _]?version.{0,60}(?:unsupported|n[o']t supported|invalid|unknown|unrecogni[sz]ed|mismatch)",
    re.IGNORECASE,
)
_ABOUT_TYPE = re.compile(r"content.?type|media.?type", re.IGNORECASE)


@rule(
    "http/refused",
    "error",
    """The server, or a gateway in front of it, refused a POST with a status of HTTP instead of a JSON-RPC answer, and
    the client did not repeat it with success. A request needs a JSON-RPC answer, so its caller learns nothing but the
    status. After 301, 302 and 303 clients repeat a POST as GET, so the message is lost. A refused notification, a
    redirect that is not followed, and statuses that a client can react to (404 in a session, 429, 503) are
    warnings.""",
    fix="""Answer a request with a JSON-RPC error, and redirect a POST with 307 or 308 only. If a gateway answered, look
    at its log and its limits of size, rate and time.""",
    meanwhile="Look at who answered and with which text: the headers `Server` and `Via` and the body tell it.",
    blame="server",
    spec=SENDING,
    about="refusal",
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 504
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 504
        >> 3 tools/list
        << 200 3 = {"tools":[]}
    """,
    on=(HttpUnit, Error, Invalid),
)
class RefusedPosts(StatefulCheck):
    """Report the POSTs that were refused for good."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._refused: dict[int, Message | HttpUnit] = {}  # by line number: the beginnings of answers

    def check(self, event: Message | HttpUnit) -> Iterator[Fault]:
        """Remember an answer with a status that refuses, unless it has a response."""
        kept = remembered(event) if _refused(event) and not event.exchange else None
        if kept:
            bounds.keep(self._refused, event.n, kept)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report what was not repeated with success, and has no other reason. After a gap, that is not known."""
        if self.session.gaps:
            return
        for event in self._refused.values():
            request = _refused(event)
            code = status(event.http.opened.head) if event.http else 0
            carried = request and _lost(request, code, self.session)
            if carried and request and event.http and not _has_reason(request, code, self.session):
                asks = isinstance(carried.body, Request)
                lost_session = code == _NOT_FOUND and request.named and self.session.answered <= event.t
                mild = not asks or lost_session or code in _MILD or _needs_login(request, event.http)
                severity: Severity | None = "warning" if mild else None
                what = _what(carried)
                sentence = f"{what} is refused with {refusal(event.http.opened.head, event.http.said)}"
                yield Fault(sentence, related=(carried.n,), at=event, severity=severity,
                            blame="client" if _needs_login(request, event.http) else "server",
                            concerns=(_method(carried), str(code)))  # fmt: skip


@rule(
    "http/login-page",
    "error",
    """The server, or a gateway in front of it, redirects a POST to a page on which a person logs in. A client of MCP
    shows no such page: it repeats the POST as GET, or gives up. It begins a login only after the status 401.""",
    fix="""Answer 401 with `WWW-Authenticate` instead of a redirect, or let requests with a token pass. In a gateway,
    except the URL of the server from the login for browsers.""",
    meanwhile="Look whether the gateway accepts a token or a key, and set it in the configuration of the client.",
    blame="server",
    spec="basic/authorization#error-handling",
    about="refusal",
    explains=("refused",),
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 302 [location: /login]
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 401 [www-authenticate: Bearer]
    """,
    on=(HttpUnit,),
)
class LoginPages(StatefulCheck):
    """Report the POSTs that were redirected to a login, unless they were repeated with success."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._redirected: dict[int, HttpUnit] = {}  # by line number: the beginnings of answers

    def check(self, event: HttpUnit) -> Iterator[Fault]:
        """Remember a redirect to a login. Its messages need no other explanation."""
        request = _refused(event)
        if request and request.carried and leads_to_login(request, event.http.opened.head):
            bounds.keep(self._redirected, event.n, event)
            for carried in request.carried:
                bounds.keep(self.session.explained, carried.n, None)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report what has failed for good. After a gap, that is not known."""
        for event in self._redirected.values() if not self.session.gaps else ():
            request, head = event.http.request, event.http.opened.head
            message = next((it for it in request.carried if _has_failed(it, self.session)), None) if request else None
            if message:
                yield Fault(f"{_what(message)} is redirected to a login: status {status_line(head)}{leads_to(head)}",
                            related=(message.n,), at=event, blame="server",
                            concerns=(_method(message), str(status(head))))  # fmt: skip


def _has_failed(message: Message, session: Session) -> bool:
    """Return whether a message of a POST has failed, and nothing shows that this is normal."""
    return still_failed(message.exchange) if message.exchange else (message.n, 0) not in session.expected


@rule(
    "http/type-refused",
    "error",
    """The server refuses a POST because of its `Content-Type`, although that is `application/json`, the type of every
    JSON-RPC message. A parameter such as `charset=utf-8` does not change the type, but servers that compare the whole
    header with a text refuse it. Or it refuses a POST with 406, although `Accept` lists both types of answers.""",
    fix="""Compare media types without their parameters, and in any case: `application/json; charset=utf-8` is JSON.
    Look for each type in the whole list of `Accept`.""",
    meanwhile="Send `Content-Type: application/json` and `Accept: application/json, text/event-stream` like this.",
    blame="server",
    spec="https://www.rfc-editor.org/rfc/rfc9110#section-8.3.1",
    about="refusal",
    explains=("refused", "error"),
    fails="""
        = 2025-06-18 http
        >> [content-type: application/json; charset=utf-8] 2 tools/list
        << 415
    """,
    passes="""
        = 2025-06-18 http
        >> [content-type: text/plain] 2 tools/list
        << 415
    """,
    on=(HttpUnit, Error),
)
def type_refused(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a POST with a legal type, or with the right `Accept`, that is refused because of that."""
    answer = event.http
    request = answer.request if answer else None
    if answer is None or request is None or answer.legacy or request.summary["method"] != "POST":
        return
    head = request.opened.head
    code = _tells(event, _UNSUPPORTED, (_BAD_REQUEST,), _ABOUT_TYPE)
    if code and media_type(head) == "application/json" and not header(head, "content-encoding"):
        why = f"its type; it is {excerpt(header(head, 'content-type') or '')}, a legal one"
    elif (
        asked(event)
        and status(answer.opened.head) == _NOT_ACCEPTABLE
        and not asks_for_refusal(request, _NOT_ACCEPTABLE)
    ):
        code, why = _NOT_ACCEPTABLE, f"its Accept; that is {excerpt(header(head, 'accept'))}, with both types"
    else:
        return
    message = next(iter(request.carried), None)
    what = _method(message) if message else "the POST"
    yield Fault(f"{what} is refused with status {code} because of {why}",
                related=(message.n,) if message else (), blame="server", concerns=(what, str(code)))  # fmt: skip


@rule(
    "http/version-refused",
    "error",
    """The server refuses the revision in `MCP-Protocol-Version`, although its answer to `initialize` named just that
    one. Clients must send it with every later request, so each of them fails. Usually the library that answers
    `initialize` knows more revisions than what checks the header.""",
    fix="""Answer `initialize` only with revisions that every part of the server accepts in `MCP-Protocol-Version`, or
    update the part that checks the header.""",
    meanwhile="Name an older revision in `initialize`, such as one that the error lists.",
    blame="server",
    spec="basic/transports#protocol-version-header",
    about="refusal",
    revisions=HTTP_SESSIONS,
    explains=("refused", "error"),
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 400 | Unsupported protocol version: 2025-06-18
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(HttpUnit, Error),
)
def version_refused(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request that is refused because of the revision on which the server has agreed."""
    answer, agreed = event.http, session.negotiated
    request = answer.request if answer else None
    code = _tells(event, 0, (_BAD_REQUEST,), _ABOUT_VERSION)
    if not code or request is None or session.agreed is None or agreed is None:
        return
    if header(request.opened.head, "mcp-protocol-version") == agreed.value:
        message = next(iter(request.carried), None)
        what = _method(message) if message else str(request.summary["method"])[:60]
        row = (message.n,) if message else (request.first,) if request.first else ()
        yield Fault(f"{what} is refused with status {code} because of its revision, {agreed.value}, which the answer "
                    "to initialize named", related=row, blame="server", concerns=(what, str(code)))  # fmt: skip


@rule(
    "http/host-refused",
    "error",
    """The server refuses a request because of its `Host` header. Servers that protect themselves against DNS rebinding
    accept only the hosts in a list, and the address under which this client reaches the server is not in it. So each
    client with this address fails.""",
    fix="""Add this host to those that the server allows (`allowed_hosts`, `allowedHosts`). Or let the proxy in front of
    the server send a host that it knows.""",
    meanwhile="Connect with a host that the server allows, such as `localhost` instead of an address.",
    blame="server",
    spec="https://www.rfc-editor.org/rfc/rfc9110#section-15.5.20",
    about="refusal",
    explains=("refused", "error"),
    loss="the server refuses the address by which a client reaches it",
    fails="""
        = 2025-06-18 http
        >> [host: mcp.example.com] 2 tools/list
        << 421
    """,
    passes="""
        = 2025-06-18 http
        >> [host: localhost] 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(HttpUnit, Error),
)
def host_refused(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request that is refused because of its Host."""
    answer = event.http
    request = answer.request if answer else None
    code = _tells(event, _MISDIRECTED, (_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND), _ABOUT_HOST)
    if code and request:
        message = next(iter(request.carried), None)
        what = _method(message) if message else f"{request.summary['method']} {request.summary['target']}"[:60]
        host = header(request.opened.sent, "host") or header(request.opened.head, "host") or "which it lacks"
        yield Fault(f"{what} is refused with status {code} because of its Host, {excerpt(host)}",
                    related=(message.n,) if message else (), blame="server", concerns=(what, str(code)))  # fmt: skip


@rule(
    "http/origin-refused",
    "warning",
    """The server refuses a request because of its `Origin` header, which names the page in a browser, or the
    application, that sends it. Servers must do that with origins that they do not know, to be safe from DNS rebinding.
    But if this client is one that should reach the server, each of its requests fails.""",
    fix="""If the client is a wanted one, add its origin to those that the server allows (`allowed_origins`,
    `allowedOrigins`), exactly as the header has it.""",
    meanwhile="Send no `Origin` if the client is not a page in a browser, or connect from an origin that is allowed.",
    blame="server",
    spec="basic/transports#security-warning",
    about="refusal",
    explains=("refused", "error"),
    loss="The server refuses the origin of a client",
    fails="""
        = 2025-06-18 http
        >> [origin: http://localhost:3000] 2 tools/list
        << 403 | Invalid Origin
    """,
    passes="""
        = 2025-06-18 http
        >> [origin: http://localhost:3000] 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(HttpUnit, Error),
)
def origin_refused(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request that is refused because of its Origin."""
    answer = event.http
    request = answer.request if answer else None
    code = _tells(event, 0, (_BAD_REQUEST, _FORBIDDEN), _ABOUT_ORIGIN)
    origin = request and (header(request.opened.sent, "origin") or header(request.opened.head, "origin"))
    if code and request and origin and request.summary["method"] != "OPTIONS":
        message = next(iter(request.carried), None)
        what = _method(message) if message else f"{request.summary['method']} {request.summary['target']}"[:60]
        row = (message.n,) if message else (request.first,) if request.first else ()
        yield Fault(f"{what} is refused with status {code} because of its Origin, {excerpt(origin)}",
                    related=row, blame="server", concerns=(what, str(code)))  # fmt: skip


def _tells(event: Message | HttpUnit, code: int, others: tuple[int, ...], about: re.Pattern[str]) -> int:
    """Return the status of a refusal if it is `code`, or one of `others` and its body speaks of a matter; else 0."""
    answer = event.http
    if answer is None or answer.request is None or answer.opened.sender != "server" or is_about_call(event):
        return 0
    found = status(answer.opened.head)
    if found == code:
        return found if event.n == answer.first and not event.part else 0
    return found if found in others and event.frame and about.search(answer.said) else 0


def _refused(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the POST, if an event is the first of an answer of the server that refuses it by status; else None."""
    request, answer = asked_over_http(event), event.http
    if request is None or answer is None or answer.summary["method"] != "POST":
        return None
    return request if status(answer.opened.head) >= _REDIRECTION else None


def _lost(request: HttpChannel, code: int, session: Session) -> Message | None:
    """Return the first message of a POST that failed for good, without another finding about it."""
    return next((it for it in request.carried if _is_lost(it, request, code, session)), None)


def _is_lost(message: Message, request: HttpChannel, code: int, session: Session) -> bool:
    body, exchange = message.body, message.exchange
    if message.n in session.explained or (message.method in _BEGINNINGS and code != _UNAUTHORIZED):
        return False
    if isinstance(body, Notification):
        return (request.first, 0) not in session.expected
    if exchange is None or not isinstance(body, Request | Result | Error):
        return False
    return exchange.outcome == "refused" and still_failed(exchange) and exchange.request.n not in session.explained


def _has_reason(request: HttpChannel, code: int, session: Session) -> bool:
    """Return whether the client can expect the refusal, by its own fault or because it is a step to something else."""
    if code == _UNAUTHORIZED:
        return not has_credentials(request)  # it has to log in; see the rules of OAuth
    if code == _NOT_FOUND:
        return request.named and (session.renewed or "session-over" in session.said)
    if asks_for_refusal(request, code):
        return True
    wrong_version = bool(session.said & {"version-header missing", "version-header other"})
    return code == _BAD_REQUEST and (("session-missing" in session.said and not request.named) or wrong_version)


def _needs_login(request: HttpChannel, answer: HttpChannel) -> bool:
    """Return whether the credentials of the client do not suffice."""
    code, challenge = status(answer.opened.head), header(answer.opened.head, "www-authenticate")
    return code == _UNAUTHORIZED or (code == _FORBIDDEN and challenge is not None)


def _what(message: Message) -> str:
    exchange = message.exchange
    answers = exchange is not None and exchange.request is not message
    return f"the response to #{exchange.request.n}" if answers and exchange else _method(message)


def _method(message: Message) -> str:
    return str(message.method)[:60]
