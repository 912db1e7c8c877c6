"""One capture checked against expectations: which are met, and which are not.

Each expectation has a watcher, which gets the events of the capture once, in their order. It reports a violation at its
event, and what was missing at the end. So only counters and a few line numbers are kept, however long the capture is.
A capture that is still being written has no end, so nothing counts as missing.

Some watchers look at calls: how often a tool is called, with which arguments, in which order, and how long it takes.
Others look at a whole session: how long it takes, what it costs, and whether errors occurred.

A capture counts as a whole. On stdio that is one session. Over HTTP there may be several, whose calls are counted
together. A request that continues an `input_required` answer is the same call. A request that a viewer sent is not
counted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from mcpspy.capture.records import End, Frame, Gates, Header
from mcpspy.contract.expectations import (
    CallOrder,
    Expectation,
    NoErrors,
    OfTool,
    SessionDuration,
    SessionTokens,
    StartedWithin,
    StderrWithout,
    ToolArguments,
    ToolCalled,
    ToolDuration,
    ToolForbidden,
)
from mcpspy.conversation.model import Event, Exchange, Message, StreamEnd
from mcpspy.conversation.offers import page
from mcpspy.conversation.outcomes import Outcome, has_failed, may_turn_out_expected
from mcpspy.conversation.times import Times
from mcpspy.cost import TOKEN, compact_size, context_size, encoded_size, tokens_text
from mcpspy.json_values import excerpt, member
from mcpspy.rules import RULES, Finding, LocatedFinding
from mcpspy.spec.peer_schemas import Foreign, Validity
from mcpspy.text import duration_text, plural, printable
from mcpspy.wire.jsonrpc import Error, Request, Result

WHOLE = 1
"""The line number for what is about no frame: that of the header."""
NAMED = 20
"""The number of frames that a failure names."""
CALL = "tools/call"


class Failure(NamedTuple):
    """A violation of an expectation."""

    message: str
    frame: int = WHOLE
    pointer: str = ""
    related: tuple[int, ...] = ()
    blame: str | None = None
    """The responsible side, if it differs from that of the expectation."""


class SeenCall(NamedTuple):
    """A call of a tool."""

    n: int
    t: int
    name: str
    arguments: Any


class Watcher:
    """Checks a session against one expectation. Each method yields violations."""

    def add(self, event: Event) -> Iterator[Failure]:  # noqa: ARG002 (most look at calls only)
        """Process the next event."""
        return iter(())

    def decided(self, outcome: Outcome) -> Iterator[Failure]:  # noqa: ARG002 (one looks at them)
        """Process the next outcome that no event shows."""
        return iter(())

    def called(self, call: SeenCall) -> Iterator[Failure]:  # noqa: ARG002 (some look at answers only)
        """Process the next tool call."""
        return iter(())

    def answered(self, exchange: Exchange, took: int) -> Iterator[Failure]:  # noqa: ARG002 (few look at answers)
        """Process the answer to a call. `took` is the time of the tool in nanoseconds."""
        return iter(())

    def end(self) -> Iterator[Failure]:
        """Process the end of the capture."""
        return iter(())


_SHOWN = 3  # calls with other arguments that a sentence names


class CalledWatcher(Watcher):
    """Counts the calls of a tool, and remembers those with other arguments."""

    def __init__(self, expected: ToolCalled) -> None:
        self._expected = expected
        self._frames: list[int] = []
        self._count = 0
        self._near: list[str] = []
        self._others: list[int] = []

    def called(self, call: SeenCall) -> Iterator[Failure]:
        """Process the next tool call."""
        expected = self._expected
        if not expected.counts(call.name, call.arguments):
            self._note(call)
            return
        self._count += 1
        if expected.most is not None and self._count > expected.most:
            message = f"expected that {expected.text}; this is call {self._count:,}"
            yield Failure(message, call.n, related=tuple(self._frames))
        if len(self._frames) < NAMED:
            self._frames.append(call.n)

    def _note(self, call: SeenCall) -> None:
        """Remember a call of the tool with other arguments."""
        expected = self._expected
        if len(self._near) < _SHOWN and OfTool.counts(replace(expected, wanted=()), call.name, None):
            where = expected.misses(call.arguments)[0]
            self._near.append(f"#{call.n} has {where} {expected.seen(call.arguments, where)}")
            self._others.append(call.n)

    def end(self) -> Iterator[Failure]:
        """Report what is missing."""
        if self._count < self._expected.least:
            seen = plural(self._count, "call") if self._count else "no call"
            near = f"; {', '.join(self._near)}" if self._near else ""
            message = f"expected that {self._expected.text}; there was {seen}{near}"
            yield Failure(message, related=(*self._frames, *self._others))


class ForbiddenWatcher(Watcher):
    """Finds calls of a forbidden tool."""

    def __init__(self, expected: ToolForbidden) -> None:
        self._expected = expected

    def called(self, call: SeenCall) -> Iterator[Failure]:
        """Process the next tool call."""
        if self._expected.counts(call.name, call.arguments):
            yield Failure(f"expected that {self._expected.text}; it is called here", call.n, "/params/name")


class ArgumentsWatcher(Watcher):
    """Validates the arguments of calls against a schema."""

    def __init__(self, expected: ToolArguments) -> None:
        self._expected = expected
        self._schema = Foreign(expected.schema)

    def called(self, call: SeenCall) -> Iterator[Failure]:
        """Process the next tool call."""
        if not self._expected.counts(call.name, call.arguments):
            return
        found = self._schema.judge(call.arguments)
        if found.outcome is not Validity.VALID:
            why = found.message or found.outcome.value
            message = f"expected that {self._expected.text}: {why}"
            yield Failure(message, call.n, f"/params/arguments{found.pointer}")


class DurationWatcher(Watcher):
    """Compares the duration of calls with the limit."""

    def __init__(self, expected: ToolDuration) -> None:
        self._expected = expected
        self._open: dict[int, None] = {}  # the line numbers of calls without an answer

    def called(self, call: SeenCall) -> Iterator[Failure]:
        """Process the next tool call."""
        if self._expected.counts(call.name, call.arguments):
            self._open[call.n] = None
        return iter(())

    def answered(self, exchange: Exchange, took: int) -> Iterator[Failure]:
        """Process the answer to a call."""
        n = exchange.request.n
        if n in self._open:
            del self._open[n]
            if took > self._expected.most:
                answer = exchange.response.n if exchange.response else n
                message = f"expected that {self._expected.text}; it took {duration_text(took)}"
                yield Failure(message, answer, related=(n,))

    def end(self) -> Iterator[Failure]:
        """Report the calls without an answer."""
        for n in self._open:
            yield Failure(f"expected that {self._expected.text}; it was not answered", n)


class OrderWatcher(Watcher):
    """Compares the order of calls with the expected order."""

    def __init__(self, expected: CallOrder) -> None:
        self._expected = expected
        self._frames: list[int] = []
        self._early: list[int] = []

    def called(self, call: SeenCall) -> Iterator[Failure]:
        """Process the next tool call."""
        left = self._expected.tools[len(self._frames) :]
        if left and OfTool(None, left[0], ()).counts(call.name, None):
            self._frames.append(call.n)
        elif left and len(self._early) < NAMED and any(OfTool(None, it, ()).counts(call.name, None) for it in left):
            self._early.append(call.n)
        return iter(())

    def end(self) -> Iterator[Failure]:
        """Report what is missing."""
        tools, done = self._expected.tools, len(self._frames)
        if done < len(tools):
            after = f" after {tools[done - 1]} (#{self._frames[-1]})" if done else ""
            message = f"expected that {self._expected.text}; {tools[done]} was not called{after}"
            yield Failure(message, related=(*self._frames, *self._early))


KEPT = 1000
"""Failures that may turn out to be normal, at most."""
_TOOLS = 3000  # tools whose definitions are counted separately


class SessionDurationWatcher(Watcher):
    """Compares the duration of a session with the limit."""

    def __init__(self, expected: SessionDuration, header: Header) -> None:
        self._expected = expected
        self._stdio = header.transport == "stdio"  # a proxy keeps running after the end of its sessions
        self._first: int | None = None
        self._last = self._over = 0

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        if isinstance(event, Message):
            self._first = event.t if self._first is None else self._first
        elif self._first is None or isinstance(event, Gates if self._stdio else Gates | End | StreamEnd):
            return
        self._last = max(self._last, event.t)
        if not self._over and self._last - self._first > self._expected.most:
            self._over = event.n
            took = duration_text(self._last - self._first)
            yield Failure(f"expected that {self._expected.text}; this is after {took}", event.n)


class TokensWatcher(Watcher):
    """Adds up what a model has to read."""

    def __init__(self, expected: SessionTokens) -> None:
        self._expected = expected
        self._definitions: dict[str, int] = {}  # bytes, by tool
        self._results = 0
        self._told = False

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        if self._told or not isinstance(event, Message) or not isinstance(event.body, Result):
            return
        found = page(event)
        if found and found.kind == "tools":
            for entry in found.entries or ():
                if len(self._definitions) < _TOOLS:
                    self._definitions[str(member(entry, "name"))[:200]] = context_size(entry)
        elif event.method == CALL:
            result, frame = event.body.result, event.frame
            self._results += frame.size if frame.omitted else compact_size(result) - encoded_size(result)
        definitions = sum(self._definitions.values())
        if (definitions + self._results) // TOKEN > self._expected.most:
            self._told = True
            parts = f"definitions {tokens_text(definitions)}, results {tokens_text(self._results)} so far"
            yield Failure(f"expected that {self._expected.text}; {parts}", event.n)


class ErrorsWatcher(Watcher):
    """Finds requests that have failed.

    If something later may show that a failure is normal, it is reported at the end, or when too many are kept.
    """

    def __init__(self, expected: NoErrors) -> None:
        self._expected = expected
        self._kept: dict[tuple[int, int], Failure] = {}  # by line and part of the request

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        exchange = event.exchange if isinstance(event, Message) else None
        if not isinstance(event, Message) or exchange is None or exchange.response is not event:
            return
        place = exchange.request.n, exchange.request.part
        self._kept.pop(place, None)
        if exchange.outcome in ("error", "tool-error") and has_failed(exchange.outcome, exchange.expected):
            answer, pointer = "the result has isError", "/result/isError"
            if isinstance(event.body, Error):
                code, told = (member(event.body.error, key) for key in ("code", "message"))
                answer, pointer = f"error {excerpt(code)}: {excerpt(told, 160)}", "/error"
            message = f"expected that {self._expected.text}; {_subject(exchange)}: {answer}"
            failure = Failure(message, event.n, pointer, (exchange.request.n,), event.sender)
            yield from self._take(place, failure, keep=may_turn_out_expected(exchange))
        elif exchange.fate and exchange.fate.how == "late":  # no outcome was decided before the answer
            message = f"expected that {self._expected.text}; {_subject(exchange)}: {exchange.outcome}"
            yield Failure(message, event.n, "", (exchange.request.n,), event.sender)

    def decided(self, outcome: Outcome) -> Iterator[Failure]:
        """Process the next outcome that no event shows."""
        place, exchange = (outcome.n, outcome.part), outcome.exchange
        self._kept.pop(place, None)
        if not outcome.failed:
            return
        subject, answer, blame = "a call", None, "server"
        if exchange:
            subject, answer = _subject(exchange), exchange.fate.answer if exchange.fate else None
            blame = "client" if exchange.request.side == "server" else "server"
        elif outcome.request:
            subject = f"{outcome.request.summary['method']} {outcome.request.summary['target']}"
            answer = outcome.answer
        status = f", status {answer.summary['status']}" if answer and answer.summary["status"] else ""
        message = f"expected that {self._expected.text}; {subject}: {outcome.outcome}{status}"
        keep = may_turn_out_expected(exchange) if exchange else outcome.request is not None
        yield from self._take(place, Failure(message, outcome.n, blame=blame), keep=keep)

    def end(self) -> Iterator[Failure]:
        """Report the failures that are not normal after all."""
        yield from self._kept.values()

    def _take(self, place: tuple[int, int], failure: Failure, *, keep: bool) -> Iterator[Failure]:
        """Yield a failure, or keep it; if there are too many, yield the oldest one."""
        if not keep:
            yield failure
            return
        self._kept[place] = failure
        if len(self._kept) > KEPT:
            yield self._kept.pop(next(iter(self._kept)))


def _subject(exchange: Exchange) -> str:
    return " ".join(filter(None, (exchange.method, exchange.name)))


class StderrWatcher(Watcher):
    """Searches the lines of stderr."""

    def __init__(self, expected: StderrWithout) -> None:
        self._expected = expected

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        if isinstance(event, Frame):
            line = event.raw.decode(errors="replace")
            if self._expected.finds(line):
                yield Failure(f"expected that {self._expected.text}; {printable(line.strip(), 160)}", event.n)


class StartWatcher(Watcher):
    """Compares the time until the first answer with the limit."""

    def __init__(self, expected: StartedWithin, header: Header) -> None:
        self._expected = expected
        self._begun: int | None = 0 if header.transport == "stdio" else None
        self._asked = WHOLE
        self._done = False

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        if self._done or not isinstance(event, Message) or event.exchange is None:
            return
        if isinstance(event.body, Request) and event.side == "client" and self._asked == WHOLE:
            self._asked = event.n
            self._begun = event.t if self._begun is None else self._begun
        elif isinstance(event.body, Result | Error) and event.sender == "server":
            self._done = True
            took = event.t - (self._begun or 0)
            if took > self._expected.most:
                message = f"expected that {self._expected.text}; the first answer came after {duration_text(took)}"
                yield Failure(message, event.n, related=(event.exchange.request.n,))

    def end(self) -> Iterator[Failure]:
        """Report that there was no answer."""
        if not self._done:
            yield Failure(f"expected that {self._expected.text}; it answered nothing", self._asked)


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
