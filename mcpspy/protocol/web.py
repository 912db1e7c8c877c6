"""MCP over HTTP: which bodies, events and frames are messages, and to which session they belong.

Streamable HTTP (2025-03-26 and later), the HTTP+SSE of 2024-11-05, WebSocket. Each request and each response is a
channel of its own; a response channel `answers` its request's, both directions of a WebSocket answer the upgrade.

Sessions. A session id (`Mcp-Session-Id`, or the `session_id` of legacy SSE) names one. An `initialize` begins one, and
the head of its response tells its id. What has no id belongs to the client that its peer's host and its own words tell
it to be. In 2026-07-28 there are no sessions: a "session" there is no more than one client, of which nothing is called
missing.

OAuth, health checks and pages also pass here: a body is taken for a message only if it looks like one, or was asked for
as one. What is no message is a `Remark`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from mcpspy.head import header, media_type, query, stands_alone, title
from mcpspy.jsonrpc import Body, Request
from mcpspy.protocol.revisions import PROTOCOL_VERSION, Revision
from mcpspy.protocol.session import Session
from mcpspy.record import Close, Frame, Open
from mcpspy.wire.sse import parse_event

_LEGACY_ID = ("session_id", "sessionId")
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_UPGRADED = 101  # the status of a response after which a WebSocket begins
_KEPT = 4096  # sessions that are remembered


@dataclass(slots=True)
class Remark:
    """What is worth a row and no message: an HTTP head without one, an SSE event or WebSocket frame without one."""

    n: int
    t: int
    ch: int
    sender: str
    kind: str
    """http or event."""
    text: str
    raw: bytes
    session: Session | None
    http: dict[str, Any] | None


@dataclass(slots=True)
class Place:
    """A channel, and what is known of it."""

    opened: Open
    session: Session
    http: dict[str, Any]
    sender: str
    revision: Revision | None = None
    """What the transport tells of the revision."""
    answers: int | None = None
    named: bool = False
    """The request names its session."""
    asked: bool = False
    """A request channel: a message came over it, so that its answer is one."""


class Web:
    """The HTTP channels of one capture."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        """Every session that is remembered, the oldest first."""
        self._places: dict[int, Place] = {}
        self._named: dict[str, Session] = {}  # by session id
        self._clients: dict[str, Session] = {}  # by what tells clients without one apart

    def place(self, ch: int) -> Place | None:
        """What is known of a channel; None for one that is not HTTP."""
        return self._places.get(ch)

    def open(self, opened: Open) -> Iterator[Remark]:
        """Take a new channel; yield its head, where that says all there is."""
        asked = self._places.get(opened.answers) if opened.answers is not None else None
        place = self._answer(opened, asked) if asked else self._request(opened)
        self._places[opened.ch] = place
        if opened.head and stands_alone(opened.head, asked.opened.head if asked else None):
            text = title(opened.head)
            yield Remark(opened.n, opened.t, opened.ch, place.sender, "http", text, b"", place.session, place.http)

    def close(self, closed: Close) -> None:
        """Take the end of a channel: a client that leaves a response has cancelled what it was for (2026-07-28)."""
        place = self._places.get(closed.ch)
        if place is None or place.answers is None:
            return  # a request is remembered until it is answered
        if closed.how == "abort":
            for exchange in place.session.exchanges():
                if exchange.request.ch == place.answers and exchange.revision is Revision.R2026_07_28:
                    exchange.cancelled = True
        del self._places[closed.ch]
        if place.opened.role == "response" and place.http["status"] != _UPGRADED:
            self._places.pop(place.answers, None)

    def read(self, frame: Frame, place: Place) -> Iterator[Frame | Remark]:
        """What a frame is: a message's bytes as a frame, or a remark."""
        framing = place.opened.framing
        if framing == "sse":
            yield self._event(frame, place)
        elif framing == "message":
            control = frame.op in ("ping", "pong")
            yield self._remark(frame, place, "event", frame.op or "") if control else frame
        elif self._is_message(frame, place):
            place.asked = True
            yield frame
        else:
            text = f"{title(place.opened.head or {})}: {frame.raw[:200].decode(errors='replace')}"
            yield self._remark(frame, place, "http", text)

    def session(self, place: Place, body: Body) -> Session:
        """The session that a message on a channel belongs to."""
        if place.answers is not None or not isinstance(body, Request) or place.named:
            return place.session
        if body.method == "initialize":
            place.session = self._add(Session())
            self._clients[_client(place.opened)] = place.session
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
        legacy = query(target, *_LEGACY_ID)
        stated = Revision.of(header(head, "mcp-protocol-version"))
        if name or legacy:
            session = self._session_named(str(name or legacy))
            fallback = Revision.R2025_03_26 if name else Revision.R2024_11_05
            return Place(opened, session, http, opened.sender, stated or fallback, named=True)
        return Place(opened, self._client(_client(opened)), http, opened.sender, stated)

    def _answer(self, opened: Open, asked: Place) -> Place:
        """A response, or a direction of a WebSocket."""
        head = opened.head or {}
        http = asked.http | ({"status": head["status"]} if "status" in head else {})
        name = header(head, "mcp-session-id")
        if name and name not in self._named:
            asked.session.name = name
            self._named[name] = asked.session
        if opened.role == "ws" and asked.session in self._clients.values():
            asked.session = self._add(Session())  # a connection is a session
        sender = "client" if opened.sender == "client" else "server"
        return Place(opened, asked.session, http, sender, asked.revision, opened.answers)

    def _event(self, frame: Frame, place: Place) -> Frame | Remark:
        """The message of an SSE event, if it has one; a client discards an event that is cut."""
        event = parse_event(frame.raw)
        if event.data and event.name == "message" and not frame.cut:
            return replace(frame, raw=event.data)
        data = (event.data or b"").decode(errors="replace")
        if event.name == "endpoint":
            name = query(data, *_LEGACY_ID)
            if name and name not in self._named:
                session = self._add(Session(name))
                self._named[name] = place.session = session
                place.revision = Revision.R2024_11_05
        comments = "".join(f": {comment}" for comment in event.comments)
        text = f"{event.name}: {data}" if data or event.name != "message" else comments or "an event without data"
        return self._remark(frame, place, "event", f"{text} (cut)" if frame.cut else text)

    def _is_message(self, frame: Frame, place: Place) -> bool:
        """Whether a body is one or more messages, or was meant to be."""
        asked = self._places.get(place.answers) if place.answers is not None else None
        try:
            value = orjson.loads(frame.raw)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, list) or (isinstance(value, dict) and "jsonrpc" in value):
            return True
        head = place.opened.head
        if asked:
            return asked.asked and place.http.get("status") == 200 and media_type(head) == "application/json"
        accepts = header(head, "accept") or ""
        return place.session.name is not None or ("text/event-stream" in accepts and "application/json" in accepts)

    def _remark(self, frame: Frame, place: Place, kind: str, text: str) -> Remark:
        sender = frame.sender or place.sender
        return Remark(frame.n, frame.t, frame.ch, sender, kind, text, frame.raw, place.session, place.http)

    def _session_named(self, name: str) -> Session:
        session = self._named.get(name)
        if session is None:  # it began before the capture did
            session = self._named[name] = self._add(Session(name))
            session.partial = True
        return session

    def _client(self, key: str) -> Session:
        session = self._clients.get(key)
        if session is None:
            session = self._clients[key] = self._add(Session())
            session.partial = True
        return session

    def _add(self, session: Session) -> Session:
        self.sessions.append(session)
        if len(self.sessions) > _KEPT:
            gone = self.sessions.pop(0)
            for table in (self._named, self._clients):
                for key in [key for key, known in table.items() if known is gone]:
                    del table[key]
        return session


def _client(opened: Open) -> str:
    """What tells clients without a session apart: the host that they come from, and what they call themselves."""
    host = (opened.peer or "").rpartition(":")[0]
    return f"{host} {header(opened.head, 'user-agent') or ''}"
