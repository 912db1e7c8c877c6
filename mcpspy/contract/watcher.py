"""What holds a session to one expectation: what it is given, and what it tells."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpspy.conversation.model import Event, Exchange

WHOLE = 1
"""The line number of what is about no frame: that of the header."""
NAMED = 20
"""Frames that a failure names."""
CALL = "tools/call"


class Failure(NamedTuple):
    """What is not as expected."""

    message: str
    frame: int = WHOLE
    pointer: str = ""
    related: tuple[int, ...] = ()
    blame: str | None = None
    """Where it is not who the expectation names."""


class SeenCall(NamedTuple):
    """A call of a tool."""

    n: int
    t: int
    name: str
    arguments: Any


class Watcher:
    """Holds a session to one expectation; each method yields what is not as expected."""

    def add(self, event: Event) -> Iterator[Failure]:  # noqa: ARG002 (most look at calls only)
        """Take the next event."""
        return iter(())

    def called(self, call: SeenCall) -> Iterator[Failure]:  # noqa: ARG002 (some look at answers only)
        """Take the next call of a tool."""
        return iter(())

    def answered(self, exchange: Exchange, took: int) -> Iterator[Failure]:  # noqa: ARG002 (few look at answers)
        """Take the answer to a call, and the nanoseconds that the tool took."""
        return iter(())

    def end(self) -> Iterator[Failure]:
        """Nothing more comes."""
        return iter(())
