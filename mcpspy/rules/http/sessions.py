"""Rules about session ids that do not reach the side that needs them, or that a server forgets at once.

Several replicas of a server that share no sessions know only their own ids. Something between client and server may
drop the header `Mcp-Session-Id`, from the answer to `initialize` or from requests. What an answer says about sessions
is found in its text, because the status 400 has many reasons.
"""

import re
from collections.abc import Iterator
from typing import ClassVar

from mcpspy.conversation import bounds
from mcpspy.conversation.context import asked
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.conversation.refusals import UNKNOWN, denies_session, has_credentials, one_line
from mcpspy.json_values import member
from mcpspy.rules.http.posting import is_about_call, remembered
from mcpspy.rules.rule import Fault, Severity, StatefulCheck, rule
from mcpspy.spec.revisions import HTTP_SESSIONS
from mcpspy.text import duration_text
from mcpspy.wire.http_head import header, status
from mcpspy.wire.jsonrpc import Error, Request, Result

SESSIONS = "basic/transports#session-management"
_SOON = 60_000_000_000  # nanoseconds in which a client expects that a session lives
_BAD_REQUEST, _NOT_FOUND, _UNPROCESSABLE, _FAILURE = 400, 404, 422, 500
_WRONG = (_BAD_REQUEST, 409, 410, _UNPROCESSABLE, _FAILURE)
"""Statuses in place of 404. With 500, a session may be that of a library."""
_OF_LOGIN = (401, 403)
"""The same, but with these a session may be that of a login."""
_OK, _REDIRECTION = 200, 300
_SESSION_NOT_FOUND = -32001
_METHOD_MISSING = -32601
_SESSION = re.compile("session", re.IGNORECASE)
_SESSION_ID = re.compile(r"session[-_ ]?id", re.IGNORECASE)
_UNINITIALIZED = re.compile(r"(?:server|transport|connection) (?:is |was )?not (?:yet )?initialized", re.IGNORECASE)
_WANTS_INITIALIZE = re.compile(r"expect\w*(?: an?)? initialize", re.IGNORECASE)
_NO_REASON = re.compile(r"(?:(?:404|error)\b\W*)?(?:page )?(?:not found)?\.?", re.IGNORECASE)
_ABSENT = re.compile(r"missing|required|not provided|must (?:be|have|include|provide|send)|\bno session", re.IGNORECASE)


def refuses_session(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the request whose answer denies its session in words, with another status than 404; else None.

    A server that has started again may say that it is not initialized, although the session was.
    """
    request = _told_of(event, _WRONG, UNKNOWN) or _told_otherwise(event)
    if request is None and event.session.initialized:
        request = _told_of(event, (_BAD_REQUEST,), _UNINITIALIZED, _UNINITIALIZED)
    if request is None or not request.named or event.http is None:
        return None
    failed = status(event.http.opened.head) == _FAILURE
    return None if failed and not _SESSION_ID.search(event.http.said) else request


def _told_otherwise(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the request, if its answer denies the session with success and an error, or as if a login were missing."""
    answer = event.http
    request = answer.request if answer else None
    if answer is None or request is None or answer.legacy or event.part or answer.opened.sender != "server":
        return None
    code = status(answer.opened.head)
    if code in _OF_LOGIN:
        worked = event.session.given is not None and not has_credentials(request)
        challenged = header(answer.opened.head, "www-authenticate") is not None
        return request if event.frame and worked and not challenged and denies_session(answer.said) else None
    if not _OK <= code < _REDIRECTION or not isinstance(event, Message) or event.exchange is None:
        return None
    text = member(event.body.value, "error", "message")
    if is_about_call(event) or not isinstance(text, str) or not denies_session(one_line(text)):
        return None
    sure = event.exchange.method != "tools/call" or _SESSION_ID.search(text)  # a tool may have sessions of its own
    return request if sure or member(event.body.value, "error", "code") == _SESSION_NOT_FOUND else None


def is_of_session(answer: HttpChannel) -> bool:
    """Return whether an answer with another status than 404 says that the session is not known."""
    told = _SESSION.search(answer.said) and UNKNOWN.search(answer.said)
    return told is not None and status(answer.opened.head) in _WRONG


def _told_of(
    event: Message | HttpUnit, codes: tuple[int, ...], how: re.Pattern[str], what: re.Pattern[str] = _SESSION
) -> HttpChannel | None:
    """Return the request, if an event is the body of its answer, with one of these statuses, about sessions."""
    answer = event.http
    if answer is None or answer.request is None or answer.legacy or not event.frame or event.part:
        return None
    if is_about_call(event):
        return None  # a session of a browser or a database, for example
    told = answer.opened.sender == "server" and status(answer.opened.head) in codes
    return answer.request if told and what.search(answer.said) and how.search(answer.said) else None


@rule(
    "http/session-header-lost",
    "error",
    """The server requires a session id, but its answer to `initialize` gave none, or the request has one and the server
    does not see it. Usually something between client and server, such as a gateway, drops the header `Mcp-Session-Id`.
    The client can do nothing about it, so every request fails.""",
    fix="""Let every proxy and gateway pass `Mcp-Session-Id`, in requests and in answers. In a server, give the id in
    the answer to `initialize`, or require none.""",
    meanwhile="Connect to the server itself, to see whether what is in front of it drops the header.",
    blame="server",
    spec=SESSIONS,
    about="refusal",
    revisions=HTTP_SESSIONS,
    explains=("refused", "error"),
    fails="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},\
"serverInfo":{"name":"s","version":"1"}}
        >> [mcp-protocol-version: 2025-06-18] notifications/initialized
        << 400 | Missing session ID
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},\
"serverInfo":{"name":"s","version":"1"}}
        >> [mcp-protocol-version: 2025-06-18] notifications/initialized
        << 202
    """,
    on=(HttpUnit, Error),
)
class LostHeader(StatefulCheck):
    """Report a server that requires a session id which it did not give, or which the request has."""

    learns_from: ClassVar = {Result: ("initialize",)}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._agreed = 0

    def learn(self, message: Message) -> None:
        """Remember the answer to `initialize`."""
        self._agreed = message.n

    def check(self, event: Message | HttpUnit) -> Iterator[Fault]:
        """Check what a refusal says about the session."""
        session = self.session
        given = session.given
        codes = (_BAD_REQUEST, _NOT_FOUND)
        request = _told_of(event, codes, _ABSENT) or _told_of(event, codes, UNKNOWN) or _wants_initialize(event)
        if request is None or request.summary["method"] != "POST" or session.agreed is None:
            return
        asked = tuple(it.n for it in request.carried[:1])
        if given is None and not request.named and request.opened.t > session.agreed:
            yield Fault(f"the server requires a session id, but its answer to initialize (#{self._agreed}) gave none",
                        related=(self._agreed, *asked), blame="server")  # fmt: skip
        elif given and request.named and event.http and _misses(event.http.said):
            yield Fault(f"the server misses a session id, but the request has the one that #{given.n} gave",
                        related=(given.n, *asked), blame="server")  # fmt: skip


def _wants_initialize(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the request, if its answer says that the server expects `initialize`, as for a session of its own."""
    return _told_of(event, (_BAD_REQUEST, _UNPROCESSABLE), _WANTS_INITIALIZE, _WANTS_INITIALIZE)


