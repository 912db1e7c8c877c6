"""Reading a capture: bytes in, records out.

The theory. A capture may be growing, may have lost its end to a SIGKILL or its middle to a full disk, and may hold what
a later version wrote. So a reader streams, keeps at most one unfinished frame per channel, skips kinds and keys that it
does not know, and turns what it cannot parse into a `Gap`: damage is shown, never an exception. Only a file that does
not begin as a capture, or has a newer format number, is refused.
"""

import base64
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import orjson

from mcpspy.capture.records import FORMAT, Close, End, Frame, Gap, Header, Imported, Open, Record
from mcpspy.errors import CaptureError, NewerFormat, NotACapture

try:
    import fcntl
except ImportError:  # Windows: no capture is ever seen as live
    fcntl = None  # type: ignore[assignment]

DAMAGED = "a damaged line"
"""Why there is a gap where a line does not parse."""

_CHUNK = 1 << 20  # bytes read at once
_HEADER_LIMIT = 1 << 20  # bytes; a longer first line is no header


class Records:
    """Turns the bytes of a capture into records; `feed` in any portions, then `end`.

    Frames that were written in pieces come out joined, with the line number and time of the last piece.
    """

    def __init__(self) -> None:
        self.header: Header | None = None
        self._n = 0  # lines so far
        self._pending = b""
        self._t = 0  # time of the newest record
        self._pieces: dict[int, list[Frame]] = {}
        self._damage: Gap | None = None

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """Take the next bytes and yield the records that they complete. Raises NotACapture or NewerFormat."""
        lines = (self._pending + chunk).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            self._n += 1
            if self.header:
                yield from self._line(line)
            else:
                self.header = parse_header(line)
        if not self.header and len(self._pending) > _HEADER_LIMIT:
            raise NotACapture("does not begin with a capture's header")

    def end(self) -> Iterator[Record]:
        """Yield what the file's end leaves open: a torn last line as a gap, frames without their last piece as cut."""
        if self._pending and self.header:
            self._n += 1
            yield from self._line(self._pending)
        if self._damage:
            yield self._damage
        yield from self._cut_open_frames()

    def _line(self, line: bytes) -> Iterator[Record]:
        try:
            fields = orjson.loads(line)
            record = parse_record(self._n, fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            yield from self._cut_open_frames()
            if self._damage:
                yield self._damage
            self._damage = Gap(self._n, self._t, 1, DAMAGED)
            return
        if record is None:
            return
        if self._damage:
            if not isinstance(record, Gap):  # a gap counts the torn line that it follows
                yield self._damage
            self._damage = None
        self._t = record.t
        if isinstance(record, Frame):
            if fields.get("more"):
                self._pieces.setdefault(record.ch, []).append(record)
                return
            if record.ch in self._pieces:
                self._pieces[record.ch].append(record)
                record = self._join(record.ch, cut=record.cut)
        elif isinstance(record, Gap | End):
            yield from self._cut_open_frames()
        elif record.ch in self._pieces:
            yield self._join(record.ch, cut=True)
        yield record

    def _join(self, ch: int, *, cut: bool) -> Frame:
        pieces = self._pieces.pop(ch)
        raw = b"".join(piece.raw for piece in pieces)
        return replace(pieces[0], n=pieces[-1].n, t=pieces[-1].t, raw=raw, cut=cut)

    def _cut_open_frames(self) -> Iterator[Frame]:
        for ch in list(self._pieces):
            yield self._join(ch, cut=True)


class Capture:
    """One capture file: its header, and its records as often as they are asked for."""

    def __init__(self, path: str) -> None:
        """Read the header. Raises CaptureError if there is none."""
        self.path = path
        self.header = self._read_header()

    def records(self) -> Iterator[Record]:
        """Every record that stands in the file now."""
        decoder = Records()
        with self._file() as file:
            while chunk := file.read(_CHUNK):
                yield from decoder.feed(chunk)
        yield from decoder.end()

    def follow(self, wait: Callable[[], None] = lambda: time.sleep(0.05)) -> Iterator[Record]:
        """Every record, and those to come, until the capture is no longer live; `wait` is called where it ends.

        A capture that is deleted or replaced while it is followed ends there.
        """
        decoder = Records()
        with self._file() as file:
            while True:
                live = is_live(file.fileno())  # asked before the read: what was written before the end is read
                while chunk := file.read(_CHUNK):
                    yield from decoder.feed(chunk)
                status = os.fstat(file.fileno())
                if not live or status.st_size < file.tell() or not status.st_nlink:
                    break
                wait()
        yield from decoder.end()

    @property
    def live(self) -> bool:
        """Whether a relay is writing to it."""
        try:
            with self._file() as file:
                return is_live(file.fileno())
        except CaptureError:
            return False

    def _file(self) -> Any:
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode) and not os.path.isdir(self.path):
                raise NotACapture(f"{self.path} is not a regular file")  # opening a FIFO would wait for a writer
            return open(self.path, "rb", buffering=0)
        except OSError as error:
            raise CaptureError(f"cannot read {self.path}: {error.strerror}") from error

    def _read_header(self) -> Header:
        decoder = Records()
        with self._file() as file:
            try:
                while not decoder.header and (chunk := file.read(65536)):
                    next(decoder.feed(chunk), None)
            except OSError as error:
                raise CaptureError(f"cannot read {self.path}: {error.strerror}") from error
            except CaptureError as error:
                raise type(error)(f"{self.path} {error}") from error
            if not decoder.header:
                state = "has only part of a header" if file.tell() else "is empty"
                raise NotACapture(f"{self.path} {state}: not a capture")
        return decoder.header


