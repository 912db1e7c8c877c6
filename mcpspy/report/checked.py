"""A capture, checked: what the rules found in it, and how much of it there was to look at.

The theory. Records stream through the judge; what is kept is the findings alone, so a capture of any length takes the
memory of its faults. Of a capture that is still being written nothing is called missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.conversation.session import Message
from mcpspy.rules import SEVERITIES, Finding, Severity
from mcpspy.rules.judge import Judge
from mcpspy.spec.revisions import Revision

Threshold = Literal["error", "warning", "info", "never"]
THRESHOLDS: tuple[Threshold, ...] = (*SEVERITIES, "never")


@dataclass(frozen=True, slots=True)
class Checked:
    """One capture and what was found in it."""

    path: str
    """As the user gave it, or below the directory that the user gave."""
    frames: int
    """Those of the server's stderr too."""
    revisions: tuple[str, ...]
    """Those that messages were judged by, in the order of publication."""
    findings: tuple[Finding, ...]
    """In the order of the frames that they are about."""
    waived: int = 0
    """How many more there are that somebody has accepted."""

    def without(self, rules: Iterable[str]) -> "Checked":
        """The same, less what some rules found."""
        left_out = frozenset(rules)
        return replace(self, findings=tuple(it for it in self.findings if it.rule not in left_out))


def check(path: str, as_revision: Revision | None = None) -> Checked:
    """Check the capture at `path`, as if it spoke `as_revision` where that is given. Raises CaptureError."""
    capture = Capture(path)
    live = capture.live
    judge = Judge(as_revision)
    frames = 0
    spoken: set[Revision | None] = set()
    findings: list[Finding] = []
    for record in capture.records():
        frames += isinstance(record, Frame)
        for event in judge.feed(record):
            if isinstance(event, Message):
                spoken.add(event.revision)
                if event.exchange and event.exchange.response is event and event.place is None:
                    event.exchange.untie()  # what carried it over HTTP, others may yet be judged by
            elif isinstance(event, Finding):
                findings.append(event)
    if not live:
        findings += judge.end()
    findings.sort(key=lambda finding: (finding.frame, finding.part))
    revisions = tuple(revision.value for revision in Revision if revision in spoken)
    return Checked(path, frames, revisions, tuple(findings))


def totals(captures: Iterable[Checked]) -> dict[Severity, int]:
    """How many findings of each severity there are."""
    found = dict.fromkeys(SEVERITIES, 0)
    for checked in captures:
        for finding in checked.findings:
            found[finding.severity] += 1
    return found


def reaches(severity: Severity, threshold: Threshold) -> bool:
    """Whether a finding of this severity makes the check fail."""
    return THRESHOLDS.index(severity) <= THRESHOLDS.index(threshold) and threshold != "never"
