"""Turn the bytes of a capture into records: the rules for lines, frames in pieces, and damage.

A capture may have lost its end to a SIGKILL or its middle to a full disk, may contain records of a later version, and
may be hostile. So nothing here raises after the header is read. A line that does not parse is a `Gap`, and so is a line
longer than any writer makes. Unknown kinds and keys are ignored. A frame in pieces is joined when its last piece
arrives, or when that is certain not to happen. A frame larger than `LARGEST` is neither joined nor decoded: its first
and last bytes are kept, the rest is discarded while reading.

`mcpspy.capture.reader` uses the records in sequence, `mcpspy.capture.index` uses their line numbers.
"""

import base64
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson

from mcpspy.capture.records import Close, End, Frame, Gap, Gates, Omitted, Open, Record, Release, Sender, Signal

LARGEST = 8 << 20
"""The largest frame that is joined and decoded, in bytes: 16 MiB would take 0.8 s and 160 MB."""

KEPT = 1 << 16
"""Bytes kept from each end of a larger frame."""

LONGEST = 8 << 20
"""The longest line that is read, in bytes: a piece of 64 KiB takes at most 400 KiB."""

TEXT_FRAME = re.compile(rb'\{"kind":"frame","ch":(?!0\d)\d+,"t":(?!0\d)\d+,"raw":"(?!")')
"""The start of a line with a frame, or a piece of one, that is a non-empty text, as our writer writes it.

The text begins after it. So the letters of the frame or piece are in the line, unless the line is damaged.
"""

DAMAGED = "a damaged line"
"""The reason of the gap for a line that does not parse."""


