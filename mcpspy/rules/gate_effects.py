"""No finding blames a peer for what a gate did.

A peer is responsible for the bytes that it sent, but not for a reaction to what it received. A finding is therefore
left out in two cases:

- a frame of its evidence was changed, dropped, repeated, held or made by a gate, and the blamed peer received this
  frame and did not send it;
- the frame that it is about was made by mcpspy.

A rule also knows things about a session that its evidence does not name, for example what was negotiated or listed. For
these, the frames of that kind that the peer received are examined. A frame that was only late or repeated explains only
findings that depend on times or on the order of messages. So does a request that was edited, but kept its method, name
and id.

A reload repeats what the peers sent before, so its frames explain only findings that name them as evidence. The
exception is the handshake of the next server, which the client does not see.

If it is uncertain who is responsible, nobody is blamed. A gate never explains a fault of the bytes themselves. Only the
last acts of gates are kept. In a capture in which no gate acted, nothing is examined here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcpspy.capture.format import RELOAD
from mcpspy.capture.records import Gates
from mcpspy.conversation import bounds
from mcpspy.conversation.context import other
from mcpspy.conversation.gate_acts import GateAct, is_gate
from mcpspy.conversation.model import HttpUnit, Judged, Message, ServerExit, Session, SessionMemory
from mcpspy.rules.rule import Finding
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, parse
from mcpspy.wire.sse import parse_event
from mcpspy.wire.subject import subject

_EDITED = 256  # the last acts that are searched for an id that a gate made

_OF_BYTES = ("framing/", "jsonrpc/", "security/", "compat/", "ui/", "http/not-json",
             "content/image-type")  # fmt: skip
"""Rules about a frame by itself: no other frame explains what they find."""
_NOT_OF_BYTES = ("framing/unterminated", "jsonrpc/batch", "security/definition-changed", "ui/other-uri",
                 "ui/unreadable", "ui/never-read")  # fmt: skip
"""Exceptions: they depend on a server that was killed, on what was negotiated, or on what was listed before."""
_ON_TIME = ("pairing/unanswered", "pairing/answered-late", "pairing/late-after-cancel", "pairing/id-in-flight",
            "cancel/", "progress/", "cache/", "lifecycle/server-exit", "lifecycle/buffered-output",
            "lifecycle/no-exit", "lifecycle/before-initialize",
            "lifecycle/initialize-twice", "lifecycle/era-mixed", "lifecycle/initialized-missing", "subscription/un",
            "http/session-", "http/stream-")  # fmt: skip
"""Rules that depend on when, or how often, a frame was received."""
_ON_IDS = ("pairing/orphan-response", "pairing/duplicate-response", "pairing/id-loose-match",
           "pairing/response-by-wrong-side", "pairing/unanswered", "cancel/unknown-request", "cancel/id-loose-match",
           "subscription/unknown-id")  # fmt: skip
"""Rules about ids. A gate may have put the id into a frame that a peer received."""
_ON_PARAMS = ("paging/no-advance", "tools/arguments-fit")
"""Rules about an answer that depends on the params of its request, which a gate may have edited."""
_ON_REUSE = ("pairing/id-in-flight", "progress/token-reused")
"""Rules about ids and tokens in use. A request that a gate dropped has ended, so its id and token are free."""

_REQUESTS, _ANSWERS, _ANY = "(requests)", "(answers)", "(any)"
_UNHEARD, _CUT_OFF = "(unheard)", "(cut off)"  # kinds for the sender: its requests, and the end of its stream
_HANDSHAKE = ("initialize", "server/discover", "notifications/initialized")
_LISTING = ("tools/list", "notifications/tools/list_changed")
_CONTEXT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pairing/unanswered", (_ANSWERS, _UNHEARD, _CUT_OFF)),
    ("lifecycle/server-exit", (_ANY, _CUT_OFF)),
    ("lifecycle/buffered-output", (_ANY,)),
    ("lifecycle/no-exit", (_ANY,)),
    ("http/empty-answer", (_ANY, _CUT_OFF)),
    ("http/stream-cut", (_ANY, _CUT_OFF)),
    ("progress/", (_REQUESTS,)),
    ("subscription/", (_REQUESTS,)),
    ("cancel/", (_REQUESTS,)),
    ("mrtr/", (_REQUESTS, _ANSWERS)),
    ("paging/", (_ANSWERS,)),
    ("cache/", (_ANSWERS,)),
    ("tools/", _LISTING),
    ("ui/", _LISTING),
    ("http/header-", _LISTING),
    ("http/", _HANDSHAKE),
    ("lifecycle/", _HANDSHAKE),
    ("extension/", _HANDSHAKE),
    ("schema/", _HANDSHAKE),
    ("jsonrpc/batch", _HANDSHAKE),
    ("framing/unterminated", (_CUT_OFF,)),
)
"""By the beginning of a rule's id, first match: the methods or kinds that it depends on besides its evidence."""
_KEPT = frozenset((*_HANDSHAKE, *_LISTING))
_ENDING = ("close", "exit")
"""Actions after which the peer that sent the frame sends nothing more."""


