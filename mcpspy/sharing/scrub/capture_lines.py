"""The scrubbed lines of a capture; each line replaces the line with the same number.

Most lines contain nothing suspicious: a few searches of their characters show that, and they stay unchanged. If a frame
has several pieces, all its lines wait for the last one, together with the lines between them. A frame that is larger
than readers decode is replaced by spaces, piece by piece, so readers see a frame of the same size. A damaged line is
replaced by another line that no reader can parse, because it may contain anything. Any other line is written from its
parsed record: it may have two members of one name, and a reader, like the scrub, sees only the last.
"""

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

import orjson

from mcpspy.capture.format import as_sent
from mcpspy.capture.scan import LARGEST, is_damage, parse_line
from mcpspy.recording.copy import record_line
from mcpspy.secrets.redactor import untitled, withheld
from mcpspy.sharing.scrub.frames import FrameScrub, blank
from mcpspy.sharing.scrub.record_fields import RecordScrub

WAITING = 4 * LARGEST
"""Maximum number of bytes of lines that wait for the last piece of a frame."""
DAMAGED = b'{"kind":"gap","why":"a damaged line"}\n'
"""A line that readers treat as damaged: it has no time."""
_FRAME = b'{"kind":"frame","ch":'
_FEW = 4  # members of a plain frame record
_WITHHELD = "«withheld:".encode()


