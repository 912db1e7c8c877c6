"""The captures of the sessions list, without a screen: their listing, and what is counted in each.

The records of a file are read only while it grows, and only if it is small enough to be counted. All of this happens in
time slices set by the caller, the newest captures first.
"""

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import orjson

from mcpspy.capture.copies import CopiedFile, opened
from mcpspy.capture.format import LOST
from mcpspy.capture.listing import Listed, Listing, client_process
from mcpspy.capture.reader import Capture, Records, Window
from mcpspy.capture.records import Record
from mcpspy.conversation.counts import COUNTED, Counts
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Message
from mcpspy.conversation.outcomes import Outcome, OutcomeTable
from mcpspy.errors import CaptureError
from mcpspy.problems.fold import Problems
from mcpspy.rules import SEVERITIES, LocatedFinding
from mcpspy.rules.judge import Fold, JudgedEvent, JudgedEvents

_TAIL = 4096  # bytes at the end of a file that contain its last record
SLICE = 1 << 16
"""Bytes read at once."""
_SPANS = 32


class Activity:
    """How many messages there were over time: in equal spans, which become twice as long when there are too many."""

    def __init__(self) -> None:
        self._spans: list[int] = []
        self._length = 1_000_000  # nanoseconds of a span

    def add(self, t: int) -> None:
        """Count a message at a time since the start."""
        while t >= self._length * _SPANS:
            self._spans = [sum(self._spans[at : at + 2]) for at in range(0, len(self._spans), 2)]
            self._length *= 2
        place = t // self._length
        self._spans += [0] * (place + 1 - len(self._spans))
        self._spans[place] += 1

    def over(self, parts: int) -> list[int]:
        """Return the numbers of messages in at most so many equal parts of the time so far."""
        spans = self._spans
        parts = min(parts, len(spans))
        cuts = [place * len(spans) // parts for place in range(parts + 1)] if parts else []
        return [sum(spans[first:last]) for first, last in pairwise(cuts)]


@dataclass(slots=True, eq=False)
class ListedCapture(Listed, Fold):
    """One capture of the list, with its counts."""

    words: str = ""
    """The text in which it can be searched, in lower case."""
    counts: Counts = field(default_factory=Counts)
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SEVERITIES, 0))
    """The number of findings by severity."""
    activity: Activity = field(default_factory=Activity)
    problems: int = 0
    """The number of problems, when the file was last counted to its end."""
    counted: int = 0
    """How many bytes of the file are counted."""
    killed: bool = False
    """Whether its relay ended without an end record."""
    outcomes: OutcomeTable = field(default_factory=OutcomeTable)
    """The outcomes of its requests so far."""
    uncounted: bool = False
    """Whether it is too large to be counted."""
    counting: tuple[Records, Window, JudgedEvents, Problems] | None = None
    """The counting state, while there is more to count."""

    def add(self, event: JudgedEvent) -> None:
        """Count the next event."""
        if isinstance(event, LocatedFinding):
            self.found[event.finding.severity] += 1
            return
        self.outcomes.add(event)
        self.counts.failed = self.outcomes.failed
        if not isinstance(event, GateAct | Outcome):
            self.counts.add(event)
            if type(event) is Message:
                self.activity.add(event.t)


class Library(Listing[ListedCapture]):
    """The captures at `targets`, counted while it grows."""

    def __init__(self, targets: list[str]) -> None:
        super().__init__(targets, _entry)
        self._uncounted: deque[ListedCapture] = deque()

    def grow(self, seconds: float) -> bool:
        """Look and count for about `seconds`. Returns whether there is more to do now."""
        deadline = time.perf_counter() + seconds
        if super().grow(seconds):
            return True
        while self._uncounted:
            entry = self._uncounted[0]
            if entry not in self or not _count(entry):
                self._uncounted.popleft()
            if time.perf_counter() > deadline:
                break
        return bool(self._uncounted)

    def changed(self, entry: ListedCapture, *, new: bool) -> None:
        """Count an entry that is new or has changed, unless it is too large."""
        entry.uncounted = entry.size > COUNTED
        if entry.uncounted:
            entry.killed = not entry.live and not entry.capture.copied and not _closed(entry.path)
        elif new or entry not in self._uncounted:
            (self._uncounted.appendleft if entry.live else self._uncounted.append)(entry)


def chosen(entries: list[ListedCapture], text: str) -> list[ListedCapture]:
    """Return the entries that contain every word of a text in name, transport, commands, URL, path or client pid."""
    words = text.lower().split()
    return [entry for entry in entries if all(word in entry.words for word in words)] if words else entries


def _entry(capture: Capture, started: float) -> ListedCapture:
    header, path = capture.header, capture.path
    process = str(client_process(header) or "")
    words = " ".join(
        (header.name, header.transport, *header.argv, header.url or "", path, process, *header.client)
    ).lower()
    return ListedCapture(capture, started, words=words)


def _count(entry: ListedCapture) -> bool:
    """Count the next slice; at the end of a file that is not live, finish.

    Returns whether there was something to count.
    """
    if entry.finished:
        return False
    if entry.counting is None:
        problems = Problems(entry.header)
        entry.counting = Records(), Window(), JudgedEvents(entry, problems), problems
    records, window, events, problems = entry.counting
    try:
        with opened(entry.path) as file:
            file.seek(entry.counted)
            chunk = file.read(SLICE if isinstance(file, CopiedFile) else min(SLICE, entry.size - entry.counted))
        entry.counted += len(chunk)
        if entry.counted > COUNTED:  # once it is decompressed
            entry.uncounted, entry.counting = True, None
            return False
        for record in records.feed(chunk):
            _read(events, window.feed(record))
    except (OSError, CaptureError):
        return False
    if not chunk and entry.live:  # the next look is later than any record has to wait
        _read(events, window.flush())
    elif not chunk:
        for record in records.end():
            _read(events, window.feed(record))
        _read(events, window.flush())
        deque(events.end(), 0)
        entry.finished, entry.counting, entry.killed = True, None, not _closed(entry.path)
    if not chunk:
        entry.problems = problems.number
    return bool(chunk)


def _closed(path: str) -> bool:
    """Return whether the last record of a file is a regular end, or says why there is none: it continues, or is cut."""
    try:
        with opened(path) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
            last = orjson.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])
        return last["kind"] in ("end", "continued") or str(last.get("why")).startswith(LOST)
    except OSError:  # deleted
        return True
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _read(events: JudgedEvents, records: Iterable[Record]) -> None:
    for record in records:
        deque(events.feed(record), 0)
