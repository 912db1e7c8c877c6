"""The reports for programs: JSON, JUnit, SARIF, and workflow commands for GitHub.

Each format has its own idea of what a text may hold, and what peers say may hold anything: sentences and paths go
through `printable`, which leaves one line without controls, and XML gets none of the few characters that it forbids
besides. JSON alone has every text as it is.
"""

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import orjson

from mcpspy import __version__
from mcpspy.printable import printable
from mcpspy.protocol.rules import RULES, Finding, Rule, Severity
from mcpspy.report.checked import Checked, Threshold, reaches, totals
from mcpspy.timeline import finding_fields

Report = Callable[[Iterable[Checked], Threshold], str]
"""A format: the captures, and from which severity on a finding is a failure."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2


def as_json(captures: Iterable[Checked], _: Threshold) -> str:
    """Everything on one line (DESIGN section 5)."""
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
    """A workflow command for each finding, which GitHub shows beside the line of the capture.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    return "".join(_command(checked, finding) for checked in captures for finding in checked.findings)


def _command(checked: Checked, finding: Finding) -> str:
    members = {"file": printable(checked.path, 4096), "line": finding.frame, "title": f"mcpspy ({finding.rule})"}
    told = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in members.items())
    return f"::{_COMMANDS[finding.severity]} {told}::{_escaped(sentence(finding))}\n"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in text)


def as_junit(captures: Iterable[Checked], fail_on: Threshold) -> str:
    """A suite for each capture, a case for each finding; one that makes the check fail is a failure."""
    suites = ET.Element("testsuites", name="mcpspy")
    for checked in captures:
        _suite(suites, checked, fail_on)
    _count(suites, [case for suite in suites for case in suite])
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, "unicode")}\n'


def _suite(suites: ET.Element, checked: Checked, fail_on: Threshold) -> None:
    suite = ET.SubElement(suites, "testsuite", name=_xml(checked.path, 4096))
    if not checked.findings:
        ET.SubElement(suite, "testcase", name="nothing found", classname=_xml(checked.path, 4096))
    for finding in checked.findings:
        name = f"{finding.rule} #{finding.frame}"
        case = ET.SubElement(suite, "testcase", name=name, classname=_xml(checked.path, 4096))
        text = _xml(f"{finding.severity}: {sentence(finding)}, line {finding.frame}; {finding.spec}", 4096)
        if reaches(finding.severity, fail_on):
            message = _xml(finding.message, 1000)
            ET.SubElement(case, "failure", message=message, type=finding.rule).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    _count(suite, list(suite))


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    failures = sum(case.find("failure") is not None for case in cases)
    element.attrib |= {"tests": str(len(cases)), "failures": str(failures), "errors": "0"}


def _xml(text: str, limit: int) -> str:
    return _NOT_IN_XML.sub("\ufffd", printable(text, limit))


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
