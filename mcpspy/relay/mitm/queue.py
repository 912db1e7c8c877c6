"""Record what has been forwarded, in short turns of the event loop.

Other traffic must not wait for a recording. So a compressed body, which may decode to many times its size, is decoded
piece by piece.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from mcpspy.relay.mitm.flow import Flow

CODED_PIECE = 1024
"""Bytes of a compressed body that are decoded at once; one byte may decode to a thousand."""
TURN = 5_000_000
"""Nanoseconds of decoding in one turn of the event loop."""
BACKLOG = 16 << 20
"""Bytes of a flow that may wait to be recorded; if there are more, the turn goes on and other traffic waits."""


class Turns:
    """The entries of a flow that are forwarded and not recorded yet, in order; a compressed body takes many turns.

    `later` schedules a function for a later turn of the event loop.
    """

    def __init__(self, flow: Flow, later: Callable[[Callable[[], None]], object]) -> None:
        self.flow = flow
        self._later = later
        self._waiting: deque[Callable[[], bool]] = deque()  # each returns whether it decoded a compressed body
        self._size = 0

    def add(self, record: Callable[[Flow, int], object]) -> None:
        """Add an entry; `record` is called with the current time, unless the flow is over by then."""
        t = self.flow.origin.now()

        def step() -> bool:
            if not self.flow.over:
                record(self.flow, t)
            return False

        self._append(step)

    def feed(self, chunk: bytes, *, by_client: bool) -> None:
        """Add bytes of a body: of the request, or of the response."""
        t, rest = self.flow.origin.now(), chunk
        self._size += len(chunk)

        def step() -> bool:
            nonlocal rest
            body = self.flow.request if by_client else self.flow.response
            coded = body is not None and body.coded
            piece = rest[:CODED_PIECE] if coded and not self.flow.pending.discarded else rest
            self._size -= len(piece)
            rest = rest[len(piece) :]
            if rest:
                self._waiting.appendleft(step)
            if body and not self.flow.pending.discarded:
                body.feed(piece, t)
            return coded

        self._append(step)

    def finish(self) -> None:
        """Record everything now; an exception of a bug stops it silently."""
        with suppress(Exception):
            while self._waiting:
                self._waiting.popleft()()

    def _append(self, step: Callable[[], bool]) -> None:
        self._waiting.append(step)
        if len(self._waiting) == 1:
            self._later(self._turn)

    def _turn(self) -> None:
        until = time.monotonic_ns() + TURN
        try:
            while self._waiting:
                coded = self._waiting.popleft()()
                if coded and time.monotonic_ns() >= until and self._size <= BACKLOG:
                    break
        finally:
            if self._waiting:
                self._later(self._turn)
