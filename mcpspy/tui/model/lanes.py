"""The open exchanges at each row, and who was being waited for before it, for the sequence diagram.

A request opens a bracket on the side that has to answer, and its response closes the bracket. If a server sends a
request while it processes one of the client, the bracket of the server's request is inside the other one. While
brackets are open, the diagram names the innermost party that is waited for: a person, if an elicitation or sampling
request is open; else the client; else the server. Since 2026-07-28 a server requests input with an `input_required`
result; then the client or the person is waited for until the client continues with a new request.

The rows are read in order, a few at a time, up to the position of the fold, because their order is final there. Each
row needs only three bytes, so that any row can be drawn at once.
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
"""The maximum number of brackets open on one side at once; more are not drawn."""
_BITS = (1 << DEEPEST) - 1
STALE = 1000
"""Number of rows after which an unanswered bracket may be reused, and requested input is no longer waited for."""
_MOST = 64  # maximum number of exchanges followed at once
_STEP = 32  # rows read between checks of the clock

_NOBODY, _SERVER, _CLIENT, _PERSON = range(4)
_WAITED = ("", "server", "client", "person")
_CARRIED = ("request", "http")


class Folded(Protocol):
    """The interface to an open capture that this module needs."""

    index: Index

    def known(self, n: int) -> Row | None:
        """Return the row on line `n` as a new object, without text, as far as it is folded; its kind may be `batch`."""

    def partner(self, place: int) -> int | None:
        """Return the place of the response to a request, or of the request of a response."""

    def continues(self, place: int) -> int:
        """Return the line number of the `input_required` result that the request at a place continues, else 0."""

    def inputs(self, place: int) -> frozenset[str] | None:
        """Return the methods that the response at a place requests input for; None if it is not `input_required`."""

    def messages(self, place: int) -> list[Row]:
        """Return the decoded rows at a place."""


class Lane(NamedTuple):
    """The open brackets around a row."""

    before: int = 0
    """The brackets open before the row, one bit each: the low byte for requests of the client, the high byte for
    requests of the server."""
    after: int = 0
    """The brackets open after the row."""
    waited: str = ""
    """Who was waited for since the row above: server, client or person; empty if nobody."""


class _Open(NamedTuple):
    bracket: int
    """The bit of the bracket; 0 if it has none."""
    waits: int
    """Who is waited for."""


class Lanes:
    """The lanes of one session; call `grow` while the session grows."""

    def __init__(self, capture: Folded) -> None:
        self._capture = capture
        self._after, self._waited = array("H"), bytearray()  # by place
        self._brackets = 0
        self._open: dict[int, _Open] = {}  # by the place of the request
        self._rounds: dict[int, int] = {}  # line of an `input_required` result -> who has to give the input

    def __len__(self) -> int:
        """The number of rows read so far."""
        return len(self._after)

    def at(self, place: int) -> Lane:
        """Return the lane of the row at a place; an empty lane if the row is not read yet."""
        if place >= len(self._after):
            return Lane()
        before = self._after[place - 1] if place else 0
        return Lane(before, self._after[place], _WAITED[self._waited[place]])

    def grow(self, seconds: float) -> bool:
        """Read rows for about `seconds`. Returns whether there is more to do now."""
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
            self._after[-1] = self._brackets  # these exchanges ended before this row
        if row.kind == "request":
            self._ask(row)
        elif row.kind in ("result", "error"):
            self._close(self._capture.partner(len(self)))
            inputs = self._capture.inputs(len(self))
            if inputs is not None and len(self._rounds) < _MOST:
                self._rounds[row.n] = _PERSON if inputs.intersection(PERSONAL) else _CLIENT
        elif row.method == "notifications/cancelled":
            self._cancel(row)
        elif row.kind == "gap":  # responses may be lost
            self._open.clear()
            self._rounds.clear()
            self._brackets = 0
        self._after.append(self._brackets)

    def _whom(self) -> int:
        """Return who is waited for now."""
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
        free = ~taken & (taken + 1) & _BITS  # the lowest free bit
        bracket = free << shift or self._stale(_BITS << shift)
        self._brackets |= bracket
        self._open[len(self)] = _Open(bracket, waits)

    def _close(self, place: int | None) -> None:
        found = self._open.pop(place, None) if place is not None else None
        if found:
            self._brackets &= ~found.bracket

    def _stale(self, side: int) -> int:
        """Return the bracket of the oldest exchange on a side if it is unanswered since STALE rows, else 0."""
        for place, found in self._open.items():
            if found.bracket & side:
                if len(self) - place < STALE:
                    break
                self._open[place] = found._replace(bracket=0)
                return found.bracket
        return 0

    def _cancel(self, row: Row) -> None:
        """Close the bracket of the request that a notification cancels."""
        for message in self._capture.messages(len(self)):
            wanted = Id.of(member(message.value, "params", "requestId"))
            for place in list(self._open):
                asked = self._capture.known(self._capture.index.rows[place])
                if asked and (asked.id, asked.sender, asked.status) == (wanted, row.sender, "cancelled"):
                    self._close(place)

    def _is_void(self, place: int) -> bool:
        """Return whether, over HTTP, a request was answered only by a status, or its client has disconnected."""
        row = self._capture.known(self._capture.index.rows[place])
        return row is None or (row.status in ("error", "cancelled") and row.response is None)
