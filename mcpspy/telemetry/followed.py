"""Captures on the disk as telemetry that a collector has not accepted yet: which captures there are, and what is new.

Only what was read last is in memory. While the collector accepts nothing, nothing more is read, so an absent collector
costs no memory (T-05).

A checkpoint is what a collector has accepted of a capture, so that nothing is sent twice after a restart (T-04). After
a restart the capture is read from its beginning, which gives the same spans with the same ids. The line number of the
request identifies a span that was accepted. Spans are finished when their exchanges end. So below a line number all
spans were accepted except those of requests that are still open, and above it they are stored one by one. A request
that stays open for days therefore costs one entry. Log entries have no ids and always come in the same order, so their
number is enough. A capture that has ended and has not changed since need not be read again. There is one small file for
each capture and endpoint, replaced after each batch, in a directory of the user.

`WatchedCaptures` finds the captures to send: the named files and directories, and files that appear there later. While
no file appears, a check only costs the listing of a directory: thousands of finished captures cost almost nothing. A
file that is not readable as a capture is checked again when it changes.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import orjson

from mcpspy.capture.listing import captures
from mcpspy.capture.location import STANDARD_INPUT, SUFFIXES, home, make_directory
from mcpspy.capture.reader import Capture, FollowedRecords
from mcpspy.conversation.model import Exchange
from mcpspy.errors import CaptureError, UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.telemetry.captured import CapturedTelemetry, LogEntry, Measure, Telemetry
from mcpspy.telemetry.spans import ExchangeSpan, Value, start_of

try:
    import fcntl
except ImportError:  # Windows
    pass


Place = tuple[int, int]
"""The line number of a request, and its position in a batch, else 0."""


@dataclass(slots=True)
class Checkpoint:
    """What was accepted of one capture."""

    below: int = 0
    """The spans of requests on lines before this one were accepted, except for those that are `open`."""
    open: set[Place] = field(default_factory=set)
    taken: set[Place] = field(default_factory=set)
    """The requests from that line on whose spans were accepted."""
    logs: int = 0
    """The number of log entries that were accepted."""
    size: int | None = None
    """The size of the capture in bytes, once all of it was accepted."""

    def has(self, place: Place) -> bool:
        """Return whether the span of the request at `place` was accepted."""
        return place not in self.open if place[0] < self.below else place in self.taken

    def take(self, spans: Iterable[Place], waiting: Iterable[Place], below: int) -> None:
        """Record accepted spans; all requests on lines before `below` were read, and those in `waiting` are open."""
        self.taken.update(spans)
        if below > self.below:
            self.open.update(place for place in waiting if self.below <= place[0] < below)
            self.below = below
        self.open -= self.taken
        self.taken = {place for place in self.taken if place[0] >= self.below}


def folder(endpoint: str) -> str:
    """Return the directory of the checkpoints for an endpoint."""
    return os.path.join(home(), "otel", blake2b(endpoint.encode(), digest_size=4).hexdigest())


def file_of(place: str, capture: str) -> str:
    """Return the file in the directory `place` for the capture with an id, which may be any text."""
    name = blake2b(capture.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return os.path.join(place, f"{name}.json")


class Claims:
    """The captures of a directory of checkpoints that this process sends; no other process sends them meanwhile.

    One file has the locks of all captures, one byte for each, so that thousands of captures need one descriptor. The
    locks end with the process. Without locks (Windows) every capture is free.
    """

    def __init__(self, place: str) -> None:
        """Raise UsageError if the directory cannot be written."""
        path = os.path.join(place, "lock")
        try:
            make_directory(place)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"cannot write the checkpoints in {place}: {error.strerror}") from error

    def take(self, path: str) -> bool:
        """Lock the capture with the checkpoint at `path`; return False if another process has it."""
        if sys.platform == "win32":
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(path))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def release(self, path: str) -> None:
        """Unlock a capture, so that other processes may send it."""
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(path))

    def close(self) -> None:
        """Release all locks."""
        os.close(self._file)


def _byte(path: str) -> int:
    return int.from_bytes(blake2b(os.path.basename(path).encode(), digest_size=7).digest())


def load(path: str) -> Checkpoint:
    """Return the checkpoint in a file; if it is missing or damaged, that of a capture which was not exported yet."""
    try:
        fields: Any = orjson.loads(read_foreign(path))
        waiting, taken = ({(int(n), int(part)) for n, part in fields[name]} for name in ("open", "taken"))
        size = fields["size"]
        return Checkpoint(
            int(fields["below"]), waiting, taken, int(fields["logs"]), None if size is None else int(size)
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Checkpoint()


def save(path: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader sees the old one or the new one. Raises UsageError if that is impossible."""
    fields = {
        "below": checkpoint.below,
        "open": sorted(checkpoint.open),
        "taken": sorted(checkpoint.taken),
        "logs": checkpoint.logs,
        "size": checkpoint.size,
    }
    partial = f"{path}.{os.getpid()}"
    try:
        make_directory(os.path.dirname(path))
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(orjson.dumps(fields))
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(partial)
        raise UsageError(f"cannot write the checkpoint {path}: {error.strerror}") from error


