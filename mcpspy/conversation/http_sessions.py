"""MCP over HTTP: which bodies, events and frames are messages, and to which session they belong.

Streamable HTTP (2025-03-26 and later), the HTTP+SSE of 2024-11-05, WebSocket. Each request and each response is a
channel of its own; a response channel `answers` its request's, both directions of a WebSocket answer the upgrade.

Sessions. A session id (`Mcp-Session-Id`, or the `session_id` of legacy SSE) names one. An `initialize` begins one, and
the head of its response tells its id. What has no id belongs to the client that its peer's host and its own words tell
it to be. In 2026-07-28 there are no sessions: a "session" there is no more than one client, of which nothing is called
missing.

Sessions end by a DELETE, or are left; those used last are remembered (`mcpspy.conversation.recent`), so that what late
frames belong to is known. No record takes longer for the sessions that were before it.

Resumption. A client whose stream broke asks for the rest of it by GET and the id of the last event that it received
(`Last-Event-ID`); what it is sent again was recorded when it was sent first, and is no second message.

OAuth, health checks and pages also pass here: a body is taken for a message only if it looks like one, or was asked for
as one. What is no message is a `Remark`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import orjson

from mcpspy.capture.records import Close, Frame, Omitted, Open
from mcpspy.conversation.recent import Recent
from mcpspy.conversation.session import Delivery, Message, Session
from mcpspy.spec.revisions import PROTOCOL_VERSION, STATELESS, Revision
from mcpspy.wire.http_head import Head, header, media_type, query, stands_alone, status, title
from mcpspy.wire.jsonrpc import Body, Request, Undecoded
from mcpspy.wire.outline import outline
from mcpspy.wire.sse import Event, parse_event

_LEGACY_ID = ("session_id", "sessionId")
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_FAILURE = 400  # and above: the statuses of failure
_DELETED = (200, 204)  # the statuses that end a session in answer to a DELETE
_UPGRADED = 101  # the status of a response after which a WebSocket begins
_NAMES = 16  # by which a session is found
_UNANSWERED = 4096  # requests without a response that are remembered, once they have come whole
_ID, _CLIENT = "id", "client"  # what a name is
_ENDPOINTS = 64  # paths of legacy SSE that are remembered
_REPEATED = 100  # events of a stream with an id that was used before


@dataclass(slots=True)
class Remark:
    """What is worth a row and no message: an HTTP head, body, SSE event or WebSocket frame without one."""

    n: int
    t: int
    ch: int
    sender: str
    kind: str
    """http or event."""
    text: str
    place: "Place"
    revision: Revision | None
    frame: Frame | None = None
    """None of a head, and of the end of a channel."""
    damage: str | None = None
    """At the end of a channel: why its content coding could not be undone."""

    part = 0
    exchange = None

    @property
    def raw(self) -> bytes:
        """The frame; empty where there is none."""
        return self.frame.raw if self.frame else b""

    @property
    def session(self) -> Session:
        """The session that the channel belongs to."""
        return self.place.session

    @property
    def http(self) -> dict[str, Any]:
        """As of a message."""
        return self.place.http


@dataclass(slots=True)
class Place:
    """A channel, and what is known of it."""

    opened: Open
    session: Session
    http: dict[str, Any]
    sender: str
    revision: Revision | None = None
    """What the transport tells of the revision."""
    asked: "Place | None" = None
    """Of a response: its request."""
    named: bool = False
    """The request names its session."""
    legacy: bool = False
    """It belongs to the HTTP+SSE of 2024-11-05, whatever revision is spoken over it."""
    carried: list[Message] = field(default_factory=list)
    """The messages that came over a request."""
    first: int | None = None
    """The line number of the first that came out of it: a message or a remark."""
    resumes: Delivery | None = None
    """The event after which the client wants a stream to go on, where one had that id."""
    repeated: dict[int, Delivery] = field(default_factory=dict)
    """By line number: events that have the id of an earlier one."""

    @property
    def answers(self) -> int | None:
        """The channel of the request."""
        return self.asked.opened.ch if self.asked else None

    @property
    def failed(self) -> bool:
        """It is an answer with a status of failure."""
        return status(self.opened.head) >= _FAILURE

    @property
    def spoken(self) -> Revision | None:
        """The revision as far as the transport and what was asked tell."""
        asked = self.asked.carried if self.asked else self.carried
        return (asked[0].revision if asked else None) or self.session.negotiated or self.revision


@dataclass(slots=True)
class _Known:
    """How a session is found."""

    number: int
    """How many sessions began before it."""
    names: dict[tuple[str, str], None] = field(default_factory=dict)
    """Keys of the table of names."""


class Web:
    """The HTTP channels of one capture. `drop` is called with a session of which nothing is remembered any more."""

    def __init__(self, drop: Callable[[Session], None]) -> None:
        self._places: dict[int, Place] = {}
        self._unanswered: OrderedDict[int, None] = OrderedDict()  # channels of whole requests
        self._known: Recent[Session, _Known] = Recent(lambda session, _: session.rest(), self._drop)
        self._forget = drop
        self._begun = 0  # sessions
        self._names: dict[tuple[str, str], Session] = {}
        """By `_ID` and the session id, or by `_CLIENT` and what tells clients without one apart."""
        self._endpoints: dict[str, None] = {}  # the paths that legacy SSE posts to

    def sessions(self) -> list[Session]:
        """Every session that is remembered, the oldest first."""
        found = zip(self._known, self._known.values(), strict=True)
        return [session for session, _ in sorted(found, key=lambda pair: pair[1].number)]

    def place(self, ch: int) -> Place | None:
        """What is known of a channel; None for one that is not HTTP."""
        return self._places.get(ch)

    def open(self, opened: Open) -> Iterator[Remark]:
        """Take a new channel; yield its head, where that says all there is."""
        asked = self._places.get(opened.answers) if opened.answers is not None else None
        place = self._answer(opened, asked) if asked else self._request(opened)
        self._places[opened.ch] = place
        self._use(place.session)
        if opened.head and stands_alone(opened.head, asked.opened.head if asked else None):
            place.first = opened.n
            yield _remark(opened, place, place.sender, "http", title(opened.head))

    def close(self, closed: Close) -> Iterator[Remark]:
        """Take the end of a channel; yield why what came over it could not be decoded, where that is so.

        A client that leaves a response has cancelled what it was for (2026-07-28); a status of failure refuses it.
        """
        place = self._places.get(closed.ch)
        if place is None:
            return
        if closed.undecoded:
            text = f"not decoded: {closed.reason}"
            yield replace(_remark(closed, place, place.sender, "http", text), damage=closed.reason)
        asked = place.asked
        if asked is None:
            self._wait(closed.ch)  # a request is remembered until it is answered
            return
        if place.failed:
            place.session.refuse(asked.carried)
        if closed.how == "abort":
            for exchange in place.session.asked_by(asked.carried):
                exchange.cancelled = exchange.cancelled or exchange.revision in STATELESS
        if asked.http["method"] == "DELETE" and place.http["status"] in _DELETED:
            self._known.finish(place.session)
        del self._places[closed.ch]
        if place.opened.role == "response" and place.http["status"] != _UPGRADED:
            self._places.pop(asked.opened.ch, None)
            self._unanswered.pop(asked.opened.ch, None)

    def read(self, frame: Frame, place: Place) -> Iterator[Frame | Remark]:
        """What a frame is: a message's bytes as a frame, or a remark."""
        framing = place.opened.framing
        place.first = place.first or frame.n
        self._use(place.session)
        if framing == "sse":
            yield self._event(frame, place)
        elif framing == "message":
            control = frame.op in ("ping", "pong")
            yield _of_frame(frame, place, "event", frame.op or "") if control else frame
        elif self._is_message(frame, place):
            yield frame
        else:
            text = f"{title(place.opened.head or {})}: {frame.raw[:200].decode(errors='replace')}"
            yield _of_frame(frame, place, "http", text)

    def session(self, place: Place, body: Body | Undecoded) -> Session:
        """The session that a message on a channel belongs to."""
        if place.answers is not None or not isinstance(body, Request) or place.named:
            return place.session
        if body.method == "initialize":
            key = _client(place.opened)
            before = self._names.get((_CLIENT, key))
            place.session = self._name((_CLIENT, key), Session())
            # where the server gives no ids, what the client before says from now on cannot be told from this one's
            place.session.partial = before is not None and before.begun and before.name is None
        else:
            meta = body.params.get("_meta") if isinstance(body.params, dict) else None
            if isinstance(meta, dict) and PROTOCOL_VERSION in meta:
                place.session = self._client(f"{_client(place.opened)} {meta.get(_CLIENT_INFO)!r}"[:1000])
        return place.session

    def _request(self, opened: Open) -> Place:
        head = opened.head or {}
        target = str(head.get("target", ""))
        http = {"method": head.get("method"), "target": target, "status": None}
        name = header(head, "mcp-session-id")
        legacy = None if name else query(target, *_LEGACY_ID) or self._endpoint(target, head)
        stated = Revision.of(header(head, "mcp-protocol-version"))
        if not (name or legacy):
            return Place(opened, self._client(_client(opened)), http, opened.sender, stated)
        session = self._session_named(str(name or legacy))
        fallback = Revision.R2024_11_05 if legacy else Revision.R2025_03_26
        place = Place(opened, session, http, opened.sender, stated or fallback, named=True, legacy=legacy is not None)
        place.resumes = session.events.get(header(head, "last-event-id") or "")
        return place

    def _endpoint(self, target: str, head: Head) -> str | None:
        """The path of legacy SSE that a request goes to; a client of Streamable HTTP would take events in answer."""
        path = target.partition("?")[0]
        streamable = "text/event-stream" in (header(head, "accept") or "")
        return None if streamable else next((known for known in self._endpoints if path.endswith(known)), None)

    def _answer(self, opened: Open, asked: Place) -> Place:
        """A response, or a direction of a WebSocket."""
        head = opened.head or {}
        http = asked.http | ({"status": head["status"]} if "status" in head else {})
        name = header(head, "mcp-session-id")
        if name and (_ID, name) not in self._names:
            asked.session.name = name
            asked.session.partial = not asked.session.begun  # what else it says will bear its name
            self._name((_ID, name), asked.session)
        if opened.role == "ws" and self._names.get((_CLIENT, _client(asked.opened))) is asked.session:
            asked.session = Session()  # a connection is a session
        sender = "client" if opened.sender == "client" else "server"
        place = Place(opened, asked.session, http, sender, asked.revision, asked, asked.named, asked.legacy)
        place.resumes = asked.resumes
        return place

    def _event(self, frame: Frame, place: Place) -> Frame | Remark:
        """The message of an SSE event, if it has one; a client discards an event that is cut."""
        event = parse_event(frame.raw)
        sent_before = self._delivered(frame, event, place)
        if sent_before:
            data = (event.data or b"").decode(errors="replace")
            return _of_frame(frame, place, "event", f"#{sent_before.n} again: {data}")
        if event.data and event.name == "message" and not frame.cut:
            return replace(frame, raw=event.data, omitted=_without_lines(frame.omitted))
        data = (event.data or b"").decode(errors="replace")
        if event.name == "endpoint":
            self._take_endpoint(data, place)
        comments = "".join(f": {comment}" for comment in event.comments)
        text = f"{event.name}: {data}" if data or event.name != "message" else comments or "an event without data"
        return _of_frame(frame, place, "event", f"{text} (cut)" if frame.cut else text)

    def _take_endpoint(self, url: str, place: Place) -> None:
        """A client of legacy SSE learns where to post: by an id in the query, or a path, its session is known there."""
        place.legacy = True
        path = urlsplit(url).path.rpartition("./")[2]
        name = query(url, *_LEGACY_ID)
        if name is None and path.strip("/") and len(self._endpoints) < _ENDPOINTS:
            self._endpoints[path] = None
            self._names.pop((_ID, path), None)  # that of a client before
            name = path
        if name and (_ID, name) not in self._names:
            place.session = self._name((_ID, name), Session(name))
            place.revision = Revision.R2024_11_05

    def _delivered(self, frame: Frame, event: Event, place: Place) -> Delivery | None:
        """Remember an event that has an id; returns the one that it repeats, if it does so for a stream resumed."""
        if not event.id or frame.cut or place.legacy or place.session.name is None:
            return None
        stream = place.resumes.stream if place.resumes else place.answers or frame.ch
        data = hash(event.data)
        known = place.session.deliver(event.id, Delivery(frame.n, data, stream))
        if known and len(place.repeated) < _REPEATED:
            place.repeated[frame.n] = known
        return known if known and known.data == data and is_resumed(place) else None

    def _is_message(self, frame: Frame, place: Place) -> bool:
        """Whether a body is one or more messages, or was meant to be."""
        asked = place.asked
        if frame.omitted:
            return not isinstance(outline(frame.raw, frame.omitted.tail), Undecoded)
        try:
            value = orjson.loads(frame.raw)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, list) or (isinstance(value, dict) and "jsonrpc" in value):
            return True
        head = place.opened.head
        if asked:
            return bool(asked.carried) and place.http.get("status") == 200 and media_type(head) == "application/json"
        accepts = header(head, "accept") or ""
        return place.session.name is not None or ("text/event-stream" in accepts and "application/json" in accepts)

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
        """Take it that a session goes on; one that was dropped may have a stream that is open."""
        return self._known.use(session) or self._add(session)

    def _name(self, name: tuple[str, str], session: Session) -> Session:
        """Let a session be found by one more name; a server may make up any number."""
        names = self._use(session).names
        names[name] = None
        self._names[name] = session
        if len(names) > _NAMES:
            oldest = next(known for known in names if known[0] == _ID)
            del names[oldest]
            self._unname(oldest, session)
        return session

    def _unname(self, name: tuple[str, str], session: Session) -> None:
        if self._names.get(name) is session:
            del self._names[name]

    def _drop(self, session: Session, known: _Known) -> None:
        for name in known.names:
            self._unname(name, session)
        self._forget(session)

    def _wait(self, ch: int) -> None:
        """Remember a request whose response may come; of very many the oldest is forgotten."""
        self._unanswered[ch] = None
        if len(self._unanswered) > _UNANSWERED:
            self._places.pop(self._unanswered.popitem(last=False)[0], None)


def is_resumed(place: Place) -> bool:
    """Whether a response is a stream that its client has asked to go on after an event (2025-03-26)."""
    return place.asked is not None and header(place.asked.opened.head, "last-event-id") is not None


def _of_frame(frame: Frame, place: Place, kind: str, text: str) -> Remark:
    return replace(_remark(frame, place, frame.sender or place.sender, kind, text), frame=frame)


def _remark(record: Open | Frame | Close, place: Place, sender: str, kind: str, text: str) -> Remark:
    return Remark(record.n, record.t, record.ch, sender, kind, text, place, place.spoken)


def _client(opened: Open) -> str:
    """What tells clients without a session apart: the host that they come from, and what they call themselves."""
    host = (opened.peer or "").rpartition(":")[0]
    return f"{host} {header(opened.head, 'user-agent') or ''}"


def _without_lines(omitted: Omitted | None) -> Omitted | None:
    """The end of the data of a large SSE event, without what stands before it on its line, and the newline."""
    return omitted and replace(omitted, tail=omitted.tail.rstrip().rpartition(b"\ndata:")[2])
