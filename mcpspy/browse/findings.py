"""The findings of a session, grouped by rule and by responsible side, the worst first.

The fold fills `SessionFindings`, which has the findings of each frame and the same findings in groups. It counts all of
them and keeps as many as a person can look at. `Outline` shows the groups as lines, each group folded or unfolded. The
order of groups may change while a session grows, so a line is addressed by its group and its number in the group, never
by its position alone.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.rules import RULES, SEVERITIES, Finding, Severity, worst
from mcpspy.text import printable

FRAMES = 100_000
"""The maximum number of frames whose findings are kept."""
OF_ONE = 50
"""The maximum number of findings kept per frame."""
OPERATIONAL = "ops/"
"""The prefix of the ids of operational rules."""


@dataclass(slots=True)
class Group:
    """The findings of one rule against one side."""

    severity: Severity
    rule: str
    blame: str
    count: int = 0
    """The number of findings."""
    findings: list[Finding] = field(default_factory=list)
    """The kept findings, in the order in which they were made."""

    @property
    def lines(self) -> int:
        """The number of lines below its own when unfolded; all findings that are not kept share one line."""
        return len(self.findings) + (self.count > len(self.findings))


class SessionFindings:
    """The findings of one session, as far as it is folded."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(SEVERITIES, 0)
        """The number of findings by severity."""
        self.groups: dict[tuple[str, str, str], Group] = {}
        """By severity, rule and responsible side."""
        self.operational = False
        """Whether operational findings are shown. They are opinions about the run, and shown on request only."""
        self._of: dict[int, list[Finding]] = {}  # by line number
        self._opinions: list[Finding] = []

    def add(self, finding: Finding) -> bool:
        """Add a finding. Returns whether it is shown."""
        if finding.rule.startswith(OPERATIONAL):
            if len(self._opinions) < FRAMES:
                self._opinions.append(finding)
            if not self.operational:
                return False
        self._show(finding)
        return True

    def show_operational(self, *, wanted: bool) -> list[int]:
        """Show or hide operational findings. Returns the lines of their frames."""
        if wanted == self.operational:
            return []
        self.operational = wanted
        if not wanted:
            return self.drop(OPERATIONAL)
        for finding in self._opinions:
            self._show(finding)
        return [finding.frame for finding in self._opinions]

    def _show(self, finding: Finding) -> None:
        self.counts[finding.severity] += 1
        key = (finding.severity, finding.rule, finding.blame)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(*key)
        group.count += 1
        if len(self._of) < FRAMES or finding.frame in self._of:
            known = self._of.setdefault(finding.frame, [])
            if len(known) < OF_ONE:
                known.append(finding)
                group.findings.append(finding)

    def drop(self, group: str) -> list[int]:
        """Remove the findings of the rules whose ids begin with `group`. Returns the lines of their frames."""
        for key, dropped in list(self.groups.items()):
            if dropped.rule.startswith(group):
                self.counts[dropped.severity] -= dropped.count
                del self.groups[key]
        lines = [n for n, known in self._of.items() if any(it.rule.startswith(group) for it in known)]
        for n in lines:
            self._of[n] = [it for it in self._of[n] if not it.rule.startswith(group)]
        return lines

    def of(self, n: int) -> tuple[Finding, ...]:
        """Return the findings of the frame on line `n`."""
        return tuple(self._of.get(n, ()))

    def worst(self, n: int) -> Severity | None:
        """Return the worst severity of the findings of the frame on line `n`; None if there are none."""
        return worst(self._of.get(n, ()))


class OutlineLine(NamedTuple):
    """A line of the outline: a group, or the finding with that number in the group."""

    group: Group
    number: int | None = None

    @property
    def finding(self) -> Finding | None:
        """The finding; None on the line of a group, and on the line for findings that are not kept."""
        kept = self.number is not None and self.number < len(self.group.findings)
        return self.group.findings[self.number or 0] if kept else None


class Outline:
    """The groups as lines, the worst and most frequent first. Call `arrange` after the session has grown."""

    def __init__(self, groups: Iterable[Group]) -> None:
        """`groups` may be a view of a growing collection."""
        self._known = groups
        self._unfolded: set[tuple[str, str, str]] = set()
        self._groups: list[Group] = []
        self._starts: list[int] = []  # the first line of each group
        self._lines = 0
        self.arrange()

    def __len__(self) -> int:
        """The number of lines."""
        return self._lines

    def arrange(self) -> None:
        """Sort the groups and number the lines."""
        self._groups = sorted(self._known, key=_order)
        self._starts, self._lines = [], 0
        for group in self._groups:
            self._starts.append(self._lines)
            self._lines += 1 + (group.lines if self.is_unfolded(group) else 0)

    def at(self, line: int) -> OutlineLine:
        """Return the entry on a line."""
        place = bisect_right(self._starts, line) - 1
        number = line - self._starts[place] - 1
        return OutlineLine(self._groups[place], None if number < 0 else number)

    def line_of(self, place: OutlineLine) -> int:
        """Return the current line of an entry: if it is folded, the line of its group; if it no longer exists, 0."""
        found = next((at for at, group in enumerate(self._groups) if _key(group) == _key(place.group)), None)
        if found is None:
            return 0
        start, group = self._starts[found], self._groups[found]
        shown = place.number is not None and self.is_unfolded(group)
        return start + 1 + min(place.number or 0, group.lines - 1) if shown else start

    def is_unfolded(self, group: Group) -> bool:
        """Return whether a group is unfolded."""
        return _key(group) in self._unfolded

    def fold(self, group: Group, *, unfold: bool) -> None:
        """Fold or unfold a group."""
        (self._unfolded.add if unfold else self._unfolded.discard)(_key(group))
        self.arrange()

    def fold_all(self, *, unfold: bool) -> None:
        """Fold or unfold all groups."""
        self._unfolded = {_key(group) for group in self._groups} if unfold else set()
        self.arrange()


def about(place: OutlineLine) -> list[str]:
    """Return details of a line: the finding, the explanation of the rule, and the page of the specification."""
    finding, rule = place.finding, RULES.get(place.group.rule)
    told = []
    if finding:
        related = f", see {', '.join(f'#{n}' for n in finding.related[:5])}" if finding.related else ""
        where = f" at {printable(finding.pointer, 200)}" if finding.pointer else ""
        told.append(f"#{finding.frame}: {printable(finding.message, 500)}{where}{related}")
    told.append(f"{place.group.rule} · {place.group.severity} · {place.group.blame}")
    if rule:
        advice = (f"{title}: {text}" for title, text in rule.advice(place.group.blame))
        told += [rule.explanation, *advice, f"see {finding.spec if finding else rule.url(None)}"]
    return told


def _key(group: Group) -> tuple[str, str, str]:
    return group.severity, group.rule, group.blame


def _order(group: Group) -> tuple[int, int, str, str]:
    return SEVERITIES.index(group.severity), -group.count, group.rule, group.blame
