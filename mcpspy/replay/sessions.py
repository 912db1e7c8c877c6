"""Comparison of two sessions: the outcome of each exchange, and of the server's other messages.

Exchanges are compared in pairs, which the caller makes: a replay knows what it sent, and two captures are paired by
their requests (`pair`). For each pair, the responses are compared, and the notifications that name the request
(progress, or those of a subscription), in their order. Messages that name no request depend on timing, so they are
compared over the whole session: requests of the server by their params, notifications by their number per method. Log
messages are compared only on request. A response to a request that was cancelled arrived in time by chance, so it is
not compared.

Pure. `Rules` (`mcpspy.replay.tolerance`) decide what counts as a difference.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from mcpspy.conversation.model import Message
from mcpspy.replay.differences import ABSENT, Difference, answer_differences, differences
from mcpspy.replay.issued_values import GIVEN_BACK
from mcpspy.replay.match import key, request_differences
from mcpspy.replay.script import LOG, Script, Turn, answer
from mcpspy.replay.tolerance import NO_RULES, Rules, with_changes
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result
from mcpspy.wire.subject import subject

T = TypeVar("T")
Outcome = Literal["same", "changed", "error-changed", "missing", "extra", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("same", "changed", "error-changed", "missing", "extra", "skipped")
FINE = frozenset(("same", "skipped"))
"""The outcomes that are not differences."""
_EACH = 20  # messages of one method that are reported singly; the rest is one difference


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome of one exchange, or of one message that belongs to none."""

    request: int | None
    """The line of the recorded capture that it began on; None if it was not recorded."""
    method: str | None
    """None for an invalid message."""
    name: str | None
    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    """Pointers into the response, or into the message if there is no response.

    `/notifications/0` is the first notification that names the request.
    """
    reason: str | None = None
    """Why it is missing or skipped, if that is known."""
    observed: int | None = None
    """The line of the observed capture that it began on; None if it was not observed."""


Pairs = Sequence[tuple[Turn | None, Turn | None]]
"""Turns that correspond, the recorded one first; one of the two may be None."""


def compare(
    recorded: Script,
    observed: Script,
    pairs: Pairs,
    rules: Rules,
    *,
    reasons: Mapping[Turn, str] = MappingProxyType({}),
    skipped: Container[Turn] = (),
) -> list[Compared]:
    """Compare two sessions; `reasons` are the reasons why turns are missing or were skipped."""
    found = [
        _exchange(old, new, rules, reasons.get(old) if old else None, skipped=old is not None and old in skipped)
        for old, new in pairs
        if (old or new).exchange  # type: ignore[union-attr]  # a pair has at least one
    ]
    unsaid = {line.message.n for old, new in pairs if old and not new for line in old.said}
    found += _requests([it for it in recorded.asked if it.n not in unsaid], observed.asked, rules)
    return found + _unasked([it for it in recorded.unasked if it.n not in unsaid], observed.unasked, rules)


def pair(recorded: Script, observed: Script, rules: Rules = NO_RULES) -> list[tuple[Turn | None, Turn | None]]:
    """Pair the requests of two sessions: equal requests in their order, then those of the same method and name.

    Requests are equal also if they differ only where the rules allow it.
    """
    old, new = ([turn for turn in script.turns if turn.exchange] for script in (recorded, observed))
    keys = {turn: _asks_the_same(turn) for turn in (*old, *new)}
    known = {keys[turn] for turn in old}
    for turn in new if rules.tolerances else ():
        if keys[turn] not in known:
            pool = (it for it in old if (it.method, it.name) == (turn.method, turn.name))
            keys[turn] = next((keys[it] for it in pool if not request_differences(it, turn, rules)), keys[turn])
    return _partners(old, new, keys.get, lambda turn: (turn.method, turn.name))


def _partners(old: list[T], new: list[T], *likenesses: Callable[[T], Any]) -> list[tuple[T | None, T | None]]:
    """Pair similar elements in their order: first by the first likeness, then by the next; others stay single."""
    partner: dict[int, int] = {}  # indexes in `new` by indexes in `old`
    for likeness in likenesses:
        taken = set(partner.values())
        waiting: dict[Any, deque[int]] = {}
        for place, it in enumerate(new):
            if place not in taken:
                waiting.setdefault(likeness(it), deque()).append(place)
        for place, it in enumerate(old):
            if place not in partner and (alike := waiting.get(likeness(it))):
                partner[place] = alike.popleft()
    taken = set(partner.values())
    pairs = [(it, new[partner[place]] if place in partner else None) for place, it in enumerate(old)]
    return [*pairs, *((None, it) for place, it in enumerate(new) if place not in taken)]


def _asks_the_same(turn: Turn) -> str:
    """Return a text that equal turns of two sessions share; it leaves out values that the server issued."""
    assert turn.method is not None
    params = turn.params
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name not in GIVEN_BACK}
    return key(turn.method, params)


