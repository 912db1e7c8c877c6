"""The captures of directories: list them, find the live ones, group them in runs, and delete others.

A directory may contain ten thousand captures and is looked at repeatedly. So the header of a file is read only when the
file has changed, one file at a time, and results are available immediately, and sorted.

A run is the captures of one client process. A client starts one relay per server, so its activity is spread over
several captures. A process is identified by its id and its start time. If a capture has no start time, the id alone
joins only captures that overlap or follow each other immediately, because containers and systems reuse process ids.
"""

import math
import os
import re
import sys
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from mcpspy.capture.location import STANDARD_INPUT, SUFFIXES
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import open_foreign
from mcpspy.text import plural

try:
    import fcntl
except ImportError:  # Windows
    pass


HEADERS = 2000
"""How many files are read at most to find the newest capture, if file times do not show it."""
_NAMED = 3  # files listed in a sentence
_NAME = re.compile(r"\d{8}T\d{6}Z-", re.ASCII)
_COARSE = 2  # seconds by which the time of a file may be behind the clock


@dataclass(slots=True, eq=False)
class Listed:
    """One capture of a list."""

    capture: Capture
    started: float
    """Seconds since the epoch."""
    size: int = 0
    """Bytes."""
    live: bool = False
    stamp: tuple[int, ...] = ()
    """The state of the file: device, inode, size, modification time."""
    finished: bool = False
    """Whether its content was read to the end, so that after a change it is read again."""

    @property
    def path(self) -> str:
        """The path of its first file."""
        return self.capture.path

    @property
    def header(self) -> Header:
        """Its header."""
        return self.capture.header

    @property
    def ended(self) -> float:
        """When it was last written, in seconds since the epoch; infinite while it is live."""
        return math.inf if self.live else self.stamp[-1] / 1e9


Entry = TypeVar("Entry", bound=Listed)
Refused = dict[str, str]
"""Path -> why the file cannot be read as a capture."""


class Listing(Generic[Entry]):
    """The captures at `targets`, each a file or a directory, as `make` makes them of a capture and its start.

    Call `look`, then `grow` until it has nothing more to do. A file that continues another one is listed as well.
    """

    def __init__(self, targets: list[str], make: Callable[[Capture, float], Entry]) -> None:
        self.targets = targets
        self.entries: list[Entry] = []
        """Live captures first, then the newest."""
        self.changes = 0
        """How often an entry was added, removed, changed or moved."""
        self.looked = False
        """Whether all targets were looked at since the last `look`."""
        self.refused: Refused = {}
        """File -> why it is not shown."""
        self._make = make
        self._known: dict[str, Entry] = {}
        self._stamps: dict[str, tuple[int, ...]] = {}  # the stamps of refused files
        self._round: Iterator[None] = iter(())

    def look(self) -> None:
        """Look at the targets again, unless that is already in progress."""
        if next(self._round, True):
            self._round = self._look()
            self.looked = False

    def grow(self, seconds: float) -> bool:
        """Look for about `seconds`. Returns whether there is more to do now."""
        deadline = time.perf_counter() + seconds
        return any(time.perf_counter() > deadline for _ in self._round)

    def __contains__(self, entry: Entry) -> bool:
        """Return whether an entry is still in the list."""
        return self._known.get(entry.path) is entry

    def changed(self, entry: Entry, *, new: bool) -> None:
        """Take note of an entry that is new, or whose file has grown, begun or ended."""

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
                names = [] if target == STANDARD_INPUT else os.listdir(target)
            except NotADirectoryError:
                yield target
            except OSError:
                continue  # does not exist yet
            else:
                if target == STANDARD_INPUT:
                    yield target
                names.sort(reverse=True)  # names begin with the time
                yield from (os.path.join(target, name) for name in names if name.endswith(SUFFIXES))

    def _take(self, path: str) -> None:
        """Read what is known about a file; reuse earlier results as far as possible."""
        known = self._known.get(path)
        try:
            stamp = _stamp(path)
        except (OSError, CaptureError):
            self._put(path, None)
            return
        size = stamp[2]
        if (known and not known.live and known.stamp == stamp) or self._stamps.get(path) == stamp:
            return
        try:
            capture = Capture(path)
        except CaptureError as error:
            self._put(path, None)
            if os.path.lexists(path):  # not deleted meanwhile
                self.refused[path], self._stamps[path] = str(error), stamp
            return
        entry, live = known, capture.live
        if not entry or entry.finished or entry.header.id != capture.header.id or size < entry.size:
            entry = self._make(capture, _started(capture))
        new, moved, grown = entry is not known, entry.live != live, entry.size != size
        entry.size, entry.live, entry.stamp = size, live, stamp
        if new or moved:
            self._put(path, entry)
        self.changes += grown
        if new or moved or grown:
            self.changed(entry, new=new)

    def _put(self, path: str, entry: Entry | None) -> None:
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


