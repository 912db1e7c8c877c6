"""Rules about the stream that a client opens with GET, to receive what the server sends on its own.

A server must answer this GET with an event stream, or with 405 if it offers none (2025-03-26 to 2025-11-25; there is no
such stream in 2026-07-28). Whether a 404 means the stream or the session shows what follows.
"""

from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

from mcpspy.conversation import bounds
from mcpspy.conversation.context import asked
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session, StreamEnd
from mcpspy.conversation.refusals import gateway, refusal
from mcpspy.rules.http.sessions import is_of_session
from mcpspy.rules.rule import Fault, Severity, StatefulCheck, rule
from mcpspy.spec.revisions import HTTP_SESSIONS
from mcpspy.text import duration_text, plural
from mcpspy.wire.http_head import header, media_type, status
from mcpspy.wire.jsonrpc import Error, Result

_LISTENING = "basic/transports#listening-for-messages-from-the-server"
_STREAM = "text/event-stream"
_OK, _REDIRECTION, _BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _NOT_ACCEPTABLE = 200, 300, 400, 403, 404, 406
_APART = (401, 405, 407, 429, 502, 503, 504)
"""Statuses of a login, of a server without such a stream, and of load and failures: they say nothing about the GET."""
_TIMED_OUT = (504, 524)
_NAMED = 20  # ends that a finding names
_OFTEN = 3  # ends of idle streams that are no accident
_HEADLESS = 2_000_000_000  # nanoseconds
_LATE_HEAD = 10_000_000_000
_IDLE = 100_000_000  # a shorter time without a frame is not idle