def _misses(said: str) -> bool:
    """Return whether a text says that there is no session id, rather than that it is not known."""
    return _ABSENT.search(said) is not None and not UNKNOWN.search(said)


@rule(
    "http/session-lost",
    "warning",
    """The server answered 404 to a session less than a minute after it gave its id, although nobody deleted it. The
    usual reason is several replicas behind a load balancer that share no sessions: each request may reach another one.
    It is an error if no request of the session was ever answered, because then the client begins again without end.""",
    fix="""Share the sessions between the replicas, or let the load balancer send all requests of a session to the same
    one. A server that needs no sessions should give no session id.""",
    meanwhile="Begin a new session with `initialize`, a few times at most.",
    blame="server",
    spec=SESSIONS,
    about="refusal",
    revisions=HTTP_SESSIONS,
    explains=("refused", "error"),
    fails="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: a] 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},\
"serverInfo":{"name":"s","version":"1"}}
        >> [mcp-session-id: a] [mcp-protocol-version: 2025-06-18] notifications/initialized
        << 404
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: a] 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},\
"serverInfo":{"name":"s","version":"1"}}
        >> [mcp-session-id: a] [mcp-protocol-version: 2025-06-18] notifications/initialized
        << 202
    """,
    on=(HttpUnit, Error),
)
class LostSession(StatefulCheck):
    """Report a session that the server forgot at once. Decided at the end: the 404 may be about something else."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._refused: dict[int, Message | HttpUnit] = {}  # by line number: the beginnings of answers
        self._lived = False

    def check(self, event: Message | HttpUnit) -> Iterator[Fault]:
        """Remember an answer of status 404 soon after the session began."""
        answer, session, request = event.http, self.session, asked(event)
        if answer is None or request is None or status(answer.opened.head) != _NOT_FOUND:
            return iter(())
        given = session.given
        if given is None or not request.named or request.summary["method"] != "POST":
            return iter(())
        deleted = session.over is not None and session.over.by_client
        other_reason = isinstance(event, Message) and member(event.body.value, "error", "code") == _METHOD_MISSING
        kept = None if deleted or other_reason or is_about_call(event) else remembered(event)
        if kept and given.t <= request.opened.t and event.t - given.t < _SOON:
            self._lived = self._lived or self._answered(given.t)
            bounds.keep(self._refused, event.n, kept)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the answers, unless the session went on and they do not speak of it."""
        session = self.session
        given = session.given
        if given is None or session.gaps:  # it may have been deleted in a gap
            return
        lived = self._lived or self._answered(given.t)
        severity: Severity | None = None if lived else "error"
        for event in self._refused.values():
            answer = event.http
            if answer and answer.request and _means_session(answer.said, went_on=session.answered > event.t):
                asked = tuple(it.n for it in answer.request.carried[:1])
                late = duration_text(event.t - given.t)
                yield Fault(f"the session id that #{given.n} gave is unknown {late} later (status 404), as behind "
                            "replicas that share no sessions", related=(given.n, *asked), at=event,
                            severity=severity, blame="server")  # fmt: skip

    def _answered(self, begun: int) -> bool:
        """Return whether the session has a response, and the latest one refuses nothing."""
        answered = self.session.answered
        return answered > begun and all(it.t != answered for it in self._refused.values())


def _means_session(said: str, *, went_on: bool) -> bool:
    """Return whether a 404 with this text means the session: it says so, or gives no other reason and ends it."""
    return bool(_SESSION.search(said) or (_NO_REASON.fullmatch(said) and not went_on))


def carries_request(request: HttpChannel) -> bool:
    """Return whether a POST carries a request: its sender looks at the status of the answer."""
    return any(isinstance(it.body, Request) for it in request.carried)


def is_deleted(session: Session, t: int) -> bool:
    """Return whether the client had deleted a session at `t`: then nothing has to be answered any more."""
    over = session.over
    return over is not None and over.by_client and over.t <= t


def is_unusable(session: Session, t: int) -> bool:
    """Return whether the server had forgotten a session at `t`, soon after it began and before any other answer."""
    given = session.given
    unanswered = given is not None and (session.answered <= given.t or session.answered == t)
    return given is not None and unanswered and t - given.t < _SOON
