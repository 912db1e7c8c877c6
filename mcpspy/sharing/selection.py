"""What is left of a capture with `--filter`: the frames of the matching rows, and what is needed to read them.

`selected` makes the lines for `share` and for `cut`. The rows of `share` are those of `wanted_lines`; `cut.py` has
those of `cut`, which keeps more of each exchange.

Lines keep their numbers, so another record replaces a line that is left out. The first line of a run becomes a `gap`:
readers report nothing as unanswered or unrequested across it. The others become records of a kind that no reader knows.
A gap also ends the open frames, so none is written between the pieces of a frame that stays.

In addition to the matching frames, these stay: the other half of their exchanges, the handshake (without it the
revision is unknown), the channels of all these, and records without a channel: gaps, signals, gates and the end. The
copy should show the same reason why a request has failed. So its cancellation stays too, the rest of its HTTP answer,
and for a call the list of tools. The copy does not contain the bytes of other frames and the heads of other HTTP
exchanges.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.records import Record
from mcpspy.capture.scan import DAMAGED, is_damage, parse_line
from mcpspy.conversation.model import HttpUnit, Message
from mcpspy.filters import Filter
from mcpspy.filters.terms import WILD
from mcpspy.recording.copy import record_line
from mcpspy.rules.judge import Fold, JudgedEvent
from mcpspy.timeline import Row, final_rows

LEFT_OUT = "left out by --filter"
"""The reason in the gap of lines that were left out."""

_HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
_STDIO = ("stdin", "stdout", "stderr")
_FREE = ("text", "method", "name", "id", "session")  # keys whose values may be any text
_OF_NO_CHANNEL = ("gap", "signal", "gates", "end", "continued")
LINE_LEFT_OUT = record_line({"kind": "left-out"})
"""The line that replaces one that was left out."""
_CHUNK = 1 << 20  # bytes read at once


def raw_lines(path: str) -> Iterator[bytes]:
    """Yield the bytes of a capture unchanged, in large pieces; if it has several files, they are joined."""
    with JoinedFiles(path) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines from pieces of any size; add a newline to a last line without one."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest + b"\n"


def opens_session(row: Row) -> bool:
    """Return whether a row belongs to a handshake.

    The event that names the endpoint of HTTP+SSE does: it alone connects a request and its response to one session.
    """
    return row.method in _HANDSHAKE or (row.kind == "event" and (row.text or "").startswith("endpoint:"))


def wanted_lines(records: Callable[[], Iterable[Record]], wanted: Filter, *, live: bool) -> set[int]:
    """Return the line numbers of matching rows, of what belongs to their exchanges, and of handshakes."""
    further, found, tools, call_failed = _FurtherRows(), set[int](), set[int](), False
    for row in final_rows(records, further, live=live):
        if row.method == "tools/list":
            tools.add(row.n)
        if opens_session(row) or wanted(row):
            found |= {row.n, *filter(None, (row.request, row.response)), *further.of(row)}
            call_failed = call_failed or (row.failed and row.method == "tools/call")
    return found | tools if call_failed else found


class _FurtherRows(Fold):
    """The rows that belong to a request besides its response: its cancellation, and the rest of its HTTP answer."""

    def __init__(self) -> None:
        self._rows: dict[int, list[int]] = {}  # by the line number of the request

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if not isinstance(event, Message | HttpUnit):
            return
        request = event.http.request if event.http else None
        if isinstance(event, Message) and event.cancels:
            self._rows.setdefault(event.cancels.request.n, []).append(event.n)
        elif request and event.http and (isinstance(event, HttpUnit) or event.exchange is None):
            if event.http.failed and request.first:
                self._rows.setdefault(request.first, []).append(event.n)
            for message in request.carried:
                self._rows.setdefault(message.n, []).append(event.n)

    def of(self, row: Row) -> Sequence[int]:
        """Return the line numbers for the request of a row; none if it came to a good end."""
        return () if row.outcome in (None, "ok") else self._rows.get(row.request or row.n, ())


def selected(lines: Callable[[], Iterable[bytes]], rows: set[int], why: str = LEFT_OUT) -> Iterator[bytes]:
    """Yield the lines of a capture, each with its newline; only the frames of these rows are kept.

    `lines` is called twice; `why` is the reason in the gaps.
    """
    stays = _Plan(lines(), rows).stays()
    open_frames: set[int] = set()  # the channels of kept frames that have more pieces
    newest = 0  # the time of the record before
    run = _Run()
    for number, line in enumerate(lines(), 1):
        if number == len(stays):  # a live capture has grown since
            break
        fields = {} if number == 1 else _fields(line)
        newest = fields["t"] if type(fields.get("t")) is int else newest
        if not stays[number]:
            run.add(newest, frame=fields.get("kind") == "frame" and not fields.get("more"))
            continue
        yield from run.replaced(why, gap=not open_frames)
        run = _Run()
        if fields.get("kind") == "frame":
            (open_frames.add if fields.get("more") else open_frames.discard)(fields["ch"])
        yield line if fields or number == 1 else _gap(newest, 1, DAMAGED)
    yield from run.replaced(why, gap=not open_frames)


def shown_filter(wanted: Filter, copy: str) -> str:
    """Return a filter as text, with `…` for each text that is not in the copy: scrubbing may have removed it."""
    values = {value for term in wanted.tree.terms() if term.key in _FREE for value in term.values}
    runs = {value: [run for run in WILD.split(value.text) if run] for value in values}
    missing = {run for found in runs.values() for run in found}
    with open(copy, encoding="utf-8", errors="replace") as file:
        for line in file:
            missing -= {run for run in missing if run in line}
            if not missing:
                break
    text = str(wanted)
    for value in sorted(values, key=lambda value: len(str(value)), reverse=True):
        if missing & set(runs[value]):
            text = text.replace(str(value), "…")
    return text


class _Run:
    """Lines that are left out one after the other. There may be millions, so they are counted."""

    def __init__(self) -> None:
        self._t = 0  # the time of the first line
        self._lines = 0
        self._frames = 0

    def add(self, t: int, *, frame: bool) -> None:
        """Add the next line; `frame` if it ends a frame."""
        self._t = self._t if self._lines else t
        self._lines += 1
        self._frames += frame

    def replaced(self, why: str, *, gap: bool) -> Iterator[bytes]:
        """Yield the replacement of the lines; a gap, if one is allowed here, counts the frames."""
        for place in range(self._lines):
            yield _gap(self._t, self._frames, why) if place == 0 and self._frames and gap else LINE_LEFT_OUT


def _gap(t: int, lost: int, why: str) -> bytes:
    return record_line({"kind": "gap", "t": t, "lost": lost, "why": why})


def _fields(line: bytes) -> dict[str, Any]:
    """Return the record on a line; an empty one for a damaged line."""
    record, _ = parse_line(0, line)
    if record is not None and is_damage(record):
        return {}
    found: dict[str, Any] = orjson.loads(line)
    return found


class _Plan:
    """Computes which lines stay: a frame, a channel and an exchange may consist of several lines."""

    def __init__(self, lines: Iterable[bytes], rows: set[int]) -> None:
        self._rows = rows
        self._kinds: list[str] = ["", ""]  # for each line, from number 0
        self._channels = array("q", (0, 0))
        self._frames: set[int] = set()  # the lines of frames that stay
        self._kept: set[int] = set()  # the channels that stay
        self._held: dict[int, bool] = {}  # whether a held frame stays, by its number
        self._answers: dict[int, int] = {}  # the channel of a request, by that of its response
        self._pieces: dict[int, list[int]] = {}  # the lines of open frames, by channel
        self._numbers: dict[int, int] = {}  # the numbers of open frames that are held
        for number, line in enumerate(lines, 1):
            if number > 1:
                self._add(number, _fields(line))
        self._cut()
        for response, request in self._answers.items():
            if self._kept & {response, request}:
                self._kept |= {response, request}

    def stays(self) -> bytearray:
        """Return whether each line stays, by its number."""
        found = bytearray(len(self._kinds))
        found[1:2] = b"\1"
        for number, (kind, channel) in enumerate(zip(self._kinds, self._channels, strict=True)):
            if kind == "frame":
                found[number] = number in self._frames
            elif kind in ("open", "close"):
                found[number] = channel in self._kept
            elif kind == "release":
                found[number] = self._held.get(channel, False)
            elif kind in _OF_NO_CHANNEL:
                found[number] = True
        return found

    def _add(self, number: int, fields: dict[str, Any]) -> None:
        kind = fields.get("kind", "gap")  # a line that cannot be parsed counts as a gap
        channel = fields.get("held" if kind == "release" else "ch", 0)
        self._kinds.append(kind)
        self._channels.append(channel if type(channel) is int else 0)
        if kind in ("gap", "end"):
            self._cut()
        elif kind in ("open", "close"):
            self._finish(channel)
            if number in self._rows or fields.get("role") in _STDIO:
                self._kept.add(channel)
            if kind == "open" and fields.get("answers"):
                self._answers[channel] = fields["answers"]
        elif kind == "frame":
            self._pieces.setdefault(channel, []).append(number)
            if "held" in fields:
                self._numbers[channel] = fields["held"]
            if not fields.get("more"):
                self._finish(channel)

    def _finish(self, channel: int) -> None:
        """End the frame of a channel; the line of its last piece is its address."""
        lines = self._pieces.pop(channel, [])
        stays = bool(lines) and lines[-1] in self._rows
        held = self._numbers.pop(channel, None)
        if held is not None:
            self._held[held] = stays
        if stays:
            self._frames.update(lines)
            self._kept.add(channel)

    def _cut(self) -> None:
        for channel in list(self._pieces):
            self._finish(channel)
