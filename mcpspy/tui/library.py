"""The captures that the sessions list shows, without a screen.

The theory. A directory of captures is looked at again and again, so each file is opened as seldom as possible: its
header only when it has changed, its records only while it grows, and only if it is small enough to be counted. Counting
goes in slices, as long as the caller allows.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from mcpspy.capture.place import SUFFIX
from mcpspy.capture.reader import Capture, Records
from mcpspy.errors import CaptureError
from mcpspy.record import Header
from mcpspy.timeline import Counts, Timeline

COUNTED = 16 << 20  # bytes; counting what is in larger captures would take longer than a list should
_SLICE = 1 << 16  # bytes read at once


@dataclass(slots=True)
class Entry:
    """One capture of the list."""

    path: str
    header: Header
    started: float
    """Seconds since the epoch."""
    size: int = 0
    """Bytes."""
    live: bool = False
    counts: Counts = field(default_factory=Counts)
    counted: int = 0
    """Bytes of the file that are in `counts`."""
    finished: bool = False
    """What the end of the file leaves open is in `counts` too."""
    stamp: tuple[int, ...] = ()
    """What the file looked like: device, inode, size, time of change."""
    records: Records = field(default_factory=Records)
    timeline: Timeline = field(default_factory=Timeline)


class Library:
    """The captures at `targets`, each a file or a directory; `look` finds what has changed."""

    def __init__(self, targets: list[str]) -> None:
        self.targets = targets
        self.entries: list[Entry] = []
        """Live ones first, then the newest."""
        self._known: dict[str, Entry] = {}
        self._refused: dict[str, tuple[int, ...]] = {}  # files that are no captures, as they were then

    def look(self) -> bool:
        """Look at the targets again; tells whether the list has changed."""
        before = [(entry.path, entry.size, entry.live) for entry in self.entries]
        found: dict[str, Entry] = {}
        for path in self._paths():
            entry = self._entry(path)
            if entry:
                found[path] = entry
        self._known = found
        self.entries = sorted(found.values(), key=lambda entry: (not entry.live, -entry.started, entry.path))
        return before != [(entry.path, entry.size, entry.live) for entry in self.entries]

    def count(self, seconds: float) -> bool:
        """Count for about that long what is not counted yet; tells whether there is more to count now."""
        deadline = time.perf_counter() + seconds
        for entry in self.entries:
            while entry.counted < entry.size <= COUNTED:
                if not _count_slice(entry):
                    break
                if time.perf_counter() > deadline:
                    return True
            if not (entry.live or entry.finished) and entry.counted == entry.size:
                _count_rest(entry)
        return False

    def _paths(self) -> Iterator[str]:
        for target in self.targets:
            try:
                names = os.listdir(target)
            except NotADirectoryError:
                yield target
            except OSError:
                continue  # not there yet
            else:
                yield from (os.path.join(target, name) for name in names if name.endswith(SUFFIX))

    def _entry(self, path: str) -> Entry | None:
        """What is to say of a file, as far as possible what was said before."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        entry = self._known.get(path)
        if entry and not entry.live and entry.stamp == stamp:
            return entry
        if self._refused.get(path) == stamp:
            return None
        try:
            capture = Capture(path)
        except CaptureError:
            self._refused[path] = stamp
            return None
        if not entry or entry.finished or entry.header.id != capture.header.id or status.st_size < entry.size:
            entry = Entry(path, capture.header, datetime.fromisoformat(capture.header.started).timestamp())
        entry.size, entry.live, entry.stamp = status.st_size, capture.live, stamp
        return entry


def _count_slice(entry: Entry) -> bool:
    try:
        with open(entry.path, "rb") as file:
            file.seek(entry.counted)
            chunk = file.read(_SLICE)
    except OSError:
        return False
    entry.counted += len(chunk)
    try:
        for record in entry.records.feed(chunk):
            for row in entry.timeline.feed(record):
                entry.counts.add(row)
    except CaptureError:
        return False
    return bool(chunk)


def _count_rest(entry: Entry) -> None:
    """Nobody writes any more: count what was waiting for more."""
    for record in entry.records.end():
        for row in entry.timeline.feed(record):
            entry.counts.add(row)
    for row in entry.timeline.end():
        entry.counts.add(row)
    entry.finished = True
