"""Read a capture: bytes in, records out.

A capture may still grow, so a reader streams: it keeps only incomplete frames in memory. A file is refused only if it
does not begin as a capture, or if it has a newer format number. Everything after the header is shown
(`mcpspy.capture.scan`).

A relay reads the clock for a chunk before it forwards the chunk, and records it afterwards. So with two channels a
response may precede its request in the file, although its time is later. Code that expects causes before their effects
needs records in the order of `t` (R-01). Records that are close to each other are sorted in a window. A record that
comes too late for the window, because forwarding was blocked for long, is returned at its place in the file. Within a
channel the order of the file is exact and kept. A damaged line has no time of its own. It gets the time of the record
before it, and stays after that record.
"""

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from operator import itemgetter
from typing import Any

import orjson

from mcpspy.capture.format import FORMAT
from mcpspy.capture.location import shown
from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.records import Close, End, Frame, Header, Imported, Open, Record
from mcpspy.capture.scan import LARGEST, FileLines, Scan, parse_line
from mcpspy.errors import CaptureError, NewerFormat, NotACapture

_CHUNK = 1 << 20  # bytes read at once
_IDLE = 5  # after this many checks of a live capture without new bytes, records no longer wait for ordering
_ALONE = (Frame, Open, Close)  # records that do not depend on those before them
_HEADER_LIMIT = 1 << 20  # bytes; a longer first line is not a header
SPAN = 1_000_000_000
"""Maximum time between the first and the last waiting record, in nanoseconds."""

RECORDS = 1024
"""Maximum number of waiting records: with more, the garbage collector takes longer than everything else."""

BYTES = 16 << 20
"""Maximum size of waiting frames, in bytes."""

_AT_ONCE = 256  # records returned together when too many wait: one at a time takes longer
_SLACK = SPAN // 8  # nanoseconds; the same for the time span
_time = itemgetter(0)


class Records:
    """Turns the bytes of a capture into records. Call `feed` with chunks of any size, then `end`.

    Frames of more than `largest` bytes are not joined.
    """

    def __init__(self, largest: int = LARGEST) -> None:
        self.header: Header | None = None
        self._n = 0  # number of lines so far
        self._lines = FileLines()
        self._scan = Scan(largest)

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """Accept the next bytes and yield the records that they complete. Raises NotACapture or NewerFormat."""
        scan = self._scan
        lines = self._lines.feed(chunk)
        if not self.header:
            if lines:
                self.header = parse_header(lines.pop(0))
                self._n = 1
            elif len(self._lines.pending) > _HEADER_LIMIT:
                raise NotACapture("is not a capture: its first line is not a capture header")
        for line in lines:
            self._n += 1
            record, more = parse_line(self._n, line)
            if isinstance(record, _ALONE) and not more and scan.between:  # the usual case
                scan.t = record.t
                yield record
            else:
                yield from scan.take(record, more=more)

    def end(self) -> Iterator[Record]:
        """Yield what is incomplete at the end of the file: a torn last line as a gap, and incomplete frames as cut."""
        if self._lines.unfinished and self.header:
            self._n += 1
            record, more = parse_line(self._n, self._lines.pending)
            yield from self._scan.take(record, more=more)
        yield from self._scan.end()


