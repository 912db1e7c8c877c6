"""The look of a row of the timeline: pure functions from its content to its texts."""

import math
from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from mcpspy.browse.gates import HeldTime
from mcpspy.browse.timeline import TimelineRow
from mcpspy.conversation.preview import LONGEST, parts
from mcpspy.moments import clock_text, zone_text
from mcpspy.report.words import ARROWS, KINDS, MARKS, PREVIEWS
from mcpspy.text import duration_text, fitted_name, printable, size_text
from mcpspy.tui.widgets.rows import Cell, column, fit

NARROW = 60
"""Minimum columns for a time, and for a heading."""
_WIDE = 120  # minimum columns for padding before a short status
_LONG, _SIZED, _BARRED = 70, 90, 100  # minimum columns for a long name, a size, a bar
_BAR = 10  # columns of the bar: two per power of ten, from 100 µs to 10 s
_SHORTEST = 100_000  # maximum nanoseconds of a latency without a bar
_NUMBER = 9  # columns of an id, and of the text between method and name
_ROOMY = 60  # minimum columns of the subject for an id beside a shortened text
_WORD = 6  # minimum columns of a preview
_LEAST_NAME, _LEAST_PLAIN = 24, 8
"""Columns that a name keeps beside a longer preview: a name that tells rows apart, and one that all rows have."""
_TURN = " ── "  # text before a turn
_NAME = 12  # columns of the name of a session in a merge
SOURCES = 6
"""The number of colours for such names."""
ANSWERED = ("ok", "error", "tool-error", "not-decoded")
"""The statuses that the response shows, so that its request need not show them."""
LOOKS = frozenset((
    "timeline--dim", "timeline--error", "timeline--invalid", "timeline--gap", "timeline--ok", "timeline--client",
    "timeline--server", "timeline--pending", "timeline--warning", "timeline--info", "timeline--mark", "timeline--held",
    "timeline--string", *(f"timeline--source{number}" for number in range(SOURCES)),
))  # fmt: skip
"""The component classes of its cells."""
SLOW = 1_000_000_000
"""The minimum latency of a slow call, in nanoseconds."""


class Face(NamedTuple):
    """All that the look of a row depends on."""

    line: TimelineRow
    since: int | None
    """Nanoseconds since the row above, if that is shown."""
    waiting: str
    """How long it has been waiting for its response; empty if it is not pending."""
    marked: bool
    tie: str
    """Its part of the line that connects the selected request or response with its partner."""
    held: HeldTime | None = None
    """How long it has been held, while it is held."""
    clock: datetime | None = None
    """Its moment, if that is shown."""
    day: str = ""
    """The date and the offset from UTC, if its moment is shown and those of the row above differ."""
    plain: bool = False
    """Whether its name does not tell it apart from other rows."""


TimeForm = Literal["start", "above", "clock"]
"""What is shown of the time of a row: the time since the start or since the row above, or its moment."""
TIME_FORMS: dict[TimeForm, str] = {"start": "since the start", "above": "since the row above", "clock": "time of day"}
"""The forms in the order of the key, with their names for people."""


def cells(face: Face, width: int) -> list[Cell]:
    """Return the cells of a row: finding, mark, number, time, direction, subject, and outcome."""
    line = face.line
    start = [
        (MARKS[line.severity] if line.severity else " ", f"timeline--{line.severity}" if line.severity else ""),
        ("*" if face.marked else " ", "timeline--mark"),
        *_address(line, width),
        (f"{_time(face, width)} " if width >= NARROW else "", "timeline--dim"),
        (face.tie, "timeline--pending"),
        (f"{ARROWS[line.sender]} ", f"timeline--{line.sender}" if line.sender != "mcpspy" else ""),
    ]
    room = max(width - sum(cell_len(text) for text, _ in start), 0)
    left = width - _NAME if line.source else width
    held = _held(face.held, left) if face.held else []
    if not line.method and line.kind not in ("result", "error"):
        colour = _style("error" if line.bad else KINDS.get(line.kind))
        acted = [] if held else _act(face, room)
        room = max(room - sum(cell_len(text) for text, _ in [*acted, *held]), 1)
        text = f"{line.kind}: {fit(line.text or '', max(room - len(line.kind) - 2, 1))}"
        return [*start, (set_cell_size(text, room) if held else text, colour), *acted, *held]
    outcome = held or _outcome(face, left)
    spare = outcome[:-1] if left >= _SIZED else outcome
    taken = sum(len(text) for text, _ in outcome)
    empty = not held and not any(text.strip() for text, _ in spare)
    if empty and (line.turn or line.act or face.day or _columns(line) > room - taken):  # other text needs the room
        outcome = outcome[len(spare) :]
        taken = sum(len(text) for text, _ in outcome)
    room = max(room - taken, 8)
    acted = [] if held else _act(face, room)
    room = max(room - sum(cell_len(text) for text, _ in acted), 8)
    subject = _failure if _has_failed(line) and not held else _subject
    return [*start, *subject(line, room, plain=face.plain), *acted, *outcome]


