"""Rows and findings as one line each, as a timeline shows them.

Captured text goes through `printable`, so that no line holds a control character.
"""

from mcpspy.conversation.brief import parts
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.report.words import ARROWS, KINDS, MARKS, PREVIEWS, STATUSES, coloured
from mcpspy.rules import Finding
from mcpspy.text import columns, duration_text, fitted, printable, size_text
from mcpspy.timeline import Row

WIDTH = 160
"""Columns of a line that no terminal shows: always the same, so that programs find the same text."""
_WIDE = 100  # columns from which a line has ids and sizes
_NARROW = 72  # columns below which what a row is about needs the room that aligns the outcomes
_LEAST = 12  # columns of what a row is about, at least
_SHORTEST = 6  # columns of a preview, at least


def line(row: Row, width: int = WIDTH, *, extra: str = "", colours: bool = False) -> str:
    """A row as one line of at most `width` columns: number, seconds, direction, what it is about, how it went.

    What it is about takes the columns that the rest leaves; `extra` stands at the end. With `colours` the names and
    strings of a preview are coloured, where the row has no colour of its own.
    """
    start, end = f"#{row.n:<5} {row.t / 1e9:9.3f} {ARROWS[row.sender]} ", _act(row) + extra
    large = f"({size_text(row.size)}, not decoded)" if row.tail else ""
    room = max(width - len(start) - columns(end), _LEAST)
    if row.kind in ("stderr", "http", "event", "gap", "signal", "gates", "end"):
        text = fitted(f"{row.kind}: {row.text or ''}", room - len(large) - 1)
        return f"{start}{text} {large}".rstrip() + end
    if row.kind == "undecoded":
        half = (room - len(large) - 5) // 2
        return f"{start}{large}: {_excerpt(row.raw, half)} … {_excerpt(row.tail[-half:], half)}{end}"
    if row.kind == "invalid":
        reason = fitted(row.text or "", min(60, room - 11))
        return f"{start}invalid: {reason}: {_excerpt(row.raw, room - columns(reason) - 11)}{end}"
    outcome = _outcome(row, width, large)
    room = max(room - columns(outcome), _LEAST)
    subject, told = _subject(row, room)
    gap = " " * (room - columns(subject) - columns(told)) if outcome or end else ""
    return f"{start}{subject}{_coloured(told) if colours else told}{gap}{outcome}".rstrip() + end


def colour_of(row: Row) -> str | None:
    """The colour of a whole row: how it ended, or what it is."""
    return STATUSES.get(row.status or "") or KINDS.get(row.kind)


def _subject(row: Row, room: int) -> tuple[str, str]:
    """Method and name, and the preview in what they leave of `room` columns."""
    method = row.method or "(no request seen)"
    subject = fitted(f"{method} {printable(row.name, 60)}" if row.name else method, room)
    left = room - columns(subject) - 2
    told = fitted(row.preview, left) if left >= _SHORTEST else ""
    return (f"{subject}  ", told) if told else (subject, "")


def _coloured(told: str) -> str:
    return "".join(coloured(text, PREVIEWS.get(look)) for text, look in parts(told) if text)


def _outcome(row: Row, width: int, large: str) -> str:
    """Of a response how it went, of other messages the revision; the id and sizes where there is room.

    What few rows have stands first, so that the rest of all rows is aligned.
    """
    answers, wide = row.kind in ("result", "error"), width >= _WIDE
    number = "" if row.id is None else f"id {printable(str(row.id), 40)}"
    if not answers and not wide:
        return f" {large}" if large else ""
    latency = "" if row.latency is None else duration_text(row.latency)
    size = large or (size_text(row.size) if answers else "")
    status = row.http["status"] if row.http and answers else None
    found = f" HTTP {status}" if status not in (None, 200) else ""
    found += f" {number:<6}" if wide else ""
    how, latency = ((row.status or row.kind), latency) if answers else (row.revision or "", "")
    found += f" {how} {latency}" if width < _NARROW else f" {how:<10} {latency:>9}"
    return found + (f" {size:>9}" if wide or large else "")


def _act(row: Row) -> str:
    """What a gate did to the frame."""
    return f"  [{printable(str(row.act), 100)}]" if row.act else ""


def finding_line(finding: Finding) -> str:
    """A finding as one line, below the row that it is about or a later one."""
    where = f" ({printable(finding.pointer, 100)})" if finding.pointer else ""
    start = f"       {MARKS[finding.severity]} #{finding.frame} {finding.blame}: {printable(finding.message, 300)}"
    return f"{start}{where}  [{finding.rule}]"


def act_line(act: GateAct) -> str:
    """What became of a frame that a gate held, as one line below a later row."""
    return f"         #{act.n} {printable(str(act), 200)}"


def sentence(finding: Finding) -> str:
    """Who did what, where in the message, and how often if it was more than once."""
    where = f" ({finding.pointer})" if finding.pointer else ""
    return printable(f"{finding.blame}: {finding.message}{where}", 2000) + times(finding)


def times(finding: Finding) -> str:
    """How often something was found, if it was more than once: ` (3 times)`."""
    return f" ({finding.count:,} times)" if finding.count > 1 else ""


def _excerpt(raw: bytes, room: int) -> str:
    return fitted(raw[: 4 * max(room, 0)].decode(errors="replace"), room)