def _stamp(path: str) -> tuple[int, ...]:
    """Return the state of a file. Raises OSError, or CaptureError for standard input."""
    if path == STANDARD_INPUT:
        return 0, 0, Capture(path).size, time.time_ns()
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _order(entry: Listed) -> tuple[bool, float, str]:
    return not entry.live, -entry.started, entry.path


def _started(capture: Capture) -> float:
    return datetime.fromisoformat(capture.header.started).timestamp()


def first_files(entries: Iterable[Entry]) -> list[Entry]:
    """Return the captures of a list, without files that continue another one: they are read together with it."""
    entries = list(entries)
    known = {entry.header.id for entry in entries}
    return [entry for entry in entries if not entry.header.continues or entry.header.continues not in known]


def captures(folder: str, refused: Refused | None = None) -> list[Listed]:
    """Return the captures in `folder`, live ones first, then the newest. Skip other files and add them to `refused`.

    A capture of several files is one, with the size of all of them.
    """
    listing = Listing(list(_files(folder)), Listed)
    listing.look()
    listing.grow(math.inf)
    if refused is not None:
        refused.update(listing.refused)
    return _reached([(entry, paths) for entry in listing.entries if (paths := _joined(entry))])


def newest(folder: str, refused: Refused) -> Listed | None:
    """Return the capture in `folder` that started last.

    Files that may be newer but are not captures are added to `refused`.

    A capture cannot have started after its file was last written, or after the time in its name. So files are read in
    descending order of these times, down to the start of the newest capture found. If neither time helps, as with many
    copies made at once under other names, HEADERS files are read.
    """
    found: list[tuple[Listed, list[str]]] = []
    started = -math.inf
    files = sorted(((_started_by(path), path) for path in _files(folder)), reverse=True)
    for number, (bound, path) in enumerate(files):
        if found and (bound < started or number >= HEADERS):
            break
        if read := _read(path, refused):
            found.append(read)
            started = max(started, read[0].started)
    return max(_reached(found), key=lambda listed: listed.started, default=None)


def _started_by(path: str) -> float:
    """Return the latest possible start of the capture in a file, in seconds since the epoch."""
    try:
        written = os.path.getmtime(path) + _COARSE
    except OSError:  # deleted meanwhile
        return -math.inf
    name = os.path.basename(path)
    if _NAME.match(name):  # as written by `capture.location.file_name`
        with suppress(ValueError):
            return min(written, datetime.fromisoformat(name[:16]).timestamp() + 1)
    return written


def _reached(found: list[tuple[Listed, list[str]]]) -> list[Listed]:
    """Return the captures among some files, without the further files of another one."""
    joined = {path for _, paths in found for path in paths[1:]}
    return [listed for listed, _ in found if listed.capture.path not in joined]


def omitted(refused: Refused) -> str:
    """Return one sentence about files that are not shown as captures; empty if there are no such files."""
    if not refused:
        return ""
    paths = sorted(refused)
    reasons = [refused[path].replace(path, os.path.basename(path)) for path in paths[:_NAMED]]
    if len(paths) > _NAMED:
        reasons.append(f"and {len(paths) - _NAMED} more")
    return f"{plural(len(paths), 'file')} not shown: {'; '.join(reasons)}"


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of the files in `folder` that may be captures."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(SUFFIXES) and os.path.isfile(path):
            yield path