@rule(
    "http/get-refused",
    "error",
    """A server must answer the GET with which a client listens for messages with an event stream, or with the status
    405 if it has none. Clients take another answer for a failure: some give up the whole connection, others repeat the
    GET without end. A GET without a session id may be answered with 400, which is an info. Reported once per
    session.""",
    fix="Answer a GET of the MCP endpoint with `text/event-stream`, or with the status 405.",
    meanwhile="Go on without the stream: it is optional.",
    blame="server",
    spec=_LISTENING,
    about="listening",
    revisions=HTTP_SESSIONS,
    explains=("refused",),
    loss="the client gets no stream for the messages that the server sends on its own",
    fails="""
        = 2025-06-18 http
        >> GET
        << 404
        >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> GET
        << 405
    """,
    on=(HttpUnit, Error),
)
class RefusedGet(StatefulCheck):
    """Report a GET for a stream that is answered otherwise. Decided at the end: a 404 may mean the session."""

    learns_from: ClassVar = {Result: ("initialize",)}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._endpoint: str | None = None
        self._refused: Message | HttpUnit | None = None

    def learn(self, message: Message) -> None:
        """Remember the path of the endpoint."""
        if message.http:
            self._endpoint = _path(message.http)

    def check(self, event: Message | HttpUnit) -> Iterator[Fault]:
        """Remember the first GET that is refused."""
        request = asked(event) if self._refused is None else None
        if request is None or event.http is None or not self._listens(request):
            return iter(())
        code, head = status(event.http.opened.head), event.http.opened.head
        if code == _NOT_ACCEPTABLE and _STREAM not in (header(request.opened.head, "accept") or ""):
            return iter(())  # it did not ask for a stream
        if code == _FORBIDDEN and header(head, "www-authenticate"):
            return iter(())  # the client has to log in again, with more rights
        odd = _OK <= code < _REDIRECTION and media_type(head) != _STREAM
        if odd or (code >= _BAD_REQUEST and code not in _APART):
            over = self.session.over
            self._refused = event if over is None else None
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the answer, unless the session had ended for the server. After a gap, that is not known."""
        event, session = self._refused, self.session
        answer = event.http if event else None
        if event is None or answer is None or answer.request is None or session.gaps:
            return
        code, named = status(answer.opened.head), answer.request.named
        went_on = session.answered > event.t or not (_is_about_session(answer) or _ended_later(session, event.n))
        if named and ((code == _NOT_FOUND and not went_on) or is_of_session(answer)):
            return
        severity: Severity | None = "info" if code == _BAD_REQUEST and not named and session.given else None
        if code >= _BAD_REQUEST:
            how = refusal(answer.opened.head, answer.said)
        else:
            kind = media_type(answer.opened.head)
            how = f"status {code} {f'as {kind[:60]}' if kind else 'without a Content-Type'}"
        first = answer.request.first
        yield Fault(f"the GET for a stream is answered with {how}; expected an event stream or the status 405",
                    related=(first,) if first else (), at=event, severity=severity, blame="server")  # fmt: skip

    def _listens(self, request: HttpChannel) -> bool:
        """Return whether a request is the GET of a client that listens for messages."""
        accepted, path = header(request.opened.head, "accept") or "", _path(request)
        if request.summary["method"] != "GET" or header(request.opened.head, "upgrade"):
            return False
        if self._endpoint is None:
            return request.named and "/.well-known/" not in path
        return path == self._endpoint and (request.named or _STREAM in accepted)


def _path(channel: HttpChannel) -> str:
    return urlsplit(str(channel.summary["target"])).path


def _ended_later(session: Session, n: int) -> bool:
    """Return whether the server ended the session after line `n`."""
    return session.over is not None and not session.over.by_client and session.over.n > n


def _is_about_session(answer: HttpChannel) -> bool:
    return "session" in answer.said.lower()


@rule(
    "http/stream-without-head",
    "warning",
    """The server did not answer the GET for a stream for long: not even with a head. A server that has such a stream
    must send its head at once, although it has no message yet; many frameworks keep the head until the first byte of
    the body. Clients that wait for it cannot go on, or give up after their time-out.""",
    fix="Send the head of the stream at once: flush it, or send a comment (`: ok`) after it. Or answer with 405.",
    meanwhile="Do not wait for the stream before the first request.",
    blame="server",
    spec=_LISTENING,
    about="listening",
    revisions=HTTP_SESSIONS,
    explains=("refused", "timed-out"),
    loss="the stream of the server never began, and the client waited for it",
    fails="""
        = 2025-06-18 http
        >> GET
        @5 >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> GET
        << 200 events
        @5 >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(HttpUnit, StreamEnd),
)
class MissingHead(StatefulCheck):
    """Report a GET for a stream that gets no head, or gets it late."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._waiting: dict[int, HttpUnit] = {}  # by channel: the heads of GETs without an answer

    def check(self, event: HttpUnit | StreamEnd) -> Iterator[Fault]:
        """Remember a GET until its answer begins; check for how long that took."""
        place = event.http
        if place is None or place.summary["method"] != "GET" or place.legacy:
            return
        if isinstance(event, HttpUnit) and place.request is None:
            if event.n == place.first and _STREAM in (header(place.opened.head, "accept") or ""):
                bounds.keep(self._waiting, place.opened.ch, event)
            return
        asking = self._waiting.pop(place.answers or 0, None)
        waited = event.t - asking.t if asking else 0
        if asking and isinstance(event, StreamEnd) and place.opened.head is None and waited >= _HEADLESS:
            if event.sender == "client" and place.opened.sender != "mcpspy":
                yield Fault(f"the GET for a stream got no head in {duration_text(waited)}; then the client left",
                            related=(asking.n,), blame="server")  # fmt: skip
        elif asking and waited >= _LATE_HEAD and gateway(place.opened.head) and status(place.opened.head) in _TIMED_OUT:
            yield Fault(f"the GET for a stream got no head in {duration_text(waited)}; then a gateway answered with "
                        f"{status(place.opened.head)}", related=(asking.n,), blame="server")  # fmt: skip
        elif asking and place.streams and waited >= _LATE_HEAD and place.opened.sender == "server":
            yield Fault(f"the GET for a stream got its head only after {duration_text(waited)}", related=(asking.n,))

    def close(self) -> Iterator[Fault]:
        """Report a GET that has no answer at all, although the session went on."""
        if self.session.gaps:
            return
        for asking in self._waiting.values():
            waited = self.session.answered - asking.t
            if waited >= _HEADLESS:
                yield Fault(f"the GET for a stream has no answer, although another request was answered "
                            f"{duration_text(waited)} later", blame="server", at=asking)  # fmt: skip


@rule(
    "http/stream-cut",
    "info",
    """The server, or a gateway in front of it, ended the stream of a GET again and again while nothing was sent on it.
    The usual reason is a limit for idle connections, or for the duration of a request. Each time the client has to
    connect again, and messages in between are lost. It is a warning if the streams were broken off instead of ended.
    Streams whose events have ids can be resumed, so these are not counted. Reported once per session.""",
    fix="""Send a comment (`: ping`) every few seconds, and raise the limits of the gateway for idle and long
    connections.""",
    meanwhile="Connect again after a pause, and list again what may have changed.",
    blame="server",
    spec=_LISTENING,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> GET
        << 200 events
        @60 <. closed
        >> GET
        << 200 events
        @120 <. closed
        >> GET
        << 200 events
        @180 <. closed
    """,
    passes="""
        = 2025-06-18 http
        >> GET
        << 200 events
        @60 <. closed
    """,
    on=(StreamEnd,),
)
class CutStreams(StatefulCheck):
    """Count the streams of GETs that the server ended while they were idle."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._ends: list[StreamEnd] = []
        self._count = 0
        self._resets = 0

    def check(self, event: StreamEnd) -> Iterator[Fault]:
        """Count an end."""
        place = event.http
        of_get = place is not None and place.streams and place.summary["method"] == "GET" and not place.legacy
        if place is None or not of_get or place.resumable or event.sender != "server" or event.idle < _IDLE:
            return iter(())
        self._count += 1
        self._resets += event.how == "reset"
        if len(self._ends) < _NAMED:
            self._ends.append(event)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report what happened often. After a gap, it is not known whether the streams were idle."""
        if self._count < _OFTEN or self.session.gaps:
            return
        idle = [it.idle for it in self._ends]
        spans = list(dict.fromkeys((duration_text(min(idle)), duration_text(max(idle)))))
        how = "broke off" if self._resets else "ended"
        yield Fault(f"the server {how} the idle stream of the GET {plural(self._count, 'time')}, each after "
                    f"{' to '.join(spans)} without a message", related=tuple(it.n for it in self._ends[1:]),
                    at=self._ends[0], severity="warning" if self._resets else None, blame="server")  # fmt: skip
