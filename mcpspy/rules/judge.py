"""The fold from records to messages and findings: the conversation, with every rule asked.

The theory. Which rules look at a message (or at a remark: what came over HTTP without one) depends on its kind, method,
revision and sender, and on the aspects in which it is plain (`mcpspy.rules.plain`), so each such combination
has its own short list. A rule that would need what is recorded next has its question asked a second later. What the
rules remember of a session is kept in full for the sessions that were used last (`mcpspy.conversation.recent`).

A finding names an earlier frame as often as the present one; it comes out after the event that led to it.

Judged as another revision than it speaks, a capture shows what a migration has to change: every message stands under
that revision, and what the peers agreed on counts for nothing.
"""

from collections.abc import Callable, Iterator

from mcpspy.capture.records import Gap, Record
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Event, Exchange, HttpUnit, Message, Session
from mcpspy.conversation.recent import Recent
from mcpspy.rules import RULES, Fault, Finding, Rule, plain
from mcpspy.rules.http import streams
from mcpspy.rules.learning import learn
from mcpspy.rules.rule import Aspect
from mcpspy.rules.state import State
from mcpspy.spec.methods import revisions_with_method
from mcpspy.spec.peer_schemas import Budget
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Notification, Request

_Key = tuple[type, str | None, Revision | None, str, bool, bool, bool, bool, bool, bool]
_ASPECTS: tuple[Aspect, ...] = ("bytes", "shape", "meta", "pairing", "handshake", "http")  # as at the end of a key
_CALLS = (Request, Notification)
_ON_AGREEMENT = ("lifecycle/era-mixed", "lifecycle/revision-mismatch", "http/version-header")
"""Rules about the revisions that peers name, void where another one is put in their place."""
_ON_ORDER = ("lifecycle/", "pairing/", "cancel/", "progress/", "paging/", "mrtr/", "subscription/", "http/session-")
"""Rules that depend on what came before a message, void for one that comes out of its order."""
_lists: dict[bool, dict[_Key, tuple[Rule, ...]]] = {False: {}, True: {}}
"""Which rules look at what, made when they are first needed; by whether another revision is put in place."""