def _read(path: str, refused: Refused) -> tuple[Listed, list[str]] | None:
    """Return the capture in a file (maybe a continuation) and the paths of its files; None if it is not a capture."""
    try:
        capture = Capture(path)
        entry = Listed(capture, _started(capture), live=capture.live)
    except CaptureError as error:
        if os.path.lexists(path):  # not deleted meanwhile
            refused[path] = str(error)
        return None
    paths = _joined(entry)
    return (entry, paths) if paths else None


def _joined(entry: Listed) -> list[str]:
    """Return the paths of all files of a capture, and give it the size and the end of all; empty if it was deleted."""
    try:
        paths = entry.capture.paths
        entry.size = sum(map(os.path.getsize, paths))
        entry.stamp = (os.stat(paths[-1]).st_mtime_ns,)
    except (CaptureError, OSError):
        return []
    return paths


def delete(listed: Listed) -> bool:
    """Delete a capture with all its files, unless it is live by now. Return whether it was deleted."""
    try:
        first, *others = listed.capture.paths
    except CaptureError:  # deleted meanwhile
        return False
    return not listed.capture.live and all(map(_delete, [*others, first]))


def _delete(path: str) -> bool:
    try:
        with _unused(path):
            os.unlink(path)
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        raise CaptureError(f"cannot delete {path}: {error.strerror}") from error
    return True


@contextmanager
def _unused(path: str) -> Iterator[None]:
    """Ensure that no other process has locked a file. Raises BlockingIOError otherwise."""
    if sys.platform == "win32":  # Windows cannot delete an open file, even if we opened it
        yield
        return
    with open_foreign(path) as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


_GAP = 60  # maximum seconds from the end of a capture to the start of the next, if only the process id is known
_APART = 86_400  # maximum seconds between their starts: the time of a copied file is later than its end


class Timed(Protocol):
    """The attributes of a capture that this module needs."""

    @property
    def header(self) -> Header:
        """Its header."""

    @property
    def started(self) -> float:
        """Seconds since the epoch."""

    @property
    def ended(self) -> float:
        """When it was last written, in seconds since the epoch; infinite while it is live."""


Item = TypeVar("Item", bound=Timed)


def client_process(header: Header) -> int | None:
    """Return the process that started the relay of a stdio server: the client, or a launcher of it."""
    known = header.transport == "stdio" and header.imported is None and type(header.ppid) is int and header.ppid > 1
    return header.ppid if known else None


def runs(captures: Iterable[Item]) -> list[list[Item]]:
    """Group captures by client process.

    A run is at the place of its first capture; a capture without process is alone.
    """
    items = list(captures)
    by_process: dict[tuple[int, int | None], list[int]] = {}
    for place, item in enumerate(items):
        if process := client_process(item.header):
            by_process.setdefault((process, item.header.client_start), []).append(place)
    run_of = list(range(len(items)))
    for (_, began), places in by_process.items():
        divided = [places] if began is not None or len(places) == 1 else _divided(items, places)
        for together in divided:
            for place in together:
                run_of[place] = together[0]
    found: dict[int, list[Item]] = {}
    for place, item in enumerate(items):
        found.setdefault(run_of[place], []).append(item)
    return list(found.values())


def _divided(items: Sequence[Timed], places: list[int]) -> list[list[int]]:
    """Divide the captures of one process id where their times show that it was another process."""
    found: list[list[int]] = []
    latest = started = 0.0
    for place in sorted(places, key=lambda place: items[place].started):
        item = items[place]
        if not found or item.started > latest + _GAP or item.started > started + _APART:
            found.append([])
            latest = 0.0
        found[-1].append(place)
        latest, started = max(latest, item.ended), item.started
    return found
