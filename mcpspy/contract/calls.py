"""Watchers of calls: how often a tool is called, with which arguments, in which order, and how long it takes."""

from collections.abc import Iterator
from dataclasses import replace

from mcpspy.contract.expectations import CallOrder, OfTool, ToolArguments, ToolCalled, ToolDuration, ToolForbidden
from mcpspy.contract.watcher import NAMED, Failure, SeenCall, Watcher
from mcpspy.conversation.model import Exchange
from mcpspy.spec.peer_schemas import Foreign, Validity
from mcpspy.text import duration_text, plural

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
