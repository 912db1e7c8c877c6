"""A capture, checked: what the rules found in it, and how much of it there was to look at.

The theory. Records stream through the judge. Only the findings are kept, each with two short texts for a report that
shows frames, so the memory does not depend on the length of the capture. In a capture that is still being written,
nothing is called missing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, Protocol

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Header
from mcpspy.conversation.model import Judged, Message
from mcpspy.report.shown import ShownFrame, shown
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
    shown: tuple[ShownFrame, ...] = ()
    """What a report shows of the frame of each finding, in the same order; empty if nobody wants to show it."""

    failed: bool = False
    """Whether a bug in a rule kept something from being judged; what the others found is there."""

    def only(self, wanted: Callable[[Finding], bool]) -> "Checked":
        """The same with fewer findings."""
        kept = [wanted(finding) for finding in self.findings]
        return replace(self, findings=tuple(compress(self.findings, kept)), shown=tuple(compress(self.shown, kept)))

    def without(self, rules: Iterable[str]) -> "Checked":
        """The same, less what some rules found."""
        left_out = frozenset(rules)
        return self.only(lambda finding: finding.rule not in left_out)


class ContractCheck(Protocol):
    """Compares one capture with what somebody wants of it, such as a lock; made anew for each capture."""

    def add(self, message: Message) -> Iterator[tuple[Finding, Message]]:
        """Take the next message; yields what is found, with the message that it is about."""

    def end(self) -> Iterator[tuple[Finding, Message]]:
        """What is found when there is no more."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a report is written."""

    fail_on: Threshold = "error"
    """From which severity on a finding is a failure."""
    colour: bool = False
    """For a terminal."""


def check(
    path: str,
    as_revision: Revision | None = None,
    *,
    clients: Collection[str] = (),
    contracts: Sequence[Callable[[Header], ContractCheck]] = (),
    show: bool = False,
    read: Callable[[int], None] | None = None,
) -> Checked:
    """Check the capture at `path`, as if it spoke `as_revision` where that is given. Raises CaptureError.

    `clients` are those whose limits count too; `contracts` make from the header of the capture what else it is compared
    with. With `show` the result has what a report shows of each frame. `read` is called with each number of bytes read.
    """
    capture = Capture(path)
    live = capture.live
    subjects: dict[int, Judged] = {}  # by the identity of a finding that has not come out yet

    def note(finding: Finding, message: Judged) -> None:
        subjects[id(finding)] = message

    compared = [contract(capture.header) for contract in contracts]
    judge = Judge(as_revision, note if show else None, clients=clients)
    frames = 0
    spoken: set[Revision | None] = set()
    found: list[tuple[Finding, ShownFrame | None]] = []

    def take(finding: Finding, message: Judged | None = None) -> None:
        found.append((finding, shown(finding, message or subjects.pop(id(finding))) if show else None))

    for record in capture.records(read=read):
        frames += isinstance(record, Frame)
        for event in judge.feed(record):
            if isinstance(event, Message):
                spoken.add(event.revision)
                for contract in compared:
                    for finding, message in contract.add(event):
                        take(finding, message)
                if event.exchange and event.exchange.response is event and event.http is None:
                    event.exchange.untie()  # what carried it over HTTP, others may yet be judged by
            elif isinstance(event, Finding):
                take(event)
    if not live:
        for finding in judge.end():
            take(finding)
        for contract in compared:
            for finding, message in contract.end():
                take(finding, message)
    found.sort(key=lambda it: (it[0].frame, it[0].part))
    revisions = tuple(revision.value for revision in Revision if revision in spoken)
    findings = tuple(finding for finding, _ in found)
    shows = tuple(it for _, it in found if it)
    return Checked(path, frames, revisions, findings, shown=shows, failed=judge.failed)


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