def _exchange(old: Turn | None, new: Turn | None, rules: Rules, reason: str | None, *, skipped: bool) -> Compared:
    turn = old or new
    assert turn
    method, name = turn.method, turn.name
    lines = old.cause.n if old else None, new.cause.n if new else None
    if skipped:
        return Compared(lines[0], method, name, "skipped", (), reason)
    if new is None or old is None:
        told = (_answer(old), ABSENT) if old else (ABSENT, turn.cause.body.value)
        return _judged(lines, method, name, [Difference((), *told)], rules, "missing" if old else "extra", reason)
    found, outcome = _answers(old, new, rules)
    found += _notifications(old, new, rules)
    return _judged(lines, method, name, found, rules, outcome, reason if outcome == "missing" else None)


def _answers(old: Turn, new: Turn, rules: Rules) -> tuple[list[Difference], Outcome]:
    """Return where two responses differ, and the outcome in that case."""
    one, other = _answer(old), _answer(new)
    wrong = {turn.exchange.status for turn in (old, new) if turn.exchange} & {"error", "tool-error"}
    outcome: Outcome = "error-changed" if wrong else "changed"
    if old.changed or any(turn.exchange and turn.exchange.cancelled for turn in (old, new)) or one is other:
        return [], "changed"
    if one is ABSENT or other is ABSENT:
        return [Difference((), one, other)], "missing" if other is ABSENT else outcome
    echoed = rules.echoed(old.method or "", old.name, old.params, new.params, one)
    return answer_differences(with_changes(one, echoed), other, shape=rules.shape), outcome


def _answer(turn: Turn) -> Any:
    body = turn.response.body if turn.response else None
    return answer(body) if isinstance(body, Result | Error) else ABSENT


def _notifications(old: Turn, new: Turn, rules: Rules) -> list[Difference]:
    """Return where the notifications that name two requests differ."""
    found = []
    for place, pair in enumerate(zip_longest(old.linked, new.linked)):
        one, other = (_said(message) if message else ABSENT for message in pair)
        there = differences(one, other, shape=rules.shape)
        found += [replace(it, path=("notifications", place, *it.path)) for it in there]
    return found


def _said(message: Message) -> Any:
    """Return a message without its envelope, or the raw text if it is invalid; an orphan response keeps its id."""
    value = message.body.value
    if not isinstance(value, dict):
        return message.frame.raw.decode(errors="replace")
    envelope = ("jsonrpc", "id") if isinstance(message.body, Request) else ("jsonrpc",)
    return {name: inner for name, inner in value.items() if name not in envelope}


def _requests(old: list[Message], new: list[Message], rules: Rules) -> list[Compared]:
    """Compare the requests of the server per method: equal ones first, the rest in order."""
    return [_unasked_pair(one, other, rules) for one, other in _partners(old, new, _request_key, _method)]


def _unasked_pair(old: Message | None, new: Message | None, rules: Rules) -> Compared:
    """Compare two messages of the server that are not responses; one of them may be missing."""
    message = old or new
    assert message
    method = _method(message)
    name = subject(method, message.body.value.get("params")) if method else None
    lines = old.n if old else None, new.n if new else None
    if old and new:
        return _judged(lines, method, name, differences(_said(old), _said(new), shape=rules.shape), rules, "changed")
    told = (_said(old), ABSENT) if old else (ABSENT, _said(message))
    return _judged(lines, method, name, [Difference((), *told)], rules, "missing" if old else "extra")


def _unasked(old: list[Message], new: list[Message], rules: Rules) -> list[Compared]:
    """Compare the number of notifications per method, and the number of orphan responses and invalid messages."""
    groups: list[dict[str | None, list[Message]]] = []
    for messages in (old, new):
        groups.append({})
        for message in messages:
            method = _method(message)
            if rules.strict or method != LOG:
                groups[-1].setdefault(method, []).append(message)
    found = []
    for method in [*groups[0], *(method for method in groups[1] if method not in groups[0])]:
        one, other = groups[0].get(method, []), groups[1].get(method, [])
        missing, extra = one[len(other) :], other[len(one) :]
        found += [_unasked_pair(message, None, rules) for message in missing[:_EACH]]
        found += [_unasked_pair(None, message, rules) for message in extra[:_EACH]]
        more = len(missing or extra) - _EACH
        if more > 0 and found[-1].outcome not in FINE:
            found[-1] = replace(found[-1], reason=f"and {more:,} more")
    return found


def _judged(
    lines: tuple[int | None, int | None],
    method: str | None,
    name: str | None,
    found: Iterable[Difference],
    rules: Rules,
    outcome: Outcome,
    reason: str | None = None,
) -> Compared:
    left = tuple(rules.unexpected(method, name, found))
    return Compared(lines[0], method, name, outcome if left else "same", left, reason if left else None, lines[1])


def _request_key(message: Message) -> str:
    body = message.body
    assert isinstance(body, Request)
    return key(body.method, body.params)


def _method(message: Message) -> str | None:
    return message.body.method if isinstance(message.body, Request | Notification) else None
