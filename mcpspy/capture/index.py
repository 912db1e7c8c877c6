"""The index of a capture: the position of each line, to read any record in any order.

A viewer needs the number of rows, and any single row, long before 500 MB are decoded. So `grow` only looks for line
ends and for the start of a frame as our writer writes it; every other line is decoded at once. It keeps eight bytes per
line (nine after a search for a text), and four more for each line that is a row: a whole frame, an HTTP head without a
message after it, a gap, a signal, the end. A frame in pieces is one row, at its last piece. Which ends of streams are
rows depends on earlier messages, so the caller adds those (`insert`).

Which lines are records, and which of them form one frame, is decided in `scan`, both for this module and for
`reader.Records`. A file that is deleted while it is open can be read to the end. If it is truncated, the removed part
is lost.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from mcpspy.capture.format import FRAME_LINE, MORE
from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Frame, Gap, Omitted, Open, Record, Release
from mcpspy.capture.scan import (
    DAMAGED,
    KEPT,
    LARGEST,
    LONGEST,
    TEXT_FRAME,
    FileLines,
    Joined,
    Scan,
    is_damage,
    parse_line,
)
from mcpspy.errors import CaptureError
from mcpspy.wire.http_head import Head, stands_alone

_AT_ONCE = 1 << 15  # bytes read when a line is requested
_BEGIN = 256  # bytes that identify a capture: they include its id
_UNSEEN = 255  # for the offset of a text in its line: the line was in no block yet
_NEAR = 32  # maximum distance between the place of a row and its line number


class Index:
    """The lines of one capture, for random access.

    Call `grow` until it returns False, and again while the file grows.
    """

    def __init__(self, path: str) -> None:
        """Open the file. Raises CaptureError if it is not a capture."""
        self.header = Capture(path).header
        self._file = JoinedFiles(path)
        self.state: Literal["live", "ended", "deleted", "cut short"] = "ended"
        """At the last check: a relay was writing to it; no relay was; its name was deleted; or its content was cut."""
        self.live = False
        """Whether a relay was writing to it at the last check, even if it was deleted."""
        self.rows = array("I")
        """The line numbers of the records that are rows, in the order in which they were completed."""
        self._opened: dict[int, int] = {}  # channel -> the line that opened it
        self._unread = 0  # the line of the last record, if it is a row and was not decoded
        self._starts = array("Q", (0,))  # the start of each line, and of the line after the last one
        self._texts = bytearray()  # by line: the offset of the text that is the whole frame of a row, 0, or _UNSEEN
        self._lines = FileLines()
        self._cut = 0  # bytes already split into lines, including a pending incomplete line
        self._joined: dict[int, Joined] = {}  # last line of a frame in pieces -> its pieces
        self._scan = Scan(joined=self._joined)
        self._window = (0, b"")  # position and content of the last read
        self._begin = self.read(0, _BEGIN)
        self.state = self._look_at_file()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def lines(self) -> int:
        """The number of indexed lines; the header is line 1."""
        return len(self._starts) - 1

    @property
    def indexed(self) -> int:
        """Indexed bytes of the file."""
        return self._starts[-1]

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._file.size

    def grow(self, limit: int = 1 << 18) -> bool:
        """Index the next `limit` bytes, or at least one line. Return whether there was anything to index."""
        self.state = self._look_at_file()  # before the read, so that everything written before the end is read
        if self.state == "cut short":
            return False
        chunk = self.read(self._cut, limit)
        if not chunk:
            return not self.live and self._finish()
        self._cut += len(chunk)
        lines = self._lines.feed(chunk)
        dropped = self._lines.dropped if lines else 0  # only the first line can be that long
        for line in lines:
            self._line(line)
            self._starts.append(self._starts[-1] + len(line) + dropped + 1)
            dropped = 0
        return True

    def look(self) -> bool:
        """Check the state of the file without indexing more. Return whether it has changed."""
        before, self.state = self.state, self._look_at_file()
        return self.state != before

    def read(self, start: int, limit: int) -> bytes:
        """Return at most `limit` bytes of the file from `start`: fewer at its end, empty if it cannot be read."""
        try:
            self._file.seek(start)
            return self._file.read(limit)
        except CaptureError:
            return b""

    def _look_at_file(self) -> Literal["live", "ended", "deleted", "cut short"]:
        linked, self.live = self._file.linked, self._file.live
        if self.state == "cut short" or self._file.size < self.indexed or self.read(0, len(self._begin)) != self._begin:
            return "cut short"  # permanently: the file is now another capture
        return "live" if self.live and linked else "ended" if linked else "deleted"

    def line(self, n: int) -> bytes:
        """Return line `n` as it is in the file, empty if it is too long. The following lines are read as well."""
        start, end = self._starts[n - 1], self._starts[n]
        if end - start > LONGEST + 1:
            return b""
        first, window = self._window
        if start < first or end > first + len(window):
            self._window = first, window = start, self.read(start, max(end - start, _AT_ONCE))
        return window[start - first : end - first]

    def block(self, first: int, last: int, limit: int) -> tuple[bytes, Sequence[int], Sequence[int]] | None:
        """Return the lines from `first` to `last` that fit into `limit` bytes.

        Also returns the start of each line and the end of the last one, and for each line the offset of the quote
        before the text that is the whole frame of a row; 0 if there is none, or if that is not certain. Returns None if
        the first line does not fit or cannot be read.
        """
        start = self._starts[first - 1]
        end = bisect_right(self._starts, start + limit, first, last + 1) - 1
        content = self.read(start, self._starts[end] - start) if end >= first else b""
        end = bisect_right(self._starts, start + len(content), first, end + 1) - 1  # the file may end before that
        if end < first:
            return None
        starts = self._starts[first - 1 : end + 1]
        content = content[: starts[-1] - start]
        self._texts.extend(_UNSEEN.to_bytes() * (end - len(self._texts)))
        if self._texts.find(_UNSEEN, first - 1, end) >= 0:
            self._texts[first - 1 : end] = self._find_texts(first, content, starts)
        return content, starts, self._texts[first - 1 : end]

    def _find_texts(self, first: int, content: bytes, starts: Sequence[int]) -> bytes:
        """Return for each line of a block the offset of the text that is the whole frame of a row, else 0.

        A piece is never the whole frame: the last one of a frame is known as such, and all others have `MORE`.
        """
        found = bytearray()
        pieces = MORE in content
        origin = starts[0]
        for n, (start, end) in enumerate(pairwise(starts), first):
            begin = start - origin
            head = TEXT_FRAME.match(content, begin)
            text = head.end() - 1 - begin if head else 0
            piece = n in self._joined or (pieces and content.find(MORE, begin, end - origin) >= 0)
            found.append(0 if piece or text >= _UNSEEN else text)
        return bytes(found)

    def record(self, n: int, limit: int = 1 << 62) -> Record:
        """Return the record on line `n`; for a frame in pieces, about `limit` bytes of it; a damaged line is a gap."""
        last, more = self._decode(n)
        joined = self._joined.get(n)
        if joined is None or not isinstance(last, Frame):
            return last or Gap(n, 0, 1, DAMAGED)
        first = self._decode(joined.lines[0])[0]
        if not isinstance(first, Frame):
            first = last  # the file has changed since it was indexed
        omitted = None
        if joined.size > LARGEST:
            limit, omitted = KEPT, Omitted(joined.size, self._tail(joined))
        found: list[bytes] = []
        for raw in self.pieces(n):
            found.append(raw)
            limit -= len(raw)
            if limit <= 0:
                break
        raw = b"".join(found)[: KEPT if omitted else None]
        return replace(first, n=n, t=last.t, raw=raw, cut=last.cut or more, omitted=omitted)

    def frame_size(self, n: int) -> int | None:
        """Return the size of the frame on line `n` in bytes; None if the line is not a frame."""
        joined, record = self._joined.get(n), self._decode(n)[0]
        return None if not isinstance(record, Frame) else joined.size if joined else len(record.raw)

    def pieces(self, n: int) -> Iterator[bytes]:
        """Yield the bytes of the frame on line `n`, piece by piece; nothing if the line is not a frame."""
        joined = self._joined.get(n)
        return self._frames(joined.lines if joined else (n,))

    def _frames(self, lines: Iterable[int]) -> Iterator[bytes]:
        for n in lines:
            record = self._decode(n)[0]
            if not isinstance(record, Frame):
                return
            yield record.raw

    def _tail(self, joined: Joined) -> bytes:
        """Return the last bytes of a frame."""
        tail = b""
        for raw in self._frames(reversed(joined.lines)):
            tail = raw + tail
            if len(tail) >= KEPT:
                break
        return tail[-KEPT:]

    def channel(self, ch: int) -> Open | None:
        """Return the record that opened a channel, None if it is not open yet."""
        record = self._decode(self._opened[ch])[0] if ch in self._opened else None
        return record if isinstance(record, Open) else None

    def in_pieces(self, n: int) -> bool:
        """Return whether the row on line `n` is a frame recorded in pieces, because it is larger than 64 KiB."""
        return n in self._joined

    def row_of(self, n: int) -> int | None:
        """Return the place of the record on line `n` among the rows, None if it is not a row."""
        near = max(bisect_left(self.rows, n) - _NEAR, 0)  # rows are almost sorted by line
        for first, last in ((near, near + 2 * _NEAR), (0, len(self.rows))):
            try:
                return self.rows.index(n, first, last)
            except ValueError:
                continue
        return None

    def insert(self, n: int, place: int) -> None:
        """Make line `n` a row, at a place."""
        self.rows.insert(place, n)

    def put(self, n: int, place: int) -> bool:
        """Move the row on line `n` forward to an earlier place. Return whether it was moved."""
        if place < len(self.rows) and self.rows[place] == n:  # the usual case
            return False
        stands = self.row_of(n)
        if stands is None or stands <= place:
            return False
        self.rows[place : stands + 1] = self.rows[stands : stands + 1] + self.rows[place:stands]
        return True

    def _decode(self, n: int) -> tuple[Record | None, bool]:
        return parse_line(n, self.line(n).rstrip(b"\n"))

    def _line(self, line: bytes) -> None:
        n = len(self._starts)
        if line.startswith(FRAME_LINE) and MORE not in line and self._scan.between:
            self.rows.append(n)
            self._unread = n
        elif n > 1:
            record, more = parse_line(n, line)
            for found in self._scan.take(record, more=more):
                self._record(found)
            if record:
                self._unread = 0

    def _record(self, record: Record) -> None:
        """Update the rows for a decoded record."""
        if isinstance(record, Open):
            is_row = bool(record.head) and stands_alone(record.head or {}, self._asked(record))
            self._opened[record.ch] = record.n  # after that: a damaged record may name itself
        elif isinstance(record, Release):
            is_row = False
        elif isinstance(record, Close):
            is_row = record.undecoded and record.ch in self._opened
        else:
            is_row = True
            if isinstance(record, Gap) and not is_damage(record) and self._ends_in_damage():
                self.rows.pop()  # the gap replaces the damaged line before it
        if is_row:
            self.rows.append(record.n)

    def _asked(self, opened: Open) -> Head | None:
        """Return the head of the request that a channel responds to."""
        asked = self.channel(opened.answers) if opened.answers is not None else None
        return asked.head if asked else None

    def _ends_in_damage(self) -> bool:
        """Return whether the last record so far is a damaged line that begins like a frame."""
        record = self._decode(self._unread)[0] if self._unread else None
        return record is not None and is_damage(record)

    def _finish(self) -> bool:
        """Index an incomplete last line and incomplete frames, because the file is no longer live."""
        rest, rows = self._lines, len(self.rows)
        if rest.unfinished:
            self._line(rest.pending)
            self._starts.append(self._starts[-1] + len(rest.pending) + rest.dropped)
            self._lines = FileLines()
        for found in self._scan.end():
            self._record(found)
        return rest.unfinished or len(self.rows) > rows
