"""Several captures merged by time: what a client and all its servers send.

The sessions are not changed; the merge stores only the order of their rows. Each row has a number in the merge, from 1,
which never changes, because rows are added only at the end. So what you look at stays in place. Therefore a row is
added only when no session can have an earlier one. The sessions are read alternately, the one that is furthest behind
first. While sessions are live, a row also waits a moment for rows that the relays of other sessions write late. Within
one session, its own order is kept: if the time of a row is before that of the previous row, the previous time counts.
"""

import time
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal, NamedTuple

from mcpspy.browse.gates import HeldFrame
from mcpspy.browse.timeline import OpenCapture, Source, TimelineRow
from mcpspy.capture.records import Header, Record
from mcpspy.conversation.counts import Counts, turns
from mcpspy.text import length_text
from mcpspy.timeline import Row

SLICE = 0.0005
"""The seconds for which one session is read before the next."""
GRACE = 0.25
"""The seconds that a row waits for rows that the relays of live sessions may write late."""
_NEVER = 1 << 63


class _Waiting(NamedTuple):
    """A row that is not merged yet: its time in nanoseconds since the merge begins, its session, its place there."""

    t: int
    which: int
    place: int


@dataclass(slots=True)
class _Part:
    """One session and the state of its merging."""

    session: OpenCapture
    offset: int
    """Nanoseconds from the start of the first session to the start of this one."""
    newest: int
    """The time of the newest row that is known here."""
    reached: int
    """No later row has an earlier time than this, unless its relay writes it late."""
    seen: int = 0
    """The number of rows that are known."""
    waiting: deque[_Waiting] = field(default_factory=deque)
    """The known rows that are not merged yet."""
    numbers: "array[int]" = field(default_factory=lambda: array("I"))
    """Line number in the session -> number in the merge, or 0."""
    revised: int = 0
    """The number of revised rows of the session that have been reported."""

    def number(self, line: int) -> int:
        """Return the number in the merge of a line of the session; 0 before its row is merged."""
        return self.numbers[line] if line < len(self.numbers) else 0


class MergedRows:
    """The rows of a merge, with the part of the interface of a capture's index that is used."""

    def __init__(self, header: Header, parts: list[_Part]) -> None:
        self.header = header
        self._parts = parts
        self._which, self._places = array("H"), array("I")  # by place: the session of the row, and the place there

    @property
    def state(self) -> Literal["live", "ended", "deleted", "cut short"]:
        """Live while any session is live; else the state of the first session that has lost its file."""
        states = [part.session.index.state for part in self._parts]
        return "live" if "live" in states else next((state for state in states if state != "ended"), "ended")

    @property
    def lines(self) -> int:
        """The highest number of a row."""
        return len(self._which)

    @property
    def rows(self) -> range:
        """The number of each row."""
        return range(1, len(self._which) + 1)

    def row_of(self, n: int) -> int | None:
        """Return the place of row number `n`."""
        return n - 1 if 0 < n <= len(self._which) else None

    def of(self, place: int) -> tuple[int, int]:
        """Return the session of the row at a place, and its place there."""
        return self._which[place], self._places[place]

    def source(self, n: int) -> tuple[OpenCapture, int]:
        """Return the session of row number `n`, and its line number there."""
        which, place = self.of(n - 1)
        session = self._parts[which].session
        return session, session.index.rows[place]

    def in_pieces(self, n: int) -> bool:
        """Return whether row number `n` is a frame recorded in pieces."""
        session, line = self.source(n)
        return session.index.in_pieces(line)

    def line(self, n: int) -> bytes:
        """Return the line of row number `n`, as it is in its file."""
        session, line = self.source(n)
        return session.index.line(line)

    def block(self, first: int, last: int, limit: int) -> None:
        """Return None, because the lines of a merge are in several files."""

    def record(self, n: int, limit: int = 1 << 62) -> Record:
        """Return the record of row number `n`; for a frame in pieces, about its first `limit` bytes."""
        session, line = self.source(n)
        return session.index.record(line, limit)

    def look(self) -> bool:
        """Look at the files again. Returns whether the state of one has changed."""
        return any(part.session.index.look() for part in self._parts)

    def add(self, row: _Waiting) -> int:
        """Add a row at the end. Returns its number."""
        self._which.append(row.which)
        self._places.append(row.place)
        return len(self._which)