@dataclass(slots=True)
class _Acted:
    """An act of a gate, and the message that it concerned."""

    act: GateAct
    receiver: str
    call: tuple[str, str | None, Id] | None
    """For a request: method, name and id."""

    def explains(self, rule: str) -> bool:
        """Return whether the act explains a finding of the rule about the receiver."""
        act = self.act
        if act.made or act.waits or act.dropped:
            return True
        if act.how == "edited" and (self.call is None or self.call not in _calls(act.sent)):
            return True
        if act.how == "edited" and rule in _ON_PARAMS:
            return True
        return rule.startswith(_ON_TIME) or (act.how == "repeated" and rule.startswith("pairing/"))


class _Inbox(SessionMemory):
    """Frames that peers of a session received differently from how they were sent, by receiver and method or kind."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._changed: set[tuple[str, str]] = set()
        self._later: dict[tuple[str, str], int] = {}  # the time until which the last frame that was only late was held
        self._waiting: list[tuple[tuple[str, str], GateAct]] = []

    def add(self, receiver: str, kind: str, act: GateAct) -> None:
        """Add one act."""
        self._waiting.append(((receiver, kind), act))
        if len(self._waiting) >= bounds.FORGOTTEN:
            self._settle(all_of_it=True)

    def explains(self, rule: str, receiver: str, t: int) -> bool:
        """Return whether a frame that the peer received explains a finding about a frame that it sent at `t`."""
        kinds = next((kinds for start, kinds in _CONTEXT if rule.startswith(start)), ())
        if not kinds:
            return False
        self._settle()
        return any(
            (receiver, kind) in self._changed or (kind in _KEPT and t < self._later.get((receiver, kind), 0))
            for kind in kinds
        )

    def _settle(self, *, all_of_it: bool = False) -> None:
        """Record the outcome of held frames. If there are too many, count each of them as changed."""
        waiting, self._waiting = self._waiting, []
        for key, act in waiting:
            if act.waits and not all_of_it:
                self._waiting.append((key, act))
                self._later[key] = max(self._later.get(key, 0), act.t + 1)
            elif act.waits or (act.dropped if key[1] == _CUT_OFF else act.changed):
                self._changed.add(key)
            else:
                self._later[key] = max(self._later.get(key, 0), act.t + (act.held or 0))


class GateEffects:
    """The acts of the gates of one capture, as far as they explain what peers did."""

    def __init__(self) -> None:
        self._acted: dict[int, _Acted] = {}  # by the line number of the frame
        self._ends: dict[str, bool] = {}  # by the name of a gate: whether it ends a stream or the server
        self.any = False
        """Whether a gate has acted."""

    def declare(self, gates: Gates) -> None:
        """Record the gates that are in force."""
        for gate in gates.gates:
            name, action = gate.get("name"), gate.get("action")
            if isinstance(name, str) and isinstance(action, dict) and len(self._ends) < bounds.GATES:
                self._ends[name] = self._ends.get(name, False) or any(it in action for it in _ENDING)

    def note(self, event: Message | HttpUnit, act: GateAct, session: Session) -> None:
        """Record an act of a gate on the frame of a message or of an HTTP unit without a message."""
        self.any = True
        inbox = session.of(_Inbox)
        side = event.side if isinstance(event, Message) else event.http.sender
        for kind in _kinds(event):
            if act.by != RELOAD or (act.dropped and kind in _HANDSHAKE):
                inbox.add(other(side), kind, act)
        if isinstance(event, Message) and isinstance(event.body, Request) and act.by != RELOAD:
            inbox.add(side, _UNHEARD, act)
        if not act.made and act.gate is not None and self._ends.get(act.gate, True):
            inbox.add(side, _CUT_OFF, act)
            if act.gate in self._ends:
                inbox.add(other(side), _CUT_OFF, act)
        self._acted[event.n] = _Acted(act, other(side), _call(event))
        if isinstance(event, Message) and event.cancels:
            self._acted.setdefault(event.cancels.request.n, _Acted(act, other(side), None))
        if len(self._acted) > bounds.ACTS:
            bounds.forget(self._acted)

    def explain(self, finding: Finding, event: Judged, session: Session) -> bool:
        """Return whether a gate may have caused the finding, so that the peer is not responsible."""
        place = None if isinstance(event, ServerExit) else event.http
        if place and place.opened.sender == "mcpspy" and is_gate(place.opened.by):
            return True
        if isinstance(event, Message | HttpUnit) and event.act and (event.act.made or _cut_short(event)):
            return True
        rule = finding.rule
        if rule.startswith(_OF_BYTES) and rule not in _NOT_OF_BYTES:
            return False
        blamed = "client" if finding.blame == "client" else "server"
        lines = [finding.frame, *finding.related]
        if event.exchange:
            lines.append(event.exchange.request.n)
        if place and place.request:
            lines += [message.n for message in place.request.carried]
        for acted in filter(None, map(self._acted.get, lines)):
            if acted.act.made or (acted.act.dropped and rule in _ON_REUSE):
                return True
            if acted.receiver == blamed and acted.explains(rule):
                return True
        if rule.startswith(_ON_IDS) and isinstance(event, Message) and self._made_id(blamed, event):
            return True
        return session.of(_Inbox).explains(rule, blamed, event.t)

    def _made_id(self, receiver: str, message: Message) -> bool:
        """Return whether a gate put the id that a message has or names into a frame that the peer received."""
        named = message.id or Id.of(_named(message.body.value))
        last = list(self._acted.values())[-_EDITED:]
        return any(
            acted.receiver == receiver and named in _ids(acted.act.sent) for acted in last if acted.act.how == "edited"
        )


def _cut_short(event: Message | HttpUnit) -> bool:
    """Return whether it is the cut line of a server that was stopped in the middle of the line (`wrap --reload`)."""
    return bool(event.frame and event.frame.cut and event.act and event.act.by == RELOAD and event.act.dropped)


def _named(value: Any) -> Any:
    params = value.get("params") if isinstance(value, dict) else None
    return params.get("requestId") if isinstance(params, dict) else None


def _kinds(event: Message | HttpUnit) -> list[str]:
    """Return the kinds under which an event is stored, if it can explain other messages of the session."""
    found = [_ANY]
    if isinstance(event, Message):
        found += [_REQUESTS] if isinstance(event.body, Request) else []
        found += [_ANSWERS] if isinstance(event.body, Result | Error) else []
        method = event.body.method if isinstance(event.body, Notification) else event.method
        found += [method] if method in _KEPT else []
    return found


def _call(event: Message | HttpUnit) -> tuple[str, str | None, Id] | None:
    body = event.body if isinstance(event, Message) else None
    return (body.method, subject(body.method, body.params), body.id) if isinstance(body, Request) else None


def _calls(sent: bytes | None) -> list[tuple[str, str | None, Id]]:
    """Return the requests in a forwarded frame."""
    return [(it.method, subject(it.method, it.params), it.id) for it in _bodies(sent) if isinstance(it, Request)]


def _ids(sent: bytes | None) -> list[Id]:
    """Return the ids that a forwarded frame has or names."""
    bodies = [it for it in _bodies(sent) if isinstance(it, Request | Notification)]
    return [it.id if isinstance(it, Request) else Id.of(_named(it.value)) for it in bodies]


def _bodies(sent: bytes | None) -> Sequence[Body]:
    """Parse the messages of a forwarded frame, which may be an SSE event."""
    if not sent:
        return ()
    return parse(sent if sent.lstrip()[:1] in (b"{", b"[") else parse_event(sent).data or b"")
