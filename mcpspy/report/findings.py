"""What was found in captures, in each format of a report, for people and for programs.

Formats differ in the characters that a text may contain, and peers may send any text. So sentences and paths go through
`printable`, which returns one line without control characters. Only JSON has every text unchanged.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from mcpspy import __version__
from mcpspy.contract.watch import Met, is_about
from mcpspy.report.checked import Checked, ReportOptions, Threshold, reaches, totals
from mcpspy.report.ci_formats import Case, Level, command, document
from mcpspy.report.lines import ShownFrame, finding_head, sentence
from mcpspy.report.problems import problem_fields, problem_lines, summary_line
from mcpspy.report.words import coloured
from mcpspy.rules import Finding, Rule, Severity
from mcpspy.text import plural, printable
from mcpspy.timeline import finding_fields

# For people

_NAMED = 8  # other frames of each kind that are named
_NO_ERRORS = "expect/no-error"
_WIDTH = 120  # columns of the lines of a problem in a report for programs
_MESSAGE = 2000  # characters of an annotation


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
    every = [problem for checked in captures for problem in checked.problems]
    paths = [checked.path for checked in captures if checked.problems]
    summary = summary_line(every, sum(it.requests_failed for it in captures), paths)
    if summary:
        yield f"{summary}\n"


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
    head = f"{finding_head(finding.severity, finding.rule)}  by the {finding.blame}{see}"
    yield coloured(head, finding.severity if colour else None)
    yield f"    {printable(finding.message, 500)}"
    if finding.count > 1:
        yield f"    {finding.count:,} times{f', also in {_named(finding.also)}' if finding.also else ''}"
    where = f"{printable(finding.pointer, 200)}: " if finding.pointer else ""
    if where or shown.value:
        yield f"    {where}{shown.value}"
    yield coloured(f"    {finding.spec}", "dim" if colour else None)


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


def places_as_text(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield a line for each place of a scrub, and a summary."""
    captures = list(captures)
    for checked in captures:
        for finding in checked.findings:
            yield f"{printable(checked.path, 1000)}:{finding.frame}: {sentence(finding)}  [{finding.rule}]\n"
    places = sum(finding.count for checked in captures for finding in checked.findings)
    waived = sum(checked.waived for checked in captures)
    also = f", {waived:,} waived" if waived else ""
    yield f"{plural(places, 'place')}{also} in {plural(len(captures), 'capture')}\n"


# JSON (`docs/json.md`)


