"""The look of a row of the timeline: pure functions from its content to its texts."""

import math
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from mcpspy.browse.gates import HeldTime
from mcpspy.browse.timeline import TimelineRow
from mcpspy.conversation.preview import LONGEST, parts
from mcpspy.report.words import ARROWS, KINDS, MARKS, PREVIEWS
from mcpspy.text import duration_text, printable, size_text
from mcpspy.tui.widgets.rows import Cell, column, fit

_WIDE = 120  # minimum columns for padding before a short status
_NARROW, _LONG, _SIZED, _BARRED = 60, 70, 90, 100  # minimum columns for a time, a long name, a size, a bar
_BAR = 10  # columns of the bar: two per power of ten, from 100 µs to 10 s
_SHORTEST = 100_000  # maximum nanoseconds of a latency without a bar
_NUMBER = 9  # columns of an id, and of the text between method and name
_ROOMY = 60  # minimum columns of the subject for an id beside a shortened text
_WORD = 6  # minimum columns of a preview
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


def cells(face: Face, width: int) -> list[Cell]:
    """Return the cells of a row: finding, mark, number, time, direction, subject, and outcome."""
    line = face.line
    start = [
        (MARKS[line.severity] if line.severity else " ", f"timeline--{line.severity}" if line.severity else ""),
        ("*" if face.marked else " ", "timeline--mark"),
        *_address(line, width),
        (f"{_time(face, width)} " if width >= _NARROW else "", "timeline--dim"),
        (face.tie, "timeline--pending"),
        (f"{ARROWS[line.sender]} ", f"timeline--{line.sender}" if line.sender != "mcpspy" else ""),
    ]
    room = max(width - sum(cell_len(text) for text, _ in start), 0)
    left = width - _NAME if line.source else width
    held = _held(face.held, left) if face.held else []
    if not line.method and line.kind not in ("result", "error"):
        colour = _style("error" if line.bad else KINDS.get(line.kind))
        acted = [] if held else _act(line, room)
        room = max(room - sum(cell_len(text) for text, _ in [*acted, *held]), 1)
        text = f"{line.kind}: {fit(line.text or '', max(room - len(line.kind) - 2, 1))}"
        return [*start, (set_cell_size(text, room) if held else text, colour), *acted, *held]
    outcome = held or _outcome(face, left)
    spare = outcome[:-1] if left >= _SIZED else outcome
    taken = sum(len(text) for text, _ in outcome)
    empty = not held and not any(text.strip() for text, _ in spare)
    if empty and (line.turn or line.act or _columns(line) > room - taken):  # other text needs the room
        outcome = outcome[len(spare) :]
        taken = sum(len(text) for text, _ in outcome)
    room = max(room - taken, 8)
    acted = [] if held else _act(line, room)
    room = max(room - sum(cell_len(text) for text, _ in acted), 8)
    return [*start, *_subject(line, room), *acted, *outcome]


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


def _time(face: Face, width: int) -> str:
    """Return the time of a row in seconds, with microseconds if there is room."""
    columns, digits = (12, 6) if width >= _BARRED else (9, 3)
    if face.since is None:
        return f"{face.line.t / 1e9:>{columns}.{digits}f}"
    return f"{face.since / 1e9:>+{columns}.{digits}f}"


def _address(line: TimelineRow, width: int) -> list[Cell]:
    """Return the number of the frame; in a merge, the name of its session and its number there."""
    source = line.source
    if source is None:
        return [(f"{'#' + str(line.n):>7} ", "timeline--dim")]
    room = _NAME if width >= _LONG else _NAME // 2
    colour = f"timeline--source{source.which % SOURCES}"
    return [
        (column(source.name, room + 1), colour),
        (f"{'#' + str(source.n):>7} ", "timeline--dim"),
    ]