def heading(width: int, form: TimeForm, first: datetime, *, merged: bool) -> str:
    """Return the names of the columns; over moments, the date and the time zone of the `first` visible row."""
    left = width - _NAME if merged else width
    time = f"{first:%m-%d} {zone_text(first)}" if form == "clock" else form if width < _BARRED else f"since {form}"
    address = f"{'session':<{_source_columns(width) + 1}}" if merged else ""
    start = f"  {address}{'number':>7} {time:>{_time_columns(form, width)}}    message"
    end = f" {'status':>{11 if left >= _WIDE else 0}} {'latency':>9}" if left >= NARROW else f"{'outcome':>11}"
    end += f" {'':<{_BAR}}" if left >= _BARRED else ""
    end += f" {'size':>8}" if left >= _SIZED else ""
    return f"{start}{end:>{max(width - len(start), 0)}}"


def begins_text(clock: datetime | None, above: datetime | None) -> str:
    """Return the date that begins with a row at a moment, and the time zone if the clocks were changed before it."""
    if clock is None:
        return ""
    day = "" if above and above.date() == clock.date() else str(clock.date())
    changed = zone_text(clock) if above and above.utcoffset() != clock.utcoffset() else ""
    return f"{day} {changed}".strip()


def _style(colour: str | None) -> str:
    return f"timeline--{colour}" if colour else ""


def latency_bar(latency: int) -> str:
    """Return a latency as a bar: two columns for each power of ten above 100 µs."""
    return "▄" * min(round(2 * math.log10(max(latency, _SHORTEST) / _SHORTEST)), _BAR)


