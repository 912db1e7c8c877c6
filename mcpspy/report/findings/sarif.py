"""What a check found, for programs: JSON, JUnit, SARIF, and workflow commands for GitHub.

Each format has its own idea of what a text may hold, and what peers say may hold anything: sentences and paths go
through `printable`, which leaves one line without controls. JSON alone has every text as it is.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import orjson

from mcpspy import __version__
from mcpspy.report.checked import Checked, Threshold, reaches, totals
from mcpspy.report.github import Level, command
from mcpspy.report.junit import Case, document
from mcpspy.rules import RULES, Finding, Rule, Severity
from mcpspy.text import printable
from mcpspy.timeline import finding_fields

Report = Callable[[Iterable[Checked], Threshold], str]
"""A format: the captures, and from which severity on a finding is a failure."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: dict[Severity, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def as_json(captures: Iterable[Checked], _: Threshold) -> str:
    """Everything on one line."""
    captures = list(captures)
    found = [
        {
            "path": os.fsencode(checked.path).decode(errors="replace"),
            "frames": checked.frames,
            "revisions": checked.revisions,
            "findings": [finding_fields(finding) for finding in checked.findings],
        }
        for checked in captures
    ]
    return orjson.dumps({"captures": found, "totals": totals(captures)}).decode() + "\n"


def as_github(captures: Iterable[Checked], _: Threshold) -> str:
    """A workflow command for each finding, which GitHub shows beside the line of the capture."""
    return "".join(_command(checked, finding) for checked in captures for finding in checked.findings)


def _command(checked: Checked, finding: Finding) -> str:
    title = f"mcpspy ({finding.rule})"
    return command(_COMMANDS[finding.severity], checked.path, finding.frame, title, sentence(finding))


def as_junit(captures: Iterable[Checked], fail_on: Threshold) -> str:
    """A suite for each capture, a case for each finding; one that makes the check fail is a failure."""
    return document("mcpspy", ((checked.path, _cases(checked, fail_on)) for checked in captures))


def _cases(checked: Checked, fail_on: Threshold) -> Iterator[Case]:
    if not checked.findings:
        yield Case("nothing found")
    for finding in checked.findings:
        name = f"{finding.rule} #{finding.frame}"
        line = f"{finding.severity}: {sentence(finding)}, line {finding.frame}; {finding.spec}"
        if reaches(finding.severity, fail_on):
            yield Case(name, "failure", finding.message, finding.rule, [line])
        else:
            yield Case(name, "system-out", lines=[line])


def as_sarif(captures: Iterable[Checked], _: Threshold) -> str:
    """A log of the Static Analysis Results Interchange Format, 2.1.0: a result stands on the line of its frame."""
    captures = list(captures)
    found = sorted({finding.rule for checked in captures for finding in checked.findings})
    places = {rule: place for place, rule in enumerate(found)}
    driver = {"name": "mcpspy", "version": __version__, "rules": [_sarif_rule(RULES[rule]) for rule in found]}
    results = [
        _sarif_result(checked, finding, places[finding.rule]) for checked in captures for finding in checked.findings
    ]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return orjson.dumps(log, option=orjson.OPT_INDENT_2).decode() + "\n"


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "helpUri": rule.url(None),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _sarif_result(checked: Checked, finding: Finding, place: int) -> dict[str, Any]:
    location = _sarif_location(checked, finding.frame)
    if finding.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.pointer, 1000)}]
    related = [{"id": n, **_sarif_location(checked, frame)} for n, frame in enumerate(finding.related, 1)]
    return {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": sentence(finding)},
        "locations": [location],
        **({"relatedLocations": related} if related else {}),
        "properties": {
            "blame": finding.blame,
            "revision": finding.revision,
            "part": finding.part,
            "spec": finding.spec,
        },
    }


def _sarif_location(checked: Checked, line: int) -> dict[str, Any]:
    path = PurePath(checked.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}


def sentence(finding: Finding) -> str:
    """Who did what, where in the message."""
    where = f" ({finding.pointer})" if finding.pointer else ""
    return printable(f"{finding.blame}: {finding.message}{where}", 2000)


FORMATS: dict[str, Report] = {"json": as_json, "junit": as_junit, "sarif": as_sarif, "github": as_github}
"""By the name that `--format` takes."""
