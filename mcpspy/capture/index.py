"""The index of a capture: where its lines are, and any record at once, in whatever order.

The theory. A viewer needs the number of rows and any one of them long before 500 MB are decoded. So `grow` looks only
at line ends and for the beginning of a frame as our writer writes it; any other line is decoded then and there. It
keeps eight bytes a line, and four more for each line that is a row: a whole frame, an HTTP head that no message
follows, a gap, the end. A frame in pieces is one row, that of its last piece.

The same lines come out of `reader.Records` as records; the two agree on which there are (tests hold them to it).
A file that is deleted while it is open can be read to the end; one that is cut short has lost what was cut.
"""

import os
from array import array
from bisect import bisect_left
from dataclasses import replace
from typing import Literal

import orjson

from mcpspy.capture.reader import DAMAGED, Capture, is_live, parse_record
from mcpspy.capture.records import Close, Frame, Gap, Open, Record
from mcpspy.errors import CaptureError
from mcpspy.wire.http_head import Head, stands_alone

_FRAME = b'{"kind":"frame",'  # as our writer begins it
_AT_ONCE = 1 << 15  # bytes that are read when a line is asked for
_BEGIN = 256  # bytes that tell one capture from another: its id is among them
_NEAR = 32  # places that a row may stand from where its line number says
_MORE = b'"more"'  # inside a string its quotes are escaped, so this is the member