class FileLines:
    """Splits the bytes of a file into lines, without their newlines; a line over `LONGEST` is returned empty."""

    def __init__(self) -> None:
        self.pending = b""
        """The start of the incomplete line."""
        self.dropped = 0
        """Discarded bytes of that line, or of the first line that `feed` last returned."""
        self._dropping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Accept the next bytes, in chunks smaller than `LONGEST`. Return the lines that they complete."""
        if not self._dropping:
            self.dropped = 0
        lines = (self.pending + chunk).split(b"\n") if self.pending else chunk.split(b"\n")
        self.pending = lines.pop()
        if lines and (self._dropping or len(lines[0]) > LONGEST):
            self.dropped += len(lines[0])
            lines[0], self._dropping = b"", False
        elif not lines and (self._dropping or len(self.pending) > LONGEST):
            self.dropped += len(self.pending)
            self.pending, self._dropping = b"", True
        return lines

    @property
    def unfinished(self) -> bool:
        """Whether the file ends inside a line."""
        return bool(self.pending) or self._dropping


class Joined(NamedTuple):
    """The location of a frame in pieces."""

    lines: "array[int]"
    """The line number of each piece."""
    size: int
    """Size of the whole frame in bytes."""


class _Pieces:
    """The pieces of a frame read so far."""

    __slots__ = ("first", "last", "lines", "parts", "size", "tail")

    def __init__(self, first: Frame) -> None:
        self.first = first
        self.size = 0
        self.tail = b""
        self.parts: list[bytes] = []
        self.lines = array("I")

    def add(self, piece: Frame, largest: int) -> None:
        """Add the next piece."""
        raw = piece.raw
        self.last = piece.n, piece.t
        self.lines.append(piece.n)
        self.size += len(raw)
        if self.size <= largest:
            self.parts.append(raw)
            return
        if not self.tail:
            whole = b"".join([*self.parts, raw])
            self.parts, self.tail = [whole[:KEPT]], whole[-KEPT:]
        else:
            self.tail = (self.tail + raw)[-KEPT:]

    def frame(self, *, cut: bool) -> Frame:
        """Return the frame, joined from its pieces."""
        n, t = self.last
        omitted = Omitted(self.size, self.tail) if self.tail else None
        return replace(self.first, n=n, t=t, raw=b"".join(self.parts), cut=cut, omitted=omitted)


class Scan:
    """Turns the lines after the header into records. Call `take` with each, then `end`.

    Frames recorded in pieces are joined, and get the line number and time of the last piece. Their locations are
    entered into `joined`, if given, by the number of the last line.
    """

    def __init__(self, largest: int = LARGEST, joined: dict[int, Joined] | None = None) -> None:
        self.between = True
        """Whether a whole frame that follows is exactly one record, so that it need not be passed to `take`."""
        self.t = 0
        """The time of the newest record."""
        self._largest = largest
        self._joined = joined
        self._pieces: dict[int, _Pieces] = {}  # by channel
        self._damage: Gap | None = None

    def take(self, record: Record | None, *, more: bool) -> Iterator[Record]:
        """Process the result of `parse_line` for the next line, and yield the records that it completes."""
        if record is not None:
            yield from self._damaged(record) if is_damage(record) else self._record(record, more=more)
            self.between = self._damage is None and not self._pieces

    def end(self) -> Iterator[Record]:
        """Yield what is incomplete at the end of the file: a damaged last line, and cut frames without last piece."""
        if self._damage:
            yield self._damage
            self._damage = None
        yield from self._cut_open_frames()
        self.between = True

    def _damaged(self, record: Record) -> Iterator[Record]:
        yield from self._cut_open_frames()
        if self._damage:
            yield self._damage
        self._damage = Gap(record.n, self.t, 1, DAMAGED)

    def _record(self, record: Record, *, more: bool) -> Iterator[Record]:
        if self._damage:
            if not isinstance(record, Gap):  # the gap already counts the torn line before it
                yield self._damage
            self._damage = None
        self.t = record.t
        if isinstance(record, Frame):
            pieces = self._pieces.get(record.ch)
            if more and not pieces:
                pieces = self._pieces[record.ch] = _Pieces(record)
            if pieces:
                pieces.add(record, self._largest)
                if more:
                    return
                record = self._join(record.ch, cut=record.cut)
        elif isinstance(record, Gap | End):
            yield from self._cut_open_frames()
        elif not isinstance(record, Signal | Release | Gates) and record.ch in self._pieces:
            yield self._join(record.ch, cut=True)
        yield record

    def _join(self, ch: int, *, cut: bool) -> Frame:
        pieces = self._pieces.pop(ch)
        if self._joined is not None:
            self._joined[pieces.last[0]] = Joined(pieces.lines, pieces.size)
        return pieces.frame(cut=cut)

    def _cut_open_frames(self) -> Iterator[Frame]:
        for ch in list(self._pieces):
            yield self._join(ch, cut=True)


_FEW = 4  # members of a frame record without extras: kind, ch, t, raw


def is_damage(record: Record) -> bool:
    """Return whether a record is a line that does not parse; a `gap` record of a writer is not."""
    return isinstance(record, Gap) and record.why is DAMAGED


def parse_line(n: int, line: bytes) -> tuple[Record | None, bool]:
    """Return the record on a line and whether it is a frame that a later record continues.

    The record is `None` if its kind is unknown. A line that does not parse is a `Gap` with the reason `DAMAGED`,
    without a time.
    """
    try:
        fields = orjson.loads(line)
        if len(fields) == _FEW and "raw" in fields and fields["kind"] == "frame":  # the usual case
            t, ch = fields["t"], fields["ch"]
            if type(t) is int and 0 <= t < 1 << 62 and type(ch) is int:
                return Frame(n, ch, t, fields["raw"].encode()), False
        kind = _KINDS.get(fields["kind"])
        if kind is None:
            return None, False
        _check(fields, kind)
        return kind.parse(n, fields["t"], fields), fields.get("more") is True
    except (ValueError, KeyError, TypeError, AttributeError):
        return Gap(n, 0, 1, DAMAGED), False


def raw_of(line: bytes) -> bytes:
    """Return the bytes of the frame on a line, without decoding the whole record; empty if there is no frame."""
    try:
        fields = orjson.loads(line)
        return fields["raw"].encode() if fields["kind"] == "frame" else b""
    except (ValueError, KeyError, TypeError, AttributeError):
        return b""


class _Kind(NamedTuple):
    """A kind of record: how it is made, and the types of its members."""

    parse: Callable[[int, int, dict[str, Any]], Record]
    required: dict[str, type]
    optional: dict[str, type]
    """The members that may be missing or null. `_sent` checks the member `sent` of a frame."""


def _check(fields: dict[str, Any], kind: _Kind) -> None:
    """Check the type of each member of a record. Raises KeyError or TypeError."""
    t = fields["t"]
    if type(t) is not int or not 0 <= t < 1 << 62:
        raise TypeError
    for name, wanted in kind.required.items():
        if type(fields[name]) is not wanted:
            raise TypeError
    for name, wanted in kind.optional.items():
        value = fields.get(name)
        if value is not None and type(value) is not wanted:
            raise TypeError


def _frame(n: int, t: int, fields: dict[str, Any]) -> Frame:
    raw, sender = fields.get("raw"), fields.get("from")
    return Frame(
        n,
        fields["ch"],
        t,
        base64.b64decode(fields["b64"]) if raw is None else raw.encode(),
        fields.get("cut") is True,
        fields.get("op"),
        None if sender is None else _sender(sender),
        _sent(fields),
        fields.get("by"),
        _dropped(fields),
        fields.get("held"),
        fields.get("undecided") is True,
    )


def _sender(name: str) -> Sender:
    if name not in ("client", "server", "mcpspy"):
        raise ValueError
    return cast("Sender", name)


def _release(n: int, t: int, fields: dict[str, Any]) -> Release:
    return Release(n, t, fields["held"], fields["how"], _sent(fields), fields.get("by"), _dropped(fields))


def _sent(fields: dict[str, Any]) -> bytes | None:
    """Return the bytes forwarded instead; None if nothing was forwarded, or the original bytes."""
    sent = fields.get("sent")
    return base64.b64decode(sent["b64"]) if isinstance(sent, dict) else sent.encode() if sent is not None else None


def _dropped(fields: dict[str, Any]) -> bool:
    return "sent" in fields and fields["sent"] is None


_IN_HEAD = {"method": str, "target": str, "version": str, "status": int, "reason": str, "headers": list}
"""The members of an HTTP head. Any may be missing or null."""


def _open(n: int, t: int, fields: dict[str, Any]) -> Open:
    head, sent = _head(fields.get("head")), _head(fields.get("sent"))
    answers, peer, by = fields.get("answers"), fields.get("peer"), fields.get("by")
    role, framing = fields["role"], fields["framing"]
    return Open(n, fields["ch"], t, _sender(fields["from"]), role, framing, answers, peer, head, sent, by)


def _head(head: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a head whose members have the right types. A header in `sent` is null if it was not forwarded."""
    if head is None:
        return None
    for name, wanted in _IN_HEAD.items():
        value = head.get(name)
        if value is not None and type(value) is not wanted:
            raise TypeError
    for field in head.get("headers") or ():
        if type(field) is not list or len(field) != 2 or type(field[0]) is not str:
            raise TypeError
        if type(field[1]) is not str and field[1] is not None:
            raise TypeError
    return head


