"""Watchers of a whole session: how long it takes, what it costs, and whether errors occurred."""

from collections.abc import Iterator

from mcpspy.capture.records import End, Frame, Gates, Header
from mcpspy.contract.expectations import NoErrors, SessionDuration, SessionTokens, StartedWithin, StderrWithout
from mcpspy.contract.watcher import CALL, WHOLE, Failure, Watcher
from mcpspy.conversation.model import Event, Exchange, Message, StreamEnd
from mcpspy.conversation.offers import page
from mcpspy.conversation.outcomes import Outcome, has_failed, may_turn_out_expected
from mcpspy.cost import TOKEN, compact_size, context_size, encoded_size, tokens_text
from mcpspy.json_values import excerpt, member
from mcpspy.text import duration_text, printable
from mcpspy.wire.jsonrpc import Error, Request, Result

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
