"""A checked capture: the findings of the rules, and how much was checked.

Records stream through the judge. Only the findings are kept, each with two short texts for a report that shows frames,
so memory does not depend on the length of the capture. A capture that is still being written gets no findings about
missing frames: its open requests may still be answered.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Literal, NamedTuple

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Header
from mcpspy.contract.changes import LockCheck
from mcpspy.contract.expectations import Expectation, Expectations
from mcpspy.contract.lock import Lock
from mcpspy.contract.watch import ExpectationWatch, Met
from mcpspy.conversation.facts import Operations
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Exchange, HttpUnit, Message
from mcpspy.problems.fold import Problems
from mcpspy.problems.problem import Problem
from mcpspy.report.lines import ShownFrame, shown
from mcpspy.rules import RULES, SEVERITIES, Finding, LocatedFinding, Rule, Severity
from mcpspy.rules.follows import told_by_lock
from mcpspy.rules.judge import Fold, JudgedEvent, JudgedEvents
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

    problems: tuple[Problem, ...] = ()
    """What failed, and why."""
    requests_failed: int = 0
    """The number of failed requests."""
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
        return live_text(self.open)

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
    rules: Mapping[str, Rule | str] = field(default_factory=lambda: RULES)
    """The rules of the findings by id, each as a row of the table or as one sentence."""


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
    fold = _Check(capture.header, expected.of_server(capture.header.name), lock, show=show)
    operations = None if expected.slow_call is None else Operations(expected.slow_call)
    problems = Problems(capture.header)
    events = JudgedEvents(fold, problems, as_revision=as_revision, clients=clients, operations=operations)
    deque(events.all(capture.records(read=read), live=live), 0)
    checked = replace(fold.checked, path=path, failed=events.failed, live=live)
    return replace(checked, problems=tuple(problems.made()), requests_failed=problems.failed)


class _Check(Fold):
    """The fold of one capture into its findings: those of the rules, of the expectations and of the lock."""

    def __init__(self, header: Header, expected: Sequence[Expectation], lock: Lock | None, *, show: bool) -> None:
        self._watch = ExpectationWatch(expected, header) if expected else None
        self._lock = LockCheck(lock, header.name) if lock else None
        self._show = show
        self._frames = 0
        self._spoken: set[Revision | None] = set()
        self._found: list[tuple[Finding, ShownFrame | None]] = []
        self._of_lock: dict[tuple[int, int], list[Finding]] = {}  # by frame and part
        self.checked = Checked("", 0, (), ())
        """The result, after the end."""

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if isinstance(event, LocatedFinding):
            finding = event.finding
            if not told_by_lock(finding, self._of_lock.get((finding.frame, finding.part), ())):
                self._take(event)
        elif not isinstance(event, GateAct):
            for found in self._watch.add(event) if self._watch else ():
                self._take(found)
            if type(event) is Message:
                self._frames += event.part == 0
                self._spoken.add(event.revision)
                for found in self._lock.add(event) if self._lock else ():
                    self._of_lock.setdefault((found.finding.frame, found.finding.part), []).append(found.finding)
                    self._take(found)
            else:
                self._frames += type(event) is Frame or (type(event) is HttpUnit and event.frame is not None)

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:
        """Finish."""
        for found in self._lock.end() if self._lock and not live else ():
            self._take(found)
        for found in self._watch.end(live=live) if self._watch else ():
            self._take(found)
        self._found.sort(key=lambda it: (it[0].frame, it[0].part))
        self.checked = Checked(
            path="",
            frames=self._frames,
            revisions=tuple(revision.value for revision in Revision if revision in self._spoken),
            findings=tuple(finding for finding, _ in self._found),
            shown=tuple(it for _, it in self._found if it),
            met=self._watch.outcomes if self._watch else (),
            open=open_requests(pending) if live else (),
        )

    def _take(self, found: LocatedFinding) -> None:
        self._found.append((found.finding, shown(found) if self._show else None))


def open_requests(pending: Iterable[Exchange]) -> tuple[OpenRequest, ...]:
    """Return the requests of a live capture that may still be answered, oldest first."""
    waiting = sorted(filter(_is_open, pending), key=lambda it: it.request.n)
    return tuple(OpenRequest(it.request.n, it.request.side, it.method, it.name) for it in waiting)


def live_text(waiting: Sequence[OpenRequest]) -> str:
    """Return what is open in a live capture, as one sentence."""
    if not waiting:
        return "the capture is live, no request is open"
    named = ", ".join(map(str, waiting[:_NAMED]))
    more = f" and {len(waiting) - _NAMED:,} more" if len(waiting) > _NAMED else ""
    verb = "is" if len(waiting) == 1 else "are"
    return f"the capture is live, {plural(len(waiting), 'request')} {verb} still open: {named}{more}"


def _is_open(exchange: Exchange) -> bool:
    """Return whether an exchange of a live capture may still get its response."""
    if exchange.left is not None or exchange.lost is not None:
        return False
    return exchange.final_status(live=False) in ("unanswered", "held")


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


# Repeated findings are reported once: the first finding of its kind, with the frames of the others.
#
# Findings are of one kind if one peer broke one rule at one place of messages with the same method, about the same
# tool, prompt or resource. The elements of an array are one place. So a server that leaves a member out of every result
# of a tool causes one finding and not thousands, and two tools with the same fault cause two. The sentences of findings
# do not count, because they quote words that peers choose. Two findings of a rule at exactly one place of one message
# are two faults.

_INDEX = re.compile(r"/\d+(?=/|$)")
_ALSO = 100  # other frames of each kind that are named


@dataclass(slots=True)
class Repeated:
    """How often one thing was found, and in which frames."""

    count: int = 0
    frames: list[int] = field(default_factory=list)
    """The first ones, in their order."""

    def add(self, frame: int) -> None:
        """Count it once more."""
        self.count += 1
        if self.frames[-1:] != [frame] and len(self.frames) <= _ALSO:
            self.frames.append(frame)

    def told(self, finding: Finding) -> Finding:
        """Return the first finding with the number, and with the other frames."""
        return replace(finding, count=self.count, also=tuple(self.frames[1:]))


class Kinds:
    """The kinds of findings, numbered in the order of the first ones."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._frame: tuple[int, int] | None = None
        self._at_one_place: Counter[tuple[object, ...]] = Counter()  # of this frame

    def number(self, finding: Finding) -> int:
        """Return the number of the kind of the next finding."""
        if self._frame != (finding.frame, finding.part):
            self._frame = finding.frame, finding.part
            self._at_one_place.clear()
        place = finding.rule, finding.blame, finding.pointer
        number = self._numbers.setdefault((*_kind(finding), self._at_one_place[place]), len(self._numbers))
        self._at_one_place[place] += 1
        return number


