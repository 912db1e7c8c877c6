"""The report for people: each frame with findings, and for each finding what is wrong and where."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from mcpspy.report.checked import Checked, ReportOptions, totals
from mcpspy.report.shown import ShownFrame
from mcpspy.report.words import GREY, MARKS, SEVERITIES, coloured
from mcpspy.rules import Finding
from mcpspy.text import plural, printable

_NAMED = 8  # other frames of each kind that are named


def as_text(captures: Iterable[Checked], options: ReportOptions) -> Iterator[str]:
    """Yield the lines of the report. The captures must have been checked with `show`."""
    captures = list(captures)
    for checked in captures:
        if checked.findings:
            yield f"{_title(checked)}\n"
            for line in _frames(checked, colour=options.colour):
                yield f"{line}\n"
            yield "\n"
    for checked in captures:
        if checked.live:
            yield f"{printable(checked.path, 200)}: {checked.live_text}\n"
    yield f"{_closing(captures)}\n"


def _title(checked: Checked) -> str:
    spoken = ", ".join(checked.revisions) or "no revision known"
    return f"{printable(checked.path, 200)} · {spoken} · {plural(checked.frames, 'frame')}"


def _frames(checked: Checked, *, colour: bool) -> Iterator[str]:
    found = zip(checked.findings, checked.shown, strict=True)
    for _, group in groupby(found, lambda it: (it[0].frame, it[0].part)):
        (first, shown), *more = group
        yield ""
        yield shown.line
        yield from _finding(first, shown, colour=colour)
        for finding, shown in more:
            yield from _finding(finding, shown, colour=colour)


def _finding(finding: Finding, shown: ShownFrame, *, colour: bool) -> Iterator[str]:
    see = f", see {_named(finding.related)}" if finding.related else ""
    head = f"  {MARKS[finding.severity]} {finding.severity}  {finding.rule}  by the {finding.blame}{see}"
    yield coloured(head, SEVERITIES[finding.severity] if colour else None)
    yield f"    {printable(finding.message, 500)}"
    if finding.count > 1:
        yield f"    {finding.count:,} times{f', also in {_named(finding.also)}' if finding.also else ''}"
    where = f"{printable(finding.pointer, 200)}: " if finding.pointer else ""
    if where or shown.value:
        yield f"    {where}{shown.value}"
    yield coloured(f"    {finding.spec}", GREY if colour else None)


def _named(frames: tuple[int, ...]) -> str:
    return ", ".join([f"#{n}" for n in frames[:_NAMED]] + ["…"] * (len(frames) > _NAMED))


def _closing(captures: list[Checked]) -> str:
    found = totals(captures)
    told = [plural(found["error"], "error"), plural(found["warning"], "warning"), f"{found['info']:,} info"]
    waived = sum(checked.waived for checked in captures)
    if waived:
        told.append(f"{waived:,} waived")
    met = [it.passed for checked in captures for it in checked.met]
    if met:
        told.append(f"{sum(it is True for it in met):,} of {plural(len(met), 'expectation')} met")
    frames = sum(checked.frames for checked in captures)
    return f"{', '.join(told)} in {plural(frames, 'frame')} of {plural(len(captures), 'capture')}"