def _close(n: int, t: int, fields: dict[str, Any]) -> Close:
    return Close(n, fields["ch"], t, fields["how"], fields.get("code"), fields.get("reason"))


def _gap(n: int, t: int, fields: dict[str, Any]) -> Gap:
    if fields["lost"] < 0:
        raise ValueError
    return Gap(n, t, fields["lost"], fields["why"])


def _signal(n: int, t: int, fields: dict[str, Any]) -> Signal:
    if fields["to"] not in ("group", "process"):
        raise ValueError
    return Signal(n, t, fields["signal"], fields["to"], fields["forwarded"])


def _gates(n: int, t: int, fields: dict[str, Any]) -> Gates:
    if any(type(gate) is not dict for gate in fields["gates"]):
        raise TypeError
    return Gates(n, t, tuple(fields["gates"]), fields["by"])


def _end(n: int, t: int, fields: dict[str, Any]) -> End:
    status = fields.get("exit") or {}
    code, signal = status.get("code"), status.get("signal")
    if any(it is not None and type(it) is not int for it in (code, signal)):
        raise TypeError
    return End(n, t, code, signal, fields.get("why"))


_KINDS = {
    "frame": _Kind(
        _frame,
        {"ch": int},
        {"raw": str, "b64": str, "more": bool, "cut": bool, "op": str, "from": str, "by": str, "held": int}
        | {"undecided": bool},
    ),
    "release": _Kind(_release, {"held": int, "how": str}, {"by": str}),
    "gates": _Kind(_gates, {"gates": list, "by": str}, {}),
    "open": _Kind(
        _open,
        {"ch": int, "from": str, "role": str, "framing": str},
        {"answers": int, "peer": str, "head": dict, "sent": dict, "by": str},
    ),
    "close": _Kind(_close, {"ch": int, "how": str}, {"code": int, "reason": str}),
    "gap": _Kind(_gap, {"lost": int, "why": str}, {}),
    "signal": _Kind(_signal, {"signal": int, "to": str, "forwarded": bool}, {}),
    "end": _Kind(_end, {}, {"exit": dict, "why": str}),
}