class _Waiting:
    """A frame whose last piece has not come."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, Any], bytes]] = []  # number, record, bytes of the frame
        self.size = 0
        self.blank = False
        """The frame is too large, and its pieces are blanked as they come."""


class LineScrub:
    """Scrubs the lines of a capture, the header first; `feed` each, then `end`."""

    def __init__(
        self,
        records: RecordScrub,
        frames: FrameScrub,
        is_suspicious: Callable[[str, bytes], bool],
        undecoded: Collection[int],
        on_withheld: Callable[[str], None],
    ) -> None:
        """`undecoded` has the channels whose content coding could not be decoded, as far as they are known."""
        self.n = 0
        """The number of the current line; for a frame, that of its last piece."""
        self._records = records
        self._frames = frames
        self._is_suspicious = is_suspicious
        self._undecoded = undecoded
        self._on_withheld = on_withheld
        self._framing: dict[int, str] = {}
        self._open: dict[int, _Waiting] = {}
        self._queue: deque[bytes | None] = deque()
        self._first = 1  # the number of the first line in the queue
        self._last = 0
        self._bytes = 0

    def feed(self, line: bytes) -> Iterator[bytes]:
        """Take the next line, without its newline, and yield the lines that are finished."""
        self._last += 1
        if not self._open and self._is_plain(line):
            self._first = self._last + 1
            yield line + b"\n"
            return
        self._queue.append(None)
        self._bytes += len(line)
        self.n = self._last
        self._take(self._last, line)
        if self._bytes > WAITING and self._open:
            self._give_up(next(iter(self._open)))
        yield from self._finished()

    def end(self) -> Iterator[bytes]:
        """Yield the lines that wait for the rest of a frame that did not come."""
        self._cut_all()
        yield from self._finished()

    def _is_plain(self, line: bytes) -> bool:
        """Return whether a line is a complete frame in the usual form, with nothing to replace."""
        if not line.startswith(_FRAME):
            return False
        try:
            text = line.decode()
            fields = orjson.loads(line)
            ch, t, raw = fields["ch"], fields["t"], fields["raw"]
        except (ValueError, KeyError):
            return False
        usual = len(fields) == _FEW and type(ch) is int and type(t) is int and 0 <= t < 1 << 62 and type(raw) is str
        if not usual or ch in self._undecoded or raw.startswith(_WITHHELD.decode()):
            return False
        return not self._frames.busy(ch) and not self._is_suspicious(text, line)

    def _take(self, n: int, line: bytes) -> None:
        if n == 1:
            self._put(n, _line(self._records.header(orjson.loads(line))))
            return
        fields = _parsed(n, line)
        if fields is None:
            self._cut_all()
            self._put(n, DAMAGED)
            return
        kind, ch = fields.get("kind"), fields.get("ch", -1)
        if kind == "frame":
            self._take_piece(n, fields)
            return
        if kind in ("gap", "end"):
            self._cut_all()
        elif kind in ("open", "close"):
            if ch in self._open:
                self._join(ch)
            self._framing[ch] = fields.get("framing", "")
        self.n = n
        new = self._record(kind, fields)
        if kind == "close":
            self._framing.pop(ch, None)
        self._put(n, _line(new))

    def _record(self, kind: Any, fields: dict[str, Any]) -> dict[str, Any]:
        if kind == "open":
            return self._records.open(fields)
        if kind == "continued":  # all files of the capture have become one
            return {key: fields[key] for key in ("kind", "t") if key in fields}
        return self._records.forwarded(fields, "") if kind == "release" else self._records.other(fields)

    def _take_piece(self, n: int, fields: dict[str, Any]) -> None:
        ch = fields["ch"]
        waiting = self._open.setdefault(ch, _Waiting())
        raw = _raw_of(fields)
        fields = _with_own_bytes(fields, raw)
        waiting.size += len(raw)
        if waiting.blank:
            last = not fields.get("more")
            self._put(n, _line(_with_raw(fields, blank(raw, first=False, last=last))))
            if last:
                del self._open[ch]
            return
        waiting.lines.append((n, fields, raw))
        if waiting.size > LARGEST and fields.get("more"):
            self._give_up(ch)
        elif not fields.get("more"):
            self._join(ch)

    def _cut_all(self) -> None:
        for ch in list(self._open):
            self._join(ch)

    def _give_up(self, ch: int) -> None:
        """Blank the pieces of a frame that is too large, as far as they have come."""
        waiting = self._open[ch]
        self.n = waiting.lines[0][0] if waiting.lines else self.n
        self._on_withheld("")
        self._blank(waiting, ended=False)
        waiting.blank, waiting.lines = True, []

    def _blank(self, waiting: _Waiting, *, ended: bool) -> None:
        final = len(waiting.lines) - 1
        for place, (n, fields, raw) in enumerate(waiting.lines):
            piece = blank(raw, first=place == 0, last=ended and place == final)
            record = self._records.forwarded(fields, "") if "sent" in fields or "by" in fields else fields
            self._put(n, _line(_with_raw(record, piece)))

    def _join(self, ch: int) -> None:
        """Scrub a frame that has ended."""
        waiting = self._open.pop(ch)
        if waiting.blank:
            return
        lines, framing = waiting.lines, self._framing.get(ch, "")
        self.n = lines[-1][0]
        if waiting.size > LARGEST:
            self._on_withheld("")
            self._blank(waiting, ended=True)
            return
        raw = b"".join(piece for _, _, piece in lines)
        new = self._frame(ch, raw, lines[0][1].get("op"), framing)
        pieces = _pieces(new, [len(piece) for _, _, piece in lines]) if new != raw else []
        for place, (n, fields, _) in enumerate(lines):
            record = self._records.forwarded(fields, framing) if len(fields) > _FEW else fields
            if pieces:
                record = _with_raw(record, pieces[place])
            self._put(n, _line(record))

    def _frame(self, ch: int, raw: bytes, op: Any, framing: str) -> bytes:
        self._records.words = ""
        if ch in self._undecoded or op == "binary":
            if not raw or raw.startswith(_WITHHELD):
                return untitled(raw)
            self._on_withheld("")
            return withheld(len(raw))
        text = untitled(raw).decode("utf-8", "surrogateescape")
        return self._frames.frame(text, framing, ch).encode("utf-8", "surrogateescape")

    def _put(self, n: int, line: bytes) -> None:
        self._queue[n - self._first] = line

    def _finished(self) -> Iterator[bytes]:
        queue = self._queue
        while queue and (line := queue[0]) is not None:
            queue.popleft()
            self._first += 1
            yield line
        if not queue:
            self._bytes = 0


def _line(record: dict[str, Any]) -> bytes:
    """Return a record as a line; leave out values that are nested too deeply, which no relay has written."""
    try:
        return record_line(record)
    except TypeError:
        return record_line({name: value for name, value in record.items() if not isinstance(value, dict | list)})


def _parsed(n: int, line: bytes) -> dict[str, Any] | None:
    """Return the fields of a record; None for a line that readers treat as damaged."""
    record, _ = parse_line(n, line)
    if record is not None and is_damage(record):
        return None
    fields: dict[str, Any] = orjson.loads(line)
    return fields


def _raw_of(fields: dict[str, Any]) -> bytes:
    raw = fields.get("raw")
    return b64decode(fields["b64"]) if raw is None else raw.encode()


def _with_own_bytes(fields: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return the record of a frame as readers see it: without `b64` if it has `raw`, else with plain base64."""
    if "b64" not in fields:
        return fields
    if fields.get("raw") is None:
        return fields | {"b64": b64encode(raw).decode()}
    return {name: value for name, value in fields.items() if name != "b64"}


def _with_raw(fields: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return the record of a frame with other bytes in place of its own."""
    value = as_sent(raw)
    key, value = ("raw", value) if isinstance(value, str) else ("b64", (value or {}).get("b64"))
    return {(key if name in ("raw", "b64") else name): (value if name in ("raw", "b64") else it)
            for name, it in fields.items()}  # fmt: skip


def _pieces(frame: bytes, sizes: list[int]) -> list[bytes]:
    """Return a frame in as many pieces as before, of similar proportions, never split inside a character."""
    if len(sizes) == 1:
        return [frame]
    total, pieces, start, so_far = sum(sizes) or 1, [], 0, 0
    for size in sizes[:-1]:
        so_far += size
        end = max(len(frame) * so_far // total, start)
        while end < len(frame) and end > start and frame[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(frame[start:end])
        start = end
    return [*pieces, frame[start:]]
