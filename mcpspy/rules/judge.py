"""The fold from records to messages and findings: the conversation, with every rule asked.

Which rules look at a message (or at a remark: what came over HTTP without one) depends on its kind, method and
revision, and on the aspects in which it is plain (`mcpspy.rules.plain`), so each such combination has its own short
list. What only the next second can tell (`Later`) is looked for then. What is known of a session is kept in full for
the sessions that were used last (`mcpspy.conversation.recent`).

A finding names an earlier frame as often as the present one; it comes out after the event that led to it.

Judged as another revision than it speaks, a capture shows what a migration has to change: every message stands under
that revision, and what the peers agreed on counts for nothing.

A rule that raises is a bug of ours and blames nobody: it is reported once, and everything else goes on.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mcpspy.capture.records import End, Gap, Gates, Record
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.history import Operations, SessionHistory, keep
from mcpspy.conversation.learning import learn
from mcpspy.conversation.model import HOLD, Event, Exchange, HttpUnit, Judged, Message, Session
from mcpspy.conversation.recent import Recent
from mcpspy.rules import RULES, Finding, Rule
from mcpspy.rules.follows import explained, specific
from mcpspy.rules.gate_effects import GateEffects
from mcpspy.rules.plain import ASPECTS, aspects
from mcpspy.rules.rule import Fault
from mcpspy.spec.extensions import extension_with
from mcpspy.spec.methods import revisions_with_method
from mcpspy.spec.peer_schemas import Budget
from mcpspy.spec.revisions import Revision
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Notification, Request

_Key = tuple[type, str | None, Revision | None, tuple[bool, ...]]
"""Kind, method, revision, and for each of `ASPECTS` whether the message is plain in it."""
_CALLS = (Request, Notification)
_JUDGED = (Message, HttpUnit)
_REMARK = tuple(aspect != "http" for aspect in ASPECTS)  # what is no message can be wrong about HTTP only
_ON_AGREEMENT = ("lifecycle/era-mixed", "lifecycle/revision-mismatch", "http/version-header")
"""Rules about the revisions that peers name, void where another one is put in their place."""
_ON_CLIENTS = ("compat/",)
"""Rules about what clients refuse, void where none is named."""
_ON_OPERATIONS = ("ops/",)
"""Opinions about a run, void where nobody has asked for them."""
_ON_ORDER = ("lifecycle/", "pairing/", "cancel/", "progress/", "paging/", "mrtr/", "subscription/", "http/session-",
             "extension/", "cache/")  # fmt: skip
"""Rules that depend on what came before a message, void for one that comes out of its order."""
_Rules = tuple[tuple[Rule, ...], tuple[Rule, ...]]
"""Those that look at a message, and those that learn from it."""
LISTS: dict[tuple[bool, bool, bool], dict[_Key, _Rules]] = {}
"""The rules by what they look at, made when they are first needed; by whether another revision is put in place, whether
clients are named, and whether operational findings are asked for."""


@dataclass(slots=True, eq=False)
class _Session:
    """What the judge has of a session."""

    history: SessionHistory
    later: deque[tuple[int, Rule, Judged, Iterator[Fault]]] = field(default_factory=deque)
    """What is looked for later, each with the time when."""

    def lose(self, gaps: int) -> None:
        """Take it that records were lost before the next message, if there are more gaps than before."""
        if gaps != self.history.gaps:
            self.history.lose(gaps)
            self.later.clear()


def complain(sentence: str) -> None:
    """Write a bug of ours to stderr."""
    print(f"mcpspy: {sentence}", file=sys.stderr)


class Judge:
    """Folds the records of one capture; `feed` each, then `end`. With `as_revision` all of it is judged by that one.

    With `clients` it is judged also by what those refuse (`mcpspy.spec.client_limits`), with `operations` also by what
    operators should look at (`mcpspy.rules.ops`). `noted` is called with each
    finding and the message that it is about, while that still knows what it belongs to. `report` is called with a
    sentence about each rule that raises, once.
    """

    def __init__(
        self,
        as_revision: Revision | None = None,
        noted: Callable[[Finding, Judged], None] | None = None,
        report: Callable[[str], None] = complain,
        clients: Iterable[str] = (),
        operations: Operations | None = None,
    ) -> None:
        self._as = as_revision
        self._operations = operations
        self._clients = frozenset(clients)
        self._noted = noted
        self._report = report
        self._reported: set[str] = set()
        kind = as_revision is not None, bool(self._clients), operations is not None
        self._lists = LISTS.setdefault(kind, {})
        self._conversation = Conversation()
        self._sessions: Recent[Session, _Session] = Recent(self._rest, self._drop)
        self._latest: Session | None = None  # the one that was used last, of which `_known` is known
        self._known = _Session(SessionHistory())
        self._found_late: list[Finding] = []  # of sessions that went to rest
        self._budget = Budget()
        self._gates = GateEffects()
        self._t = 0  # of the latest message
        self._gaps = 0
        self._forgetful = False
        """Sessions were dropped: what seems to be a new one may be one of those."""

    @property
    def failed(self) -> bool:
        """Whether a rule raised, so that something may have been missed."""
        return bool(self._reported)

    def feed(self, record: Record) -> Iterable[Event | Finding]:
        """Take the next record and return what it completes: events, and findings about them or earlier ones.

        It is to be iterated over once, before another is fed.
        """
        events = self._conversation.feed(record)
        if type(events) is tuple and type(events[0]) is Message:  # as nearly always: without a generator
            found = self._judged(events[0])
            return (events[0], *found) if found else events
        return self._each(events)

    def _each(self, events: Iterable[Event]) -> Iterator[Event | Finding]:
        for event in events:
            if isinstance(event, _JUDGED):
                found = self._judged(event)
                yield event
                yield from found
            else:
                yield event
                if isinstance(event, Gates):
                    self._gates.declare(event)
                self._gaps += isinstance(event, Gap)
                ended = self._conversation.exit(event) if isinstance(event, End) else None
                if ended:
                    yield from self._judged(ended)

    def end(self) -> Iterator[Finding]:
        """Yield what was waiting for more, when there is no more."""
        for session in self._sessions.values():
            session.lose(self._gaps)
            yield from self._late(session, None)
        looking = [rule for rule in RULES.values() if rule.ends]
        for exchange in self.pending():
            request = exchange.request
            known = self._sessions.get(request.session)
            history = known.history if known else SessionHistory()
            for rule in looking:
                if not (request.act and request.act.made):
                    yield from self._findings(rule, request, rule.end(request, history), history)
        closing = [rule for rule in RULES.values() if rule.closes]
        for session in self._sessions.values():
            for rule in closing:
                closed = rule.close(session.history)
                if closed:
                    yield from self._findings(rule, *closed, session.history)

    def pending(self) -> Iterator[Exchange]:
        """The exchanges without a message in answer, oldest first."""
        return self._conversation.pending()

    @property
    def released(self) -> GateAct | None:
        """What became of the frame that the last `release` was about."""
        return self._conversation.released

    def _judged(self, message: Judged) -> list[Finding]:
        found: list[Finding] = []
        if self._as:
            message.revision = self._as
        self._t = message.t
        if message.session is not self._latest:
            self._latest = message.session
            self._known = self._sessions.use(message.session) or self._begin(message.session)
        session = self._known
        history = session.history
        if self._gaps != history.gaps:
            session.lose(self._gaps)
        if message.http:  # whether a client can be told from others may come to light later
            history.lossy = self._gaps > 0 or self._forgetful or message.session.partial
        if self._found_late:
            found, self._found_late = self._found_late, []
        if session.later:
            found += self._late(session, message.t)
        looking, learning = self._rules(message, history)
        if message.t < self._conversation.newest:
            looking = tuple(rule for rule in looking if not rule.id.startswith(_ON_ORDER))
        if message.act:
            self._gates.note(message, message.act, history)
            looking = () if message.act.made else looking  # no peer is responsible for frames that we made
        faults: list[tuple[Rule, Fault]] = []
        for rule in looking:
            try:
                for fault in rule.ask(message, history):
                    if isinstance(fault, Fault):
                        faults.append((rule, fault))
                    else:
                        session.later.append((message.t + HOLD, rule, message, fault.faults))
            except Exception as error:
                self._failed(f"the rule {rule.id}", message, error)
        if faults:
            made = (self._finding(rule, fault, message, history) for rule, fault in specific(faults))
            found += filter(None, made)
        for rule in learning:
            try:
                rule.learn(message, history)
            except Exception as error:
                self._failed(f"the rule {rule.id}", message, error)
        try:
            learn(message, history)
        except Exception as error:
            self._failed("what several rules need to know", message, error)
        if history.over:
            self._sessions.finish(message.session)
            self._latest = None
        return found

    def _begin(self, of: Session) -> _Session:
        """What there is of a session whose first message comes."""
        lossy = self._gaps > 0 or self._forgetful
        session = _Session(SessionHistory(lossy, self._gaps, budget=self._budget, clients=self._clients))
        session.history.operations = self._operations
        self._sessions.add(of, session)
        return session

    def _findings(
        self, rule: Rule, message: Judged, faults: Iterator[Fault], history: SessionHistory
    ) -> Iterator[Finding]:
        try:
            for fault in faults:
                finding = self._finding(rule, fault, message, history)
                if finding:
                    yield finding
        except Exception as error:
            self._failed(f"the rule {rule.id}", message, error)

    def _finding(self, rule: Rule, fault: Fault, message: Judged, history: SessionHistory) -> Finding | None:
        finding = rule.finding(fault, message)
        if self._gates.any and self._gates.explain(finding, fault.at or message, history):
            return None
        for request in explained(finding, fault.at or message):
            keep(history.explained, request, None)
        if self._noted:
            self._noted(finding, fault.at or message)
        return finding

    def _failed(self, what: str, message: Judged, error: Exception) -> None:
        if what not in self._reported:
            self._reported.add(what)
            why = printable(f"{type(error).__name__}: {error}", 200)
            self._report(f"a bug in {what} at #{message.n} ({why}); the other rules go on")

    def _rules(self, message: Judged, history: SessionHistory) -> _Rules:
        frame = message.frame
        if frame and frame.omitted:  # of what was not decoded only the size is known
            return ((RULES["framing/oversize"],) if type(message) is Message else ()), ()
        if type(message) is Message:
            body = message.body
            if message.exchange:
                method: str | None = message.exchange.method
            else:
                method = body.method if isinstance(body, _CALLS) else None
            try:
                plainly = aspects(message, method, history)
            except Exception as error:
                self._failed("the tests for plain messages", message, error)
                plainly = (False,) * len(ASPECTS)
            key: _Key = type(body), method, message.revision, plainly
        else:
            key = type(message), None, message.revision, _REMARK
        return self._lists.get(key) or self._listed(key)

    def _listed(self, key: _Key) -> _Rules:
        """The rules of a combination that is new."""
        kind, method, revision, plainly = key
        if method is not None and not (revisions_with_method(method) or extension_with(method)):
            key = kind, None, revision, plainly  # so that there are not as many lists as peers make up methods
        rules = self._lists.get(key)
        if rules is None:
            void = (
                *(_ON_AGREEMENT if self._as else ()),
                *(() if self._clients else _ON_CLIENTS),
                *(() if self._operations else _ON_OPERATIONS),
            )
            looking = tuple(rule for rule in RULES.values() if not rule.id.startswith(void) and _concerns(rule, key))
            rules = looking, tuple(rule for rule in RULES.values() if rule.learns_from(*key[:3]))
            self._lists[key] = rules
        return rules

    def _late(self, session: _Session, t: int | None) -> Iterator[Finding]:
        """What is found of what was put off until `t`, or of all of it at the end."""
        later = session.later
        while later and (t is None or later[0][0] < t):
            _, rule, message, faults = later.popleft()
            yield from self._findings(rule, message, faults, session.history)

    def _rest(self, session: Session, idle: _Session) -> None:
        """Look for what is due of a session that was idle for long; it keeps all it has while something is not due."""
        idle.lose(self._gaps)
        self._found_late += self._late(idle, self._t)
        if not idle.later:
            idle.history.rest()
            session.partial = True

    def _drop(self, _: Session, idle: _Session) -> None:
        idle.lose(self._gaps)
        self._found_late += self._late(idle, self._t)
        self._forgetful = True


def _concerns(rule: Rule, key: _Key) -> bool:
    kind, method, revision, plainly = key
    if kind not in rule.on or (rule.methods and method not in rule.methods):
        return False
    if rule.about and plainly[ASPECTS.index(rule.about)]:
        return False
    if revision is None:
        return set(rule.revisions) == set(Revision)  # what holds everywhere holds here
    return revision in rule.revisions
