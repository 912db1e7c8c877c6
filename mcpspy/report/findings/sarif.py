"""The report of a check as a log of the Static Analysis Results Interchange Format, 2.1.0 (OASIS).

Peers may send any text, so sentences and paths go through `printable`, which returns one line without control
characters.
"""

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import orjson

from mcpspy import __version__
from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.lines import sentence
from mcpspy.rules import RULES, Finding, Rule, Severity
from mcpspy.text import printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The URL of the schema of a log."""
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield one log, with a result on the line of each frame."""
    captures = list(captures)
    found = sorted({finding.rule for checked in captures for finding in checked.findings})
    places = {rule: place for place, rule in enumerate(found)}
    driver = {"name": "mcpspy", "version": __version__, "rules": [_sarif_rule(RULES[rule]) for rule in found]}
    results = [
        _sarif_result(checked, finding, places[finding.rule]) for checked in captures for finding in checked.findings
    ]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    yield orjson.dumps(log, option=orjson.OPT_INDENT_2).decode() + "\n"


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": "\n".join(f"{title}: {text}" for title, text in rule.advice())},
        "helpUri": rule.url(None),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _sarif_result(checked: Checked, finding: Finding, place: int) -> dict[str, Any]:
    location = physical_location(checked.path, finding.frame)
    if finding.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.pointer, 1000)}]
    related = [{"id": n, **physical_location(checked.path, frame)} for n, frame in enumerate(finding.related, 1)]
    return {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": sentence(finding)},
        "locations": [location],
        "occurrenceCount": finding.count,
        **({"relatedLocations": related} if related else {}),
        "properties": {
            "blame": finding.blame,
            "revision": finding.revision,
            "part": finding.part,
            "spec": finding.spec,
        },
    }


def physical_location(name: str, line: int) -> dict[str, Any]:
    """Return the location of a line of a capture."""
    path = PurePath(name)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