class KindCount(Fold):
    """How many kinds of findings of each severity there are."""

    def __init__(self) -> None:
        self.number: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
        self._kinds = Kinds()
        self._known = 0

    def add(self, event: JudgedEvent) -> None:
        """Add the next event."""
        if isinstance(event, LocatedFinding) and self._kinds.number(event.finding) == self._known:
            self._known += 1
            self.number[event.finding.severity] += 1

    def end(self, pending: Sequence[Exchange], *, live: bool) -> None:
        """Finish."""


def counted(checked: Checked) -> Checked:
    """Return the same with one finding of each kind, in the order of the first ones."""
    kinds = Kinds()
    first: list[int] = []  # by kind: the place of the first one
    repeated: dict[int, Repeated] = defaultdict(Repeated)
    for place, finding in enumerate(checked.findings):
        kind = kinds.number(finding)
        if kind == len(first):
            first.append(place)
        repeated[kind].add(finding.frame)
    findings = [repeated[kind].told(checked.findings[place]) for kind, place in enumerate(first)]
    shown = tuple(checked.shown[place] for place in first) if checked.shown else ()
    return replace(checked, findings=tuple(findings), shown=shown)


def _kind(finding: Finding) -> tuple[object, ...]:
    place = _INDEX.sub("/*", finding.pointer)
    return finding.rule, finding.severity, finding.blame, finding.revision, place, finding.concerns