class Judge:
    """Folds the records of one capture; `feed` each, then `end`. With `as_revision` all of it is judged by that one.

    `noted` is called with each finding and the message that it is about, while that still knows what it belongs to.
    """

    def __init__(
        self,
        as_revision: Revision | None = None,
        noted: Callable[[Finding, Message | HttpUnit], None] | None = None,
    ) -> None:
        self._noted = noted
        self._as = as_revision
        self._lists = _lists[as_revision is not None]
        self._conversation = Conversation()
        self._states: Recent[Session, State] = Recent(self._rest, self._drop)
        self._asked_late: list[Finding] = []  # of sessions that went to rest
        self._budget = Budget()
        self._t = 0  # of the latest message
        self._gaps = 0
        self._forgetful = False
        """States were dropped: what seems to be a new session may be one of those."""

    def feed(self, record: Record) -> Iterator[Event | Finding]:
        """Take the next record and yield what it completes: events, and findings about them or earlier ones."""
        for event in self._conversation.feed(record):
            if isinstance(event, Message | HttpUnit):
                found = self._judged(event)
                yield event
                if found:
                    yield from found
            else:
                yield event
                self._gaps += isinstance(event, Gap)

    def end(self) -> Iterator[Finding]:
        """Yield what was waiting for more, when there is no more."""
        for state in self._states.values():
            state.lose(self._gaps)
            yield from self._late(state, None)
        unanswered = RULES["pairing/unanswered"]
        for exchange in self.pending():
            request = exchange.request
            for fault in unanswered.check(request, self._states.get(request.session) or State()):
                yield self._finding(unanswered, fault, request)

    def pending(self) -> Iterator[Exchange]:
        """The exchanges without a message in answer, oldest first."""
        return self._conversation.pending()

    def _judged(self, message: Message | HttpUnit) -> list[Finding]:
        found: list[Finding] = []
        if self._as:
            message.revision = self._as
        self._t = message.t
        state = self._states.use(message.session)
        if state is None:
            lossy = self._gaps > 0 or self._forgetful
            state = State(lossy=lossy, gaps=self._gaps, budget=self._budget)
            self._states.add(message.session, state)
        state.lose(self._gaps)
        place = message.http
        if place:  # whether a client can be told from others may come to light later
            state.lossy = self._gaps > 0 or self._forgetful or message.session.partial
        if self._asked_late:
            found, self._asked_late = self._asked_late, []
        if state.later:
            found += self._late(state, message.t)
        late = message.t < self._conversation.newest
        try:
            for rule in self._rules(message, state):
                if late and rule.id.startswith(_ON_ORDER):
                    continue
                for fault in rule.check(message, state):
                    found.append(self._finding(rule, fault, message))
            if place:
                streams.learn(message, place, state)
            if isinstance(message, Message):
                learn(message, state)
            if state.over:
                self._states.finish(message.session)
        except RecursionError:  # nested nearly as deeply as Python goes; `jsonrpc/too-deep` is for those beyond
            pass
        return found

    def _rules(self, message: Message | HttpUnit, state: State) -> tuple[Rule, ...]:
        if message.frame and message.frame.omitted:  # of what was not decoded only the size is known
            return (RULES["framing/oversize"],) if isinstance(message, Message) else ()
        key = _key(message, state) if isinstance(message, Message) else _key_of_remark(message)
        rules = self._lists.get(key)
        if rules is None:
            method = key[1]
            if method is not None and not revisions_with_method(method):
                key = key[0], None, *key[2:]  # so that there are not as many lists as peers make up methods
            rules = self._lists.get(key)
        if rules is None:
            void = _ON_AGREEMENT if self._as else ()
            rules = tuple(rule for rule in RULES.values() if rule.id not in void and _concerns(rule, key))
            self._lists[key] = rules
        return rules

    def _rest(self, session: Session, state: State) -> None:
        """Ask what is due of a session that was idle for long; it keeps all it has while a question is not due."""
        state.lose(self._gaps)
        self._asked_late += self._late(state, self._t)
        if not state.later:
            state.rest()
            session.partial = True

    def _drop(self, _: Session, state: State) -> None:
        state.lose(self._gaps)
        self._asked_late += self._late(state, self._t)
        self._forgetful = True

    def _late(self, state: State, t: int | None) -> Iterator[Finding]:
        """Ask the questions whose time has come, or all of them at the end."""
        while state.later and (t is None or state.later[0][0] < t):
            _, rule, message, question = state.later.popleft()
            for fault in question():
                yield self._finding(rule, fault, message)

    def _finding(self, rule: Rule, fault: Fault, message: Message | HttpUnit) -> Finding:
        finding = rule.finding(fault, message)
        if self._noted:
            self._noted(finding, fault.at or message)
        return finding


def _key(message: Message, state: State) -> _Key:
    body = message.body
    if isinstance(body, _CALLS):
        method: str | None = body.method
    else:
        method = message.exchange.method if message.exchange else None
    return (
        type(body),
        method,
        message.revision,
        message.sender,
        plain.in_bytes(message),
        plain.in_shape(message),
        plain.in_meta(message),
        plain.in_pairing(message),
        plain.in_handshake(state),
        plain.in_http(message),
    )


def _key_of_remark(remark: HttpUnit) -> _Key:
    return HttpUnit, None, remark.revision, remark.sender, True, True, True, True, True, False


def _concerns(rule: Rule, key: _Key) -> bool:
    kind, method, revision, sender, *plainly = key
    if kind not in rule.on or (rule.methods and method not in rule.methods):
        return False
    if rule.about == "direction":
        if plain.in_direction(revision, method, sender):
            return False
    elif rule.about and plainly[_ASPECTS.index(rule.about)]:
        return False
    if revision is None:
        return set(rule.revisions) == set(Revision)  # what holds everywhere holds here
    return revision in rule.revisions
