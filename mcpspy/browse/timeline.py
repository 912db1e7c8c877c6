"""One capture as the timeline shows it, without a screen.

Rows have to be visible at once, anywhere in a file of any size that may still grow. So two passes read the file, in
time slices set by the caller. The index finds the rows; after that, any row can be decoded and shown by itself. The
fold follows and pairs requests with responses: it keeps a few bytes per line of the file, in columns, so that a folded
row is shown without decoding it. Anything more that is on the screen is decoded on demand.
"""

import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mcpspy.browse.client_limits import GROUP, Refusals
from mcpspy.browse.columns import Columns
from mcpspy.browse.findings import SessionFindings
from mcpspy.browse.gates import GatesInCapture, HeldFrame, SessionControl
from mcpspy.capture.index import Index
from mcpspy.capture.reader import Records, Window
from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record
from mcpspy.conversation.counts import Counts
from mcpspy.conversation.facts import Operations
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Event, HttpUnit, Message, StreamEnd
from mcpspy.conversation.outcomes import Outcome
from mcpspy.conversation.preview import preview_of_large
from mcpspy.conversation.times import Times
from mcpspy.overview import Announced
from mcpspy.problems.fold import Problems
from mcpspy.rules import Finding, LocatedFinding
from mcpspy.rules.judge import JudgedEvents
from mcpspy.text import plural
from mcpspy.timeline import SPOKEN, Row, rows_alone

_IDLE = 2  # after so many looks that found nothing to fold, records no longer wait for ordering
SLICE = 1 << 15
"""Bytes that the fold reads at once."""
_SHOWN = 1 << 20  # bytes of a frame shown to a person
_READ = 1 << 12  # bytes of a frame that is not a message, for its line
_LAST = 0.1  # the longest time for which the fold continues when a session is closed, in seconds
_NAMED = 9  # maximum messages of a batch listed in its line
_DECODED = 1 << 16  # the largest frame that is decoded for its preview, in bytes
_WHOLE = 1 << 20  # the largest record of such a frame: each byte may be escaped
_KEPT = 5000  # previews


class Source(NamedTuple):
    """The origin of a line in a merge."""

    which: int
    """The number of its session in the merge."""
    n: int
    """Its line number there."""
    name: str
    """The name of that session."""


@dataclass(slots=True)
class TimelineRow(Row):
    """A row as the timeline shows it: `text` is its preview, or what is shown in place of a method."""

    held: HeldFrame | None = None
    """Set while its frame is held."""
    source: Source | None = None
    """In a merge: its origin."""
    turn: str = ""
    """In a merge: the turn that begins here, and the pause before it."""


