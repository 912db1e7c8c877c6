"""The captures of the sessions list, without a screen.

A directory may contain ten thousand captures and is looked at repeatedly. So each file is opened as rarely as possible:
its header only when it has changed, its records only while it grows, and only if it is small enough to be counted. All
of this happens in time slices set by the caller, the newest captures first. Results are available immediately, and
sorted.
"""

import math
import os
import time
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from mcpspy.capture.location import SUFFIX
from mcpspy.capture.reader import Capture, Records, Window
from mcpspy.capture.records import Header, Record
from mcpspy.capture.runs import client_process
from mcpspy.conversation.counts import Counts
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import open_foreign
from mcpspy.rules import SEVERITIES, LocatedFinding
from mcpspy.rules.judge import Fold, JudgedEvent, JudgedEvents

COUNTED = 16 << 20  # bytes; counting larger captures would take too long for a list
_TAIL = 4096  # bytes at the end of a file that contain its last record
SLICE = 1 << 16
"""Bytes read at once."""


@dataclass(slots=True, eq=False)
class ListedCapture(Fold):
    """One capture of the list."""

    path: str
    header: Header
    started: float
    """Seconds since the epoch."""
    words: str
    """The text in which it can be searched, in lower case."""
    size: int = 0
    """Bytes."""
    live: bool = False
    counts: Counts = field(default_factory=Counts)
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SEVERITIES, 0))
    """The number of findings by severity."""
    counted: int = 0
    """How many bytes of the file are counted."""
    killed: bool = False
    """Whether its relay ended without an end record."""
    finished: bool = False
    """Whether incomplete content at the end of the file is counted too."""
    stamp: tuple[int, ...] = ()
    """The state of the file: device, inode, size, modification time."""
    fold: tuple[Records, Window, JudgedEvents] | None = None
    """The counting state, while there is more to count."""

    def add(self, event: JudgedEvent) -> None:
        """Count the next event."""
        if isinstance(event, LocatedFinding):
            self.found[event.finding.severity] += 1
        elif not isinstance(event, GateAct):
            self.counts.add(event)

    @property
    def ended(self) -> float:
        """When it was last written, in seconds since the epoch; infinite while it is live."""
        return math.inf if self.live else self.stamp[-1] / 1e9


class Library:
    """The captures at `targets`, each a file or a directory.

    Call `look`, then `grow` until it has nothing more to do.
    """

    def __init__(self, targets: list[str]) -> None:
        self.targets = targets
        self.entries: list[ListedCapture] = []
        """Live captures first, then the newest."""
        self.changes = 0
        """How often an entry was added, removed, changed or moved."""
        self.looked = False
        """Whether all targets were looked at since the last `look`."""
        self._known: dict[str, ListedCapture] = {}
        self.refused: dict[str, str] = {}
        """File -> why it is not shown."""
        self._stamps: dict[str, tuple[int, ...]] = {}  # the stamps of refused files
        self._uncounted: deque[ListedCapture] = deque()
        self._round: Iterator[None] = iter(())

    def look(self) -> None:
        """Look at the targets again, unless that is already in progress."""
        if next(self._round, True):
            self._round = self._look()
            self.looked = False

    def grow(self, seconds: float) -> bool:
        """Look and count for about `seconds`. Returns whether there is more to do now."""
        deadline = time.perf_counter() + seconds
        for _ in self._round:
            if time.perf_counter() > deadline:
                return True
        while self._uncounted:
            entry = self._uncounted[0]
            if entry is not self._known.get(entry.path) or not _count(entry):
                self._uncounted.popleft()
            if time.perf_counter() > deadline:
                break
        return bool(self._uncounted)

    def _look(self) -> Iterator[None]:
        """Look at one file per step."""
        seen = set()
        for path in self._paths():
            seen.add(path)
            self._take(path)
            yield
        for path in (self._known.keys() | self.refused.keys()) - seen:
            self._put(path, None)
        self.looked = True

    def _paths(self) -> Iterator[str]:
        for target in self.targets:
            try:
                names = os.listdir(target)
            except NotADirectoryError:
                yield target
            except OSError:
                continue  # does not exist yet
            else:
                names.sort(reverse=True)  # names begin with the time
                yield from (os.path.join(target, name) for name in names if name.endswith(SUFFIX))

    def _take(self, path: str) -> None:
        """Read what is known about a file; reuse earlier results as far as possible."""
        known = self._known.get(path)
        try:
            status = os.stat(path)
        except OSError:
            self._put(path, None)
            return
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if (known and not known.live and known.stamp == stamp) or self._stamps.get(path) == stamp:
            return
        try:
            capture = Capture(path)
        except CaptureError as error:
            self._put(path, None)
            self.refused[path], self._stamps[path] = str(error), stamp
            return
        entry, live = known, capture.live
        if not entry or entry.finished or entry.header.id != capture.header.id or status.st_size < entry.size:
            entry = _entry(path, capture.header)
        new, moved, grown = entry is not known, entry.live != live, entry.size != status.st_size
        entry.size, entry.live, entry.stamp = status.st_size, live, stamp
        if new or moved:
            self._put(path, entry)
        self.changes += grown
        if entry.size > COUNTED:
            entry.killed = not live and not _closed(path)
        if entry.size <= COUNTED and (new or ((moved or grown) and entry not in self._uncounted)):
            (self._uncounted.appendleft if live else self._uncounted.append)(entry)

    def _put(self, path: str, entry: ListedCapture | None) -> None:
        """Replace the entry of a file, and move it to its place; None removes it."""
        known = self._known.pop(path, None)
        self.refused.pop(path, None)
        self._stamps.pop(path, None)
        if known:
            self.entries.remove(known)
        if entry:
            self._known[path] = entry
            insort(self.entries, entry, key=_order)
        self.changes += known is not entry or entry is not None


def chosen(entries: list[ListedCapture], text: str) -> list[ListedCapture]:
    """Return the entries that contain every word of a text in name, transport, command, URL, path or client pid."""
    words = text.lower().split()
    return [entry for entry in entries if all(word in entry.words for word in words)] if words else entries


def _entry(path: str, header: Header) -> ListedCapture:
    process = str(client_process(header) or "")
    words = " ".join((header.name, header.transport, *header.argv, header.url or "", path, process)).lower()
    return ListedCapture(path, header, datetime.fromisoformat(header.started).timestamp(), words)


def _order(entry: ListedCapture) -> tuple[bool, float, str]:
    return not entry.live, -entry.started, entry.path


def _count(entry: ListedCapture) -> bool:
    """Count the next slice; at the end of a file that is not live, finish.

    Returns whether there was something to count.
    """
    if entry.finished:
        return False
    if entry.fold is None:
        entry.fold = Records(), Window(), JudgedEvents(entry)
    records, window, events = entry.fold
    try:
        with open_foreign(entry.path) as file:
            file.seek(entry.counted)
            chunk = file.read(min(SLICE, entry.size - entry.counted))
        entry.counted += len(chunk)
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
        entry.finished, entry.fold, entry.killed = True, None, not _closed(entry.path)
    return bool(chunk)


def _closed(path: str) -> bool:
    """Return whether the last record of a file is a regular end, or names another file that continues it."""
    try:
        with open_foreign(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            last = orjson.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])
        return last["kind"] in ("end", "continued")
    except OSError:  # deleted
        return True
    except (ValueError, KeyError, TypeError):
        return False


def _read(events: JudgedEvents, records: Iterable[Record]) -> None:
    for record in records:
        deque(events.feed(record), 0)