def waiting_text(seconds: float) -> str:
    """Return a waiting time as text, with decreasing precision."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:,.0f} h"


def _time_columns(form: TimeForm, width: int) -> int:
    return 12 if form == "clock" or width >= _BARRED else 9


def _time(face: Face, width: int) -> str:
    """Return the time of a row: its moment, or seconds, with microseconds if there is room."""
    if face.clock:
        return clock_text(face.clock)
    columns, digits = _time_columns("start", width), 6 if width >= _BARRED else 3
    if face.since is None:
        return f"{face.line.t / 1e9:>{columns}.{digits}f}"[:columns]
    return f"{face.since / 1e9:>+{columns}.{digits}f}"[:columns]


def _address(line: TimelineRow, width: int) -> list[Cell]:
    """Return the number of the frame; in a merge, the name of its session and its number there."""
    source = line.source
    if source is None:
        return [(f"{'#' + str(line.n):>7} ", "timeline--dim")]
    colour = f"timeline--source{source.which % SOURCES}"
    return [
        (column(source.name, _source_columns(width) + 1), colour),
        (f"{'#' + str(source.n):>7} ", "timeline--dim"),
    ]


def _source_columns(width: int) -> int:
    """Return the columns of the name of a session."""
    return _NAME if width >= _LONG else _NAME // 2


def _has_failed(line: TimelineRow) -> bool:
    """Return whether a row is the answer of a failed request."""
    return line.kind in ("result", "error") and line.bad


def _status(line: TimelineRow) -> str:
    """Return the status of a row; `error` for an error that answers no request."""
    return line.exact_status or ("error" if line.kind == "error" else "")


def _failure(line: TimelineRow, room: int, *, plain: bool) -> list[Cell]:
    """Return status and text of a failing answer, then what it answers, if there is room."""
    text = fit(f"{_status(line)} {line.text or ''}".rstrip(), room)
    left = room - cell_len(text) - 2
    answers = replace(line, text=None)
    if left < min(_columns(answers), _LEAST_NAME):
        return [(text, "timeline--error"), (" " * (left + 2), "")]
    return [(text, "timeline--error"), ("  ", ""), *_subject(answers, left, plain=plain)]


def _subject(line: TimelineRow, room: int, *, plain: bool) -> list[Cell]:
    """Return method, name, preview and id in `room` columns; the id only if no text is shortened for it."""
    number = f" {printable(f'id {line.id}', 14):>6}" if line.id else ""
    method = printable(line.method or "(no request seen)", room)
    subject = cell_len(method) + (cell_len(printable(line.name, room)) + 1 if line.name else 0)
    if (room < _ROOMY and _columns(line) + cell_len(number) > room) or subject + cell_len(number) > room:
        number = ""
    left = room - cell_len(number)
    method = fit(method, left)
    left -= cell_len(method)
    told = line.text or ""
    name = f" {fitted_name(line.name, name_columns(told, left - 1, plain=plain))}"[:left] if line.name else ""
    left -= cell_len(name)
    text = fit(told, left - 2) if left - 2 >= min(_WORD, len(told)) else ""
    preview = [("  ", ""), *_preview(line, text)] if text else []
    blank = " " * (left - sum(cell_len(text) for text, _ in preview))
    colour = "timeline--dim" if line.kind == "notification" else ""
    return [(method, colour), (name, "timeline--client"), *preview, (f"{blank}{number}", "timeline--dim")]


def name_columns(told: str, room: int, *, plain: bool) -> int:
    """Return the columns for a name and not for the preview beside it, which takes two more: all if that is short."""
    kept = max(room - min(cell_len(told), LONGEST) - 2, _LEAST_PLAIN if plain else _LEAST_NAME) if told else room
    return room if room - kept - 2 < min(_WORD, len(told)) else kept


def _preview(line: TimelineRow, text: str) -> list[Cell]:
    """Return a preview in its colours; the preview of an error has one colour."""
    if line.kind in ("result", "error") and (line.bad or line.kind == "error"):
        return [(text, "timeline--error" if line.bad else "timeline--dim")]
    return [(piece, _style(PREVIEWS.get(look))) for piece, look in parts(text) if piece]


def _columns(line: TimelineRow) -> int:
    """Return how many columns the whole subject of a row would take."""
    return len(line.method or "") + len(line.name or "") + 1 + min(cell_len(line.text) + 2 if line.text else 0, LONGEST)


def _act(face: Face, room: int) -> list[Cell]:
    """Return the day and turn that begin and the action of a gate, beside the subject, or in half of `room`.

    A turn is shown completely if there is still room for a part of the subject.
    """
    line, begins = face.line, " · ".join(filter(None, (face.day, face.line.turn)))
    if not line.act and not begins:
        return []
    subject = sum(map(cell_len, (line.method or line.kind, line.name or line.text or ""))) + _NUMBER
    columns = max(room - subject, room // 2, min(len(begins) + len(_TURN), room - _NUMBER)) - 1
    text = " · ".join(filter(None, (begins and _TURN[1:] + begins, str(line.act or ""))))
    return [(f" {printable(text, max(columns, 1))}", "timeline--gap")]


def _held(held: HeldTime, width: int) -> list[Cell]:
    """Return how long a frame has been held, and how long its client still waits."""
    text = f"held {held.seconds} s"
    if held.awaited and width >= _LONG:
        gives_up = "has given up" if held.left == 0 else f"gives up in {held.left} s"
        text += f" · client {'time-out unknown' if held.left is None else gives_up}"
    elif held.left is not None and width >= NARROW:
        text += f" · {held.left} s left"
    return [(" ", ""), (text, "timeline--held")]


def _outcome(face: Face, width: int) -> list[Cell]:
    """Return status, latency and size; for a request, only a status that its response does not show."""
    line = face.line
    failed = _has_failed(line)
    status = "" if failed or (line.kind == "request" and _status(line) in ANSWERED) else _status(line)
    bad = "timeline--error" if line.bad else "timeline--dim" if line.expected else ""
    colour = bad or ("timeline--pending" if line.kind == "request" else "timeline--ok")
    answered = line.latency is not None and line.kind != "request"
    latency = duration_text(line.latency or 0) if answered else face.waiting
    slow = "timeline--warning" if answered and (line.latency or 0) >= SLOW else "timeline--pending"
    if width < NARROW:
        return [(f" {latency or status:>10}", bad or slow if latency else colour)]
    padded = f"{status:>11}" if width >= _WIDE or not status else status  # a narrow row needs the room for text
    cells = [("" if failed else f" {padded}", colour), (f" {latency:>9}", slow)]
    if width >= _BARRED:
        cells.append((f" {latency_bar(line.latency or 0) if answered else '':<{_BAR}}", slow))
    return [*cells, (f" {size_text(line.size):>8}", "timeline--dim")] if width >= _SIZED else cells