class OpenCapture:
    """One capture, indexed and folded as far as `grow` has read."""

    def __init__(self, path: str) -> None:
        """Open the capture. Raises CaptureError."""
        self.path = path
        self.index = Index(path)
        self.header = self.index.header
        self.counts = Counts()
        self.complete = False
        """Whether the file has ended and is folded completely."""
        self._ended = False  # with an end record, or with a gap in its place
        self.findings = SessionFindings()
        self.found = self.findings.counts
        """The number of findings by severity."""
        self.announced = Announced()
        self.refusals = Refusals(self.index)
        self.gates = GatesInCapture()
        self.control = SessionControl(path, self.header, self.gates, lambda: self.index.live)
        self.stderr = array("I")
        """The line numbers of stderr output."""
        self.revised = array("I")
        """The line numbers of rows that have changed since they were folded, in that order."""
        self.moved = array("I")
        """The line numbers of rows that the fold has moved or inserted, in that order."""
        self.columns = Columns()
        """What is known about each line and each exchange."""
        self.times = Times()
        self._records, self._window = Records(), Window()
        self.problems = Problems(self.header)
        """What failed, and why."""
        self._events = JudgedEvents(self.problems, operations=Operations())
        self._previews = Previews(self._rows, self.index.pieces)
        self._folded = 0  # bytes
        self._placed = 0  # number of rows that the fold has placed: the first ones, in the order of their times
        self._idle = 0  # number of consecutive looks with nothing to fold
        self._steps = self._fold()

    def close(self) -> None:
        """Close the file and leave the session: frames that our gates hold, including recent ones, are continued."""
        if self.control.used:
            self._go_on(time.perf_counter() + _LAST)
            self.control.close()
        self.index.close()

    def __len__(self) -> int:
        """The number of rows so far."""
        return len(self.index.rows)

    @property
    def sessions(self) -> "list[OpenCapture]":
        """A list of only this session; a merge has several."""
        return [self]

    @property
    def held(self) -> list[HeldFrame]:
        """The frames that are held now, the oldest first."""
        return list(self.gates.held.values()) if self.index.live else []

    @property
    def state(self) -> str:
        """The state of the index; or `killed` if the relay ended without an end record."""
        killed = self.complete and not self._ended and self.index.state == "ended"
        return "killed" if killed else self.index.state

    @property
    def progress(self) -> float:
        """The folded part of the file, 0 to 1."""
        return min(self._folded / max(self.index.size, 1), 1.0)

    @property
    def clients(self) -> frozenset[str]:
        """The clients whose limits are checked."""
        return self.refusals.clients

    def choose(self, clients: Iterable[str]) -> None:
        """Find what these clients refuse, instead of what the previous ones refuse."""
        self.revised.extend(self.findings.drop(GROUP))
        self.refusals.choose(clients)

    def grow(self, seconds: float) -> bool:
        """Work for about `seconds`: index, fold, refusals of clients. Returns whether there is more to do now."""
        deadline = time.perf_counter() + seconds
        more = not self.complete and self._go_on(deadline)
        for finding in self.refusals.read(deadline):
            self.findings.add(finding)
            self.revised.append(finding.frame)
        return more or self.refusals.waiting

    def _go_on(self, deadline: float) -> bool:
        while self.index.grow():
            self.columns.extend(self.index.lines)
            if time.perf_counter() > deadline:
                return True
        self.columns.extend(self.index.lines)
        for folded in self._steps:
            if not folded:
                break
            if time.perf_counter() > deadline:
                return True
        if self.index.state == "cut short":
            self.complete = True  # content that was not read before is lost
        elif not self.index.live and self._folded == self.index.size:
            self._finish()
        return False

    def line(self, place: int) -> TimelineRow:
        """Return the line of the timeline at a place."""
        n = self.index.rows[place]
        row = self.columns.at(n, TimelineRow)
        if row.kind in SPOKEN:
            row.text = self._previews.of(row)
        else:
            row = self._decoded(n)
        row.findings = self.findings.of(n)
        row.held = self.gates.held.get(n) if self.index.live else None
        return row

    def act(self, place: int) -> GateAct | None:
        """Return what a gate did to the frame at a place; for a frame that is still held, the hold."""
        return self.columns.act(self.index.rows[place])

    def time_of(self, n: int) -> int | None:
        """Return the time of the row on line `n`, in nanoseconds since the start; None before it is folded."""
        return self.columns.time(n)

    def of(self, place: int) -> tuple["OpenCapture", int]:
        """Return the session of the row at a place, and its place there: in a merge the two places differ."""
        return self, place

    def partner(self, place: int) -> int | None:
        """Return the place of the response to a request, or of the request of a response; None for a batch."""
        n = self.index.rows[place]
        partner = self.columns.partner(n)
        return self.index.row_of(partner) if partner and self.columns.kind(n) != "batch" else None

    def continues(self, place: int) -> int:
        """Return the line number of the `input_required` result that the request at a place continues, else 0."""
        return self.columns.continues(self.index.rows[place])

    def inputs(self, place: int) -> frozenset[str] | None:
        """Return the methods that the response at a place requests input for; None if it is not `input_required`."""
        return self.columns.inputs(self.index.rows[place])

    def known(self, n: int) -> Row | None:
        """Return the row on line `n` as a new object, without text, as far as it is folded; its kind may be `batch`.

        None before it is folded; a line that can no longer be folded is a gap.
        """
        row = self.columns.at(n, Row)
        if not row.kind:
            return Row(n, 0, "gap", "mcpspy") if self.complete else None
        row.findings = self.findings.of(n)
        return row

    def messages(self, place: int) -> list[Row]:
        """Return the messages at a place: one, or those of a batch, with the results of the fold.

        Of a frame over a MiB only the start is available: `raw` is shorter than `size`, and `value` is missing.
        """
        return self._rows(self.index.rows[place], _SHOWN)

    def _rows(self, n: int, limit: int) -> list[Row]:
        """Return the messages on line `n`; of a large frame, decoded from about its first `limit` bytes."""
        if self.columns.kind(n) == StreamEnd.kind:
            return [self._end_of_stream(n)]
        record = self.index.record(n, limit)
        channel = self.index.channel(record.ch) if isinstance(record, Frame | Close) else None
        if isinstance(record, Open) and record.answers is not None:
            channel = self.index.channel(record.answers)
        found = list(rows_alone(record, channel))
        if self.index.state == "cut short" and isinstance(record, Gap):
            found[0].text = "it was in the file before the file was truncated or replaced"
        if len(found) == 1 and self.columns.kind(n):
            self._complete(found[0], self.columns.at(n, Row))
        else:
            for row in found:
                row.status = row.outcome = None  # only the fold knows
        return found

    def _end_of_stream(self, n: int) -> Row:
        """Return the row of the end of a stream: its record does not show how long the stream lasted."""
        row, record = self.columns.at(n, Row), self.index.record(n)
        row.channel = record.ch if isinstance(record, Close) else None
        row.text = self._previews.head(row)
        return row

    def _complete(self, row: Row, known: Row) -> None:
        """Add the results of the fold to a row."""
        if row.kind == "gap" != known.kind:
            return  # the line has changed since it was folded
        row.findings, row.act = self.findings.of(row.n), known.act
        row.t, row.size = known.t, known.size
        if len(row.raw) < row.size:
            row.kind, row.value, row.refused = known.kind, None, None
            row.text = "a large one" if known.kind == "batch" else row.text
        if known.kind == "invalid":
            row.text = known.text
            return
        row.method, row.name, row.revision = known.method, known.name, known.revision
        row.status, row.latency = known.status, known.latency
        row.outcome, row.expected = known.outcome, known.expected
        row.request, row.response = known.request or row.request, known.response or row.response

    def _decoded(self, n: int) -> TimelineRow:
        """Return the line of a row that has no method, or that is not folded yet."""
        kind = self.columns.kind(n)
        if not kind and self.index.in_pieces(n):
            return TimelineRow(n, 0, "frame", "mcpspy", text="a large one, not read yet")
        found = self._rows(n, _SHOWN if kind in ("", "batch") else 1)
        if not found:
            return TimelineRow(n, 0, "gap", "mcpspy", text="overwritten")
        row = found[0]
        shown = TimelineRow(n, row.t, row.kind, row.sender, size=row.size, act=self.columns.act(n))
        if len(found) > 1:
            methods = ", ".join(row.method or row.kind for row in found[:_NAMED])
            shown.kind, shown.text = "batch", f"{plural(len(found), 'message')}: {methods}"
            return shown
        shown.method = row.method or ("…" if row.kind in ("result", "error") else None)
        shown.name, shown.id = row.name, row.id
        shown.outcome, shown.expected = row.outcome, row.expected
        shown.text = self._previews.head(row) or row.preview
        if row.kind == "invalid":
            shown.text = f"{row.text}: {row.raw[:_READ].decode(errors='replace')}"
        return shown

    def _fold(self) -> Iterator[bool]:
        """Fold one record per step, without end. Yields whether there was one."""
        while True:
            chunk = self.index.read(self._folded, min(SLICE, self.index.indexed - self._folded))
            if not chunk:
                self._idle += 1
                if self._idle == _IDLE:
                    yield from self._take(self._window.flush())
                yield False
                continue
            self._idle = 0
            self._folded += len(chunk)
            for record in self._records.feed(chunk):
                if type(record) is not Frame or record.by:
                    self.gates.note(record)
                yield from self._take(self._window.feed(record))
                yield True

    def _take(self, records: Iterable[Record]) -> Iterator[bool]:
        for record in records:
            if isinstance(record, Open):
                self.refusals.note(record)
            latest: Event | None = None
            for event in self._events.feed(record):
                if isinstance(event, GateAct):
                    self.revised.append(event.n)
                    continue
                if isinstance(event, Outcome):
                    self._revise(event)
                    continue
                if isinstance(event, LocatedFinding):
                    finding = self._find(event)
                    if latest is None or (finding.frame, finding.part) != (latest.n, _part(latest)):
                        self.revised.append(finding.frame)
                    continue
                if latest:
                    yield True  # a batch may have thousands of messages
                latest = event
                self._fill(event)
            if latest:
                yield True

    def _finish(self) -> None:
        """Finish at the end of the file: nothing waits for more any longer."""
        for record in self._records.end():
            deque(self._take(self._window.feed(record)), 0)
        deque(self._take(self._window.flush()), 0)
        for event in self._events.end():
            if isinstance(event, LocatedFinding):
                self.revised.append(self._find(event).frame)
            elif isinstance(event, Outcome):
                self._revise(event)
        self.revised.extend(self.columns.end(self._events.pending(), live=False))
        self.complete = True

    def _find(self, found: LocatedFinding) -> Finding:
        if self.findings.add(found.finding):
            self.announced.add(found)
        return found.finding

    def _revise(self, event: Event | Outcome) -> None:
        self.revised.extend(self.columns.add(event))
        self.counts.failed = self.columns.exchanges.outcomes.failed

    def _fill(self, event: Event) -> None:
        n = event.n
        self.counts.add(event)
        self.times.add(event)
        self._revise(event)
        if isinstance(event, StreamEnd):
            self.index.insert(n, self._placed)
            self.moved.append(n)
            self._placed += 1
            self._previews.note(event)
        elif _part(event) == 0:
            self.moved.extend([n] * self.index.put(n, self._placed))  # its time may be before that of earlier records
            self._placed += 1
        if isinstance(event, Message):
            self.gates.learn(event)
            self.announced.add(event)
            self.refusals.note(event)
        elif isinstance(event, HttpUnit):
            self.refusals.note(event)
            self._previews.note(event)
        elif isinstance(event, End) or (isinstance(event, Gap) and event.is_rest):
            self._ended = True  # delayed records may follow it
        elif isinstance(event, Frame):
            self.stderr.append(n)


