"""Rules about the sessions and streams of HTTP.

A session (2025-03-26 to 2025-11-25) has the id in the answer to `initialize`. It ends with a DELETE, or when the server
no longer knows it. A client resumes a broken stream by GET with the id of the last event that it received. An event
that is repeated on the resumed stream is not a second message (see `mcpspy.conversation.http_sessions`).

A request and an answer may cross on the way, so a request sent within a second after the answer gets no finding.
"""

from collections.abc import Iterator

from mcpspy.conversation.context import asked, asks, posted
from mcpspy.conversation.facts import Over
from mcpspy.conversation.http_sessions import is_resumed
from mcpspy.conversation.model import HOLD, HttpChannel, HttpUnit, Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.http.sessions import SESSIONS, carries_request, is_unusable, refuses_session
from mcpspy.rules.rule import EVERY, Fault, rule
from mcpspy.spec.revisions import HTTP_SESSIONS
from mcpspy.text import duration_text
from mcpspy.wire.http_head import header, status
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_RESUMING = "basic/transports#resumability-and-redelivery"
_MESSAGES = (Request, Notification, Result, Error)


@rule(
    "http/session-missing",
    "error",
    """The answer to `initialize` has an `Mcp-Session-Id`, but a later request does not. Every later request must send
    it; servers that need it refuse the request (400). A request on a different connection than `initialize` may come
    from a different client, so it is reported only if it was refused. Reported once per session.""",
    fix="Keep the `Mcp-Session-Id` of the answer to `initialize`, and send it with every later request.",
    meanwhile="""List `Mcp-Session-Id` in `Access-Control-Expose-Headers`: a client in a browser cannot read it
    otherwise.""",
    blame="client",
    spec=SESSIONS,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> [mcp-session-id:] 2 tools/list
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(*EVERY, HttpUnit),
)
def session_missing(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request without the session id that the server assigned."""
    answered, given = asked(event), session.given
    place = answered or (posted(event) if isinstance(event, Message) else None)
    if place is None or event.http is None or given is None or place.named or place.opened.t <= given.t:
        return
    message = next(iter(place.carried), None)
    if message is None or message.body.value is None or member(message.body.value, "method") == "initialize":
        return
    same = place.opened.peer is not None and place.opened.peer == given.peer
    if given.hidden:
        return  # the client cannot know it
    if (same or (answered and status(event.http.opened.head) == 400)) and session.once("session-missing"):
        yield Fault("the request has no Mcp-Session-Id; the answer to initialize has one", related=(given.n,),
                    blame="client", at=message)  # fmt: skip


@rule(
    "http/session-over",
    "error",
    """The client uses a session that has ended: the client deleted it, or the server answered 404 to a request, and
    again to a later one. The client must begin a new session with `initialize` and no session id. Reported once per
    session.""",
    fix="Drop the session id after the status 404, and send `initialize` again.",
    meanwhile="Answer requests of a session that has ended with the status 404.",
    blame="client",
    spec=SESSIONS,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        @70 >> 2 tools/list
        << 404
        @75 >> 3 tools/list
        << 404
    """,
    passes="""
        = 2025-06-18 http
        >> DELETE
        << 200
    """,
    on=(*_MESSAGES, HttpUnit),
)
def session_over(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a request in a session that has ended. Whether a 404 ended it shows the answer to the next request."""
    over = session.over
    if over is None or event.http is None:
        return
    answered = asked(event)
    place = answered or (posted(event) if isinstance(event, Message) else None)
    message = next(iter(place.carried), None) if place else None
    if place is None or message is None or not place.named or _crosses(place, over):
        return
    if over.by_client and not answered and session.once("session-over"):
        yield Fault("the session has ended: the client deleted it", related=(over.n,))
        return
    again = answered and status(event.http.opened.head) == 404 and carries_request(place)
    if not over.by_client and again and not is_unusable(session, over.t) and session.once("session-over"):
        yield Fault("the session has ended: the server answered 404 before, and to this request again",
                    related=(over.n, event.n), at=message)  # fmt: skip


def _crosses(place: HttpChannel, over: Over) -> bool:
    """Return whether a request may have been sent before the end of the session arrived."""
    same = place.opened.peer is not None and place.opened.peer == over.peer
    return place.opened.t <= over.t + (0 if same else HOLD)


@rule(
    "http/session-status",
    "error",
    """A request of a session that has ended, or that the server does not know, must be answered with 404, which tells
    the client to begin a new session. This one has another status, so clients go on with the dead session. It is a
    warning if the capture does not show that the server gave the id.""",
    fix="Answer requests of a session that does not exist with the status 404.",
    meanwhile="Send `initialize` without a session id to begin a new session.",
    blame="server",
    spec=SESSIONS,
    about="http",
    revisions=HTTP_SESSIONS,
    explains=("refused", "error"),
    fails="""
        = 2025-06-18 http
        >> DELETE
        << 200
        @5 >> 3 tools/list
        << 400
    """,
    passes="""
        = 2025-06-18 http
        @70 >> 3 tools/list
        << 404
    """,
    on=(*EVERY, HttpUnit),
)
def session_status(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report an answer with the wrong status to a request in a session that has ended, or is not known."""
    if event.http is None or event.http.request is None:
        return
    over, given = session.over, session.given
    if over is not None and over.by_client:
        yield from _after_delete(event, event.http, over, session)
        return
    place = refuses_session(event) if event.http.failed else None
    if place:
        whose = f"that #{given.n} gave" if given else "of the request"
        asking = tuple(it.n for it in place.carried[:1]) or ((place.first,) if place.first else ())
        soon = ""
        if given and is_unusable(session, event.t):
            soon = f" {duration_text(event.t - given.t)} later, as behind replicas that share no sessions"
        yield Fault(f"the session id {whose} is refused with status {status(event.http.opened.head)}{soon}; "
                    "expected 404, after which the client begins a new session",
                    related=(given.n, *asking) if given else asking, blame="server",
                    severity=None if given else "warning")  # fmt: skip


def _after_delete(event: Message | HttpUnit, answer: HttpChannel, over: Over, session: Session) -> Iterator[Fault]:
    """Yield a fault if a request after a DELETE is not answered with 404."""
    place = asked(event)
    code = status(answer.opened.head)
    wrong = code == 400 or 200 <= code < 300
    if place and place.carried and wrong and place.named and place.opened.t > over.t and session.once("session-status"):
        yield Fault(
            f"the session was deleted; the request is answered with status {code}, expected 404", related=(over.n,)
        )


@rule(
    "http/session-id",
    "error",
    "A session id must have visible ASCII characters only, because clients cannot put others into a header.",
    fix="Use visible ASCII characters only, for example a UUID.",
    blame="server",
    spec=SESSIONS,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: my session] 1 = {"protocolVersion":"2025-06-18","capabilities":{},\
"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        >> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        << 200 [mcp-session-id: my-session] 1 = {"protocolVersion":"2025-06-18","capabilities":{},\
"serverInfo":{"name":"s","version":"1"}}
    """,
    on=(Result,),
    methods=("initialize",),
)
def session_id(message: Message, session: Session) -> Iterator[Fault]:
    """Report a session id that is not valid in a header."""
    given = header(message.http.opened.head, "mcp-session-id") if message.http and message.http.request else None
    wrong = next((character for character in given or "" if not "!" <= character <= "~"), None)
    if wrong:
        yield Fault(f"the session id has the character {excerpt(wrong)}; expected visible ASCII")


@rule(
    "http/get-stream-response",
    "error",
    """On a stream that the client opened with GET, a server sends only requests and notifications. A response belongs
    in the answer to the POST of its request, unless the GET resumes that answer with `Last-Event-ID`.""",
    fix="Send the response in the answer to the POST of its request.",
    meanwhile="Accept a response on any stream of the session, by its `id`.",
    blame="server",
    spec="basic/transports#listening-for-messages-from-the-server",
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 202
        >> GET
        << 200 events
        <- 2 = {"tools":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [id: 1]
        >> GET [last-event-id: 1]
        << 200 events
        <- [id: 2] 2 = {"tools":[]}
    """,
    on=(Result, Error),
)
def get_stream_response(message: Message, session: Session) -> Iterator[Fault]:
    """Report a response on a stream that a GET opened."""
    place = message.http
    if place is None or place.request is None or place.legacy or place.opened.framing != "sse" or is_resumed(place):
        return
    if place.request.named and place.summary["method"] == "GET" and message.sender == "server":
        yield Fault("the response is on a stream that GET opened; expected it in the answer to its POST", "/id")


@rule(
    "http/unknown-event-id",
    "warning",
    """The client resumes a stream after an event id that no event of the session had. It must send the id of the last
    event that it received.""",
    fix="Send the id of the last event that you received as `Last-Event-ID`, or leave the header out.",
    blame="client",
    spec=_RESUMING,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> GET [last-event-id: 99]
    """,
    passes="""
        = 2025-06-18 http
        >> GET
        << 200 events
        <- [id: 99]
        >> GET [last-event-id: 99]
    """,
    on=(HttpUnit,),
)
def unknown_event_id(remark: HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a `Last-Event-ID` that no event of the session had."""
    place = asks(remark)
    wanted = header(place.opened.head, "last-event-id") if place else None
    if place is None or not wanted or place.resumes or session.lossy or remark.session.partial:
        return
    if place.summary["method"] == "GET" and place.never_delivered:
        yield Fault(f"Last-Event-ID is {excerpt(wanted)}; no event of the session has this id")


@rule(
    "http/event-id-reused",
    "error",
    """Two events of a session have the same id: it must be unique across all streams of the session, because a client
    uses it to resume a stream. An event that is sent again after a resumption keeps its id. Reported once per
    session.""",
    fix="Make event ids unique in the session, for example from the id of the stream and a counter.",
    blame="server",
    spec=_RESUMING,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [id: 1] 2 = {"tools":[]}
        >> 3 tools/list
        << 200 events
        <- [id: 1] 3 = {"tools":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [id: 1] notifications/tools/list_changed
        <- [id: 2] 2 = {"tools":[]}
        >> GET [last-event-id: 1]
        << 200 events
        <- [id: 2] 2 = {"tools":[]}
    """,
    on=(*EVERY, HttpUnit),
)
def event_id_reused(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report two events with the same id."""
    before = event.http.repeated.get(event.n) if event.http else None
    if before and event.http and not is_resumed(event.http) and session.once("event-id-reused"):
        yield Fault(f"the event has the same id as #{before.n}", related=(before.n,))


@rule(
    "http/replayed-elsewhere",
    "error",
    """A resumed stream repeats an event of another stream. A server must send again only the events of the stream that
    was disconnected. An event of another stream belongs on that stream only.""",
    fix="Keep the events of each stream apart, and send again only those of the stream that has the `Last-Event-ID`.",
    meanwhile="Skip an event whose id you have received before.",
    blame="server",
    spec=_RESUMING,
    about="http",
    revisions=HTTP_SESSIONS,
    fails="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [id: a1]
        >> 3 prompts/list
        << 200 events
        <- [id: b1] 3 = {"prompts":[]}
        >> GET [last-event-id: a1]
        << 200 events
        <- [id: b1] 3 = {"prompts":[]}
    """,
    passes="""
        = 2025-06-18 http
        >> 2 tools/list
        << 200 events
        <- [id: a1]
        <- [id: a2] 2 = {"tools":[]}
        >> GET [last-event-id: a1]
        << 200 events
        <- [id: a2] 2 = {"tools":[]}
    """,
    on=(*EVERY, HttpUnit),
)
def replayed_elsewhere(event: Message | HttpUnit, session: Session) -> Iterator[Fault]:
    """Report a repeated event that belongs to another stream."""
    place = event.http
    before = place.repeated.get(event.n) if place else None
    if before and place and place.resumes and before.stream != place.resumes.stream:
        yield Fault(f"the resumed stream repeats event #{before.n} of another stream", related=(before.n,))
