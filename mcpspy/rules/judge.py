"""The fold from records to messages and findings: the conversation, with every rule applied.

`judged_events` is the loop over the records of a capture. What is computed from a whole capture is a `Fold`, which gets
each event and then the end. `JudgedEvents` is the same loop in steps, for what has to answer while a capture grows.

The rules that look at a message (or at a remark: an HTTP event without a message) depend on its kind, method and
revision, and on the aspects in which it is plain (`mcpspy.rules.plain`). Each such combination has its own short list
of rules. A check that needs the next second of the capture yields a `Later`, and goes on then. All that is known is
kept only for the sessions that were used last (`mcpspy.conversation.bounds`).

A finding often names an earlier frame than the current one. It comes after the event that caused it.

A capture can be judged by another revision than the one it uses, to show what a migration needs. Every message then
counts as a message of that revision, and what the peers negotiated is ignored.

A rule that raises an exception is a bug of ours and blames nobody. It is reported once, and everything else goes on.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypedDict, Unpack

from mcpspy.capture.records import End, Gap, Gates, Record, Release
from mcpspy.conversation.bounds import keep
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.facts import Operations
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.learning import learn
from mcpspy.conversation.model import HOLD, Event, Exchange, HttpUnit, Judged, Message, Session, StreamEnd
from mcpspy.conversation.outcomes import Outcome
from mcpspy.rules import RULES, LocatedFinding, Rule
from mcpspy.rules.follows import explained, specific
from mcpspy.rules.gate_effects import GateEffects
from mcpspy.rules.plain import ASPECTS, aspects, unit_aspects
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
_JUDGED = (Message, HttpUnit, StreamEnd)
_REMARK = (False,) * len(ASPECTS)
_ON_AGREEMENT = ("lifecycle/era-mixed", "lifecycle/revision-mismatch", "lifecycle/version-declined",
                 "http/version-header")  # fmt: skip
"""Rules about the revisions that peers name. They are off if the capture is judged by another revision."""
_ON_CLIENTS = ("compat/",)
"""Rules about what clients refuse. They are off if no client is named."""
_ON_OPERATIONS = ("ops/",)
"""Operational opinions about a run. They are off unless the user requests them."""
_ON_ORDER = ("lifecycle/", "pairing/", "cancel/", "progress/", "paging/", "mrtr/", "subscription/", "http/session-",
             "extension/", "cache/")  # fmt: skip
"""Rules that depend on what came before a message. They are off for a message that is out of order."""
_Postponed = tuple[int, Rule, Judged, Iterator[Fault]]
"""A check that waits for later records, with the time when it is due."""
_Rules = tuple[tuple[Rule, ...], tuple[Rule, ...]]
"""The rules that look at a message, and the rules that learn from it."""
LISTS: dict[tuple[bool, bool, bool], dict[_Key, _Rules]] = {}
"""The lists of rules by key, filled on demand.

