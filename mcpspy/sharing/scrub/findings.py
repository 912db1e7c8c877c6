"""The findings of `scrub --check` in captures, for people and for programs; they never contain the values.

A place has the same form as in `check`: the line of the capture and a JSON Pointer into the message. Repeated findings
are reported once for each kind and place, with their number; the elements of an array count as one place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.report.ci_formats import command
from mcpspy.report.findings import SCHEMA, physical_location
from mcpspy.report.waivers import Waiver
from mcpspy.sharing.scrub.categories import RULES
from mcpspy.sharing.scrub.options import ScrubOptions
from mcpspy.sharing.scrub.scrub import Read, Scrub
from mcpspy.text import plural, printable

_ITEM = re.compile(r"/\d+(?=/|#|$)")
_ALSO = 100  # numbers of further records


@dataclass(frozen=True, slots=True)
class ScrubFinding:
    """What would be replaced at one place of a capture."""

    rule: str
    kind: str
    line: int
    pointer: str
    """A JSON Pointer into the message, or words such as `argv`; empty for the whole frame."""
    count: int
    also: tuple[int, ...]
    """The numbers of further records."""


@dataclass(frozen=True, slots=True)
class ScrubChecked:
    """One capture and what would be replaced in it."""

    path: str
    findings: tuple[ScrubFinding, ...]
    waived: int = 0


@dataclass(slots=True)
class _Repeated:
    kind: str
    lines: list[int] = field(default_factory=list)
    count: int = 0
    pointer: str = ""


def check(path: str, options: ScrubOptions, read: Read | None = None) -> ScrubChecked:
    """Find what `scrub` would replace in a capture; session ids and requestStates are not secrets."""
    found: dict[tuple[str, str, str], _Repeated] = {}
    for place in Scrub(path, options, read).places():
        rule, kind = place.category.rule, place.category.title
        if not rule:
            continue
        repeated = found.setdefault((rule, kind, _ITEM.sub("/*", place.where)), _Repeated(kind, pointer=place.where))
        repeated.count += 1
        if place.n not in repeated.lines[-1:] and len(repeated.lines) <= _ALSO:
            repeated.lines.append(place.n)
    findings = [
        ScrubFinding(rule, it.kind, it.lines[0], it.pointer, it.count, tuple(it.lines[1:]))
        for (rule, _, _), it in found.items()
    ]
    return ScrubChecked(path, tuple(sorted(findings, key=lambda it: (it.line, it.pointer, it.rule))))


def without_waived(
    waivers: Sequence[Waiver], captures: Sequence[ScrubChecked], today: date
) -> tuple[list[ScrubChecked], list[Waiver], list[Waiver]]:
    """Return the captures without waived findings, the waivers that waive nothing, and the expired waivers."""
    expired = [waiver for waiver in waivers if waiver.expires and waiver.expires < today]
    valid = [waiver for waiver in waivers if waiver not in expired]
    used: set[Waiver] = set()
    left = []
    for checked in captures:
        concerned = [waiver for waiver in valid if waiver.concerns(checked.path)]
        kept = []
        for finding in checked.findings:
            waiving = [it for it in concerned if it.rule == finding.rule and it.pointer in (None, finding.pointer)]
            used.update(waiving)
            kept += [] if waiving else [finding]
        left.append(replace(checked, findings=tuple(kept), waived=len(checked.findings) - len(kept)))
    stale = [it for it in valid if it not in used and any(it.concerns(checked.path) for checked in captures)]
    return left, stale, expired


def as_text(captures: Sequence[ScrubChecked]) -> Iterator[str]:
    """Yield a line for each place, and a summary."""
    for checked in captures:
        for finding in checked.findings:
            yield f"{printable(checked.path, 1000)}:{finding.line}: {_sentence(finding)}  [{finding.rule}]\n"
    places = sum(finding.count for checked in captures for finding in checked.findings)
    waived = sum(checked.waived for checked in captures)
    also = f", {waived:,} waived" if waived else ""
    yield f"{plural(places, 'place')}{also} in {plural(len(captures), 'capture')}\n"


def as_json(captures: Sequence[ScrubChecked]) -> Iterator[str]:
    """Yield everything on one line."""
    found = [{"path": printable(it.path, 4096), "findings": [_fields(one) for one in it.findings]} for it in captures]
    yield orjson.dumps({"captures": found}, option=orjson.OPT_APPEND_NEWLINE).decode()


def as_sarif(captures: Sequence[ScrubChecked]) -> Iterator[str]:
    """Yield a log of the Static Analysis Results Interchange Format, 2.1.0."""
    used = sorted({finding.rule for checked in captures for finding in checked.findings})
    rules = [{"id": rule, "shortDescription": {"text": RULES[rule]}} for rule in used]
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": used.index(finding.rule),
            "level": "error",
            "message": {"text": _sentence(finding)},
            "locations": [physical_location(checked.path, finding.line)],
            "occurrenceCount": finding.count,
        }
        for checked in captures
        for finding in checked.findings
    ]
    driver = {"name": "mcpspy", "version": __version__, "rules": rules}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    yield orjson.dumps(log, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def as_github(captures: Sequence[ScrubChecked]) -> Iterator[str]:
    """Yield a workflow command for each place, which GitHub shows beside the line of the capture."""
    for checked in captures:
        for finding in checked.findings:
            yield command("error", checked.path, finding.line, f"mcpspy ({finding.rule})", _sentence(finding))


def _sentence(finding: ScrubFinding) -> str:
    where = f" at {printable(finding.pointer, 200)}" if finding.pointer else ""
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    return f"{finding.kind}{where}{times}"


def _fields(finding: ScrubFinding) -> dict[str, Any]:
    pointer = finding.pointer.encode("utf-8", "replace").decode()
    return {
        "rule": finding.rule, "kind": finding.kind, "line": finding.line, "pointer": pointer,
        "count": finding.count, "also": finding.also,
    }  # fmt: skip


FORMATS: dict[str, Callable[[Sequence[ScrubChecked]], Iterable[str]]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}
"""By the name for `--format`, the default first."""
