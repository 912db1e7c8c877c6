"""A checked capture: the findings of the rules, and how much was checked.

Records stream through the judge. Only the findings are kept, each with two short texts for a report that shows frames,
so memory does not depend on the length of the capture. A capture that is still being written gets no findings about
missing frames: its open requests may still be answered.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, NamedTuple

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.contract.expectations import Expectations
from mcpspy.contract.lock import Lock
from mcpspy.contract.locked import LockCheck
from mcpspy.contract.watch import ExpectationWatch, Met
from mcpspy.conversation.history import Operations
from mcpspy.conversation.model import Event, Exchange, Judged, Message
from mcpspy.report.shown import ShownFrame, of_frame, shown, shown_event
from mcpspy.rules import SEVERITIES, Finding, Severity
from mcpspy.rules.follows import told_by_lock
from mcpspy.rules.judge import Judge
from mcpspy.spec.revisions import Revision
from mcpspy.text import plural, printable

Threshold = Literal["error", "warning", "info", "never"]
THRESHOLDS: tuple[Threshold, ...] = (*SEVERITIES, "never")
NOTHING = Expectations()
"""The default: no expectations."""
_NAMED = 5  # open requests that are named


class OpenRequest(NamedTuple):
    """A request of a live capture that may still be answered."""

    frame: int
    sender: str
    """The side that sent it."""
    method: str
    name: str | None
    """The tool, prompt or resource concerned."""

    def __str__(self) -> str:
        """Return it for people."""
        return f"#{self.frame} {printable(' '.join(filter(None, (self.method, self.name))), 80)}"


@dataclass(frozen=True, slots=True)
class Checked:
    """One capture and its findings."""

    path: str
    """As the user gave it, or relative to the directory that the user gave."""
    frames: int
    """The number of frames, including those of the server's stderr."""
    revisions: tuple[str, ...]
    """The revisions by which messages were judged, in the order of publication."""
    findings: tuple[Finding, ...]
    """In the order of their frames."""
    waived: int = 0
    """The number of findings that waivers accept."""
    shown: tuple[ShownFrame, ...] = ()
    """For each finding, in the same order: what a report shows of its frame. Empty without `show`."""

    met: tuple[Met, ...] = ()
    """The outcome of each expectation about the server of the capture."""
    failed: bool = False
    """Whether a rule raised an exception, which is a bug. The findings of the other rules are kept."""
    live: bool = False
    """Whether a relay was still writing the capture."""
    open: tuple[OpenRequest, ...] = ()
    """The requests of a live capture that have no response yet, oldest first."""

    @property
    def live_text(self) -> str:
        """What is open in a live capture, as one sentence."""
        named = ", ".join(map(str, self.open[:_NAMED]))
        more = f" and {len(self.open) - _NAMED:,} more" if len(self.open) > _NAMED else ""
        verb = "is" if len(self.open) == 1 else "are"
        what = (
            f"{plural(len(self.open), 'request')} {verb} still open: {named}{more}" if named else "no request is open"
        )
        return f"the capture is live, {what}"

    def only(self, wanted: Callable[[Finding], bool]) -> "Checked":
        """Return the same with only the wanted findings."""
        kept = [wanted(finding) for finding in self.findings]
        return replace(self, findings=tuple(compress(self.findings, kept)), shown=tuple(compress(self.shown, kept)))

    def without(self, rules: Iterable[str]) -> "Checked":
        """Return the same without the findings of some rules."""
        left_out = frozenset(rules)
        return self.only(lambda finding: finding.rule not in left_out)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a report is written."""

    fail_on: Threshold = "error"
    """A finding of this severity or a worse one is a failure."""
    colour: bool = False
    """Whether the report is for a terminal with colours."""


def check(
    path: str,
    as_revision: Revision | None = None,
    *,
    clients: Collection[str] = (),
    expected: Expectations = NOTHING,
    lock: Lock | None = None,
    show: bool = False,
    read: Callable[[int], None] | None = None,
) -> Checked:
    """Check the capture at `path`, by `as_revision` if it is given. Raises CaptureError.

    `clients` are those whose limits count too. `expected` has the expectations of the session, `lock` what its server
    offered before. With `show` the result has what a report shows of each frame. `read` is called with each number of
    bytes read.
    """
    capture = Capture(path)
    live = capture.live
    subjects: dict[int, Judged] = {}  # by the identity of a finding that was not returned yet

    def note(finding: Finding, message: Judged) -> None:
        subjects[id(finding)] = message

    operations = None if expected.slow_call is None else Operations(expected.slow_call)
    judge = Judge(as_revision, note if show else None, clients=clients, operations=operations)
    held = expected.of_server(capture.header.name)
    watch = ExpectationWatch(held, capture.header)
    compared = LockCheck(lock, capture.header.name) if lock is not None else None
    frames = 0
    spoken: set[Revision | None] = set()
    found: list[tuple[Finding, ShownFrame | None]] = []

    of_lock: dict[tuple[int, int], list[Finding]] = {}  # by frame and part

    def take(finding: Finding, message: Judged | None = None) -> None:
        found.append((finding, shown(finding, message or subjects.pop(id(finding))) if show else None))

    def miss(finding: Finding, event: Event | None) -> None:
        at = shown_event(finding, event) if event else of_frame(finding.frame, "the session")
        found.append((finding, at if show else None))

    for record in capture.records(read=read):
        frames += type(record) is Frame
        for event in judge.feed(record):
            if held and not isinstance(event, Finding):
                for failure in watch.add(event):
                    miss(*failure)
            if type(event) is Message:
                spoken.add(event.revision)
                for finding, message in compared.add(event) if compared else ():
                    of_lock.setdefault((finding.frame, finding.part), []).append(finding)
                    take(finding, message)
                exchange = event.exchange
                if exchange and exchange.response is event and event.http is None:
                    exchange.untie()  # over HTTP, later messages may still need these links
            elif isinstance(event, Finding):
                if told_by_lock(event, of_lock.get((event.frame, event.part), ())):
                    subjects.pop(id(event), None)
                else:
                    take(event)
    if not live:
        for finding in judge.end():
            take(finding)
        for finding, message in compared.end() if compared else ():
            take(finding, message)
    for finding in watch.end(live=live):
        miss(finding, None)
    waiting = sorted(filter(_is_open, judge.pending()), key=lambda it: it.request.n) if live else ()
    found.sort(key=lambda it: (it[0].frame, it[0].part))
    revisions = tuple(revision.value for revision in Revision if revision in spoken)
    findings = tuple(finding for finding, _ in found)
    shows = tuple(it for _, it in found if it)
    return Checked(
        path,
        frames,
        revisions,
        findings,
        shown=shows,
        met=watch.outcomes,
        failed=judge.failed,
        live=live,
        open=tuple(map(_open_request, waiting)),
    )


def _is_open(exchange: Exchange) -> bool:
    """Return whether an exchange of a live capture may still get its response."""
    if exchange.left is not None or exchange.lost is not None:
        return False
    return exchange.final_status(live=False) in ("unanswered", "held")


def _open_request(exchange: Exchange) -> OpenRequest:
    return OpenRequest(exchange.request.n, exchange.request.side, exchange.method, exchange.name)


def totals(captures: Iterable[Checked]) -> dict[Severity, int]:
    """Return the number of findings of each severity."""
    found = dict.fromkeys(SEVERITIES, 0)
    for checked in captures:
        for finding in checked.findings:
            found[finding.severity] += 1
    return found


def reaches(severity: Severity, threshold: Threshold) -> bool:
    """Return whether a finding of this severity makes the check fail."""
    return THRESHOLDS.index(severity) <= THRESHOLDS.index(threshold) and threshold != "never"