def is_live(fd: int) -> bool:
    """Whether a writer holds the lock on this file."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def parse_header(line: bytes) -> Header:
    """The header on the first line of a capture. Raises NotACapture or NewerFormat."""
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
        argv, env = (tuple(map(str, fields.get(key, ()))) for key in ("argv", "env"))
        rest: dict[str, Any] = {key: fields.get(key) for key in ("url", "cwd", "pid", "ppid")}
        imported = _imported(fields["imported"]) if "imported" in fields else None
        return Header(started=started, argv=argv, env=env, imported=imported, **text, **rest)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotACapture("does not begin with a capture's header") from None


def _imported(fields: dict[str, Any]) -> Imported:
    approximate, missing = (tuple(map(str, fields.get(key, ()))) for key in ("approximate", "missing"))
    return Imported(str(fields.get("from", "")), approximate, missing)


_MAY_HAVE: dict[str, type] = {"answers": int, "peer": str, "head": dict, "sent": dict, "by": str}
"""What an `open` record may have, in the order of `Open`."""


def parse_record(n: int, fields: dict[str, Any]) -> Record | None:
    """One record from its decoded line; None for a kind that this version does not know.

    Raises KeyError, TypeError, ValueError or AttributeError for what is no record.
    """
    parse = _KINDS.get(fields["kind"])
    if parse is None:
        return None
    t = fields["t"]
    if type(t) is not int or not 0 <= t < 1 << 62 or type(fields.get("ch", 0)) is not int:
        raise TypeError
    if fields.get("from", "client") not in ("client", "server", "mcpspy") or type(fields.get("why", "")) is not str:
        raise TypeError
    return parse(n, t, fields)


def raw_of(line: bytes) -> bytes:
    """The bytes of the frame on a line of a capture, quicker than with all of its record; none if that has none."""
    try:
        fields = orjson.loads(line)
        return fields["raw"].encode() if fields["kind"] == "frame" else b""
    except (ValueError, KeyError, TypeError, AttributeError):
        return b""


def _frame(n: int, t: int, fields: dict[str, Any]) -> Frame:
    raw = fields.get("raw")
    body = base64.b64decode(fields["b64"]) if raw is None else raw.encode()
    sent = fields.get("sent")
    return Frame(
        n,
        fields["ch"],
        t,
        body,
        fields.get("cut", False),
        fields.get("op"),
        fields.get("from"),
        sent.encode() if isinstance(sent, str) else None,
        fields.get("by"),
    )


def _open(n: int, t: int, fields: dict[str, Any]) -> Open:
    found = [fields["role"], fields["framing"], *(fields.get(name) for name in _MAY_HAVE)]
    for value, kind in zip(found, (str, str, *_MAY_HAVE.values()), strict=True):
        if value is not None and type(value) is not kind:
            raise TypeError
    return Open(n, fields["ch"], t, fields["from"], *found)


def _close(n: int, t: int, fields: dict[str, Any]) -> Close:
    code, reason = fields.get("code"), fields.get("reason")
    if type(code or 0) is not int or type(reason or "") is not str:
        raise TypeError
    return Close(n, fields["ch"], t, fields["how"], code, reason)


def _gap(n: int, t: int, fields: dict[str, Any]) -> Gap:
    return Gap(n, t, fields["lost"], fields["why"])


def _end(n: int, t: int, fields: dict[str, Any]) -> End:
    status = fields.get("exit") or {}
    return End(n, t, status.get("code"), status.get("signal"), fields.get("why"))


_KINDS = cast(
    "dict[str, Callable[[int, int, dict[str, Any]], Record]]",
    {"frame": _frame, "open": _open, "close": _close, "gap": _gap, "end": _end},
)