class Index:
    """The lines of one capture, for random access; `grow` until it returns False, and again while the file grows."""

    def __init__(self, path: str) -> None:
        """Open the capture. Raises CaptureError if it is none."""
        self.header = Capture(path).header
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (close does it)
        except OSError as error:
            raise CaptureError(f"cannot read {path}: {error.strerror}") from error
        self.state: Literal["live", "ended", "deleted", "cut short"] = "ended"
        """At the last look: a relay was writing to it, or none was, or its name is gone, or its contents."""
        self.live = False
        """Whether a relay was writing to it at the last look, deleted or not."""
        self.rows = array("I")
        """The line numbers of the records that are rows, in the order in which they are complete."""
        self._opened: dict[int, int] = {}  # by channel: the line that opened it
        self._other = 0  # the last line that is a record and no row of its own
        self._starts = array("Q", (0,))  # where each line begins, and in the end where the next one will
        self._pieces: dict[int, list[int]] = {}  # lines of the frame that a channel is in the middle of
        self._joined: dict[int, list[int]] = {}  # by its last line: the lines of a frame in pieces
        self._window = (0, b"")  # where lines were read last, and what stands there
        self._begin = self.read(0, _BEGIN)
        self.state = self._look_at_file()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    @property
    def lines(self) -> int:
        """How many lines are indexed; the header is line 1."""
        return len(self._starts) - 1

    @property
    def indexed(self) -> int:
        """Bytes of the file that are indexed."""
        return self._starts[-1]

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    def grow(self, limit: int = 1 << 18) -> bool:
        """Index the next `limit` bytes, or as much as one line takes; tells whether there was anything to index."""
        self.state = self._look_at_file()  # before the read: what was written before the end is read
        if self.state == "cut short":
            return False
        chunk = self.read(self.indexed, limit)
        end = chunk.rfind(b"\n")
        if end < 0:
            if len(chunk) == limit:
                return self.grow(limit * 4)
            return not self.live and self._finish(chunk)
        for line in chunk[:end].split(b"\n"):
            self._line(line)
            self._starts.append(self._starts[-1] + len(line) + 1)
        return True

    def look(self) -> bool:
        """Look at the file again without indexing more; tells whether its state has changed."""
        before, self.state = self.state, self._look_at_file()
        return self.state != before

    def read(self, start: int, limit: int) -> bytes:
        """At most `limit` bytes of the file from `start`; fewer at its end, none where it cannot be read."""
        try:
            self._file.seek(start)
            return self._file.read(limit)
        except OSError:
            return b""

    def _look_at_file(self) -> Literal["live", "ended", "deleted", "cut short"]:
        status = os.fstat(self._file.fileno())
        if self.state == "cut short" or status.st_size < self.indexed or self.read(0, len(self._begin)) != self._begin:
            return "cut short"  # for good: what is written now is another capture
        self.live = is_live(self._file.fileno())
        return "live" if self.live and status.st_nlink else "ended" if status.st_nlink else "deleted"

    def line(self, n: int) -> bytes:
        """Line `n`, as it stands in the file; those that follow it are read at once."""
        start, end = self._starts[n - 1], self._starts[n]
        first, window = self._window
        if start < first or end > first + len(window):
            self._window = first, window = start, self.read(start, max(end - start, _AT_ONCE))
        return window[start - first : end - first]

    def record(self, n: int, limit: int = 1 << 62) -> Record:
        """The record on line `n`, of a frame in pieces about its first `limit` bytes; a damaged line is a gap."""
        last, more = self._decode(n)
        lines = self._joined.get(n)
        if lines is None or not isinstance(last, Frame):
            return last or _damage(n)
        pieces: list[Frame] = []
        for line in lines:
            piece = last if line == n else self._decode(line)[0]
            if limit <= 0 or not isinstance(piece, Frame):
                break
            pieces.append(piece)
            limit -= len(piece.raw)
        first = pieces[0] if pieces else last
        return replace(first, n=n, t=last.t, raw=b"".join(piece.raw for piece in pieces), cut=last.cut or more)

    def channel(self, ch: int) -> Open | None:
        """How a channel was opened, if it was so far."""
        record = self._decode(self._opened[ch])[0] if ch in self._opened else None
        return record if isinstance(record, Open) else None

    def in_pieces(self, n: int) -> bool:
        """Whether the row on line `n` is a frame that was written in pieces, being larger than 64 KiB."""
        return n in self._joined

    def row_of(self, n: int) -> int | None:
        """The place among the rows of the record on line `n`, if it is a row."""
        near = max(bisect_left(self.rows, n) - _NEAR, 0)  # the rows are nearly in the order of their lines
        for first, last in ((near, near + 2 * _NEAR), (0, len(self.rows))):
            try:
                return self.rows.index(n, first, last)
            except ValueError:
                continue
        return None

    def put_after(self, n: int, cause: int) -> None:
        """Put the row on line `n` right after that on line `cause`, which was recorded later but happened before."""
        first, last = self.row_of(n), self.row_of(cause)
        if first is not None and last is not None and first < last:
            self.rows[first : last + 1] = self.rows[first + 1 : last + 1] + self.rows[first : first + 1]

    def _decode(self, n: int) -> tuple[Record | None, bool]:
        return _parse(n, self.line(n).rstrip(b"\n"))

    def _line(self, line: bytes) -> None:
        n = len(self._starts)
        if line.startswith(_FRAME) and _MORE not in line and not self._pieces:
            self.rows.append(n)
        elif n > 1:
            self._look(n, line)

    def _look(self, n: int, line: bytes) -> None:
        """Decode a line that is not just a whole frame and see what it means for the rows."""
        record, more = _parse(n, line)
        if isinstance(record, Frame) and (more or record.ch in self._pieces):
            self._pieces.setdefault(record.ch, []).append(n)
            self._other = n
            if not more:
                self._join(record.ch)
        elif isinstance(record, Frame):
            self.rows.append(n)
        elif isinstance(record, Open | Close):
            self._other = n
            self._join(record.ch)
            if isinstance(record, Open):
                self._opened[record.ch] = n
                if record.head and stands_alone(record.head, self._asked(record)):
                    self.rows.append(n)
            elif record.undecoded and record.ch in self._opened:
                self.rows.append(n)
        elif record is not None:
            self._join_all()
            if isinstance(record, Gap) and record != _damage(n) and self._ends_in_damage():
                self.rows.pop()  # the gap counts the torn line that it follows
            self.rows.append(n)

    def _asked(self, opened: Open) -> Head | None:
        """The head of the request that a channel answers."""
        asked = self.channel(opened.answers) if opened.answers is not None else None
        return asked.head if asked else None

    def _ends_in_damage(self) -> bool:
        """Whether the last record so far is a line that does not parse."""
        n = self.rows[-1] if self.rows else 0
        return n > self._other and self._decode(n)[0] == _damage(n)

    def _join(self, ch: int) -> None:
        """The frame that channel `ch` is in the middle of, if any, is complete, or will never be."""
        lines = self._pieces.pop(ch, None)
        if lines:
            self.rows.append(lines[-1])
            self._joined[lines[-1]] = lines

    def _join_all(self) -> None:
        for ch in list(self._pieces):
            self._join(ch)

    def _finish(self, rest: bytes) -> bool:
        """Nobody writes any more: index an unfinished last line and frames that will not get their last piece."""
        if rest:
            self._line(rest)
            self._starts.append(self._starts[-1] + len(rest))
        unfinished = bool(self._pieces)
        self._join_all()
        return bool(rest) or unfinished


def _parse(n: int, line: bytes) -> tuple[Record | None, bool]:
    """The record on a line, None if its kind is unknown, and whether it is a frame that goes on in a later record."""
    try:
        fields = orjson.loads(line)
        return parse_record(n, fields), bool(fields.get("more"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _damage(n), False


def _damage(n: int) -> Gap:
    return Gap(n, 0, 1, DAMAGED)
