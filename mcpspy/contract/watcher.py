"""The base of what checks a session against one expectation: what it receives, and what it reports."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpspy.conversation.model import Event, Exchange
from mcpspy.conversation.outcomes import Outcome

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