class Merged:
    """Several sessions, with the part of the interface of one that the timeline uses.

    Times count from the start of the first session.
    """

    def __init__(self, sessions: list[OpenCapture]) -> None:
        starts = [_nanoseconds(session.header.started) for session in sessions]
        offsets = [start - min(starts) for start in starts]
        self._parts = [_Part(each, offset, offset, offset) for each, offset in zip(sessions, offsets, strict=True)]
        self.header = _header([session.header for session in sessions])
        self.index = MergedRows(self.header, self._parts)
        self.columns = None
        """None, because each session has its own."""
        self.complete = False
        """Whether all sessions have ended, and all their rows are merged."""
        self.revised = array("I")
        """The numbers of rows that have changed since they were added, in that order."""
        self.moved = array("I")
        """Always empty: rows of a merge are never moved."""
        self._newest = self._settled = 0  # time of the newest row at the last tick, and at the previous one
        self._tick = 0.0
        self._turns: dict[tuple[int, int], str] = {}  # session and line there -> the turn that begins on it

    @property
    def sessions(self) -> list[OpenCapture]:
        """The sessions, in the order that was passed in."""
        return [part.session for part in self._parts]

    @property
    def held(self) -> list[HeldFrame]:
        """The frames that are held now, with the numbers and times of their own sessions."""
        return [held for session in self.sessions for held in session.held]

    def close(self) -> None:
        """Close the files."""
        for session in self.sessions:
            session.close()

    def __len__(self) -> int:
        """The number of rows so far."""
        return self.index.lines

    @property
    def state(self) -> str:
        """The state of the rows; `killed` if all sessions have ended and one was killed."""
        killed = self.index.state == "ended" and any(session.state == "killed" for session in self.sessions)
        return "killed" if killed else self.index.state

    @property
    def progress(self) -> float:
        """The part of all bytes that is folded, 0 to 1."""
        sizes = [session.index.size for session in self.sessions]
        read = [session.progress * size for session, size in zip(self.sessions, sizes, strict=True)]
        return sum(read) / max(sum(sizes), 1)

    @property
    def counts(self) -> Counts:
        """The sums of the counts of the sessions."""
        each = [session.counts for session in self.sessions]
        return Counts(
            sum(it.frames for it in each),
            sum(it.exchanges for it in each),
            sum(it.errors for it in each),
            sum(it.failed for it in each),
        )

    @property
    def found(self) -> dict[str, int]:
        """The number of findings by severity."""
        each = [session.found for session in self.sessions]
        return {severity: sum(found[severity] for found in each) for severity in each[0]}

    def choose(self, clients: Iterable[str]) -> None:
        """Find what these clients refuse in each session."""
        for session in self.sessions:
            session.choose(clients)

    @property
    def clients(self) -> frozenset[str]:
        """The chosen clients."""
        return self.sessions[0].clients

    def grow(self, seconds: float) -> bool:
        """Read for about `seconds`. Returns whether there is more to do now."""
        now = time.perf_counter()
        if now > self._tick + GRACE:
            self._settled, self._newest = self._newest, max(part.newest for part in self._parts)
            self._tick = now
            self._find_turns()
        busy = [part for part in self._parts if not part.session.complete or part.session.refusals.waiting]
        while busy and time.perf_counter() < now + seconds:
            part = min(busy, key=lambda part: part.reached)
            if not part.session.grow(SLICE):
                busy.remove(part)
                part.reached = max(part.reached, self._settled + 1)
            self._see(part)
        self._merge()
        complete = all(part.session.complete and not part.waiting for part in self._parts)
        if complete and not self.complete:
            self._find_turns()
        self.complete = complete
        return bool(busy)

    def of(self, place: int) -> tuple[OpenCapture, int]:
        """Return the session of the row at a place, and its place there."""
        which, there = self.index.of(place)
        return self._parts[which].session, there

    def number(self, session: OpenCapture, line: int) -> int:
        """Return the number in the merge of the row on a line of a session; 0 before it is merged."""
        return next(part.number(line) for part in self._parts if part.session is session)

    def line(self, place: int) -> TimelineRow:
        """Return the line of the timeline at a place; its `source` is the session."""
        which, there = self.index.of(place)
        part = self._parts[which]
        line = part.session.line(there)
        line.source = Source(which, line.n, part.session.header.name)
        line.held = line.held and line.held.shifted(part.offset)
        line.turn = self._turns.get((which, line.n), "")
        line.n, line.t = place + 1, line.t + part.offset
        return line

    def partner(self, place: int) -> int | None:
        """Return the place of the response to a request, or of the request of a response."""
        which, there = self.index.of(place)
        part = self._parts[which]
        partner = part.session.partner(there)
        number = part.number(part.session.index.rows[partner]) if partner is not None else 0
        return number - 1 if number else None

    def messages(self, place: int) -> list[Row]:
        """Return the messages at a place, with the line numbers of their own session."""
        which, there = self.index.of(place)
        part = self._parts[which]
        return [_shifted(row, part.offset) for row in part.session.messages(there)]

    def known(self, n: int) -> Row | None:
        """Return row number `n` as far as it is folded, without text, with the line numbers of its own session."""
        which, there = self.index.of(n - 1)
        part = self._parts[which]
        row = part.session.known(part.session.index.rows[there])
        return _shifted(row, part.offset) if row else None

    def _see(self, part: _Part) -> None:
        """Queue the rows that are folded by now; the fold follows the order of the rows."""
        session, rows = part.session, part.session.index.rows
        while part.seen < len(rows):
            t = session.time_of(rows[part.seen])
            if t is None and not session.complete:
                break
            part.newest = max(part.newest, part.offset + (t or 0))
            part.waiting.append(_Waiting(part.newest, self._parts.index(part), part.seen))
            part.seen += 1
        part.reached = _NEVER if session.complete else max(part.reached, part.newest)

    def _find_turns(self) -> None:
        """Find the turns, which pauses separate; the first turn has no pause before it."""
        found = turns((part.offset, part.session.counts.spells) for part in self._parts)
        self._turns = {
            turn.first: f"turn {number} · after {length_text((turn.start - before.end) / 1e9)}"
            for number, (before, turn) in enumerate(pairwise(found), 2)
        }

    def _merge(self) -> None:
        """Merge the rows that no later row can precede."""
        until = min(part.reached for part in self._parts)
        ready = []
        for part in self._parts:
            while part.waiting and part.waiting[0].t < until:
                ready.append(part.waiting.popleft())
        for row in sorted(ready):
            part = self._parts[row.which]
            line = part.session.index.rows[row.place]
            part.numbers.frombytes(bytes(max(line + 1 - len(part.numbers), 0) * part.numbers.itemsize))
            part.numbers[line] = self.index.add(row)
        for part in self._parts:
            revised = part.session.revised[part.revised :]
            part.revised += len(revised)
            self.revised.extend(filter(None, map(part.number, revised)))


def _shifted(row: Row, offset: int) -> Row:
    row.t += offset
    return row


def _nanoseconds(started: str) -> int:
    """Return a start time in nanoseconds since the epoch."""
    return round(datetime.fromisoformat(started).timestamp() * 1_000_000) * 1000


def _header(headers: list[Header]) -> Header:
    """Return the header of a merge."""
    first = min(headers, key=lambda header: _nanoseconds(header.started))
    other = next((header for header in headers if header.transport != "stdio"), first)
    name = " + ".join(header.name for header in headers)
    client = first.client if all(header.client == first.client for header in headers) else ()
    return replace(first, name=name, transport=other.transport, argv=(), client=client, url=None)
