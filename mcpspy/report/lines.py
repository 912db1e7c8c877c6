"""Rows and findings as one line each, as in a timeline.

Captured text goes through `printable`, so that no line contains a control character.
"""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import HttpUnit, Message, ServerExit
from mcpspy.conversation.outcomes import EXPECTED, Outcome
from mcpspy.conversation.preview import parts
from mcpspy.json_values import excerpt, resolve
from mcpspy.report.words import ARROWS, KINDS, MARKS, PREVIEWS, coloured
from mcpspy.rules import Finding, LocatedFinding, Severity
from mcpspy.text import (
    LONGEST_NAME,
    columns,
    duration_text,
    fitted,
    fitted_name,
    measured,
    printable,
    size_text,
)
from mcpspy.timeline import SPOKEN, Row, row_of
from mcpspy.wire.jsonrpc import Error, Id, Result

WIDTH = 160
"""Columns of a line that is not for a terminal: always the same, so that programs find the same text."""
_WIDE = 100  # columns: a line of at least this width has ids and sizes
_NARROW = 72  # columns: in a narrower line, outcomes are not aligned
_LEAST = 12  # columns of the subject of a row, at least
_SHORTEST = 6  # columns of a preview, at least
_DIGITS = 40  # characters of an id
_NAME = 60  # columns of a name
_HEADER = 1  # the line number of a finding about a whole session
_STATUS = 6  # columns of an HTTP status
_ANSWERS = ("result", "error")
_SHOWN = (None, "pending", "held", "dropped")
"""The outcomes of requests that are not shown beside them: they are not final, or what a gate did shows them."""
_UNREMARKABLE = (*_SHOWN, "ok", "open")


def line(row: Row, width: int = WIDTH, *, extra: str = "", colours: bool = False) -> str:
    """Return a row as one line of at most `width` columns: number, seconds, direction, subject, outcome.

    The subject gets the remaining columns, and `extra` is at the end. With `colours`, names and strings of a preview
    are coloured, unless the row has a colour of its own.
    """
    start, end = f"#{row.n:<5} {row.t / 1e9:9.3f} {ARROWS[row.sender]} ", _act(row) + extra if row.act else extra
    large = f"({size_text(row.size)}, not decoded)" if row.tail else ""
    room = width - len(start) - columns(end)
    if row.kind not in SPOKEN:
        return _other(row, start, end, max(room, _LEAST), large)
    outcome, taken = _outcome(row, width, large)
    room = max(room - taken, _LEAST)
    method, name = (row.method or "(no request seen)")[: room + 1], (row.name or "")[: LONGEST_NAME + 1]
    subject, left = _subject(method, name, room)
    if left >= _SHORTEST + 2:
        told, taken = measured(row.preview, left - 2)
        if told:
            subject = f"{subject}  {_coloured(told) if colours else told}"
            left -= 2 + taken
    return f"{start}{subject}{' ' * left}{outcome}".rstrip() + end


def colour_of(row: Row) -> str | None:
    """Return the colour of a whole row, by its outcome or its kind."""
    return "error" if row.failed else KINDS.get(row.kind)


def _other(row: Row, start: str, end: str, room: int, large: str) -> str:
    """Return the line of a row that is not a message, or not known to be one."""
    if row.kind == "undecoded":
        half = (room - len(large) - 5) // 2
        return f"{start}{large}: {_excerpt(row.raw, half)} … {_excerpt(row.tail[-half:], half)}{end}"
    if row.kind == "invalid":
        reason = fitted(row.text or "", min(60, room - 11))
        return f"{start}invalid: {reason}: {_excerpt(row.raw, room - columns(reason) - 11)}{end}"
    text = fitted(f"{row.kind}: {row.text or ''}", room - len(large) - 1)
    return f"{start}{text} {large}".rstrip() + end


@lru_cache(maxsize=500)
def _subject(method: str, name: str, room: int) -> tuple[str, int]:
    """Return method and name in `room` columns, and the columns left. Cached, because the same few repeat."""
    subject, taken = measured(method, room)
    if name and taken + 1 < room:
        subject = f"{subject} {fitted_name(name, min(room - taken - 1, _NAME))}"
        taken = columns(subject)
    return subject, room - taken


def _coloured(told: str) -> str:
    return "".join(coloured(text, PREVIEWS.get(look)) for text, look in parts(told) if text)