def as_json(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield the report on one line."""
    captures = list(captures)
    found = [
        {
            "path": _path(checked),
            "frames": checked.frames,
            "revisions": checked.revisions,
            "findings": [_fields(finding) for finding in checked.findings],
            "problems": [problem_fields(problem) for problem in checked.problems],
            "failed": checked.requests_failed,
            "live": checked.live,
            **({"open": [it._asdict() for it in checked.open]} if checked.live else {}),
            **({"expectations": [it._asdict() for it in checked.met]} if checked.met else {}),
        }
        for checked in captures
    ]
    yield orjson.dumps({"captures": found, "totals": totals(captures)}).decode() + "\n"


def _fields(finding: Finding) -> dict[str, Any]:
    return finding_fields(finding) | {"count": finding.count, "also": finding.also}


def places_as_json(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield the places of a scrub on one line."""
    found = [{"path": _path(it), "findings": [_place_fields(one) for one in it.findings]} for it in captures]
    yield orjson.dumps({"captures": found}).decode() + "\n"


def _place_fields(finding: Finding) -> dict[str, Any]:
    pointer = finding.pointer.encode("utf-8", "replace").decode()
    place = {"rule": finding.rule, "kind": finding.message, "line": finding.frame, "pointer": pointer}
    return place | {"count": finding.count, "also": finding.also}


def _path(checked: Checked) -> str:
    return os.fsencode(checked.path).decode(errors="replace")


# JUnit


def as_junit(captures: Iterable[Checked], options: ReportOptions) -> Iterator[str]:
    """Yield a suite for each capture, with a case for each problem, each finding and each expectation.

    A case is a failure if it makes the check fail.
    """
    yield document("mcpspy", ((checked.path, _cases(checked, options.fail_on)) for checked in captures))


def _cases(checked: Checked, fail_on: Threshold) -> Iterator[Case]:
    if checked.live:
        yield Case("live", "skipped", checked.live_text)
    for met in checked.met:
        yield _expectation(met, [it for it in checked.findings if is_about(it, met)], fail_on)
    if not checked.findings and not checked.met and not checked.problems:
        yield Case("nothing found")
    fails = any(met.rule == _NO_ERRORS for met in checked.met) and reaches("error", fail_on)
    for problem in checked.problems:
        lines = list(problem_lines(problem, _WIDTH))
        if fails:
            yield Case(problem.headline, "failure", problem.cause.text, f"problem/{problem.kind}", lines)
        else:
            yield Case(problem.headline, "system-out", lines=lines)
    for finding in checked.findings:
        if any(is_about(finding, met) for met in checked.met):
            continue
        name = f"{finding.rule} #{finding.frame}"
        line = f"{finding.severity}: {sentence(finding)}, line {finding.frame}; {finding.spec}"
        if reaches(finding.severity, fail_on):
            yield Case(name, "failure", finding.message, finding.rule, [line])
        else:
            yield Case(name, "system-out", lines=[line])


def _expectation(met: Met, failures: list[Finding], fail_on: Threshold) -> Case:
    """Return the case of an expectation. Findings that are waived or left out do not make it fail."""
    lines = [f"{it.severity}: {sentence(it)}, line {it.frame}" for it in failures]
    if failures and reaches(failures[0].severity, fail_on):
        return Case(met.title, "failure", failures[0].message, met.rule, lines)
    if met.passed is None:
        return Case(met.title, "skipped", "the capture is still being written")
    return Case(met.title, "system-out" if lines else None, lines=lines)


# SARIF: the Static Analysis Results Interchange Format, 2.1.0 (OASIS)

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(captures: Iterable[Checked], options: ReportOptions) -> Iterator[str]:
    """Yield one log, with a result on the line of each frame."""
    captures = list(captures)
    found = sorted({finding.rule for checked in captures for finding in checked.findings})
    places = {rule: place for place, rule in enumerate(found)}
    rules = [_sarif_rule(rule, options.rules[rule]) for rule in found]
    driver = {"name": "mcpspy", "version": __version__, "rules": rules}
    results = [
        _sarif_result(checked, finding, places[finding.rule]) for checked in captures for finding in checked.findings
    ]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    yield orjson.dumps(log, option=orjson.OPT_INDENT_2).decode() + "\n"


def _sarif_rule(name: str, rule: Rule | str) -> dict[str, Any]:
    if isinstance(rule, str):
        return {"id": name, "shortDescription": {"text": rule}}
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": "\n".join(f"{title}: {text}" for title, text in rule.advice())},
        "helpUri": rule.url(None),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _sarif_result(checked: Checked, finding: Finding, place: int) -> dict[str, Any]:
    location = _physical_location(checked.path, finding.frame)
    if finding.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.pointer, 1000)}]
    related = [{"id": n, **_physical_location(checked.path, frame)} for n, frame in enumerate(finding.related, 1)]
    result = {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": sentence(finding)},
        "locations": [location],
        "occurrenceCount": finding.count,
        **({"relatedLocations": related} if related else {}),
    }
    if finding.blame:  # it is about a message of a peer
        result["properties"] = {name: getattr(finding, name) for name in ("blame", "revision", "part", "spec")}
    return result


def _physical_location(name: str, line: int) -> dict[str, Any]:
    path = PurePath(name)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}


# Commands for GitHub

_COMMANDS: dict[Severity, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def as_github(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield a workflow command for each problem and each finding. GitHub shows it beside the line of the capture."""
    for checked in captures:
        for problem in checked.problems:
            first, text = (problem.rows or (None,))[0], f"{problem.headline}; {problem.side}: {problem.cause.text}"
            yield command("warning", checked.path, first, f"mcpspy ({problem.kind})", printable(text, _MESSAGE))
        for finding in checked.findings:
            yield _command(checked, finding)


def _command(checked: Checked, finding: Finding) -> str:
    title = f"mcpspy ({finding.rule})"
    return command(_COMMANDS[finding.severity], checked.path, finding.frame, title, sentence(finding))


# The table


class FindingsFormat(NamedTuple):
    """A format: its writer, and whether it shows frames (`show` of `mcpspy.report.checked.check`)."""

    write: Callable[[Iterable[Checked], ReportOptions], Iterable[str]]
    shows_frames: bool = False


FORMATS = {
    "text": FindingsFormat(as_text, shows_frames=True),
    "json": FindingsFormat(as_json),
    "junit": FindingsFormat(as_junit),
    "sarif": FindingsFormat(as_sarif),
    "github": FindingsFormat(as_github),
}
"""By the name that `check --format` accepts, the default first."""
PLACE_FORMATS = {
    "text": FindingsFormat(places_as_text),
    "json": FindingsFormat(places_as_json),
    "sarif": FORMATS["sarif"],
    "github": FORMATS["github"],
}
"""The same for `scrub --check`, which reports places in captures without their values."""