The outer key: whether another revision is set, whether clients are named, whether operational findings are requested.
"""


def complain(sentence: str) -> None:
    """Report a bug of ours on stderr."""
    print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr)


JudgedEvent = Event | LocatedFinding | GateAct | Outcome
"""What a judge finds in a capture: events, findings, and the outcome for a frame that a gate held."""


class Judge:
    """Fold the records of one capture: `feed` each, then call `end`.

    With `as_revision`, all messages are judged by that revision. With `clients`, the rules about what these clients
    refuse run too (`mcpspy.spec.client_limits`). With `operations`, the operational rules run too (`mcpspy.rules.ops`).
    `report` is called once for each rule that raises an exception, with a sentence.
    """

    def __init__(
        self,
        as_revision: Revision | None = None,
        report: Callable[[str], None] = complain,
        clients: Iterable[str] = (),
        operations: Operations | None = None,
    ) -> None:
        self._as = as_revision
        self._operations = operations
        self._clients = frozenset(clients)
        self._report = report
        self._reported: set[str] = set()
        self._closing = [rule for rule in RULES.values() if rule.closes]
        kind = as_revision is not None, bool(self._clients), operations is not None
        self._lists = LISTS.setdefault(kind, {})
        self._conversation = Conversation(self._rest, self._drop)
        self._later: dict[Session, deque[_Postponed]] = {}
        self._found_late: list[LocatedFinding] = []  # findings of sessions that were put to rest
        self._budget = Budget()
        self._shared: dict[type[Any], Any] = {}
        self._gates = GateEffects()
        self._t = 0  # the time of the latest message
        self._gaps = 0
        self._forgetful = False
        """Whether sessions were dropped: a session that seems new may be one of those."""

    @property
    def failed(self) -> bool:
        """Whether a rule raised an exception, so that findings may be missing."""
        return bool(self._reported)

    def feed(self, record: Record) -> Iterable[JudgedEvent]:
        """Feed the next record. Return what it completes: events, and findings about them or about earlier ones.

        Iterate over the result once, before you feed the next record.
        """
        events = self._conversation.feed(record)
        if type(events) is tuple and type(events[0]) is Message:  # the usual case, without the cost of a generator
            found, decided = self._judged(events[0]), self._conversation.decided
            return (events[0], *found, *decided) if found or decided else events
        return self._each(record, events)

    def _each(self, record: Record, events: Iterable[Event]) -> Iterator[JudgedEvent]:
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
        if isinstance(record, Release) and self._conversation.released:
            yield self._conversation.released
        yield from self._conversation.decided

    def end(self) -> Iterator[LocatedFinding | Outcome]:
        """Yield the findings and outcomes that were waiting for more records."""
        outcomes = self._conversation.end()  # the rules need them
        yield from self._found_late
        self._found_late = []
        sessions = [session for session in self._conversation.sessions() if session.judged]
        for session in sessions:
            self._lose(session)
            yield from self._late(session, None)
        looking = [rule for rule in RULES.values() if rule.ends]
        for exchange in self.pending():
            request = exchange.request
            for rule in looking:
                if not (request.act and request.act.made):
                    yield from self._findings(rule, request, rule.end(request, request.session))
        for session in sessions:
            yield from self._close(session, self._closing)
        yield from outcomes

    def pending(self) -> Iterator[Exchange]:
        """Return the exchanges without a response, oldest first within a session."""
        return self._conversation.pending()

    def _judged(self, message: Judged) -> list[LocatedFinding]:
        found: list[LocatedFinding] = []
        if self._as:
            message.revision = self._as
        self._t = message.t
        session = message.session
        if not session.judged:
            self._begin(session)
        self._lose(session)
        if message.http:  # whether clients can be told apart may become clear later
            session.lossy = self._gaps > 0 or self._forgetful or session.partial
        if self._found_late:
            found, self._found_late = self._found_late, []
        if self._later:
            found += self._late(session, message.t)
        looking, learning = self._rules(message, session)
        if message.t < self._conversation.newest:
            looking = tuple(rule for rule in looking if not rule.id.startswith(_ON_ORDER))
        if message.act:
            self._gates.note(message, message.act, session)
            looking = () if message.act.made else looking  # no peer is responsible for frames that we made
        faults: list[tuple[Rule, Fault]] = []
        for rule in looking:
            try:
                for fault in rule.ask(message, session):
                    if isinstance(fault, Fault):
                        faults.append((rule, fault))
                    else:
                        later = self._later.setdefault(session, deque())
                        later.append((message.t + HOLD, rule, message, fault.faults))
            except Exception as error:
                self._failed(f"the rule {rule.id}", message, error)
        if faults:
            made = (self._finding(rule, fault, message) for rule, fault in specific(faults))
            found += filter(None, made)
        for rule in learning:
            try:
                rule.learn(message, session)
            except Exception as error:
                self._failed(f"the rule {rule.id}", message, error)
        try:
            learn(message, session)
        except Exception as error:
            self._failed("what several rules need to know", message, error)
        return found

    def _begin(self, session: Session) -> None:
        """Prepare a session at its first message."""
        session.judged, session.lossy, session.gaps = True, self._gaps > 0 or self._forgetful, self._gaps
        session.budget, session.clients, session.operations = self._budget, self._clients, self._operations
        session.expected, session.shared = self._conversation.expected, self._shared

    def _lose(self, session: Session) -> None:
        """Note that records were lost before the next message of a session, if there are more gaps than before."""
        if self._gaps != session.gaps:
            session.lose(self._gaps)
            self._later.pop(session, None)

    def _findings(self, rule: Rule, message: Judged | None, faults: Iterator[Fault]) -> Iterator[LocatedFinding]:
        """Yield the findings of faults. `message` is the one at fault; None if each fault names its own."""
        try:
            for fault in faults:
                at = fault.at or message
                finding = self._finding(rule, fault, at) if at else None
                if finding:
                    yield finding
        except Exception as error:
            self._failed(f"the rule {rule.id}", message, error)

    def _finding(self, rule: Rule, fault: Fault, message: Judged) -> LocatedFinding | None:
        finding, at = rule.finding(fault, message), fault.at or message
        if self._gates.any and self._gates.explain(finding, at, message.session):
            return None
        for request in explained(finding, at):
            keep(message.session.explained, request, None)
        return LocatedFinding(finding, at)

    def _failed(self, what: str, message: Judged | None, error: Exception) -> None:
        if what not in self._reported:
            self._reported.add(what)
            why = printable(f"{type(error).__name__}: {error}", 200)
            where = f"#{message.n}" if message else "the end"
            self._report(f"a bug in {what} at {where} ({why}); the other rules go on")

    def _rules(self, message: Judged, session: Session) -> _Rules:
        frame = message.frame
        if frame and frame.omitted:  # only the size of a frame that was not decoded is known
            return ((RULES["framing/oversize"],) if type(message) is Message else ()), ()
        if type(message) is Message:
            body = message.body
            if message.exchange:
                method: str | None = message.exchange.method
            else:
                method = body.method if isinstance(body, _CALLS) else None
            try:
                plainly = aspects(message, method, session)
            except Exception as error:
                self._failed("the tests for plain messages", message, error)
                plainly = (False,) * len(ASPECTS)
            key: _Key = type(body), method, message.revision, plainly
        else:
            flags = unit_aspects(message) if type(message) is HttpUnit else _REMARK
            key = type(message), None, message.revision, flags
        return self._lists.get(key) or self._listed(key)

    def _listed(self, key: _Key) -> _Rules:
        """Return the rules for a new combination."""
        kind, method, revision, plainly = key
        if method is not None and not (revisions_with_method(method) or extension_with(method)):
            key = kind, None, revision, plainly  # otherwise peers could create any number of lists by made-up methods
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

    def _late(self, session: Session, t: int | None) -> Iterator[LocatedFinding]:
        """Yield the findings of the checks that were due before `t`, or of all of them if it is `None`."""
        later = self._later.get(session)
        while later and (t is None or later[0][0] < t):
            _, rule, message, faults = later.popleft()
            yield from self._findings(rule, message, faults)
        if later is not None and not later:
            self._later.pop(session, None)

    def _rest(self, session: Session) -> None:
        """Run the due checks of a session that was idle for long. Keep all that is known while a check is not due."""
        self._lose(session)
        self._found_late += self._late(session, self._t)
        if session not in self._later:
            of_session = [rule for rule in self._closing if not rule.id.startswith(_ON_OPERATIONS)]
            self._found_late += self._close(session, of_session)  # what they remember is forgotten now
            session.rest_facts()

    def _close(self, session: Session, closing: Iterable[Rule]) -> Iterator[LocatedFinding]:
        """Yield what rules find about a session to which nothing follows."""
        for rule in closing:
            yield from self._findings(rule, None, rule.close(session))

    def _drop(self, session: Session) -> None:
        self._lose(session)
        self._found_late += self._late(session, self._t)
        self._later.pop(session, None)
        self._forgetful = self._forgetful or session.judged


def _concerns(rule: Rule, key: _Key) -> bool:
    kind, method, revision, plainly = key
    if kind not in rule.on or (rule.methods and method not in rule.methods):
        return False
    if rule.about and plainly[ASPECTS.index(rule.about)]:
        return False
    if revision is None:
        return set(rule.revisions) == set(Revision)  # without a revision, only rules that hold in every revision apply
    return revision in rule.revisions


class Fold:
    """What is computed from the events of one capture, one after the other."""

    def add(self, event: JudgedEvent) -> None:
        """Add the next event. The links between request and response hold until the next record."""
        raise NotImplementedError

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:
        """Finish, with the exchanges that have no response. In a `live` capture, the response may still come."""


class Criteria(TypedDict, total=False):
    """By what a capture is judged, and who learns of a bug in a rule: the arguments of `Judge`."""

    as_revision: Revision | None
    report: Callable[[str], None]
    clients: Iterable[str]
    operations: Operations | None


class JudgedEvents:
    """The events of one capture, judged, while it is read: `feed` records, then `end`. Folds get them first."""

    def __init__(self, *folds: Fold, **criteria: Unpack[Criteria]) -> None:
        self._judge = Judge(**criteria)
        self._folds = folds
        self._answered: list[Exchange] = []

    @property
    def failed(self) -> bool:
        """Whether a rule raised an exception, so that findings may be missing."""
        return self._judge.failed

    def pending(self) -> Iterator[Exchange]:
        """Return the exchanges without a response so far, oldest first within a session."""
        return self._judge.pending()

    def all(self, records: Iterable[Record], *, live: bool = False) -> Iterator[JudgedEvent]:
        """Yield the events of all records, and what is found at the end."""
        yield from chain.from_iterable(map(self.feed, records))
        yield from self.end(live=live)

    def feed(self, record: Record) -> Iterable[JudgedEvent]:
        """Return the events of the next record. Iterate over them once, before you feed the next record."""
        for exchange in self._answered:
            exchange.untie()
        self._answered.clear()
        events = self._judge.feed(record)
        if type(events) is tuple and type(events[0]) is Message:  # the usual case, without the cost of a generator
            for event in events:
                self._add(event)
            return events
        return self._each(events)

    def end(self, *, live: bool = False) -> Iterator[JudgedEvent]:
        """Yield what is found when nothing follows. A `live` capture may continue, so nothing is missing."""
        if not live:
            yield from self._each(self._judge.end())
        pending = list(self._judge.pending())
        for fold in self._folds:
            fold.end(pending, live=live)

    def _each(self, events: Iterable[JudgedEvent]) -> Iterator[JudgedEvent]:
        for event in events:
            self._add(event)
            yield event

    def _add(self, event: JudgedEvent) -> None:
        for fold in self._folds:
            fold.add(event)
        if type(event) is not Message or event.http or not event.exchange or event.exchange.response is not event:
            return
        if not (event.act and event.act.waits):
            # Only the garbage collector could free a cycle. Over HTTP, later messages may need these links, and so does
            # the release of a response that a gate holds.
            self._answered.append(event.exchange)


def judged_events(
    records: Iterable[Record], *folds: Fold, live: bool = False, **criteria: Unpack[Criteria]
) -> Iterator[JudgedEvent]:
    """Yield the events of a capture, judged, after the folds got them. Pass `live` if it is still being written."""
    return JudgedEvents(*folds, **criteria).all(records, live=live)
