"""The formats of CI systems, for any report: JUnit suites, and workflow commands of GitHub.

Texts go through `printable`, which returns one line without control characters.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mcpspy.text import printable

# JUnit: what CI systems show as tests that passed, failed or were skipped. There is no standard, only the format of
# Ant, which all CI systems read: suites of cases, each with at most one element for its outcome. Characters that XML
# forbids are replaced.

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2
_NAME, _MESSAGE, _LINE = 4096, 1000, 4096  # limits in characters


@dataclass(frozen=True, slots=True)
class Case:
    """One test."""

    name: str
    how: Literal["failure", "skipped", "system-out"] | None = None
    """The element for the outcome. None if it passed and needs no message."""
    message: str = ""
    kind: str = ""
    """The type of a failure."""
    lines: Sequence[str] = ()
    """Further details."""


def document(name: str, suites: Iterable[tuple[str, Iterable[Case]]]) -> str:
    """Return the report of some suites, each a path and its cases."""
    root = ET.Element("testsuites", {"name": name})
    for path, cases in suites:
        suite = ET.SubElement(root, "testsuite", {"name": _xml(path, _NAME)})
        for case in cases:
            _add(suite, case, _xml(path, _NAME))
        _count(suite)
    _count(root)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, "unicode")}\n'


def _add(suite: ET.Element, case: Case, path: str) -> None:
    element = ET.SubElement(suite, "testcase", {"name": _xml(case.name, _NAME), "classname": path})
    if case.how is None:
        return
    how = ET.SubElement(element, case.how)
    if case.how != "system-out":
        how.set("message", _xml(case.message, _MESSAGE))
    if case.kind:
        how.set("type", _xml(case.kind, _NAME))
    how.text = "\n".join(_xml(line, _LINE) for line in case.lines) or None


def _count(element: ET.Element) -> None:
    cases = element.findall(".//testcase")
    counts = {how: sum(case.find(how) is not None for case in cases) for how in ("failure", "skipped")}
    element.attrib |= {"tests": str(len(cases)), "failures": str(counts["failure"]), "errors": "0"}
    element.set("skipped", str(counts["skipped"]))


def _xml(text: str, limit: int) -> str:
    return _NOT_IN_XML.sub("\ufffd", printable(text, limit))


# Workflow commands: output lines of a GitHub job that GitHub shows beside the line of a file.
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands

Level = Literal["error", "warning", "notice"]


def command(level: Level, path: str, line: int | None, title: str, text: str) -> str:
    """Return the command that shows `text` under `title`: one complete line. Without a `line` it is about the file."""
    places = {"file": printable(path, 4096)} | ({"line": str(line)} if line else {}) | {"title": title}
    told = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in places.items())
    return f"::{level} {told}::{_escaped(text)}\n"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in text)
