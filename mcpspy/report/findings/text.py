"""The report for people: the frames in which something was found, each with what is wrong and where it stands.

A capture is not kept in memory, so the frames are fetched again, each with those that it belongs to: the index finds
any line at once, and a small timeline of these frames alone tells which request a response answers.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import orjson

from mcpspy.capture.index import Index
from mcpspy.capture.records import Close, Frame, Open, Record
from mcpspy.json_values import excerpt, resolve
from mcpspy.report.checked import Checked, totals
from mcpspy.rules import Finding, Severity
from mcpspy.text import plural, printable
from mcpspy.timeline import Row, Timeline

COLOURS: dict[Severity, str] = {"error": "31", "warning": "33", "info": "90"}
"""The parameters of a terminal's escape sequence (ECMA-48, SGR)."""
_MARKS: dict[Severity, str] = {"error": "✗", "warning": "!", "info": "·"}
_GREY = "90"
_RELATED = 8  # frames that are named


def coloured(text: str, code: str | None) -> str:
    """A line in a colour; without a `code` as it is."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def report(captures: Iterable[Checked], line: Callable[[Row], str], *, colour: bool) -> Iterator[str]:
    """The lines of the report on some captures; `line` says of a row what it is, as in a timeline."""
    captures = list(captures)
    for checked in captures:
        if checked.findings:
            yield _title(checked)
            yield from _frames(checked, line, colour=colour)
            yield ""
    yield _closing(captures)


def _title(checked: Checked) -> str:
    spoken = ", ".join(checked.revisions) or "no revision known"
    return f"{printable(checked.path, 200)} · {spoken} · {plural(checked.frames, 'frame')}"


def _frames(checked: Checked, line: Callable[[Row], str], *, colour: bool) -> Iterator[str]:
    index = Index(checked.path)
    try:
        last = max(max(finding.frame, *finding.related, 0) for finding in checked.findings)
        while index.lines < last and index.grow():
            pass
        for n, group in groupby(checked.findings, lambda finding: finding.frame):
            findings = list(group)
            rows = _rows(index, n, findings)
            for part, found in groupby(findings, lambda finding: finding.part):
                row = rows.get(part)
                yield ""
                yield line(row) if row else f"#{n} is no longer there"
                for finding in found:
                    yield from _finding(finding, row, colour=colour)
    finally:
        index.close()


def _rows(index: Index, n: int, findings: list[Finding]) -> dict[int, Row]:
    """The rows of a frame by their part in it; none where the capture has been cut short meanwhile."""
    wanted = {n, *(number for finding in findings for number in finding.related[:_RELATED])}
    records = [index.record(number) for number in wanted if 1 < number <= index.lines]
    timeline = Timeline()
    told = sorted([*_channels(index, records), *records], key=lambda record: (record.t, record.n))
    rows = [row for record in told for row in timeline.feed(record)]
    found = {row.part: row for row in rows if row.n == n}
    for finding in findings:
        if finding.part in found:
            found[finding.part].revision = finding.revision
    return found


def _channels(index: Index, records: list[Record]) -> list[Open]:
    """The channels of some records, and those that they answer, in the order of the file."""
    own = [index.channel(ch) for ch in {record.ch for record in records if isinstance(record, Open | Frame | Close)}]
    asked = [index.channel(it.answers) for it in own if it and it.answers is not None]
    return sorted({it.n: it for it in (*asked, *own) if it}.values(), key=lambda channel: channel.n)


def _finding(finding: Finding, row: Row | None, *, colour: bool) -> Iterator[str]:
    related = [f"#{n}" for n in finding.related[:_RELATED]] + ["…"] * (len(finding.related) > _RELATED)
    see = f", see {', '.join(related)}" if related else ""
    head = f"  {_MARKS[finding.severity]} {finding.severity}  {finding.rule}  by the {finding.blame}{see}"
    yield coloured(head, COLOURS[finding.severity] if colour else None)
    yield f"    {printable(finding.message, 500)}"
    if row:
        where = f"{printable(finding.pointer, 200)}: " if finding.pointer else ""
        yield f"    {where}{_offending(row, finding.pointer)}"
    yield coloured(f"    {finding.spec}", _GREY if colour else None)


def _offending(row: Row, pointer: str) -> str:
    """The value that a finding points to; the beginning of the frame where it points to the whole message."""
    return printable(_json(resolve(row.value, pointer)), 160) if pointer else _beginning(row)


def _beginning(row: Row) -> str:
    return printable(row.raw[:400].decode(errors="replace"), 160)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, a number of many digits, a great depth
        return excerpt(value)


def _closing(captures: list[Checked]) -> str:
    found = totals(captures)
    told = [plural(found["error"], "error"), plural(found["warning"], "warning"), f"{found['info']:,} info"]
    waived = sum(checked.waived for checked in captures)
    if waived:
        told.append(f"{waived:,} waived")
    frames = sum(checked.frames for checked in captures)
    return f"{', '.join(told)} in {plural(frames, 'frame')} of {plural(len(captures), 'capture')}"