def _subject(line: TimelineRow, room: int) -> list[Cell]:
    """Return method, name, preview and id in `room` columns; the id only if no text is shortened for it."""
    number = f" {printable(f'id {line.id}', 14):>6}" if line.id else ""
    method = printable(line.method or "(no request seen)", room)
    name = printable(f" {line.name}", room) if line.name else ""
    subject = cell_len(method) + cell_len(name)
    if (room < _ROOMY and _columns(line) + cell_len(number) > room) or subject + cell_len(number) > room:
        number = ""
    left = room - cell_len(number)
    method = fit(method, left)
    name = fit(name, left - cell_len(method))
    left -= cell_len(method) + cell_len(name)
    told = line.text or ""
    text = fit(told, left - 2) if left - 2 >= min(_WORD, len(told)) else ""
    preview = [("  ", ""), *_preview(line, text)] if text else []
    blank = " " * (left - sum(cell_len(text) for text, _ in preview))
    colour = "timeline--dim" if line.kind == "notification" else ""
    return [(method, colour), (name, "timeline--client"), *preview, (f"{blank}{number}", "timeline--dim")]


def _preview(line: TimelineRow, text: str) -> list[Cell]:
    """Return a preview in its colours; the preview of an error has one colour."""
    if line.kind in ("result", "error") and (line.bad or line.kind == "error"):
        return [(text, "timeline--error" if line.bad else "timeline--dim")]
    return [(piece, _style(PREVIEWS.get(look))) for piece, look in parts(text) if piece]


def _columns(line: TimelineRow) -> int:
    """Return how many columns the whole subject of a row would take."""
    return len(line.method or "") + len(line.name or "") + 1 + min(cell_len(line.text) + 2 if line.text else 0, LONGEST)


def _act(line: TimelineRow, room: int) -> list[Cell]:
    """Return the turn that begins and the action of a gate, in the columns beside the subject, or in half of `room`.

    A turn is shown completely if there is still room for a part of the subject.
    """
    if not line.act and not line.turn:
        return []
    subject = sum(map(cell_len, (line.method or line.kind, line.name or line.text or ""))) + _NUMBER
    columns = max(room - subject, room // 2, min(len(line.turn) + len(_TURN), room - _NUMBER)) - 1
    text = " · ".join(filter(None, (line.turn and _TURN[1:] + line.turn, str(line.act or ""))))
    return [(f" {printable(text, max(columns, 1))}", "timeline--gap")]


def _held(held: HeldTime, width: int) -> list[Cell]:
    """Return how long a frame has been held, and how long its client still waits."""
    text = f"held {held.seconds} s"
    if held.awaited and width >= _LONG:
        gives_up = "has given up" if held.left == 0 else f"gives up in {held.left} s"
        text += f" · client {'time-out unknown' if held.left is None else gives_up}"
    elif held.left is not None and width >= _NARROW:
        text += f" · {held.left} s left"
    return [(" ", ""), (text, "timeline--held")]


def _outcome(face: Face, width: int) -> list[Cell]:
    """Return status, latency and size; for a request, only a status that its response does not show."""
    line = face.line
    status = line.exact_status or ("error" if line.kind == "error" else "")  # an error that answers no request
    if line.kind == "request" and status in ANSWERED:
        status = ""
    bad = "timeline--error" if line.bad else "timeline--dim" if line.expected else ""
    colour = bad or ("timeline--pending" if line.kind == "request" else "timeline--ok")
    answered = line.latency is not None and line.kind != "request"
    latency = duration_text(line.latency or 0) if answered else face.waiting
    slow = "timeline--warning" if answered and (line.latency or 0) >= SLOW else "timeline--pending"
    if width < _NARROW:
        return [(f" {latency or status:>10}", bad or slow if latency else colour)]
    padded = f"{status:>11}" if width >= _WIDE or not status else status  # a narrow row needs the room for text
    cells = [(f" {padded}", colour), (f" {latency:>9}", slow)]
    if width >= _BARRED:
        cells.append((f" {latency_bar(line.latency or 0) if answered else '':<{_BAR}}", slow))
    return [*cells, (f" {size_text(line.size):>8}", "timeline--dim")] if width >= _SIZED else cells
