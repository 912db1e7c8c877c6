"""Watchers of a whole session: how long it takes, what it costs, and whether errors occurred."""

from collections.abc import Iterator

from mcpspy.capture.records import End, Frame, Gates, Header
from mcpspy.contract.expectations import NoErrors, SessionDuration, SessionTokens, StartedWithin, StderrWithout
from mcpspy.contract.watcher import CALL, WHOLE, Failure, Watcher
from mcpspy.conversation.model import Event, HttpUnit, Message, StreamEnd
from mcpspy.conversation.offers import page
from mcpspy.cost import TOKEN, compact_size, context_size, encoded_size, tokens_text
from mcpspy.json_values import excerpt, member
from mcpspy.text import duration_text, printable
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Request, Result

_UNAUTHORIZED = 401
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
    """Finds answers that are errors."""

    def __init__(self, expected: NoErrors) -> None:
        self._expected = expected
        self._channel = 0

    def add(self, event: Event) -> Iterator[Failure]:
        """Process the next event."""
        if isinstance(event, HttpUnit):
            yield from self._refused(event)
            return
        if not isinstance(event, Message) or event.exchange is None or isinstance(event.body, Request):
            return
        what = " ".join(filter(None, (event.exchange.method, event.exchange.name)))
        if isinstance(event.body, Error):
            code, told = (member(event.body.error, key) for key in ("code", "message"))
            answer = f"error {excerpt(code)}: {excerpt(told, 160)}"
            yield self._failure(f"{what}: {answer}", event, "/error")
        elif event.method == CALL and member(event.body.value, "result", "isError") is True:
            yield self._failure(f"{what}: the result has isError", event, "/result/isError")

    def _refused(self, event: HttpUnit) -> Iterator[Failure]:
        """Report requests that got an error status and no message. A 401 only requests a token, and is ignored."""
        code = status(event.http.opened.head)
        carried = event.http.request.carried if event.http.request else []
        refused = [it for it in carried if it.exchange and it.exchange.response is None]
        if event.http.failed and refused and code != _UNAUTHORIZED and event.http.opened.ch != self._channel:
            self._channel = event.http.opened.ch
            what = f"{refused[0].method}: status {code}"
            yield Failure(f"expected that {self._expected.text}; {what}", event.n, related=(refused[0].n,))

    def _failure(self, what: str, event: Message, where: str) -> Failure:
        related = (event.exchange.request.n,) if event.exchange else ()
        return Failure(f"expected that {self._expected.text}; {what}", event.n, where, related, event.sender)


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
