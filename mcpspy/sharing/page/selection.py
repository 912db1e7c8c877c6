"""What is left of a capture under `--filter`: the frames of the rows that fit, and what is needed to read them.

Lines keep their numbers, so a line that is left out becomes another record. The first of a run becomes a `gap`: across
it a reader calls nothing unanswered or unasked. The others become records of a kind that no reader knows. A gap also
ends the frames that are open, so none is written between the pieces of a frame that stays.

What stays besides the frames that fit: the other half of their exchanges, the handshake (without it nobody knows the
revision), the channels of all those, and what is no channel's: gaps, signals, gates and the end. The bytes of all other
frames and the heads of other HTTP exchanges are not in the copy.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from mcpspy.capture.records import Record
from mcpspy.capture.scan import DAMAGED, is_damage, parse_line
from mcpspy.filters import Filter
from mcpspy.filters.texts import WILD
from mcpspy.recording.copy import record_line
from mcpspy.timeline import final_rows

LEFT_OUT = "left out by --filter"
"""Why there is a gap where lines were left out."""

_HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
_STDIO = ("stdin", "stdout", "stderr")
_FREE = ("text", "method", "name", "id", "session")  # keys whose values may be anything
_OF_NO_CHANNEL = ("gap", "signal", "gates", "end", "continued")
_SKIPPED = record_line({"kind": "left-out"})
LINE_LEFT_OUT = len(_SKIPPED)
"""Bytes that a line takes which was left out."""


def wanted_lines(records: Callable[[], Iterable[Record]], wanted: Filter, *, live: bool) -> set[int]:
    """The line numbers of the rows that fit a filter, of the other halves of their exchanges, and of handshakes.

    The event that names the endpoint of HTTP+SSE is one: only by it a request and its response are of one session.
    """
    found: set[int] = set()
    for row in final_rows(records, live=live):
        endpoint = row.kind == "event" and (row.text or "").startswith("endpoint:")
        if row.method in _HANDSHAKE or endpoint or wanted(row):
            found |= {row.n, *filter(None, (row.request, row.response))}
    return found


def selected(lines: Callable[[], Iterable[bytes]], rows: set[int]) -> Iterator[bytes]:
    """The lines of a capture, each with its newline; only the frames of these rows are kept.

    `lines` is called twice.
    """
    stays = _Plan(lines(), rows).stays()
    open_frames: set[int] = set()  # the channels of kept frames that have more pieces
    newest = 0  # the time of the record before
    run: list[dict[str, Any]] = []  # the lines that are left out here
    for number, line in enumerate(lines(), 1):
        if number == len(stays):  # a live capture has grown since
            break
        fields = {} if number == 1 else _fields(line)
        newest = fields["t"] if type(fields.get("t")) is int else newest
        if not stays[number]:
            run.append(fields | {"t": newest})
            continue
        yield from _replaced(run, gap=not open_frames)
        run.clear()
        if fields.get("kind") == "frame":
            (open_frames.add if fields.get("more") else open_frames.discard)(fields["ch"])
        yield line if fields or number == 1 else _gap(newest, 1, DAMAGED)
    yield from _replaced(run, gap=not open_frames)


def shown_filter(wanted: Filter, copy: str) -> str:
    """A filter as text, with `…` for each text in it that does not stand in the copy: scrubbing may have removed it."""
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


def _replaced(run: list[dict[str, Any]], *, gap: bool) -> Iterator[bytes]:
    """The replacement of a run of lines; a gap, if one is allowed here, counts its frames."""
    lost = sum(fields.get("kind") == "frame" and not fields.get("more") for fields in run)
    for place, fields in enumerate(run):
        yield _gap(fields["t"], lost, LEFT_OUT) if place == 0 and lost and gap else _SKIPPED


def _gap(t: int, lost: int, why: str) -> bytes:
    return record_line({"kind": "gap", "t": t, "lost": lost, "why": why})


def _fields(line: bytes) -> dict[str, Any]:
    """The record on a line; an empty one where there is none."""
    record, _ = parse_line(0, line)
    if record is not None and is_damage(record):
        return {}
    found: dict[str, Any] = orjson.loads(line)
    return found


class _Plan:
    """Finds out which lines stay: what a frame, a channel and an answer are made of stands on several."""

    def __init__(self, lines: Iterable[bytes], rows: set[int]) -> None:
        self._rows = rows
        self._kinds: list[str] = ["", ""]  # of each line, from number 0
        self._channels = array("q", (0, 0))
        self._frames: set[int] = set()  # the lines of frames that stay
        self._kept: set[int] = set()  # the channels that do
        self._held: dict[int, bool] = {}  # whether a frame that was held stays, by its number
        self._answers: dict[int, int] = {}  # the channel of a request by that of its response
        self._pieces: dict[int, list[int]] = {}  # the lines of open frames, by channel
        self._numbers: dict[int, int] = {}  # of open frames that are held
        for number, line in enumerate(lines, 1):
            if number > 1:
                self._add(number, _fields(line))
        self._cut()
        for response, request in self._answers.items():
            if self._kept & {response, request}:
                self._kept |= {response, request}

    def stays(self) -> bytearray:
        """Whether each line stays, by its number."""
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
        kind = fields.get("kind", "gap")  # a line that does not parse is one
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
        """The frame of a channel has its last piece, which is its address."""
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
