"""The report of a check as JSON (`docs/json.md`)."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from mcpspy.report.checked import Checked, ReportOptions, totals
from mcpspy.rules import Finding
from mcpspy.timeline import finding_fields


def as_json(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield the report on one line."""
    captures = list(captures)
    found = [
        {
            "path": os.fsencode(checked.path).decode(errors="replace"),
            "frames": checked.frames,
            "revisions": checked.revisions,
            "findings": [_fields(finding) for finding in checked.findings],
            "live": checked.live,
            **({"open": [it._asdict() for it in checked.open]} if checked.live else {}),
            **({"expectations": [it._asdict() for it in checked.met]} if checked.met else {}),
        }
        for checked in captures
    ]
    yield orjson.dumps({"captures": found, "totals": totals(captures)}).decode() + "\n"


def _fields(finding: Finding) -> dict[str, Any]:
    return finding_fields(finding) | {"count": finding.count, "also": finding.also}
