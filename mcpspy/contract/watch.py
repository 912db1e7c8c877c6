"""One capture checked against expectations: which are met, and which are not.

The theory. Each expectation has a watcher, which gets the events of the capture once, in their order. It reports a
violation at its event, and what was missing at the end. So only counters and a few line numbers are kept, however long
the capture is. A capture that is still being written has no end, so nothing counts as missing.

A capture counts as a whole. On stdio that is one session. Over HTTP there may be several, whose calls are counted
together. A request that continues an `input_required` answer is the same call. A request that a viewer sent is not
counted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mcpspy.capture.records import Header
from mcpspy.contract.calls import ArgumentsWatcher, CalledWatcher, DurationWatcher, ForbiddenWatcher, OrderWatcher
from mcpspy.contract.expectations import (
    CallOrder,
    Expectation,
    NoErrors,
    SessionDuration,
    SessionTokens,
    StartedWithin,
    StderrWithout,
    ToolArguments,
    ToolCalled,
    ToolDuration,
    ToolForbidden,
)
from mcpspy.contract.sessions import (
    ErrorsWatcher,
    SessionDurationWatcher,
    StartWatcher,
    StderrWatcher,
    TokensWatcher,
)
from mcpspy.contract.watcher import CALL, NAMED, Failure, SeenCall, Watcher
from mcpspy.conversation.model import Event, Exchange, Message
from mcpspy.conversation.outcomes import Outcome
from mcpspy.conversation.times import Times
from mcpspy.json_values import member
from mcpspy.rules import RULES, Finding, LocatedFinding
from mcpspy.wire.jsonrpc import Request


class Met(NamedTuple):
    """The outcome of one expectation."""

    title: str
    rule: str
    passed: bool | None
    """None: the capture is still being written, and the expectation is not met yet."""


def is_about(finding: Finding, met: Met) -> bool:
    """Return whether a finding reports that an expectation was not met."""
    return finding.rule == met.rule and finding.concerns == (met.title,)


_WATCHERS: dict[type[Expectation], Callable[..., Watcher]] = {
    ToolCalled: CalledWatcher,
    ToolForbidden: ForbiddenWatcher,
    ToolArguments: ArgumentsWatcher,
    ToolDuration: DurationWatcher,
    CallOrder: OrderWatcher,
    SessionTokens: TokensWatcher,
    NoErrors: ErrorsWatcher,
    StderrWithout: StderrWatcher,
}
_WITH_HEADER: dict[type[Expectation], Callable[..., Watcher]] = {
    SessionDuration: SessionDurationWatcher,
    StartedWithin: StartWatcher,
}
"""Watchers that also need to know how the capture was made."""


class ExpectationWatch:
    """Checks a capture against expectations. Call `add` for each event, then `end`."""

    def __init__(self, expected: Iterable[Expectation], header: Header) -> None:
        self._watched = [(it, _watcher(it, header)) for it in expected]
        self._failed: set[int] = set()  # the identities of expectations
        self._open: set[int] = set()
        self._times = Times()

    def add(self, event: Event | Outcome) -> Iterator[LocatedFinding]:
        """Process the next event, or an outcome. Yield violations."""
        if isinstance(event, Outcome):
            for expectation, watcher in self._watched:
                for failure in watcher.decided(event):
                    request = event.exchange.request if event.exchange else None
                    yield LocatedFinding(self._finding(expectation, failure), request)
            return
        self._times.add(event)
        for expectation, watcher in self._watched:
            for failure in watcher.add(event):
                yield LocatedFinding(self._finding(expectation, failure), event)
        if isinstance(event, Message) and event.exchange and event.method == CALL:
            for finding in self._call(event, event.exchange):
                yield LocatedFinding(finding, event)

    def _call(self, message: Message, exchange: Exchange) -> Iterator[Finding]:
        if isinstance(message.body, Request):
            if exchange.continues or (message.act and message.act.made):
                return
            arguments = member(message.body.params, "arguments")
            call = SeenCall(message.n, message.t, exchange.name or "", {} if arguments is None else arguments)
            for expectation, watcher in self._watched:
                yield from (self._finding(expectation, failure) for failure in watcher.called(call))
        elif exchange.latency is not None:
            asked = 0 if exchange.continues else self._times.asked.get(exchange.ordinal, 0)
            for expectation, watcher in self._watched:
                found = watcher.answered(exchange, exchange.latency - asked)
                yield from (self._finding(expectation, failure) for failure in found)

    def end(self, *, live: bool = False) -> Iterator[LocatedFinding]:
        """Process the end. If the capture is `live`, more may follow, and nothing is missing."""
        for expectation, watcher in self._watched:
            for failure in watcher.end():
                if live:
                    self._open.add(id(expectation))
                else:
                    yield LocatedFinding(self._finding(expectation, failure), None)

    @property
    def outcomes(self) -> tuple[Met, ...]:
        """The outcome of each expectation, after the end."""
        return tuple(Met(it.title, it.rule, self._passed(it)) for it, _ in self._watched)

    def _passed(self, expectation: Expectation) -> bool | None:
        if id(expectation) in self._failed:
            return False
        return None if id(expectation) in self._open else True

    def _finding(self, expectation: Expectation, failure: Failure) -> Finding:
        self._failed.add(id(expectation))
        rule = RULES[expectation.rule]
        return Finding(
            rule.id,
            rule.severity,
            failure.blame or expectation.blame,
            failure.frame,
            0,
            failure.related[:NAMED],
            failure.pointer,
            failure.message,
            None,
            rule.url(None),
            (expectation.title,),
        )


def _watcher(expected: Expectation, header: Header) -> Watcher:
    if type(expected) in _WITH_HEADER:
        return _WITH_HEADER[type(expected)](expected, header)
    return _WATCHERS[type(expected)](expected)
