"""MCP over HTTP: which bodies, events and frames are messages, and which session they belong to.

This covers Streamable HTTP (2025-03-26 and later), the HTTP+SSE of 2024-11-05, and WebSocket. Each request and each
response is a channel of its own. A response channel `answers` its request. Both directions of a WebSocket answer the
upgrade request.

Sessions. A session id (`Mcp-Session-Id`, or the `session_id` of legacy SSE) names a session. An `initialize` request
begins one, and the head of its response contains the id. Messages without an id are assigned to a client, which is
recognised by the host of its peer and by its `User-Agent` or `clientInfo`. In 2026-07-28 there are no sessions. There,
a "session" only stands for one client, and nothing in it is reported as missing.

A session ends with a DELETE, or its client stops using it. The sessions that were used last are remembered
(`mcpspy.conversation.bounds`), so that late frames find theirs. The time for a record does not depend on the number of
earlier sessions.

Resumption. A client whose stream broke requests the rest by a GET with the id of the last event that it received
(`Last-Event-ID`). An event that is sent again was recorded when it was sent first, and is not a second message.

OAuth, health checks and web pages pass through the same channels. A body is a message only if it looks like one, or if
the heads show that one is expected. Everything else is an `HttpUnit`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import orjson

from mcpspy.capture.records import Close, Frame, Omitted, Open
from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import Recent
from mcpspy.conversation.facts import Delivery
from mcpspy.conversation.model import ENDLESS, Exchange, Fate, HttpChannel, HttpUnit, Session, StreamEnd
from mcpspy.conversation.outcomes import Outcomes
from mcpspy.conversation.pairing import refuse, unanswered
from mcpspy.conversation.refusals import body_text
from mcpspy.json_values import text_of
from mcpspy.spec.revisions import PROTOCOL_VERSION, STATELESS, Revision
from mcpspy.wire.http_head import LEGACY_SESSION, Head, header, media_type, query, stands_alone, status, title
from mcpspy.wire.jsonrpc import Body, Request, Undecoded, outline
from mcpspy.wire.sse import Event, parse_event

_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_DELETED = (200, 204)  # the statuses by which a DELETE ends a session
_NAMED = 100  # characters shown of the id of an event
_OK, _REDIRECTION = 200, 300
_UPGRADED = 101  # the status of a response that begins a WebSocket
_ID, _CLIENT = "id", "client"  # the kinds of names


@dataclass(slots=True)
class _Known:
    """How to find a session."""

    number: int
    """The number of sessions that began before it."""
    names: dict[tuple[str, str], None] = field(default_factory=dict)
    """Its keys in the table of names."""
    events: dict[str, Delivery] = field(default_factory=dict)
    """Its last SSE events that have an id."""


class HttpSessions:
    """The HTTP channels of one capture.

    `rest` is called with a session that was idle for long and was reduced, `drop` with one that is forgotten.
    """

    def __init__(self, outcomes: Outcomes, rest: Callable[[Session], None], drop: Callable[[Session], None]) -> None:
        self._outcomes = outcomes
        self._channels: dict[int, HttpChannel] = {}
        self._unanswered: OrderedDict[int, None] = OrderedDict()  # channels of complete requests
        self._known: Recent[Session, _Known] = Recent(self._rest, self._drop)
        self._rested = rest
        self._forget = drop
        self._begun = 0  # number of sessions
        self._names: dict[tuple[str, str], Session] = {}
        """The key is `_ID` and the session id, or `_CLIENT` and the text that distinguishes clients without an id."""
        self._endpoints: dict[str, None] = {}  # the paths of legacy SSE for POST
        self._preflights: dict[tuple[str, str | None, str], HttpChannel] = {}  # by client, method and target

    def sessions(self) -> list[Session]:
        """Return all remembered sessions, the oldest first."""
        found = zip(self._known, self._known.values(), strict=True)
        return [session for session, _ in sorted(found, key=lambda pair: pair[1].number)]

    def requests(self) -> Iterator[tuple[HttpChannel, HttpChannel | None]]:
        """Yield the known HTTP requests without an answer, and those whose answer has not ended, with the answer."""
        answers = {channel.answers: channel for channel in self._channels.values() if channel.request}
        for ch, channel in self._channels.items():
            if channel.request is None:
                yield channel, answers.get(ch)

    def channel(self, ch: int) -> HttpChannel | None:
        """Return the state of a channel, or None if it is not HTTP."""
        return self._channels.get(ch)

    def open(self, opened: Open) -> Iterator[HttpUnit]:
        """Open a channel; yield its head if the head is all that it contains."""
        request = self._channels.get(opened.answers) if opened.answers is not None else None
        channel = self._answer(opened, request) if request else self._request(opened)
        if request is None and (self._preflights or channel.summary["method"] == "OPTIONS"):
            self._follow_preflight(channel)
        self._channels[opened.ch] = channel
        self._use(channel.session)
        if opened.head and stands_alone(opened.head, request.opened.head if request else None):
            channel.first = opened.n
            text = title(opened.head) + (_resumption(channel) if request is None else "")
            yield _unit(opened, channel, channel.sender, "http", text)
        self._outcomes.opened(channel, opened.t)

    def close(self, closed: Close) -> Iterator[HttpUnit | StreamEnd]:
        """Close a channel; yield the reason if its content could not be decoded, or else the end of a stream.

        In 2026-07-28, a client that leaves a response cancels the request. A status of failure refuses the request.
        """
        channel = self._channels.get(closed.ch)
        if channel is None:
            return
        if closed.undecoded:
            channel.damaged = True
            text = f"not decoded: {closed.reason}"
            yield replace(_unit(closed, channel, channel.sender, "http", text), damage=closed.reason)
        request = channel.request
        if request is None:
            self._wait(closed.ch)  # a request is remembered until it is answered
            return
        ended = _end_of_stream(channel, request, closed)
        _end_waiting(channel, request, closed)
        for exchange, fate in _fates(channel, request, closed):
            self._outcomes.ended(exchange, fate)
        if channel.failed or channel.redirects:
            refuse(unanswered(request.carried, channel.session), channel.session)
        self._outcomes.closed(channel, closed.how, closed.t)
        if request.summary["method"] == "DELETE" and channel.summary["status"] in _DELETED:
            self._known.finish(channel.session)
        del self._channels[closed.ch]
        if channel.opened.role == "response" and channel.summary["status"] != _UPGRADED:
            self._channels.pop(request.opened.ch, None)
            self._unanswered.pop(request.opened.ch, None)
        if ended:
            yield ended

    def read(self, frame: Frame, channel: HttpChannel) -> Frame | HttpUnit:
        """Return the frame of a message, or an `HttpUnit` if the frame is not a message."""
        framing = channel.opened.framing
        channel.first = channel.first or frame.n
        if channel.request:
            channel.request.latest = frame.t
        self._use(channel.session)
        if framing == "sse":
            return self._event(frame, channel)
        if framing == "message":
            control = frame.op in ("ping", "pong")
            return _of_frame(frame, channel, "event", frame.op or "") if control else frame
        if channel.request and channel.failed:
            channel.said = body_text(frame.raw)
        if self._is_message(frame, channel):
            return frame
        text = f"{title(channel.opened.head or {})}: {frame.raw[:200].decode(errors='replace')}"
        return _of_frame(frame, channel, "http", text)

    def session(self, channel: HttpChannel, body: Body | Undecoded) -> Session:
        """Return the session that a message on a channel belongs to."""
        if channel.answers is not None or not isinstance(body, Request) or channel.named:
            return channel.session
        if body.method == "initialize":
            key = _client(channel.opened)
            before = self._names.get((_CLIENT, key))
            if before:
                before.renewed = True
            channel.session = self._name((_CLIENT, key), Session())
            # if the server sends no ids, later messages of the earlier client cannot be distinguished from those of
            # this one
            channel.session.partial = before is not None and before.begun and before.name is None
        else:
            meta = body.params.get("_meta") if isinstance(body.params, dict) else None
            if isinstance(meta, dict) and PROTOCOL_VERSION in meta:
                info = meta.get(_CLIENT_INFO)
                # the user agent names the HTTP library, and one client may use two of them
                client = _client(channel.opened) if info is None else _host(channel.opened)
                channel.session = self._client(f"{client} {text_of(info)}"[:1000])
        return channel.session

    def _request(self, opened: Open) -> HttpChannel:
        head = opened.head or {}
        target = str(head.get("target", ""))
        summary = {"method": head.get("method"), "target": target, "status": None}
        name = header(head, "mcp-session-id")
        legacy = None if name else query(target, *LEGACY_SESSION) or self._endpoint(target, head)
        stated, last_event = Revision.of(header(head, "mcp-protocol-version")), header(head, "last-event-id")
        if not (name or legacy):
            session = self._client(_client(opened))
            channel = HttpChannel(opened, session, summary, opened.sender, stated, _client(opened))
            channel.resuming = last_event is not None
            return channel
        session = self._session_named(str(name or legacy))
        fallback = Revision.R2024_11_05 if legacy else Revision.R2025_03_26
        client, revision = _client(opened), stated or fallback
        channel = HttpChannel(opened, session, summary, opened.sender, revision, client, named=True)
        channel.legacy, channel.resuming = legacy is not None, last_event is not None
        if last_event:
            events = self._use(session).events
            channel.resumes = events.get(last_event)
            channel.never_delivered = channel.resumes is None and len(events) < bounds.EXCHANGES
        return channel

    def _follow_preflight(self, channel: HttpChannel) -> None:
        """Remember a preflight until its request follows, or the next preflight for it."""
        asks, method = channel.summary["method"] == "OPTIONS", channel.summary["method"]
        method = header(channel.opened.head, "access-control-request-method") if asks else method
        key = channel.client, method, channel.summary["target"]
        before = self._preflights.pop(key, None)
        if before:
            before.followed = True
        if asks:
            bounds.keep(self._preflights, key, channel)

    def _endpoint(self, target: str, head: Head) -> str | None:
        """Return the path of legacy SSE that a request goes to.

        None for a client of Streamable HTTP, which accepts `text/event-stream`.
        """
        path = target.partition("?")[0]
        streamable = "text/event-stream" in (header(head, "accept") or "")
        return None if streamable else next((known for known in self._endpoints if path.endswith(known)), None)

    def _answer(self, opened: Open, request: HttpChannel) -> HttpChannel:
        """Return the channel of a response, or of one direction of a WebSocket."""
        head = opened.head or {}
        summary = request.summary | ({"status": head["status"]} if "status" in head else {})
        name = header(head, "mcp-session-id")
        session = request.session
        if name and (_ID, name) not in self._names:
            session.name = name
            session.partial = not session.begun  # its later requests will carry its name
            self._name((_ID, name), session)
        if opened.role == "ws" and self._names.get((_CLIENT, _client(request.opened))) is session:
            session = request.session = Session()  # each WebSocket connection is a session
        sender = "client" if opened.sender == "client" else "server"
        channel = HttpChannel(opened, session, summary, sender, request.revision, request.client, request)
        channel.named, channel.legacy, channel.resumes = request.named, request.legacy, request.resumes
        return channel

    def _event(self, frame: Frame, channel: HttpChannel) -> Frame | HttpUnit:
        """Return the message of an SSE event, if it has one; clients discard an event that is truncated."""
        event = parse_event(frame.raw)
        channel.spoke = channel.spoke or bool(event.data or event.id or event.comments)
        sent_before = self._delivered(frame, event, channel)
        if sent_before:
            data = (event.data or b"").decode(errors="replace")
            return _of_frame(frame, channel, "event", f"#{sent_before.n} again: {data}")
        if event.data and event.name == "message" and not frame.cut:
            return replace(frame, raw=event.data, omitted=_without_lines(frame.omitted))
        data = (event.data or b"").decode(errors="replace")
        if event.name == "endpoint":
            self._take_endpoint(data, channel)
            self._outcomes.took_endpoint(channel, frame.t)
        comments = "".join(f": {comment}" for comment in event.comments)
        text = f"{event.name}: {data}" if data or event.name != "message" else comments or "an event without data"
        return _of_frame(frame, channel, "event", f"{text} (cut)" if frame.cut else text)

    def _take_endpoint(self, url: str, channel: HttpChannel) -> None:
        """Learn where a client of legacy SSE posts to; its session is known there by an id in the query, or a path."""
        channel.legacy = True
        path = urlsplit(url).path.rpartition("./")[2]
        name = query(url, *LEGACY_SESSION)
        if name is None and path.strip("/") and len(self._endpoints) < bounds.ENDPOINTS:
            self._endpoints[path] = None
            self._names.pop((_ID, path), None)  # it belongs to an earlier client
            name = path
        if name and (_ID, name) not in self._names:
            channel.session = self._name((_ID, name), Session(name))
            channel.revision = Revision.R2024_11_05

    def _delivered(self, frame: Frame, event: Event, channel: HttpChannel) -> Delivery | None:
        """Remember an event that has an id; return the event that it repeats, if its stream was resumed."""
        channel.resumable = channel.resumable or bool(event.id)
        if not event.id or frame.cut or channel.legacy or channel.session.name is None:
            return None
        stream = channel.resumes.stream if channel.resumes else channel.answers or frame.ch
        data = hash(event.data)
        events = self._use(channel.session).events
        known = events.get(event.id)
        if known is None:
            events[event.id] = Delivery(frame.n, data, stream)
            if len(events) > bounds.EXCHANGES:
                bounds.forget(events)
        if known and len(channel.repeated) < bounds.REPEATED_EVENTS:
            channel.repeated[frame.n] = known
        return known if known and known.data == data and is_resumed(channel) else None

    def _is_message(self, frame: Frame, channel: HttpChannel) -> bool:
        """Return whether a body is one or more messages, or is meant to be."""
        if frame.omitted:
            return not isinstance(outline(frame.raw, frame.omitted.tail), Undecoded)
        try:
            value = orjson.loads(frame.raw)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, list) or (isinstance(value, dict) and "jsonrpc" in value):
            return True
        head = channel.opened.head
        if channel.request:
            carried, code = channel.request.carried, channel.summary.get("status")
            return bool(carried) and code == 200 and media_type(head) == "application/json"
        accepts = header(head, "accept") or ""
        return channel.session.name is not None or ("text/event-stream" in accepts and "application/json" in accepts)

    def _session_named(self, name: str) -> Session:
        session = self._names.get((_ID, name))
        if session is None:  # it began before the capture did
            session = self._name((_ID, name), Session(name))
            session.partial = True
        return session

    def _client(self, key: str) -> Session:
        session = self._names.get((_CLIENT, key))
        if session is None:
            session = self._name((_CLIENT, key), Session())
            session.partial = True
        return session

    def _add(self, session: Session) -> _Known:
        self._begun += 1
        known = _Known(self._begun)
        self._known.add(session, known)
        return known

    def _use(self, session: Session) -> _Known:
        """Mark a session as in use; a dropped session may still have an open stream."""
        return self._known.use(session) or self._add(session)

    def _name(self, name: tuple[str, str], session: Session) -> Session:
        """Add a name by which a session is found; a server may invent any number, so old names are dropped."""
        names = self._use(session).names
        names[name] = None
        self._names[name] = session
        if len(names) > bounds.NAMES:
            oldest = next(known for known in names if known[0] == _ID)
            del names[oldest]
            self._unname(oldest, session)
        return session

    def _unname(self, name: tuple[str, str], session: Session) -> None:
        if self._names.get(name) is session:
            del self._names[name]

    def _rest(self, session: Session, known: _Known) -> None:
        session.rest()
        known.events.clear()
        self._rested(session)

    def _drop(self, session: Session, known: _Known) -> None:
        for name in known.names:
            self._unname(name, session)
        self._forget(session)

    def _wait(self, ch: int) -> None:
        """Remember a request that waits for its response; if there are too many, forget the oldest."""
        self._unanswered[ch] = None
        if len(self._unanswered) > bounds.UNANSWERED:
            self._channels.pop(self._unanswered.popitem(last=False)[0], None)


def is_resumed(channel: HttpChannel) -> bool:
    """Return whether a response is a stream that its client resumed after an event (2025-03-26)."""
    return channel.request is not None and channel.request.resuming


def _resumption(channel: HttpChannel) -> str:
    """Return after which event a request resumes a stream: the number of its frame, or its id."""
    if channel.resumes:
        return f" resumes after #{channel.resumes.n}"
    last_event = header(channel.opened.head, "last-event-id")
    return f" resumes after event {last_event[:_NAMED]}" if last_event else ""


def _end_of_stream(channel: HttpChannel, request: HttpChannel, closed: Close) -> StreamEnd | None:
    """Return the end of an answer that could have brought more, or of a WebSocket; None for other channels.

    These are the stream of a GET, that of a POST without its response, and an answer whose head did not arrive. The
    direction of a WebSocket that ends first shows how it ended.
    """
    opened, began = channel.opened, channel.opened.t
    open_requests = unanswered(request.carried, channel.session)
    if closed.undecoded or request.ended:
        return None
    if opened.role == "ws":
        request.ended = True
    elif opened.head is None:
        began = request.opened.t
    elif not (channel.streams and (open_requests or request.summary["method"] == "GET")):
        return None
    waiting = tuple(it.request.n for it in open_requests if it.method != ENDLESS)
    return StreamEnd(opened, closed, channel.session, channel.spoken, began, request.latest, channel, waiting)


def _end_waiting(channel: HttpChannel, request: HttpChannel, closed: Close) -> None:
    """Learn who left first, for the exchanges that have no response when a channel ends."""
    opened = channel.opened
    waiting = [it for it in _waiting(channel, request) if it.left is None and it.lost is None]
    if _is_whole(channel, request):
        lost = closed.how == "reset"  # either side may have begun to close it in order
    else:
        lost = closed.how == "reset" or channel.unreached or (closed.how == "eof" and channel.mute)
    by_client = ("abort",) if channel.sender == "server" else ("eof", "reset")
    for exchange in waiting:
        if lost and channel.sender == "server" and exchange.method != ENDLESS:
            exchange.lost = opened.n
        elif closed.how in by_client:
            _leave(exchange, closed.t, answered=opened.head is not None)


def _is_whole(channel: HttpChannel, request: HttpChannel) -> bool:
    """Return whether a channel brings all responses of its session."""
    return channel.opened.role == "ws" or (channel.legacy and request.summary["method"] == "GET")


def _waiting(channel: HttpChannel, request: HttpChannel) -> list[Exchange]:
    """Return the exchanges that wait for a response on a channel."""
    if _is_whole(channel, request):
        return [it for it in channel.session.exchanges() if it.request.sender == "client"]
    return unanswered(request.carried, channel.session)


def _fates(channel: HttpChannel, request: HttpChannel, closed: Close) -> Iterator[tuple[Exchange, Fate]]:
    """Yield the exchanges that wait for a response on a channel, with what its end means for them."""
    n, whole = channel.first or channel.opened.n, _is_whole(channel, request)
    end = _end_of_session(channel, closed) if whole else _end_of_answer(channel, closed)
    if not end:
        return
    for exchange in list(channel.session.exchanges()) if whole else _waiting(channel, request):
        how = "gone" if exchange.request.side == "server" else end
        yield exchange, Fate(how, n, closed.t, closed.how, channel)


def _end_of_session(channel: HttpChannel, closed: Close) -> str:
    """Return which side ended a WebSocket, or the stream of HTTP+SSE: the channel that closes first shows it."""
    by_sender, by_receiver = closed.how in ("eof", "reset"), closed.how == "abort"
    by_client, by_server = (by_receiver, by_sender) if channel.sender == "server" else (by_sender, by_receiver)
    return "gone" if by_client else "broken" if by_server else ""


def _end_of_answer(channel: HttpChannel, closed: Close) -> str:
    """Return what the end of the answer to a POST means for the requests in it: a value of `Fate.how`, or nothing."""
    code = status(channel.opened.head)
    accepted = channel.legacy and _OK <= code < _REDIRECTION  # the response comes on the stream of HTTP+SSE
    if channel.sender != "server" or accepted or closed.how == "shutdown":
        return ""
    if code >= _REDIRECTION:
        return "refused"
    if closed.how == "abort":
        return "left"
    if channel.damaged:
        return "not-decoded"
    if channel.streams and channel.spoke:
        return "cut" if channel.resumable else "broken"
    return "broken" if closed.how == "reset" else "refused"


def _leave(exchange: Exchange, t: int, *, answered: bool) -> None:
    """Record that the client closed the response to a request; in 2026-07-28 that cancels the request.

    There, `left` stays None if the response had begun (`answered`).
    """
    cancels = exchange.revision in STATELESS
    if not exchange.cancelled and not (cancels and answered):
        exchange.left = t
    exchange.cancelled = exchange.cancelled or cancels


def _of_frame(frame: Frame, channel: HttpChannel, kind: str, text: str) -> HttpUnit:
    return replace(_unit(frame, channel, frame.sender or channel.sender, kind, text), frame=frame)


def _unit(record: Open | Frame | Close, channel: HttpChannel, sender: str, kind: str, text: str) -> HttpUnit:
    return HttpUnit(record.n, record.t, record.ch, sender, kind, text, channel, channel.spoken)


def _client(opened: Open) -> str:
    """Return what distinguishes clients without a session: the host of the peer, and the `User-Agent`."""
    return f"{_host(opened)} {header(opened.head, 'user-agent') or ''}"


def _host(opened: Open) -> str:
    return (opened.peer or "").rpartition(":")[0]


def _without_lines(omitted: Omitted | None) -> Omitted | None:
    """Return the end of the data of a large SSE event, without the `data:` before it and the newline."""
    return omitted and replace(omitted, tail=omitted.tail.rstrip().rpartition(b"\ndata:")[2])
