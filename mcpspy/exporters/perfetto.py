"""A session as a trace: the JSON of the Trace Event Format, which Perfetto and the tracing page of browsers open.

The theory. A trace has processes, threads and slices. Slices of one thread may be nested but not overlap. Exchanges do
overlap, so each side is a process and its threads are lanes: an exchange uses the first lane that is free when it
begins. It is drawn on the side that sent the request, from the request to its response. So a request of the server
during a call is drawn below the call. An arrow points from a call to the requests that the server sends during it, and
from a result that requests input to the request that continues it. Events without a duration are instants.

Times are microseconds with three decimals, from the start of the earliest capture. A request without a response lasts
until the capture ends; a cancelled request has no duration.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import orjson

from mcpspy.conversation.model import Exchange, Session
from mcpspy.conversation.preview import INTRODUCE, introduction
from mcpspy.exporters.source import ExportSource, words_of
from mcpspy.text import printable
from mcpspy.timeline import Row, act_fields

_APART = 1_000  # nanoseconds between two slices of a lane, and minimum duration of one, because readers round
_POINTS = 1_000  # points of the counter of bytes, for the whole capture
_SIDES = {"client": 1, "server": 2, "mcpspy": 3}
_TRACKS = {"notification": 99_991, "stderr": 99_992, "http": 99_993, "other": 99_994, "findings": 99_995}
"""Threads of a process for instants; its lanes come before them."""
_THREADS = 100_000  # thread numbers per process; they are unique in a trace
_NAME = 200  # characters
_UNANSWERED = ("pending", "unanswered", "held", "dropped", "cancelled", "not-decoded")

TraceEvent = dict[str, Any]


def write(sources: Sequence[ExportSource]) -> Iterator[bytes]:
    """Yield the trace of some captures, with a process for each side of each capture."""
    starts = [datetime.fromisoformat(source.capture.header.started) for source in sources]
    first, flows, separator = min(starts), count(1), b"\n"
    yield b'{"traceEvents":['
    for place, (source, start) in enumerate(zip(sources, starts, strict=True)):
        offset = round((start - first).total_seconds() * 1e6) * 1000
        for event in _Tracing(source, place * 4, offset, flows).events():
            yield separator + orjson.dumps(event)
            separator = b",\n"
    about = {"started": min(starts).isoformat(), "captures": [printable(source.name, _NAME) for source in sources]}
    yield b'\n],"displayTimeUnit":"ms","otherData":' + orjson.dumps(about) + b"}\n"


class _Slice(NamedTuple):
    """The slice of an exchange; times are nanoseconds."""

    pid: int
    tid: int
    start: int
    end: int


class _Lanes:
    """The threads of one process that contain exchanges."""

    def __init__(self) -> None:
        self._busy: list[tuple[int, int]] = []  # end time, and number of the lane
        self._free: list[int] = []
        self.number = 0

    def take(self, start: int, end: int) -> int:
        """Return the first lane that is free for that time. Call it in the order of the starts."""
        while self._busy and self._busy[0][0] + _APART <= start:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        if not self._free:
            heapq.heappush(self._free, self.number)
            self.number += 1
        lane = heapq.heappop(self._free)
        heapq.heappush(self._busy, (end, lane))
        return lane


@dataclass(slots=True)
class _Tracing:
    """The events of one capture; `first` is the number before those of its processes."""

    source: ExportSource
    first: int
    offset: int
    """Nanoseconds from the start of the trace to the start of this capture."""
    flows: Iterator[int]
    _lanes: dict[str, _Lanes] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict)
    _open: dict[int, _Slice] = field(default_factory=dict)
    """By the line of the request: exchanges without a response so far."""
    _calls: dict[Session, set[int]] = field(default_factory=dict)
    """The lines of the client's requests whose responses have not come yet."""
    _rounds: dict[int, _Slice] = field(default_factory=dict)
    """By the line of a result that requests input: its exchange."""
    _bytes: dict[str, int] = field(default_factory=lambda: {"client": 0, "server": 0})
    _counted: int = -1

    def events(self) -> Iterator[TraceEvent]:
        """Yield all events, approximately in the order of their times."""
        for row in self.source.rows():
            if row.method in INTRODUCE and (name := introduction(row.value)):
                self._names.setdefault(row.sender, name)
            wanted = self.source.wanted(row)
            if row.kind == "request" and row.exchange:
                yield from self._request(row, row.exchange, drawn=wanted)
            elif row.exchange:
                self._answer(row, row.exchange)
            elif wanted:
                yield from self._instant(row)
            if wanted:
                yield from self._findings(row)
                yield from self._count(row)
        for side in _SIDES:
            if side != "mcpspy" or self._pid(side) in self._named:
                yield from self._process(side)

    def _request(self, row: Row, exchange: Exchange, *, drawn: bool) -> Iterator[TraceEvent]:
        """Yield the slice of an exchange, and the arrow that points to it."""
        held = (row.act.held or 0) if row.act else 0
        endless = row.latency is None and row.status != "cancelled"
        end = self.source.last if endless else row.t + (row.latency or 0) + held
        start, end = row.t + self.offset, max(end, row.t + _APART) + self.offset
        if drawn:
            lanes = self._lanes.setdefault(row.sender, _Lanes())
            lane = lanes.take(start, end)
            tid = self._tid(row.sender, 1 + lane)
            yield from self._thread(row.sender, tid, f"requests {lane + 1}")
            place = _Slice(self._pid(row.sender), tid, start, end)
            length = {"dur": (end - start) / 1000}
            yield self._event("X", row.sender, tid, start, _title(row), "exchange", _arguments(row)) | length
            before = self._rounds.pop(exchange.continues or 0, None)
            if before:
                yield from self._flow("round", before, min(before.end - _APART // 2, start), place)
            parent = self._parent(row, exchange)
            if parent and parent.end > start:
                yield from self._flow("server request", parent, start, place)
            self._open[row.n] = place
        if row.sender == "client" and row.latency is not None:
            self._calls.setdefault(exchange.request.session, set()).add(row.n)

    def _parent(self, row: Row, exchange: Exchange) -> _Slice | None:
        """Return the call that a server's request belongs to.

        None unless its stream or a single call makes it certain.
        """
        if row.sender != "server":
            return None
        http = exchange.request.http
        if http and http.request:
            calls = {message.n for message in http.request.carried if message.n in self._open}
        elif http:
            return None
        else:
            calls = self._calls.get(exchange.request.session, set())
        return self._open.get(next(iter(calls))) if len(calls) == 1 else None

    def _answer(self, row: Row, exchange: Exchange) -> None:
        """End an exchange; it may continue in another round."""
        n = exchange.request.n
        place = self._open.pop(n, None)
        calls = self._calls.get(exchange.request.session, set())
        calls.discard(n)
        if not calls:
            self._calls.pop(exchange.request.session, None)
        if place and exchange.inputs is not None:
            self._rounds[row.n] = place

    def _instant(self, row: Row) -> Iterator[TraceEvent]:
        """Yield an event without a duration: a notification, a line of stderr, an HTTP head, a gap."""
        track = row.kind if row.kind in _TRACKS else "http" if row.kind == "event" else "other"
        tid = self._tid(row.sender, _TRACKS[track])
        yield from self._thread(row.sender, tid, {"notification": "notifications"}.get(track, track))
        at = row.t + self.offset
        yield self._event("i", row.sender, tid, at, _title(row), row.kind, _arguments(row)) | {"s": "t"}

    def _findings(self, row: Row) -> Iterator[TraceEvent]:
        for finding in row.findings:
            tid = self._tid(finding.blame, _TRACKS["findings"])
            yield from self._thread(finding.blame, tid, "findings")
            args = {"n": row.n, "severity": finding.severity, "message": printable(finding.message, 1000)}
            if finding.pointer:
                args["pointer"] = printable(finding.pointer, 1000)
            at = row.t + self.offset
            yield self._event("i", finding.blame, tid, at, finding.rule, "finding", args) | {"s": "t"}

    def _count(self, row: Row) -> Iterator[TraceEvent]:
        """Yield the bytes so far, at most a thousand times in a capture."""
        if row.part == 0 and row.sender in self._bytes:
            self._bytes[row.sender] += row.size
        point = row.t * _POINTS // max(self.source.last, 1)
        if point > self._counted:
            self._counted = point
            for side, size in self._bytes.items():
                yield self._event("C", side, 0, row.t + self.offset, "bytes", "bytes", {"sent": size})

    def _flow(self, name: str, before: _Slice, at: int, after: _Slice) -> Iterator[TraceEvent]:
        """Yield an arrow from a time within one slice to the beginning of another."""
        number = next(self.flows)
        for phase, place, t in (("s", before, at), ("f", after, after.start)):
            event = {"ph": phase, "pid": place.pid, "tid": place.tid, "ts": t / 1000, "name": name, "cat": "flow"}
            yield event | {"id": number} | ({"bp": "e"} if phase == "f" else {})

    def _event(
        self, phase: str, side: str, tid: int, t: int, name: str, category: str, args: dict[str, Any]
    ) -> TraceEvent:
        place = {"ph": phase, "pid": self._pid(side), "tid": tid, "ts": t / 1000}
        return place | {"name": name, "cat": category, "args": args}

    def _pid(self, side: str) -> int:
        return self.first + _SIDES[side]

    def _tid(self, side: str, number: int) -> int:
        return self._pid(side) * _THREADS + number

    def _thread(self, side: str, tid: int, name: str) -> Iterator[TraceEvent]:
        """Yield the name of a thread when it is used first."""
        if tid not in self._named:
            self._named |= {tid, self._pid(side)}
            metadata = {"ph": "M", "pid": self._pid(side), "tid": tid, "ts": 0}
            yield metadata | {"name": "thread_name", "args": {"name": name}}
            yield metadata | {"name": "thread_sort_index", "args": {"sort_index": tid}}

    def _process(self, side: str) -> Iterator[TraceEvent]:
        header = self.source.capture.header
        words = [side, self._names.get(side) or "", f"({header.name})" if header.name else ""]
        metadata = {"ph": "M", "pid": self._pid(side), "tid": 0, "ts": 0}
        name = printable(" ".join(filter(None, words)), _NAME)
        yield metadata | {"name": "process_name", "args": {"name": name}}
        yield metadata | {"name": "process_sort_index", "args": {"sort_index": self._pid(side)}}


def _title(row: Row) -> str:
    """Return the name of a slice or an instant."""
    about = words_of(row) or row.text or ""
    words = [row.method or (row.kind if row.kind != "stderr" else ""), about]
    state = f"({row.status})" if row.status in _UNANSWERED else ""
    return printable(" ".join(filter(None, [*words, state])), _NAME)


def _arguments(row: Row) -> dict[str, Any]:
    """Return what a viewer shows of a slice or an instant in addition to its name; `n` identifies the row."""
    found = {
        "n": row.n,
        "part": row.part or None,
        "id": None if row.id is None else printable(str(row.id), _NAME),
        "status": row.status,
        "response": row.response,
        "size": row.size or None,
        "session": row.session and printable(row.session, _NAME),
        "revision": row.revision,
        "http": row.http and (row.http.get("status") or printable(str(row.http.get("method")), 20)),
    } | (act_fields(row.act) if row.act else {})
    found = {name: printable(value, _NAME) if isinstance(value, str) else value for name, value in found.items()}
    return {name: value for name, value in found.items() if value is not None}