def _part(event: Event) -> int:
    """Return the place of an event in its batch, else 0."""
    return event.part if isinstance(event, Message) else 0


class Previews:
    """The text that rows show after method and name, each made when its row is first drawn.

    A row that is drawn again has the same preview, so previews are cached for as many rows as a person scrolls over.
    Decoding some hundred kilobytes takes a millisecond, so a larger message shows its start, undecoded.

    `read` returns the rows on a line, decoded from about the given number of first bytes; `pieces` yields the bytes of
    the frame on a line, piece by piece.
    """

    def __init__(self, read: Callable[[int, int], list[Row]], pieces: Callable[[int], Iterator[bytes]]) -> None:
        self._read, self._pieces = read, pieces
        self._made: dict[tuple[int, str | None], str] = {}  # by line number and method
        self._heads: dict[int, str] = {}

    def of(self, row: Row) -> str:
        """Return the preview of a message, whose row has no content."""
        n = row.n
        address = (n, row.method)  # the method of a response comes from its request
        if address not in self._made:
            if len(self._made) == _KEPT:
                self._made.clear()
            self._made[address] = self._make(n) if row.size <= _DECODED else self._begin(n)
        return self._made[address]

    def _make(self, n: int) -> str:
        found = self._read(n, _WHOLE)
        return found[0].preview if found else ""

    def _begin(self, n: int) -> str:
        return preview_of_large(next(self._pieces(n), b""))

    def note(self, event: HttpUnit | StreamEnd) -> None:
        """Remember a text that only the fold knows: after which event a head resumes a stream, how a stream ended."""
        if isinstance(event, StreamEnd) or (event.http.resumes and event.frame is None):
            self._heads[event.n] = event.text

    def head(self, row: Row) -> str:
        """Return the text of a row that is not a message."""
        return self._heads.get(row.n, row.text or "")