EVERY = 20
"""The number of checks after which the files are examined one by one, in case one was overwritten."""
_Entry = tuple[str, int]
"""A path and its inode: a file that replaces a capture counts as a new capture."""


class WatchedCaptures:
    """Finds captures: call `look` repeatedly. `refuse` receives a sentence for each file that is not readable as one.

    With `follow`, a file that has just appeared may lack its header, so the sentence comes with the second check.
    """

    def __init__(self, named: Sequence[str], refuse: Callable[[str], None], *, follow: bool) -> None:
        self._files = [it for it in named if it == STANDARD_INPUT or (os.path.lexists(it) and not os.path.isdir(it))]
        self._folders = [path for path in named if path not in self._files]
        self._refuse = refuse
        self._follow = follow
        self._names: dict[str, set[_Entry]] = {}  # by directory
        self._found: set[_Entry] = set()
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}  # the state and the id of each
        self._looks = 0
        self._refused: dict[str, tuple[tuple[int, ...], bool]] = {}  # its state, and whether that was reported

    @property
    def empty(self) -> bool:
        """Whether nothing was found, and nothing refused."""
        return not self._found and not self._refused

    def look(self) -> list[str]:
        """Return the captures that were not found before."""
        self._looks += 1
        if self._looks % EVERY == 0:
            self._forget_overwritten()
        found = [path for path in self._files if self._readable(path)]
        for folder in self._folders:
            names = set(_entries(folder))
            if names != self._names.get(folder) or self._changed(folder):
                self._names[folder] = names
                found += self._listed(folder)
        entries = {(path, _state(path)[0]) for path in found}
        new = entries - self._found
        self._found = {it for it in self._found if it[0] in self._files or it in self._names[os.path.dirname(it[0])]}
        self._found |= new
        if new:
            there = {path for path, _ in self._found}
            self._known = {path: it for path, it in self._known.items() if path in there}
            self._known |= {path: (_state(path), _id(path)) for path, _ in new}
        paths = {path for path, _ in new}
        return [path for path in found if path in paths]

    def _forget_overwritten(self) -> None:
        """Forget captures whose file has a new capture: `wrap -o FILE` overwrites a finished one."""
        for path, (before, capture) in list(self._known.items()):
            state = _state(path)
            if state == before:
                continue
            if _id(path) == capture:
                self._known[path] = state, capture
            else:
                self._found = {it for it in self._found if it[0] != path}
                self._names.pop(os.path.dirname(path), None)

    def _listed(self, folder: str) -> list[str]:
        refused: dict[str, str] = {}
        found = [listed.capture.path for listed in captures(folder, refused)]
        for path in [it for it in self._refused if os.path.dirname(it) == folder and it not in refused]:
            del self._refused[path]
        for path, why in refused.items():
            self._note(path, why)
        return found

    def _readable(self, path: str) -> bool:
        """Return whether a named file is a capture that was not found before."""
        state = _state(path)
        if (path, state[0]) in self._found or self._refused.get(path) == (state, True):
            return False
        try:
            Capture(path)
        except CaptureError as error:
            self._note(path, str(error))
            return False
        return True

    def _changed(self, folder: str) -> bool:
        """Return whether a refused file has changed, or is unchanged but was not reported."""
        known = [(path, it) for path, it in self._refused.items() if os.path.dirname(path) == folder]
        return any(not reported or _state(path) != state for path, (state, reported) in known)

    def _note(self, path: str, why: str) -> None:
        """Report a file that cannot be read, once for each state of it."""
        state = _state(path)
        before, reported = self._refused.get(path, (None, False))
        reported = reported and before == state
        if not reported and (before == state or not self._follow):
            self._refuse(why)
            reported = True
        self._refused[path] = (state, reported)


