"""Which exchanges are open at each row, and who is waited for before it: what a sequence diagram draws.

A request opens a bracket on the side of who has to answer, and its answer closes it; a request of the server while it
answers one of the client's lies inside that. While a bracket is open, somebody is waited for, and the innermost of them
counts: a person whom an elicitation or a sampling request has to be put to, else the client, else the server. From
2026-07-28 on a server asks by a result that wants input; what it asks for is waited for until the client comes back
with it.

The rows are gone through in their order, a few at a time, as far as the fold has come: up to there their order is
final. What is kept of one are three bytes, so that any of them can be drawn at once.
"""

import time
from array import array
from typing import NamedTuple, Protocol

from mcpspy.capture.index import Index
from mcpspy.conversation.model import ENDLESS
from mcpspy.conversation.times import PERSONAL
from mcpspy.json_values import member
from mcpspy.timeline import Row
from mcpspy.wire.jsonrpc import Id

DEEPEST = 8
"""Brackets that can be open on either side at once: more are not drawn."""
_BITS = (1 << DEEPEST) - 1
STALE = 1000
"""Rows after which a bracket without an answer gives way to another, and nobody waits for input."""
_MOST = 64  # exchanges that are followed at once
_STEP = 32  # rows gone through between looks at the clock

_NOBODY, _SERVER, _CLIENT, _PERSON = range(4)
_WAITED = ("", "server", "client", "person")
_CARRIED = ("request", "http")


class Folded(Protocol):
    """What this module needs from an open capture."""

    index: Index

    def known(self, n: int) -> Row | None:
        """A new row: that on line `n`, without its text, as the fold knows it by now; its kind may be `batch`."""

    def partner(self, place: int) -> int | None:
        """The place of the response to a request, or of the request that a response answers."""

    def continues(self, place: int) -> int:
        """The line number of the answer `input_required` that the request at that place goes on from, else 0."""

    def inputs(self, place: int) -> frozenset[str] | None:
        """The methods of what the response at that place asks for; None where it is not `input_required`."""

    def messages(self, place: int) -> list[Row]:
        """The decoded rows at that place."""


class Lane(NamedTuple):
    """How a row stands among the exchanges."""

    before: int = 0
    """The brackets that were open before it, a bit each: the low byte those of the client's requests, the high byte
    those of the server's."""
    after: int = 0
    """Those that are open after it."""
    waited: str = ""
    """For whom since the row above: server, client or person."""


class _Open(NamedTuple):
    bracket: int
    """Its bit, or 0."""
    waits: int
    """For whom."""


class Lanes:
    """The lanes of one session; `grow` while that grows."""

    def __init__(self, capture: Folded) -> None:
        self._capture = capture
        self._after, self._waited = array("H"), bytearray()  # by place
        self._brackets = 0
        self._open: dict[int, _Open] = {}  # by the place of the request
        self._rounds: dict[int, int] = {}  # by the line of a result that asks for input: who has to give it

    def __len__(self) -> int:
        """How many rows are gone through."""
        return len(self._after)

    def at(self, place: int) -> Lane:
        """The lane of the row at that place; an empty one where nobody has been yet."""
        if place >= len(self._after):
            return Lane()
        before = self._after[place - 1] if place else 0
        return Lane(before, self._after[place], _WAITED[self._waited[place]])

    def grow(self, seconds: float) -> bool:
        """Go on for about that long; tells whether there is more to do now."""
        deadline = time.perf_counter() + seconds
        rows = self._capture.index.rows
        while len(self) < len(rows):
            for n in rows[len(self) : len(self) + _STEP]:
                row = self._capture.known(n)
                if row is None:
                    return False
                self._add(row)
            if time.perf_counter() > deadline:
                return True
        return False

    def _add(self, row: Row) -> None:
        oldest = next(iter(self._rounds), row.n)
        if row.n - oldest > STALE:
            del self._rounds[oldest]
        self._waited.append(self._whom())
        if row.kind in _CARRIED and self._open and self._capture.index.header.transport != "stdio":
            for place in [place for place in self._open if self._is_void(place)]:
                self._close(place)
            self._after[-1] = self._brackets  # that was before this row
        if row.kind == "request":
            self._ask(row)
        elif row.kind in ("result", "error"):
            self._close(self._capture.partner(len(self)))
            inputs = self._capture.inputs(len(self))
            if inputs is not None and len(self._rounds) < _MOST:
                self._rounds[row.n] = _PERSON if inputs.intersection(PERSONAL) else _CLIENT
        elif row.method == "notifications/cancelled":
            self._cancel(row)
        elif row.kind == "gap":  # answers may be lost
            self._open.clear()
            self._rounds.clear()
            self._brackets = 0
        self._after.append(self._brackets)

    def _whom(self) -> int:
        """Who is waited for now."""
        waits = [found.waits for found in self._open.values()]
        return max((*waits, *self._rounds.values()), default=_NOBODY)

    def _ask(self, row: Row) -> None:
        self._rounds.pop(self._capture.continues(len(self)), None)
        if row.method == ENDLESS or len(self._open) >= _MOST:
            return
        if row.sender == "client":
            waits, shift = _SERVER, 0
        else:
            waits, shift = _PERSON if row.method in PERSONAL else _CLIENT, DEEPEST
        taken = self._brackets >> shift & _BITS
        free = ~taken & (taken + 1) & _BITS  # the lowest
        bracket = free << shift or self._stale(_BITS << shift)
        self._brackets |= bracket
        self._open[len(self)] = _Open(bracket, waits)

    def _close(self, place: int | None) -> None:
        found = self._open.pop(place, None) if place is not None else None
        if found:
            self._brackets &= ~found.bracket

    def _stale(self, side: int) -> int:
        """The bracket of the oldest exchange on a side, where that has gone without an answer for very long."""
        for place, found in self._open.items():
            if found.bracket & side:
                if len(self) - place < STALE:
                    break
                self._open[place] = found._replace(bracket=0)
                return found.bracket
        return 0

    def _cancel(self, row: Row) -> None:
        """Nobody waits any more for what a notification cancels."""
        for message in self._capture.messages(len(self)):
            wanted = Id.of(member(message.value, "params", "requestId"))
            for place in list(self._open):
                asked = self._capture.known(self._capture.index.rows[place])
                if asked and (asked.id, asked.sender, asked.status) == (wanted, row.sender, "cancelled"):
                    self._close(place)

    def _is_void(self, place: int) -> bool:
        """Over HTTP: whether a status was all the answer that a request got, or its client has hung up."""
        row = self._capture.known(self._capture.index.rows[place])
        return row is None or (row.status in ("error", "cancelled") and row.response is None)
