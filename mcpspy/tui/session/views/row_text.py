"""How a row of the timeline looks: a pure function from what is known of it to the texts in it."""

import math
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from mcpspy.browse.gates import HeldTime
from mcpspy.browse.timeline import TimelineRow
from mcpspy.conversation.brief import LONGEST, parts
from mcpspy.text import duration_text, printable, size_text
from mcpspy.tui.widgets.rows import Cell
from mcpspy.tui.widgets.view import MARKS, fit

_WIDE = 120  # columns from which words do not use the columns before a short status
_NARROW, _LONG, _SIZED, _BARRED = 60, 70, 90, 100  # columns from which there is a time, a long name, a size, a bar
_ARROWS = {"client": "→", "server": "←", "mcpspy": "·"}
_BAD = {"error": "timeline--error", "tool-error": "timeline--error", "unanswered": "timeline--error"}
_COLOURS = {"invalid": "timeline--invalid", "gap": "timeline--gap", "end": "timeline--dim", "stderr": "timeline--dim",
            "http": "timeline--dim", "event": "timeline--dim", "signal": "timeline--dim",
            "gates": "timeline--gap"}  # fmt: skip
_BAR = 10  # columns of the bar: half a decade each, from 100 µs to 10 s
_SHORTEST = 100_000  # nanoseconds of a latency that has no bar
_NUMBER = 9  # columns of an id, and of the text between method and name
_ROOMY = 60  # columns of what a row is about, from which there is an id beside words that are cut
_WORD = 6  # columns of a preview, at least
_TURN = " ── "  # before a turn
_LOOKS = {"name": "timeline--dim", "string": "timeline--string"}
_NAME = 12  # columns of the name of a session in a merge
SOURCES = 6
"""How many colours there are for such names."""
SLOW = 1_000_000_000
"""Nanoseconds from which a call is slow."""


class Face(NamedTuple):
    """All that decides how a row looks."""

    line: TimelineRow
    since: int | None
    """Nanoseconds from the row above to it, where that is shown."""
    waiting: str
    """How long it has been waiting for its answer by now."""
    marked: bool
    tie: str
    """Its part of the line from the selected row to the one that it answers or that answers it."""
    held: HeldTime | None = None
    """How long it has been held by now, while it is."""


def cells(face: Face, width: int) -> list[Cell]:
    """What was found, mark, number, time, direction, what it is about, and how it went."""
    line = face.line
    start = [
        (MARKS[line.severity], f"timeline--{line.severity}" if line.severity else ""),
        ("*" if face.marked else " ", "timeline--mark"),
        *_address(line, width),
        (f"{_time(face, width)} " if width >= _NARROW else "", "timeline--dim"),
        (face.tie, "timeline--pending"),
        (f"{_ARROWS[line.sender]} ", f"timeline--{line.sender}" if line.sender != "mcpspy" else ""),
    ]
    room = max(width - sum(cell_len(text) for text, _ in start), 0)
    left = width - _NAME if line.source else width
    held = _held(face.held, left) if face.held else []
    if not line.method and line.kind not in ("result", "error"):
        colour = _COLOURS.get(line.kind, "")
        acted = [] if held else _act(line, room)
        room = max(room - sum(cell_len(text) for text, _ in [*acted, *held]), 1)
        text = f"{line.kind}: {fit(line.text, max(room - len(line.kind) - 2, 1))}"
        return [*start, (set_cell_size(text, room) if held else text, colour), *acted, *held]
    outcome = held or _outcome(face, left)
    spare = outcome[:-1] if left >= _SIZED else outcome
    taken = sum(len(text) for text, _ in outcome)
    empty = not held and not any(text.strip() for text, _ in spare)
    if empty and (line.turn or line.act or _columns(line) > room - taken):  # what was done or said needs the room
        outcome = outcome[len(spare) :]
        taken = sum(len(text) for text, _ in outcome)
    room = max(room - taken, 8)
    acted = [] if held else _act(line, room)
    room = max(room - sum(cell_len(text) for text, _ in acted), 8)
    return [*start, *_subject(line, room), *acted, *outcome]


def latency_bar(latency: int) -> str:
    """A latency as a bar: two columns for each decade above 100 µs."""
    return "▄" * min(round(2 * math.log10(max(latency, _SHORTEST) / _SHORTEST)), _BAR)