class Capture:
    """One capture: its header, and its records, which can be read repeatedly; `path` is its first file."""

    def __init__(self, path: str) -> None:
        """Read the header. Raises CaptureError if it is missing."""
        self.path = path
        self.header = self._read_header()

    def records(self, largest: int = LARGEST, read: Callable[[int], None] | None = None) -> Iterator[Record]:
        """Yield all records in the file now, by time; frames of more than `largest` bytes are incomplete.

        `read` is called with the number of bytes of each chunk, for a progress bar.
        """
        return ordered(self._as_recorded(largest, read))

    def follow(self, wait: Callable[[], None] = lambda: time.sleep(0.05)) -> Iterator[Record]:
        """Yield all records, and new ones as they are written, by time, until the capture is no longer live.

        `wait` is called at the end of the file. If the capture is deleted or replaced meanwhile, the iteration ends.
        """
        with closing(FollowedRecords(self.path)) as following:
            while not following.ended:
                yield from following.poll()
                if not following.ended:
                    wait()

    def _as_recorded(self, largest: int, read: Callable[[int], None] | None) -> Iterator[Record]:
        decoder = Records(largest)
        with self._file() as file:
            while chunk := file.read(_CHUNK):
                if read:
                    read(len(chunk))
                yield from decoder.feed(chunk)
        yield from decoder.end()

    @property
    def live(self) -> bool:
        """Whether a relay is writing to it."""
        try:
            with self._file() as file:
                return file.live
        except CaptureError:
            return False

    @property
    def paths(self) -> list[str]:
        """The paths of its files: one, unless it continues in others; none for standard input."""
        with self._file() as file:
            return file.paths

    @property
    def size(self) -> int:
        """The number of bytes that are read; of a compressed file, the number that it states, which may be wrong."""
        with self._file() as file:
            return file.stated_size

    def copy(self, read: Callable[[int], None]) -> None:
        """Copy all of it now if it is compressed; `read` is called with the number of bytes of each chunk."""
        with self._file() as file:
            while file.copied and (chunk := file.read(_CHUNK)):
                read(len(chunk))

    @property
    def copied(self) -> bool:
        """Whether a copy is read, because it is compressed or standard input: nobody adds to it."""
        with self._file() as file:
            return file.copied

    def _file(self) -> JoinedFiles:
        return JoinedFiles(self.path)

    def _read_header(self) -> Header:
        decoder = Records()
        with self._file() as file:
            try:
                while not decoder.header and (chunk := file.read(65536)):
                    next(decoder.feed(chunk), None)
            except (NotACapture, NewerFormat) as error:
                raise type(error)(f"{shown(self.path)} {error}") from error
            if not decoder.header:
                state = "has only part of a header" if file.tell() else "is empty"
                raise NotACapture(f"{shown(self.path)} {state}: not a capture")
        return decoder.header


class FollowedRecords:
    """Reads a capture while it grows. Call `poll` repeatedly until it has `ended`, then `close`.

    It ends when the capture is no longer live, deleted or replaced. `chunk` is the number of bytes per read; use a
    smaller one to read many captures at the same time.
    """

    def __init__(self, path: str, chunk: int = _CHUNK) -> None:
        """Raises CaptureError if the file cannot be opened."""
        self.ended = False
        self._chunk = chunk
        self._file = JoinedFiles(path)
        self._decoder, self._window = Records(), Window()
        self._idle = 0

    def poll(self) -> Iterator[Record]:
        """Yield every record written since the last call, by time."""
        file = self._file
        live = file.live  # before the read, so that everything written before the end is read
        self._idle += 1
        while chunk := file.read(self._chunk):
            self._idle = 0
            for record in self._decoder.feed(chunk):
                yield from self._window.feed(record)
        if self._idle == _IDLE:
            yield from self._window.flush()
        if not live or file.size < file.tell() or not file.linked:
            self.ended = True
            for record in self._decoder.end():
                yield from self._window.feed(record)
            yield from self._window.flush()

    def close(self) -> None:
        """Close the files."""
        self._file.close()


