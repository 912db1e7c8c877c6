"""Rows and findings as one line each, as a timeline shows them.

Captured text goes through `printable`, so that no line holds a control character.
"""

from typing import Any

from mcpspy.conversation.gate_acts import GateAct
from mcpspy.report.words import ARROWS, MARKS
from mcpspy.rules import Finding
from mcpspy.text import printable, size_text
from mcpspy.timeline import Row


def line(row: Row) -> str:
    """A row as one line: number, seconds, direction, what it is, how it went."""
    start, act = f"#{row.n:<5} {row.t / 1e9:9.3f} {ARROWS[row.sender]} ", _act(row)
    large = f"({size_text(row.size)}, not decoded)" if row.tail else ""
    if row.kind in ("stderr", "http", "event", "gap", "signal", "gates", "end"):
        return f"{start}{row.kind}: {printable(row.text or '', 160)} {large}".rstrip() + act
    if row.kind == "undecoded":
        return f"{start}{large}: {_excerpt(row.raw)} … {_excerpt(row.tail[-100:])}{act}"
    if row.kind == "invalid":
        return f"{start}invalid: {printable(row.text or '', 60)}: {_excerpt(row.raw)}{act}"
    about = printable(row.name, 60) if row.name else printable(row.content or "", 120)
    subject = printable(row.method or "(no request seen)", 60) + (f" {about}" if about else "")
    number = "" if row.id is None else f"id {printable(str(row.id), 40)}"
    outcome = large or (_outcome(row) if row.kind in ("result", "error") else row.revision or "")
    return f"{start}{subject:<36} {number:<6} {outcome}".rstrip() + act


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


def _excerpt(raw: bytes) -> str:
    return printable(raw[:400].decode(errors="replace"), 100)


def _scalar(value: Any) -> str:
    """A value that should be text or a number; an object or array in its place may be nested without end."""
    return "…" if isinstance(value, dict | list) else str(value)


def _outcome(row: Row) -> str:
    text = row.status or row.kind
    if row.kind == "error" and isinstance(row.value["error"], dict):
        error = row.value["error"]
        text = f"error {printable(_scalar(error.get('code')), 12)} {printable(_scalar(error.get('message')), 80)}"
    if row.latency is not None:
        text += f"  {row.latency / 1e6:.1f} ms"
    status = row.http["status"] if row.http else None
    return f"{text}  {row.size} B" + (f"  HTTP {status}" if status not in (None, 200) else "")
