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

from mcpspy.capture.index import Index
from mcpspy.capture.order import Window
from mcpspy.capture.reader import Records
from mcpspy.capture.records import Close, Frame, Gap, Open, Record
from mcpspy.rules import Finding
from mcpspy.spec.revisions import Revision
from mcpspy.text import plural
from mcpspy.timeline import Counts, Row, Timeline, rows_alone
from mcpspy.tui.model.findings import Found
from mcpspy.tui.model.offers import Announced
from mcpspy.wire.jsonrpc import Id

_IDLE = 2  # looks that found nothing to fold, after which what waits for its order waits no longer
_SLICE = 1 << 15  # bytes that the fold reads at once
_SHOWN = 1 << 20  # bytes of a frame that a person is shown
_NAME = 500  # characters of a method or name that are kept
_READ = 1 << 12  # bytes of what is no message that a line may show
_NAMED = 9  # messages of a batch that a line names

_KINDS = ("", *"request notification result error invalid undecoded stderr http event gap signal end batch".split())
_BATCH = _KINDS.index("batch")
_SPOKEN = ("request", "notification", "result", "error")  # the kinds that have a method
_SENDERS = ("client", "server", "mcpspy")
_STATUSES = ("", "ok", "error", "tool-error", "pending", "unanswered", "cancelled", "not-decoded")
_REVISIONS = ("", *(revision.value for revision in Revision))


class Source(NamedTuple):
    """Where a line of a merge comes from."""

    which: int
    """The number of its session among those that are merged."""
    n: int
    """Its line number there."""
    name: str
    """The name of that session."""


class Line(NamedTuple):
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
    """What there is to read where there is no method."""
    severity: str = ""
    """Of the worst that was found of it."""
    source: Source | None = None
    """In a merge: where it comes from."""


class _Columns:
    """What the fold tells of each line of the file, by line number."""

    def __init__(self) -> None:
        self.kind, self.sender, self.status, self.revision = bytearray(), bytearray(), bytearray(), bytearray()
        self.method, self.name, self.session = array("I"), array("I"), array("I")  # method: or why it is no message
        self.partner = array("I")
        self.t, self.size, self.id = array("Q"), array("Q"), array("q")

    def extend(self, lines: int) -> None:
        """Make room for line numbers up to `lines`."""
        more = lines + 1 - len(self.kind)
        for flags in (self.kind, self.sender, self.status, self.revision):
            flags.extend(bytes(more))
        for column in (self.method, self.name, self.session, self.partner, self.t, self.size, self.id):
            column.frombytes(bytes(more * column.itemsize))


