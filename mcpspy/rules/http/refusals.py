"""Rules about POSTs that are refused by a status of HTTP, without a JSON-RPC answer.

A refusal may turn out to be normal: the client logs in, begins a new session, or repeats the request with success. So
it is judged at the end, unless the status alone shows the fault. `initialize` has a rule of its own
(`lifecycle/handshake-failed`). A status of mcpspy itself says that the server could not be reached, and is reported by
`lifecycle/server-exit`.
"""

import re
from collections.abc import Iterator

from mcpspy.conversation import bounds
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.conversation.refusals import refusal
from mcpspy.json_values import excerpt
from mcpspy.rules.http.posting import SENDING, asks_for_refusal, is_about_call, remembered
from mcpspy.rules.rule import Fault, Severity, StatefulCheck, rule
from mcpspy.wire.http_head import header, media_type, status
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

_REDIRECTION = 300
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 400, 401, 403, 404
_UNSUPPORTED, _MISDIRECTED = 415, 421
_BEGINNINGS = ("initialize", "server/discover")  # the first has a rule of its own, the second may be a probe
_MILD = (307, 308, 429, 503)
"""Statuses after which a client can do something: follow, wait."""
_ABOUT_HOST = re.compile(
    r"(?<![a-z])host(?![a-z]).{0,40}(?:invalid|not allowed|denied|rejected|forbidden|mismatch|not permitted|unknown)"
    r"|(?:invalid|disallowed|forbidden|unknown|rejected|untrusted|blocked)(?:[- _]|HTTP){0,9}host(?![a-z])",
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
            carried = request and _lost(request, self.session)
            code = status(event.http.opened.head) if event.http else 0
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
    "http/type-refused",
    "error",
    """The server refuses a POST because of its `Content-Type`, although that is `application/json`, the type of every
    JSON-RPC message. A parameter such as `charset=utf-8` does not change the type, but servers that compare the whole
    header with a text refuse it.""",
    fix="Compare the media type without its parameters, and in any case: `application/json; charset=utf-8` is JSON.",
    meanwhile="Send `Content-Type: application/json` without parameters.",
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
    """Report a POST with a legal type that is refused because of its type."""
    answer = event.http
    request = answer.request if answer else None
    code = _tells(event, _UNSUPPORTED, (_BAD_REQUEST,), _ABOUT_TYPE)
    if not code or request is None or header(request.opened.head, "content-encoding"):
        return
    if media_type(request.opened.head) == "application/json":
        kind, message = header(request.opened.head, "content-type") or "", next(iter(request.carried), None)
        what = _method(message) if message else "the POST"
        yield Fault(f"{what} is refused with status {code} because of its type; it is {excerpt(kind)}, a legal one",
                    related=(message.n,) if message else (), blame="server", concerns=(what, str(code)))  # fmt: skip


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


def _tells(event: Message | HttpUnit, code: int, others: tuple[int, ...], about: re.Pattern[str]) -> int:
    """Return the status of a refusal if it is `code`, or one of `others` and its body speaks of a matter; else 0."""
    answer = event.http
    if answer is None or answer.request is None or answer.opened.sender != "server" or is_about_call(event):
        return 0
    found = status(answer.opened.head)
    if found == code:
        return found if event.n == answer.first and not event.part else 0
    told = found in others and event.frame and about.search(answer.said)
    return found if told and not is_about_call(event) else 0


def _refused(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the POST, if an event is the first of an answer of the server that refuses it by status; else None."""
    answer = event.http
    if answer is None or answer.request is None or answer.opened.role != "response":
        return None
    first = (event.n, event.part, answer.opened.sender) == (answer.first, 0, "server")
    refuses = status(answer.opened.head) >= _REDIRECTION and answer.summary["method"] == "POST"
    return answer.request if first and refuses else None


def _lost(request: HttpChannel, session: Session) -> Message | None:
    """Return the first message of a POST that failed for good, without another finding about it."""
    return next((it for it in request.carried if _is_lost(it, request, session)), None)


def _is_lost(message: Message, request: HttpChannel, session: Session) -> bool:
    body, exchange = message.body, message.exchange
    if message.n in session.explained or message.method in _BEGINNINGS:
        return False
    if isinstance(body, Notification):
        return (request.first, 0) not in session.expected
    if exchange is None or not isinstance(body, Request | Result | Error):
        return False
    return exchange.outcome == "refused" and still_failed(exchange) and exchange.request.n not in session.explained


def _has_reason(request: HttpChannel, code: int, session: Session) -> bool:
    """Return whether the client can expect the refusal, by its own fault or because it is a step to something else."""
    head = request.opened.head
    if code == _UNAUTHORIZED:
        return header(head, "authorization") is None  # it has to log in; see the rules of OAuth
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