def _entries(folder: str) -> Iterator[_Entry]:
    """Yield the entries of a directory. Raises CaptureError if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            yield from ((entry.path, entry.inode()) for entry in entries if entry.name.endswith(SUFFIXES))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error


def _id(path: str) -> str:
    try:
        return Capture(path).header.id
    except CaptureError:
        return ""


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return (0,)
    return found.st_ino, found.st_size, found.st_mtime_ns


_CHUNK = 1 << 16  # bytes of each capture that are in memory while others have their turn
OUT_OF_ORDER = 4096
"""Lines by which a record may be late: so many spans are remembered one by one."""


class Batch(NamedTuple):
    """Telemetry that is sent together."""

    spans: list[ExchangeSpan]
    logs: list[LogEntry]
    measures: list[Measure]

    @property
    def size(self) -> int:
        """The total number of entries."""
        return len(self.spans) + len(self.logs) + len(self.measures)


class FollowedTelemetry:
    """The telemetry of one capture that is not sent yet.

    Call `begin`, then `take` a batch, send it and `acknowledge` it, until the capture has `ended`. `folder` is the
    directory of the checkpoints. Raises CaptureError if the capture cannot be read.
    """

    def __init__(
        self,
        path: str,
        folder: str,
        redact: Callable[[str], str],
        contents: Callable[[Exchange], dict[str, Value]] | None,
    ) -> None:
        self.path = path
        self.header = Capture(path).header
        self.started = start_of(self.header)
        """Nanoseconds since the epoch."""
        self.ended = False
        self.place = file_of(folder, self.header.id)
        """The file of its checkpoint."""
        self._checkpoint = Checkpoint()
        self._telemetry = CapturedTelemetry(self.header, redact, contents)
        self._records: FollowedRecords | None = None
        self._stream: Iterator[Telemetry] = iter(())
        self._highest = self._logs = 0

    def begin(self) -> bool:
        """Open the capture and its checkpoint; return False if all of it was accepted and it has not grown since."""
        self._checkpoint = load(self.place)
        if self._checkpoint.size is not None and self._checkpoint.size == _size(self.path):
            return False
        self._records = FollowedRecords(self.path, _CHUNK)
        return True

    def resource(self) -> dict[str, Value]:
        """Return the attributes of the resource that the telemetry is about."""
        return self._telemetry.resource()

    def take(self, most: int) -> Batch:
        """Return at most `most` entries that were not taken before; an empty batch if there is nothing new."""
        batch = Batch([], [], [])
        for item in islice(self._new(), most):
            if isinstance(item, ExchangeSpan):
                batch.spans.append(item)
            elif isinstance(item, LogEntry):
                batch.logs.append(item)
            else:
                batch.measures.append(item)
        return batch

    def acknowledge(self, batch: Batch) -> None:
        """Record that the collector has accepted a batch. Raises UsageError if that cannot be stored."""
        places = [(span.n, span.part) for span in batch.spans]
        waiting = self._telemetry.waiting(self._checkpoint.below - OUT_OF_ORDER)
        self._checkpoint.take(places, waiting, self._highest - OUT_OF_ORDER)
        self._checkpoint.logs += len(batch.logs)
        if self.ended:
            self._checkpoint.size = _size(self.path)
        save(self.place, self._checkpoint)

    def close(self) -> None:
        """Stop reading."""
        if self._records:
            self._records.close()

    def _new(self) -> Iterator[Telemetry]:
        """Yield what is in the capture by now and was not accepted yet."""
        records = self._records
        while records and not self.ended:
            item = next(self._stream, None)
            if item is None:
                if records.ended:
                    self.ended = True
                    return
                self._stream = self._read(records)
                item = next(self._stream, None)
                if item is None and not records.ended:
                    return
            if item is not None and self._is_new(item):
                yield item

    def _read(self, records: FollowedRecords) -> Iterator[Telemetry]:
        yield from self._telemetry.feed(records.poll())
        if records.ended:
            yield from self._telemetry.end()

    def _is_new(self, item: Telemetry) -> bool:
        if isinstance(item, ExchangeSpan):
            self._highest = max(self._highest, item.n)
            return not self._checkpoint.has((item.n, item.part))
        if isinstance(item, LogEntry):
            self._logs += 1
            return self._logs > self._checkpoint.logs
        return True


def _size(path: str) -> int | None:
    """Return the size of a capture in bytes; None if it was deleted."""
    try:
        return Capture(path).size
    except CaptureError:
        return None
