"""One capture as the timeline shows it, without a screen.

The theory. People want to see rows at once, wherever they look, in a file of any size that may be growing. So two
passes go over it in slices, each as long as the caller allows. The index finds the rows: from then on any of them can
be shown, decoded by itself. The fold follows and tells what answers what: a few bytes for each line of the file, in
columns, so that a folded row is shown without decoding it. What is on the screen beyond that is decoded on demand.
"""

import time
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mcpspy.browse.control import SessionControl
from mcpspy.browse.findings import SessionFindings
from mcpspy.browse.gates import GatesInCapture, HeldFrame
from mcpspy.browse.previews import Previews
from mcpspy.browse.refusals import GROUP, Refusals
from mcpspy.capture.index import Index
from mcpspy.capture.order import Window
from mcpspy.capture.reader import Records
from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record, Release
from mcpspy.conversation.columns import Columns, Known
from mcpspy.conversation.counts import Counts
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.history import Operations
from mcpspy.conversation.model import Event, HttpUnit, Message
from mcpspy.conversation.times import Times
from mcpspy.overview import Announced
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from mcpspy.text import plural
from mcpspy.timeline import SPOKEN, Row, rows_alone

_IDLE = 2  # looks that found nothing to fold, after which what waits for its order waits no longer
SLICE = 1 << 15
"""Bytes that the fold reads at once."""
_SHOWN = 1 << 20  # bytes of a frame that a person is shown
_READ = 1 << 12  # bytes of what is no message that a line may show
_LAST = 0.1  # seconds that the fold goes on for at most as a session is left
_NAMED = 9  # messages of a batch that a line names


class Source(NamedTuple):
    """Where a line of a merge comes from."""

    which: int
    """The number of its session among those that are merged."""
    n: int
    """Its line number there."""
    name: str
    """The name of that session."""


class TimelineRow(NamedTuple):
    """What one line of the timeline says. Times are nanoseconds since the capture started."""

    n: int
    t: int
    kind: str
    """As of a row, or `batch`."""
    sender: str
    method: str = ""
    name: str = ""
    id: str = ""
    status: str = ""
    latency: int | None = None
    size: int = 0
    """Bytes of the frame."""
    text: str = ""
    """What there is to read where there is no method, or beside it."""
    severity: str = ""
    """Of the worst that was found of it."""
    act: str = ""
    """What a gate did to the frame."""
    held: HeldFrame | None = None
    """While its frame is held."""
    source: Source | None = None
    """In a merge: where it comes from."""
    turn: str = ""
    """In a merge: which turn begins here, after what pause."""