def parse_header(line: bytes) -> Header:
    """Parse the header on the first line of a capture. Raises NotACapture or NewerFormat."""
    try:
        fields = orjson.loads(line)
        number = fields["mcpspy"]
        if not isinstance(number, int):
            raise TypeError
        if number > FORMAT:
            writer = fields.get("tool", "a later mcpspy")
            raise NewerFormat(f"has format {number}, written by {writer}; this mcpspy reads up to {FORMAT}: update it")
        text: dict[str, Any] = {key: str(fields.get(key, "")) for key in ("id", "tool", "transport", "name")}
        started = str(fields["started"])
        if not 1970 <= datetime.fromisoformat(started).year < 9000 or type(fields.get("url") or "") is not str:
            raise ValueError
        argv, env, client = (tuple(map(str, fields.get(key, ()))) for key in ("argv", "env", "client"))
        rest: dict[str, Any] = {"url": fields.get("url")}
        for key, kind in (("cwd", str), ("pid", int), ("ppid", int)):
            rest[key] = value if type(value := fields.get(key)) is kind else None
        began = fields.get("client_start")
        rest["client_start"] = began if type(began) is int and began > 0 else None
        imported = _imported(fields["imported"]) if "imported" in fields else None
        before = fields.get("continues")
        rest["continues"] = str(before["id"]) if before else None
        for name in ("control", "scrubbed"):
            rest[name] = fields.get(name) is True
        return Header(started=started, argv=argv, env=env, client=client, imported=imported, **text, **rest)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotACapture("is not a capture: its first line is not a capture header") from None


def _imported(fields: dict[str, Any]) -> Imported:
    approximate, missing = (tuple(map(str, fields.get(key, ()))) for key in ("approximate", "missing"))
    return Imported(str(fields.get("from", "")), approximate, missing)


class Window:
    """Sorts records by time. Pass each record to `feed`, and call `flush` after the last one."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Record]] = deque()  # sorted by time
        self._bytes = 0
        self._latest = 0  # the latest time so far
        self._newest: dict[int, int] = {}  # channel -> time of its newest record

    def feed(self, record: Record) -> Iterable[Record]:
        """Add the next record. Return the records that no longer have to wait."""
        waiting, t = self._waiting, record.t
        if t < self._latest:
            self._put(record, t)
        else:  # the usual case
            self._latest = t
            waiting.append((t, record))
            if type(record) is Frame:
                self._bytes += len(record.raw)
                self._newest[record.ch] = t
            elif type(record) is Open:
                self._newest[record.ch] = t
            elif type(record) is Close:
                self._newest.pop(record.ch, None)
        if len(waiting) <= RECORDS and self._latest - waiting[0][0] <= SPAN and self._bytes <= BYTES:
            return ()
        return self._ready()

    def _put(self, record: Record, t: int) -> None:
        """Insert a record with an earlier time at its place, but not before earlier records of its channel."""
        waiting = self._waiting
        if isinstance(record, Frame):
            self._bytes += len(record.raw)
        if isinstance(record, Frame | Open | Close):
            t = self._newest[record.ch] = max(t, self._newest.get(record.ch, 0))
            if isinstance(record, Close):
                del self._newest[record.ch]
        elif isinstance(record, End) and waiting:
            t = max(t, waiting[-1][0])  # the end is always the last record
        if not waiting or t >= waiting[-1][0]:
            waiting.append((t, record))
        elif t < waiting[0][0]:
            waiting.appendleft((t, record))
        else:
            waiting.insert(bisect_right(waiting, t, key=_time), (t, record))

    def flush(self) -> Iterable[Record]:
        """Return all waiting records."""
        found = [record for _, record in self._waiting]
        self._waiting.clear()
        self._bytes = 0
        return found

    def _ready(self) -> list[Record]:
        waiting = self._waiting
        oldest = waiting[-1][0] - SPAN + _SLACK
        surplus = len(waiting) - RECORDS + _AT_ONCE if len(waiting) > RECORDS else 0
        found = [waiting.popleft()[1] for _ in range(surplus)]
        self._bytes -= sum([len(record.raw) for record in found if type(record) is Frame])
        while waiting and (waiting[0][0] < oldest or self._bytes > BYTES):
            record = waiting.popleft()[1]
            if type(record) is Frame:
                self._bytes -= len(record.raw)
            found.append(record)
        return found


def ordered(records: Iterable[Record]) -> Iterator[Record]:
    """Yield a complete set of records, sorted by time."""
    window = Window()
    for record in records:
        if ready := window.feed(record):
            yield from ready
    yield from window.flush()