def waiting_text(seconds: float) -> str:
    """How long something has been going on, as precisely as anybody wants to know."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:,.0f} h"


def _time(face: Face, width: int) -> str:
    """Seconds, to the microsecond where there is room."""
    columns, digits = (12, 6) if width >= _BARRED else (9, 3)
    if face.since is None:
        return f"{face.line.t / 1e9:>{columns}.{digits}f}"
    return f"{face.since / 1e9:>+{columns}.{digits}f}"


def _address(line: TimelineRow, width: int) -> list[Cell]:
    """The number of the frame; in a merge that in its own session, behind the name of that."""
    source = line.source
    if source is None:
        return [(f"{'#' + str(line.n):>7} ", "timeline--dim")]
    room = _NAME if width >= _LONG else _NAME // 2
    colour = f"timeline--source{source.which % SOURCES}"
    return [
        (f"{set_cell_size(fit(source.name, room), room)} ", colour),
        (f"{'#' + str(source.n):>7} ", "timeline--dim"),
    ]


def _subject(line: TimelineRow, room: int) -> list[Cell]:
    """Method, name, preview and id in `room` columns of the screen, the id only where it costs no word."""
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
    text = fit(line.text, left - 2) if left - 2 >= min(_WORD, len(line.text)) else ""
    preview = [("  ", ""), *_preview(line, text)] if text else []
    blank = " " * (left - sum(cell_len(text) for text, _ in preview))
    colour = "timeline--dim" if line.kind == "notification" else ""
    return [(method, colour), (name, "timeline--client"), *preview, (f"{blank}{number}", "timeline--dim")]


def _preview(line: TimelineRow, text: str) -> list[Cell]:
    """A preview in colours, that of an error in one."""
    if line.kind == "error" or (line.status == "tool-error" and line.kind == "result"):
        return [(text, "timeline--error")]
    return [(piece, _LOOKS.get(look, "")) for piece, look in parts(text) if piece]


def _columns(line: TimelineRow) -> int:
    """How many columns all would take that a row is about."""
    return len(line.method) + len(line.name) + 1 + min(cell_len(line.text) + 2 if line.text else 0, LONGEST)


def _act(line: TimelineRow, room: int) -> list[Cell]:
    """The turn that begins, and what a gate did, in the columns that the subject leaves, or in half of them.

    A turn is shown in full if that leaves room for a part of the subject.
    """
    if not line.act and not line.turn:
        return []
    subject = sum(map(cell_len, (line.method or line.kind, line.name or line.text))) + _NUMBER
    columns = max(room - subject, room // 2, min(len(line.turn) + len(_TURN), room - _NUMBER)) - 1
    text = " · ".join(filter(None, (line.turn and _TURN[1:] + line.turn, line.act)))
    return [(f" {printable(text, max(columns, 1))}", "timeline--gap")]


def _held(held: HeldTime, width: int) -> list[Cell]:
    """How long a frame has been held, and how long its client still waits."""
    text = f"held {held.seconds} s"
    if held.awaited and width >= _LONG:
        gives_up = "has given up" if held.left == 0 else f"gives up in {held.left} s"
        text += f" · client {'time-out unknown' if held.left is None else gives_up}"
    elif held.left is not None and width >= _NARROW:
        text += f" · {held.left} s left"
    return [(" ", ""), (text, "timeline--held")]


def _outcome(face: Face, width: int) -> list[Cell]:
    """Status, latency and size; of a request only what its response will not say."""
    line = face.line
    status = line.status or ("error" if line.kind == "error" else "")  # one that answers no request has none
    if line.kind == "request" and status not in ("pending", "unanswered", "cancelled", "held", "dropped"):
        status = ""
    colour = _BAD.get(status, "timeline--pending" if line.kind == "request" else "timeline--ok")
    answered = line.latency is not None and line.kind != "request"
    latency = duration_text(line.latency or 0) if answered else face.waiting
    slow = "timeline--warning" if answered and (line.latency or 0) >= SLOW else "timeline--pending"
    if width < _NARROW:
        return [(f" {latency or status:>10}", _BAD.get(status, slow) if latency else colour)]
    padded = f"{status:>10}" if width >= _WIDE or not status else status  # what is narrow needs the room for words
    cells = [(f" {padded}", colour), (f" {latency:>9}", slow)]
    if width >= _BARRED:
        cells.append((f" {latency_bar(line.latency or 0) if answered else '':<{_BAR}}", slow))
    return [*cells, (f" {size_text(line.size):>8}", "timeline--dim")] if width >= _SIZED else cells