class Session:
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
        self.findings = Found()
        self.found = self.findings.counts
        """How often something was found, by severity."""
        self.announced = Announced()
        self.stderr = array("I")
        """The line numbers of what the server wrote to stderr."""
        self.revised = array("I")
        """The line numbers of rows that became others than the fold first knew them, in that order."""
        self.moved = array("I")
        """The line numbers of rows that the fold put elsewhere, in that order."""
        self._columns = _Columns()
        self._texts = [""]  # methods and names, once each
        self._places: dict[str, int] = {"": 0}
        self._ids: dict[int, str] = {}  # by line number: those that are no small number
        self._records, self._window = Records(), Window()
        self._timeline = Timeline(rules=True)
        self._folded = 0  # bytes
        self._placed = 0  # rows that the fold has given: the first ones, in the order of their times
        self._idle = 0  # how often in a row there was nothing to fold
        self._steps = self._fold()

    def close(self) -> None:
        """Give the file back."""
        self.index.close()

    def __len__(self) -> int:
        """How many rows there are so far."""
        return len(self.index.rows)

    @property
    def state(self) -> str:
        """That of the index; or `killed`, where a relay ended without a word."""
        killed = self.complete and not self._ended and self.index.state == "ended"
        return "killed" if killed else self.index.state

    @property
    def progress(self) -> float:
        """The part of the file that is folded, 0 to 1."""
        return min(self._folded / max(self.index.size, 1), 1.0)

    def grow(self, seconds: float) -> bool:
        """Work for about that long, first on the index, then on the fold; tells whether there is more to do now."""
        if self.complete:
            return False
        deadline = time.perf_counter() + seconds
        while self.index.grow():
            self._columns.extend(self.index.lines)
            if time.perf_counter() > deadline:
                return True
        self._columns.extend(self.index.lines)
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

    def line(self, place: int) -> Line:
        """The line of the timeline at that place."""
        n = self.index.rows[place]
        columns = self._columns
        kind = _KINDS[columns.kind[n]]
        if kind not in _SPOKEN:
            return self._decoded(n)
        partner = columns.partner[n]
        return Line(
            n,
            columns.t[n],
            kind,
            _SENDERS[columns.sender[n]],
            self._texts[columns.method[n]],
            self._texts[columns.name[n]],
            str(self._id(n) or ""),
            _STATUSES[columns.status[n]],
            abs(columns.t[n] - columns.t[partner]) if partner else None,
            columns.size[n],
            severity=self.findings.worst(n) or "",
        )

    def time_of(self, n: int) -> int | None:
        """When the row on line `n` was, in nanoseconds since the start; None before the fold has come to it."""
        return self._columns.t[n] if self._columns.kind[n] else None

    def of(self, place: int) -> tuple["Session", int]:
        """The session that the row at that place is of, and its place there: in a merge they differ."""
        return self, place

    def partner(self, place: int) -> int | None:
        """The place of the response to a request, or of the request that a response answers; a batch has none."""
        n = self.index.rows[place]
        partner = self._columns.partner[n]
        return self.index.row_of(partner) if partner and self._columns.kind[n] != _BATCH else None

    def known(self, n: int) -> Row | None:
        """A new row: that on line `n`, without its text, as the fold knows it by now; its kind may be `batch`.

        None before the fold has come to it; what it can no longer come to is a gap.
        """
        columns = self._columns
        kind = _KINDS[columns.kind[n]]
        if not kind:
            return Row(n, 0, "gap", "mcpspy") if self.complete else None
        row = Row(n, columns.t[n], kind, _SENDERS[columns.sender[n]])
        self._add_what_is_known(row)
        row.id = self._id(n)
        row.session = self._texts[columns.session[n]] or None
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
        if len(found) == 1 and self._columns.kind[n]:
            self._add_what_is_known(found[0])
        else:
            for row in found:
                row.status = None  # only the fold can tell
        return found

    def _add_what_is_known(self, row: Row) -> None:
        columns, n = self._columns, row.n
        if row.kind == "gap" != _KINDS[columns.kind[n]]:
            return  # what was there when it was folded is gone
        row.findings = self.findings.of(n)
        kind, method = _KINDS[columns.kind[n]], self._texts[columns.method[n]] or None
        row.t, row.size = columns.t[n], columns.size[n]
        if len(row.raw) < row.size:
            row.kind, row.value, row.refused = kind, None, None
            row.text = "a large one" if kind == "batch" else row.text
        if kind == "invalid":
            row.text = method
            return
        row.method, row.name = method, self._texts[columns.name[n]] or None
        row.revision = _REVISIONS[columns.revision[n]] or None
        row.status = _STATUSES[columns.status[n]] or None
        partner = columns.partner[n]
        if partner:
            row.request, row.response = (n, partner) if row.kind == "request" else (partner, n)
            row.latency = abs(columns.t[n] - columns.t[partner])

    def _decoded(self, n: int) -> Line:
        """A row that has no method, or that the fold has not come to yet."""
        kind = _KINDS[self._columns.kind[n]]
        if not kind and self.index.in_pieces(n):
            return Line(n, 0, "frame", "mcpspy", text="a large one, not read yet")
        found = self._rows(n, _SHOWN if kind in ("", "batch") else 1)
        if not found:
            return Line(n, 0, "gap", "mcpspy", text="overwritten")
        row = found[0]
        text, severity = row.text or "", self.findings.worst(n) or ""
        if row.kind == "invalid":
            text = f"{row.text}: {row.raw[:_READ].decode(errors='replace')}"
        if len(found) > 1:
            methods = ", ".join(row.method or row.kind for row in found[:_NAMED])
            text = f"{plural(len(found), 'message')}: {methods}"
            return Line(n, row.t, "batch", row.sender, size=row.size, text=text, severity=severity)
        method = row.method or ("…" if row.kind in ("result", "error") else "")
        number = str(row.id) if row.id else ""
        subject = (method, row.name or "", number)
        return Line(n, row.t, row.kind, row.sender, *subject, size=row.size, text=text, severity=severity)

    def _fold(self) -> Iterator[bool]:
        """Folds one record a step, for ever; yields whether there was one."""
        while True:
            chunk = self.index.read(self._folded, min(_SLICE, self.index.indexed - self._folded))
            if not chunk:
                self._idle += 1
                if self._idle == _IDLE:
                    yield from self._take(self._window.flush())
                yield False
                continue
            self._idle = 0
            self._folded += len(chunk)
            for record in self._records.feed(chunk):
                yield from self._take(self._window.feed(record))
                yield True

    def _take(self, records: Iterable[Record]) -> Iterator[bool]:
        for record in records:
            for row in self._timeline.feed(record):
                self._fill(row)
                yield True  # a batch may have thousands
            self._take_findings()

    def _finish(self) -> None:
        """The file has ended: what was waiting for more gets its last word."""
        for record in self._records.end():
            deque(self._take(self._window.feed(record)), 0)
        deque(self._take(self._window.flush()), 0)
        self._timeline.end()
        self._take_findings()
        for exchange in self._timeline.pending():
            self._columns.status[exchange.request.n] = _STATUSES.index(exchange.final_status(live=False))
            self.revised.append(exchange.request.n)
        self.complete = True

    def _take_findings(self) -> None:
        for finding in self._timeline.late:
            method, name = self._columns.method[finding.frame], self._columns.name[finding.frame]
            self._find(finding, self._texts[method], self._texts[name])
            self.revised.append(finding.frame)
        self._timeline.late.clear()

    def _find(self, finding: Finding, method: str | None, name: str | None) -> None:
        self.findings.add(finding)
        self.announced.find(finding, method, name)

    def _fill(self, row: Row) -> None:
        columns, n = self._columns, row.n
        self._ended = self._ended or row.kind == "end"  # what was waiting for more comes out after it
        self.counts.add(row)
        self.announced.add(row)
        for finding in row.findings:
            self._find(finding, row.method, row.name)
        if row.part == 0:
            self.moved.extend([n] * self.index.put(n, self._placed))  # it was before what was recorded before it
            self._placed += 1
        if row.kind == "stderr":
            self.stderr.append(n)
        if row.part:
            columns.kind[n] = _BATCH
        else:
            columns.kind[n] = _KINDS.index(row.kind)
            columns.sender[n] = _SENDERS.index(row.sender)
            columns.revision[n] = _REVISIONS.index(row.revision or "")
            columns.method[n] = self._place(row.text if row.kind == "invalid" else row.method)
            columns.name[n] = self._place(row.name)
            if row.session:
                columns.session[n] = self._place(row.session)
            columns.t[n], columns.size[n] = row.t, row.size
            if row.status:
                columns.status[n] = _STATUSES.index(row.status)
            if row.id:
                self._set_id(n, str(row.id))
        if row.exchange and row.kind != "request":
            self._pair(row)
        for exchange in row.revised:
            columns.status[exchange.request.n] = _STATUSES.index(exchange.status)
            columns.revision[exchange.request.n] = _REVISIONS.index(
                exchange.revision.value if exchange.revision else ""
            )
            self.revised.append(exchange.request.n)

    def _pair(self, row: Row) -> None:
        request = row.exchange.request if row.exchange else None
        if request is None:
            return
        columns = self._columns
        if not row.part:  # a frame with several messages has no partner, but is one
            columns.partner[row.n] = request.n
        if not request.part:
            columns.partner[request.n], columns.status[request.n] = row.n, _STATUSES.index(row.status or "")
            self.revised.append(request.n)
        if row.exchange and not row.http:  # what carried it over HTTP, others may yet be judged by
            row.exchange.untie()  # the garbage collector would stop the screen to find it

    def _place(self, text: str | None) -> int:
        text = (text or "")[:_NAME]
        place = self._places.setdefault(text, len(self._texts))
        if place == len(self._texts):
            self._texts.append(text)
        return place

    def _id(self, n: int) -> Id | None:
        number = self._columns.id[n]
        if number:
            return Id("number", str(number - 1))
        text = self._ids.get(n, "")
        if text.startswith('"'):
            return Id("string", text[1:-1])
        kind = "null" if text == "null" else "other" if text.startswith(("t", "f", "[", "{")) else "number"
        return Id(kind, text) if text else None

    def _set_id(self, n: int, number: str) -> None:
        if len(number) < 19 and number.isascii() and number.isdigit() and str(int(number)) == number:
            self._columns.id[n] = int(number) + 1
        else:
            self._ids[n] = number
