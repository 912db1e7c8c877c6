"""The fold from records to messages and findings: the conversation, with every rule asked.

The theory. Which rules look at a message depends on its kind, method and revision, so each such combination has its own
short list. Most messages are exactly what their definition says (`mcpspy.protocol.exact`); the rules about shapes are
asked only about the others. A rule that would need what is recorded next has its question asked a second later.

A finding names an earlier frame as often as the present one; it comes out after the event that led to it.
"""

from collections.abc import Iterator

from mcpspy.jsonrpc import Invalid, Notification, Request
from mcpspy.protocol.conversation import Conversation, Event, Exchange, Message, Session
from mcpspy.protocol.methods import revisions_with_method
from mcpspy.protocol.revisions import Revision
from mcpspy.protocol.rules import RULES, Finding, Rule, shape
from mcpspy.protocol.rules.state import State, learn
from mcpspy.record import Gap, Record

_SHAPE = {
    "schema/invalid", "schema/unknown-method", "schema/method-not-in-revision", "schema/member-not-in-revision",
    "schema/deprecated", "schema/format", "jsonrpc/version-missing", "jsonrpc/id-null", "jsonrpc/id-type",
    "jsonrpc/id-fraction", "jsonrpc/result-and-error", "jsonrpc/extra-member", "framing/bom",
    "jsonrpc/lone-surrogate", "lifecycle/result-type-unknown", "lifecycle/discover-missing-meta",
    "tools/schema-not-object",
}  # fmt: skip
"""Rules that find nothing in a message that is exactly what its definition says."""


class Judge:
    """Folds the records of one capture; `feed` each, then `end`."""

    def __init__(self) -> None:
        self._conversation = Conversation()
        self._states: dict[Session, State] = {}
        self._lists: dict[tuple[type, str | None, Revision | None, bool], tuple[Rule, ...]] = {}
        self._lossy = False

    def feed(self, record: Record) -> Iterator[Event | Finding]:
        """Take the next record and yield what it completes: events, and findings about them or earlier ones."""
        for event in self._conversation.feed(record):
            yield event
            if isinstance(event, Message):
                yield from self._judged(event)
            elif isinstance(event, Gap):
                self._lose()

    def end(self) -> Iterator[Event | Finding]:
        """Yield what was waiting for more, when there is no more."""
        for event in self._conversation.end():
            yield event
            if isinstance(event, Message):
                yield from self._judged(event)
        for state in self._states.values():
            yield from _late(state, None)
        unanswered = RULES["pairing/unanswered"]
        for exchange in self.pending():
            request = exchange.request
            for fault in unanswered.check(request, self._states[request.session]):
                yield unanswered.finding(fault, request)

    def pending(self) -> Iterator[Exchange]:
        """The exchanges without an answer, oldest first."""
        return self._conversation.pending()

    def _judged(self, message: Message) -> Iterator[Finding]:
        state = self._states.get(message.session)
        if state is None:
            state = self._states[message.session] = State(lossy=self._lossy)
        if state.later:
            yield from _late(state, message.t)
        try:
            for rule in self._rules(message):
                for fault in rule.check(message, state):
                    yield rule.finding(fault, message)
            learn(message, state)
        except (
            RecursionError
        ):  # a message nested nearly as deeply as Python goes; `jsonrpc/too-deep` is for those beyond
            pass

    def _rules(self, message: Message) -> tuple[Rule, ...]:
        body = message.body
        if isinstance(body, Request | Notification):
            method: str | None = body.method
        else:
            method = message.exchange.method if message.exchange else None
        if method is not None and not revisions_with_method(method):
            method = None  # so that there are not as many lists as peers make up methods
        exact = not isinstance(body, Invalid) and shape.fits(message)
        key = (type(body), method, message.revision, exact)
        rules = self._lists.get(key)
        if rules is None:
            rules = self._lists[key] = tuple(rule for rule in RULES.values() if _concerns(rule, *key))
        return rules

    def _lose(self) -> None:
        self._lossy = True
        for state in self._states.values():
            state.lossy = True
            state.later.clear()
            state.early.clear()
            state.listing.complete = False


def _concerns(rule: Rule, kind: type, method: str | None, revision: Revision | None, exact: bool) -> bool:
    if kind not in rule.on or (exact and rule.id in _SHAPE) or (rule.methods and method not in rule.methods):
        return False
    if revision is None:
        return set(rule.revisions) == set(Revision)  # what holds everywhere holds here
    return revision in rule.revisions


def _late(state: State, t: int | None) -> Iterator[Finding]:
    """Ask the questions whose time has come, or all of them at the end."""
    while state.later and (t is None or state.later[0][0] < t):
        _, rule, message, question = state.later.popleft()
        for fault in question():
            yield rule.finding(fault, message)