class OpenCapture:
    """One capture, indexed and folded as far as `grow` has come."""

    def __init__(self, path: str) -> None:
        """Open the capture. Raises CaptureError."""
        self.path = path
        self.index = Index(path)
        self.header = self.index.header
        self.counts = Counts()
        self.complete = False
        """The file has ended, and all of it is folded that is there."""
        self._ended = False  # in order, by a record that says so
        self.findings = SessionFindings()
        self.found = self.findings.counts
        """How often something was found, by severity."""
        self.announced = Announced()
        self.refusals = Refusals(self.index)
        self.gates = GatesInCapture()
        self.control = SessionControl(path, self.header, self.gates, lambda: self.index.live)
        self.stderr = array("I")
        """The line numbers of what the server wrote to stderr."""
        self.revised = array("I")
        """The line numbers of rows that became others than the fold first knew them, in that order."""
        self.moved = array("I")
        """The line numbers of rows that the fold put elsewhere, in that order."""
        self.columns = Columns()
        """What is known of each line and each exchange."""
        self.times = Times()
        self._records, self._window = Records(), Window()
        self._judge = Judge(operations=Operations())
        self._previews = Previews(self._rows, self.index.pieces)
        self._folded = 0  # bytes
        self._placed = 0  # rows that the fold has given: the first ones, in the order of their times
        self._idle = 0  # how often in a row there was nothing to fold
        self._steps = self._fold()

    def close(self) -> None:
        """Give the file back, and leave the session: what our gates hold, also since the last look, goes on."""
        if self.control.used:
            self._go_on(time.perf_counter() + _LAST)
            self.control.close()
        self.index.close()

    def __len__(self) -> int:
        """How many rows there are so far."""
        return len(self.index.rows)

    @property
    def sessions(self) -> "list[OpenCapture]":
        """The session itself: a merge has several."""
        return [self]

    @property
    def held(self) -> list[HeldFrame]:
        """The frames that are held now, the oldest first."""
        return list(self.gates.held.values()) if self.index.live else []

    @property
    def state(self) -> str:
        """That of the index; or `killed`, where a relay ended without a word."""
        killed = self.complete and not self._ended and self.index.state == "ended"
        return "killed" if killed else self.index.state

    @property
    def progress(self) -> float:
        """The part of the file that is folded, 0 to 1."""
        return min(self._folded / max(self.index.size, 1), 1.0)

    @property
    def clients(self) -> frozenset[str]:
        """Those whose limits are looked at."""
        return self.refusals.clients

    def choose(self, clients: Iterable[str]) -> None:
        """Find what these clients refuse, in place of what others did."""
        self.revised.extend(self.findings.drop(GROUP))
        self.refusals.choose(clients)

    def grow(self, seconds: float) -> bool:
        """Work for about that long: index, fold, what clients refuse. Tells whether there is more to do now."""
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
            self.complete = True  # what was not read by then never will be
        elif not self.index.live and self._folded == self.index.size:
            self._finish()
        return False

    def line(self, place: int) -> TimelineRow:
        """The line of the timeline at that place."""
        n = self.index.rows[place]
        known = self.columns.at(n)
        held = self.gates.held.get(n) if self.index.live else None
        if known.kind not in SPOKEN:
            return self._decoded(n)._replace(held=held)
        return TimelineRow(
            n,
            known.t,
            known.kind,
            known.sender,
            known.method or "",
            known.name or "",
            str(known.id or ""),
            known.status or "",
            known.latency,
            known.size,
            self._previews.of(n, known),
            self.findings.worst(n) or "",
            act=self._act(n),
            held=held,
        )

    def act(self, place: int) -> GateAct | None:
        """What a gate did to the frame at that place; of a frame that is still held, that."""
        return self.columns.act(self.index.rows[place])

    def _act(self, n: int) -> str:
        act = self.columns.act(n)
        return str(act) if act else ""

    def time_of(self, n: int) -> int | None:
        """When the row on line `n` was, in nanoseconds since the start; None before the fold has come to it."""
        return self.columns.time(n)

    def of(self, place: int) -> tuple["OpenCapture", int]:
        """The session that the row at that place is of, and its place there: in a merge they differ."""
        return self, place

    def partner(self, place: int) -> int | None:
        """The place of the response to a request, or of the request that a response answers; a batch has none."""
        n = self.index.rows[place]
        partner = self.columns.partner(n)
        return self.index.row_of(partner) if partner and self.columns.kind(n) != "batch" else None

    def continues(self, place: int) -> int:
        """The line number of the answer `input_required` that the request at that place goes on from, else 0."""
        return self.columns.continues(self.index.rows[place])

    def inputs(self, place: int) -> frozenset[str] | None:
        """The methods of what the response at that place asks for; None where it is not `input_required`."""
        return self.columns.inputs(self.index.rows[place])

    def known(self, n: int) -> Row | None:
        """A new row: that on line `n`, without its text, as the fold knows it by now; its kind may be `batch`.

        None before the fold has come to it; what it can no longer come to is a gap.
        """
        known = self.columns.at(n)
        if not known.kind:
            return Row(n, 0, "gap", "mcpspy") if self.complete else None
        t, kind, sender, number, method, name, revision, status, request, response, latency, size, session = known
        if kind == "invalid":
            return Row(n, t, kind, sender, text=method, size=size, session=session, findings=self.findings.of(n))
        row = Row(n, t, kind, sender, None, 0, number, method, name, revision, status, request, response, latency, size)
        row.findings, row.session, row.act = self.findings.of(n), session, self.columns.act(n)
        return row

    def messages(self, place: int) -> list[Row]:
        """The messages at that place: one, or those of a batch, with what the fold knows of them.

        Of a frame over a MiB only the beginning is there: `raw` is shorter than `size`, and `value` is missing.
        """
        return self._rows(self.index.rows[place], _SHOWN)

    def _rows(self, n: int, limit: int) -> list[Row]:
        """The messages on line `n`, of a large frame out of about its first `limit` bytes."""
        record = self.index.record(n, limit)
        channel = self.index.channel(record.ch) if isinstance(record, Frame | Close) else None
        if isinstance(record, Open) and record.answers is not None:
            channel = self.index.channel(record.answers)
        found = list(rows_alone(record, channel))
        if self.index.state == "cut short" and isinstance(record, Gap):
            found[0].text = "it was in the file before that was cut short or replaced"
        if len(found) == 1 and self.columns.kind(n):
            self._complete(found[0], self.columns.at(n))
        else:
            for row in found:
                row.status = None  # only the fold can tell
        return found

    def _complete(self, row: Row, known: Known) -> None:
        """Enter what the fold knows of a row's line."""
        if row.kind == "gap" != known.kind:
            return  # what was there when it was folded is gone
        row.findings, row.act = self.findings.of(row.n), self.columns.act(row.n)
        row.t, row.size = known.t, known.size
        if len(row.raw) < row.size:
            row.kind, row.value, row.refused = known.kind, None, None
            row.text = "a large one" if known.kind == "batch" else row.text
        if known.kind == "invalid":
            row.text = known.method
            return
        row.method, row.name, row.revision = known.method, known.name, known.revision
        row.status, row.latency = known.status, known.latency
        row.request, row.response = known.request or row.request, known.response or row.response

    def _decoded(self, n: int) -> TimelineRow:
        """A row that has no method, or that the fold has not come to yet."""
        kind = self.columns.kind(n)
        if not kind and self.index.in_pieces(n):
            return TimelineRow(n, 0, "frame", "mcpspy", text="a large one, not read yet")
        found = self._rows(n, _SHOWN if kind in ("", "batch") else 1)
        if not found:
            return TimelineRow(n, 0, "gap", "mcpspy", text="overwritten")
        row = found[0]
        text, severity = self._previews.head(row), self.findings.worst(n) or ""
        if row.kind == "invalid":
            text = f"{row.text}: {row.raw[:_READ].decode(errors='replace')}"
        if len(found) > 1:
            methods = ", ".join(row.method or row.kind for row in found[:_NAMED])
            text = f"{plural(len(found), 'message')}: {methods}"
            return TimelineRow(
                n, row.t, "batch", row.sender, size=row.size, text=text, severity=severity, act=self._act(n)
            )
        method = row.method or ("…" if row.kind in ("result", "error") else "")
        number = str(row.id) if row.id else ""
        subject, text = (method, row.name or "", number), text or row.preview
        return TimelineRow(
            n, row.t, row.kind, row.sender, *subject, size=row.size, text=text, severity=severity, act=self._act(n)
        )

    def _fold(self) -> Iterator[bool]:
        """Folds one record a step, for ever; yields whether there was one."""
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
            for event in self._judge.feed(record):
                if isinstance(event, Finding):
                    self._find(event)
                    if latest is None or (event.frame, event.part) != (latest.n, _part(latest)):
                        self.revised.append(event.frame)
                    continue
                if latest:
                    yield True  # a batch may have thousands
                latest = event
                self._fill(event)
            if latest:
                yield True
            elif isinstance(record, Release) and self._judge.released:
                self.revised.append(self._judge.released.n)

    def _finish(self) -> None:
        """The file has ended: what was waiting for more gets its last word."""
        for record in self._records.end():
            deque(self._take(self._window.feed(record)), 0)
        deque(self._take(self._window.flush()), 0)
        for finding in self._judge.end():
            self._find(finding)
            self.revised.append(finding.frame)
        self.revised.extend(self.columns.end(self._judge.pending(), live=False))
        self.complete = True

    def _find(self, finding: Finding) -> None:
        if self.findings.add(finding):
            self.announced.find(finding, *self.columns.subject(finding.frame))

    def _fill(self, event: Event) -> None:
        n = event.n
        self.counts.add(event)
        self.times.add(event)
        self.revised.extend(self.columns.add(event))
        if _part(event) == 0:
            self.moved.extend([n] * self.index.put(n, self._placed))  # it was before what was recorded before it
            self._placed += 1
        if isinstance(event, Message):
            self.gates.learn(event)
            self.announced.add(event)
            self.refusals.note(event)
            if event.exchange and event.exchange.response is event and not event.http:
                event.exchange.untie()  # the garbage collector would stop the screen to find it
        elif isinstance(event, HttpUnit):
            self.refusals.note(event)
            self._previews.note(event)
        elif isinstance(event, End):
            self._ended = True  # what was waiting for more comes out after it
        elif isinstance(event, Frame):
            self.stderr.append(n)


def _part(event: Event) -> int:
    """The place of an event in its batch, else 0."""
    return event.part if isinstance(event, Message) else 0