def _outcome(row: Row, width: int, large: str) -> tuple[str, int]:
    """Return the outcome of a response or of a final request without one, or the revision, and its width.

    Id and size are included if there is room. Values that few rows have are first, so that the rest is aligned in all
    rows.
    """
    wide = width >= _WIDE
    found = number = ""
    if row.kind in _ANSWERS:
        how, size = row.status or row.kind, large or size_text(row.size)
        latency = "" if row.latency is None else duration_text(row.latency)
        if row.http and row.http["status"] not in (None, 200):
            found = f" HTTP {fitted(str(row.http['status']), _STATUS)}"
    elif row.kind == "request" and row.response is None and row.outcome not in _SHOWN:
        how, latency, size = row.outcome or "", "", large
    elif wide:
        how, latency, size = row.revision or "", "", large
    else:
        return (f" {large}", len(large) + 1) if large else ("", 0)
    if wide and row.id is not None:
        number = f"id {_number(row.id)}"
    narrow = number.isascii() and found.isascii()  # what follows has one column for each character
    if wide:
        found = f"{found} {number.ljust(6)} {how.ljust(10)} {latency.rjust(9)} {size.rjust(9)}"
    elif width < _NARROW:
        found = f"{found} {how} {latency} {size:>9}" if large else f"{found} {how} {latency}"
    else:
        found = f"{found} {how.ljust(10)} {latency.rjust(9)}{f' {size:>9}' if large else ''}"
    return found, len(found) if narrow else columns(found)


def _number(number: Id) -> str:
    if number.kind == "number" and len(number.token) <= _DIGITS:
        return number.token
    return printable(str(number), _DIGITS)


def _act(row: Row) -> str:
    """Return what a gate did to the frame."""
    return f"  [{printable(str(row.act), 100)}]"


def finding_line(finding: Finding) -> str:
    """Return a finding as one line, to be shown below its row or a later one."""
    where = f" ({printable(finding.pointer, 100)})" if finding.pointer else ""
    start = f"       {MARKS[finding.severity]} #{finding.frame} {finding.blame}: {printable(finding.message, 300)}"
    return f"{start}{where}  [{finding.rule}]"


def finding_head(severity: Severity, rule: str) -> str:
    """Return the beginning of a finding, or of a change to a lock, that has lines of its own."""
    return f"  {MARKS[severity]} {severity}  {rule}"


def act_line(act: GateAct) -> str:
    """Return the outcome of a frame that a gate held, as one line below a later row."""
    return f"         #{act.n} {printable(str(act), 200)}"


def outcome_line(it: Outcome) -> str:
    """Return what came of an earlier request, as one line below a later row; an empty text if no line is needed."""
    if it.outcome in _UNREMARKABLE or (it.request and it.outcome == "refused"):  # the row of its answer has the status
        return ""
    what, begun = "", it.t
    if it.exchange:
        what, begun = f" {it.exchange.method} {it.exchange.name or ''}".rstrip(), it.exchange.request.t
    elif it.request:
        what, begun = f" {it.request.summary['method']} {it.request.summary['target']}", it.request.opened.t
    why = f" after {duration_text(it.t - begun)}" if it.t > begun else ""
    if it.outcome == "in-doubt":
        why = ", because the records that may hold the response are missing"
    elif it.expected:
        why += f", which is normal: {EXPECTED[it.expected]}"
    return f"         #{it.n}{printable(what, 2 * _NAME)}: {it.outcome}{why}"


def sentence(finding: Finding) -> str:
    """Return which side did what (or what is there), where in the message, and how often if it was more than once."""
    where = finding.pointer and (f" ({finding.pointer})" if finding.blame else f" at {finding.pointer}")
    who = f"{finding.blame}: " if finding.blame else ""
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    return printable(f"{who}{finding.message}{where}", 2000) + times


def _excerpt(raw: bytes, room: int) -> str:
    return fitted(raw[: 4 * max(room, 0)].decode(errors="replace"), room)


# What a report for people shows of the frame of a finding: the frame on one line, and the faulty value. These two short
# texts are made while the capture is checked, when the message is available. So the report does not read the file
# again, and it needs only the memory of the findings.

_LINE = 100  # columns
_VALUE = 160  # characters


class ShownFrame(NamedTuple):
    """The frame of a finding as text."""

    line: str
    """The frame, as in a timeline."""
    value: str
    """The value to which the finding points, as JSON, or the beginning of the frame. Clipped."""


def shown(found: LocatedFinding) -> ShownFrame:
    """Return what a report shows of the event that a finding is about."""
    finding, event = found
    if event is None:
        return ShownFrame(f"#{finding.frame:<5} {'the session' if finding.frame == _HEADER else 'the request'}", "")
    if isinstance(event, ServerExit):
        row = row_of(event.end)
    else:
        row = row_of(_answering(event) if isinstance(event, Message) else event)
    if isinstance(event, Message | HttpUnit | ServerExit):
        row.revision = finding.revision
        return ShownFrame(line(row, _LINE), _value(row, finding.pointer))
    return ShownFrame(line(row, _LINE), _beginning(row) if row.raw else "")


def _answering(message: Message) -> Message:
    """Return a message that is the response of its exchange, even if that was untied since (`Exchange.untie`)."""
    exchange = message.exchange
    untied = exchange and exchange.response is None and isinstance(message.body, Result | Error)
    return replace(message, exchange=replace(exchange, response=message)) if exchange and untied else message


def _value(row: Row, pointer: str) -> str:
    return printable(_json(resolve(row.value, pointer)), _VALUE) if pointer else _beginning(row)


def _beginning(row: Row) -> str:
    return printable(row.raw[:400].decode(errors="replace"), _VALUE)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, a number of many digits, a great depth
        pass
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return excerpt(value)
