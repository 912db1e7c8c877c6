"""The requests of one or several sessions, each as one row together with its response.

The columns of a session contain the line numbers of each request and its response by ordinal. So a call is only a
number until it is drawn, and then its content comes from the two rows of the timeline. In a merge, the calls are in the
order of the merge: `grow` adds the calls whose rows have a place in the merge, and a call never changes its place.
"""

import time
from array import array
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

from mcpspy.browse.timeline import OpenCapture, TimelineRow
from mcpspy.conversation.outcomes import decoded, has_failed
from mcpspy.timeline import Row
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.sorting import SortColumn

_STEP = 64  # calls between checks of the clock
_BATCHES = 8  # maximum number of batches kept decoded


class Call(NamedTuple):
    """One request with its response, as the timeline shows both."""

    request: TimelineRow
    response: TimelineRow | None
    asked: int
    """Nanoseconds spent waiting for a person, while the call ran or before it (see `continues`)."""
    continues: bool
    """Whether it continues an `input_required` result."""
    progress: tuple[float, float | None] | None
    """Progress and total, while it has no response."""


class Calls:
    """The calls of a session or a merge, in the order of their requests."""

    def __init__(self, shown: OpenCapture | Merged) -> None:
        self._shown = shown
        self._sessions = shown.sessions
        self._which, self._ordinals = array("H"), array("I")  # only in a merge: by place
        self._next = [0] * len(self._sessions)  # only in a merge: by session, the first ordinal without a place
        self._batches: dict[tuple[int, int], list[Row]] = {}  # by session and line

    def __len__(self) -> int:
        """The number of calls so far."""
        if isinstance(self._shown, Merged):
            return len(self._which)
        return len(self._shown.columns.exchanges)

    def grow(self, seconds: float) -> bool:
        """Add calls of a merge for about `seconds`. Returns whether there is more to do now."""
        merged, deadline = self._shown, time.perf_counter() + seconds
        if not isinstance(merged, Merged):
            return False
        ready: list[tuple[int, int]] = []  # the next call of each session
        for which in range(len(self._sessions)):
            self._queue(merged, ready, which)
        while ready:
            _, which = heappop(ready)
            self._which.append(which)
            self._ordinals.append(self._next[which])
            self._next[which] += 1
            self._queue(merged, ready, which)
            if len(self) % _STEP == 0 and time.perf_counter() > deadline:
                return True
        return False

    def order(self, column: SortColumn) -> list[int]:
        """Return the places of all calls, sorted by a column; those without a value are last."""
        values = [self._values(session, column.name) for session in self._sessions]
        if isinstance(self._shown, Merged):
            found = [values[which][ordinal] for which, ordinal in zip(self._which, self._ordinals, strict=True)]
        else:
            (found,) = values
        known = [place for place, value in enumerate(found) if value is not None]
        known.sort(key=found.__getitem__, reverse=column.falling)
        return known + [place for place, value in enumerate(found) if value is None]

    def _values(self, session: OpenCapture, name: str) -> list[Any]:
        """Return the values of a column for all calls of a session, without decoding their messages."""
        columns, exchanges = session.columns, session.columns.exchanges
        if name == "status":
            codes = map(exchanges.outcomes.code, range(len(exchanges)))
            failed = (has_failed(*decoded(code)) for code in codes)
            return [(bad, exchanges.status(ordinal)) for ordinal, bad in enumerate(failed)]
        lines = exchanges.responses if name == "size" else exchanges.requests
        rows = (columns.at(n, Row) for n in lines)
        if name == "name":
            return [row.name or row.method or "" for row in rows]
        return [
            (row.size if n else None) if name == "size" else row.latency for n, row in zip(lines, rows, strict=True)
        ]

    def _queue(self, merged: Merged, ready: list[tuple[int, int]], which: int) -> None:
        session = self._sessions[which]
        exchanges, ordinal = session.columns.exchanges, self._next[which]
        number = merged.number(session, exchanges.requests[ordinal]) if ordinal < len(exchanges) else 0
        if number:
            heappush(ready, (number, which))

    def at(self, place: int) -> Call:
        """Return the call at a place."""
        which, ordinal = (self._which[place], self._ordinals[place]) if self._which else (0, place)
        session = self._sessions[which]
        exchanges = session.columns.exchanges
        n = exchanges.requests[ordinal]
        request = self._line(session, n) or TimelineRow(n, 0, "gap", "mcpspy", text="overwritten")
        if request.kind == "batch":
            request = self._request_of_batch(session, ordinal, request)
        answer = exchanges.responses[ordinal]
        response = self._line(session, answer) if answer else None
        if response and response.kind == "batch":
            response = self._response_of_batch(session, answer, request, response)
        asked, continues = session.times.asked.get(ordinal, 0), exchanges.continued[ordinal] > 0
        return Call(request, response, asked, continues, exchanges.progress.get(ordinal))

    def _line(self, session: OpenCapture, n: int) -> TimelineRow | None:
        """Return the row of a line, in a merge with the number and time there; None before it has a place."""
        shown = self._shown
        number = shown.number(session, n) if isinstance(shown, Merged) else n
        place = shown.index.row_of(number)
        return shown.line(place) if place is not None else None

    def _request_of_batch(self, session: OpenCapture, ordinal: int, line: TimelineRow) -> TimelineRow:
        """Return one request of a batch; the requests of a batch have consecutive ordinals."""
        columns, n = session.columns, session.columns.exchanges.requests[ordinal]
        first = ordinal
        while first and columns.exchanges.requests[first - 1] == n:
            first -= 1
        requests = [row for row in self._batch(session, n) if row.kind == "request"]
        if ordinal - first >= len(requests):
            return line  # too large to be decoded
        answer = columns.exchanges.responses[ordinal]
        since, until = columns.time(n) or 0, columns.time(answer) if answer else None
        latency = abs(until - since) if until is not None else None
        return _member(line, requests[ordinal - first], columns.exchanges.status(ordinal), latency)

    def _response_of_batch(self, session: OpenCapture, n: int, request: TimelineRow, line: TimelineRow) -> TimelineRow:
        """Return the response to a request from a batch."""
        found = (row for row in self._batch(session, n) if row.kind in ("result", "error") and row.id == request.id)
        row = next(found, None)
        return _member(line, row, request.status, line.latency) if row else line

    def _batch(self, session: OpenCapture, n: int) -> list[Row]:
        """Return the messages of a batch, cached because each of its calls needs them."""
        key = self._sessions.index(session), n
        if key not in self._batches:
            if len(self._batches) == _BATCHES:
                self._batches.clear()
            place = session.index.row_of(n)
            self._batches[key] = session.messages(place) if place is not None else []
        return self._batches[key]


def _member(line: TimelineRow, row: Row, status: str | None, latency: int | None) -> TimelineRow:
    """Return the row of a batch, changed to show only one of its messages."""
    shown = replace(line, kind=row.kind, method=row.method or line.method, name=row.name, id=row.id, status=status)
    shown.text, shown.latency = row.preview, latency
    return shown
