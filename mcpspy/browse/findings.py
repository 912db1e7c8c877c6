"""The findings of a session as people look through them: by rule and by who is at fault, the worst first.

The fold fills `SessionFindings`. That knows the findings of each frame, and the same in groups; it counts everything,
and keeps what a person can look at. `Outline` is the list of those groups, each folded or not: which line of it is
what. A session that grows may change the order of groups, so a line is addressed by its group and its number in that,
never by its place alone.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.rules import RULES, SEVERITIES, Finding, Severity, worst
from mcpspy.text import printable

FRAMES = 100_000
"""Frames whose findings are kept."""
OF_ONE = 50
"""Findings of one frame that are kept."""
OPERATIONAL = "ops/"
"""What the ids of the rules of operational findings begin with."""


@dataclass(slots=True)
class Group:
    """What one rule has found, with one side to blame for it."""

    severity: Severity
    rule: str
    blame: str
    count: int = 0
    """How often it was found."""
    findings: list[Finding] = field(default_factory=list)
    """Those that are kept, in the order in which they were made."""

    @property
    def lines(self) -> int:
        """How many lines it takes unfolded, below its own: one for all that are not kept."""
        return len(self.findings) + (self.count > len(self.findings))


class SessionFindings:
    """The findings of one session, as far as the fold has come."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(SEVERITIES, 0)
        """How often something was found, by severity."""
        self.groups: dict[tuple[str, str, str], Group] = {}
        """By severity, rule and blame."""
        self.operational = False
        """Operational findings are shown: opinions about the run, which somebody has asked for."""
        self._of: dict[int, list[Finding]] = {}  # by line number
        self._opinions: list[Finding] = []

    def add(self, finding: Finding) -> bool:
        """Take one more; whether it is shown."""
        if finding.rule.startswith(OPERATIONAL):
            if len(self._opinions) < FRAMES:
                self._opinions.append(finding)
            if not self.operational:
                return False
        self._show(finding)
        return True

    def show_operational(self, *, wanted: bool) -> list[int]:
        """Show operational findings, or hide them; returns the lines of their frames."""
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
        """Forget what the rules have found whose ids begin with `group`; returns the lines of their frames."""
        for key, dropped in list(self.groups.items()):
            if dropped.rule.startswith(group):
                self.counts[dropped.severity] -= dropped.count
                del self.groups[key]
        lines = [n for n, known in self._of.items() if any(it.rule.startswith(group) for it in known)]
        for n in lines:
            self._of[n] = [it for it in self._of[n] if not it.rule.startswith(group)]
        return lines

    def of(self, n: int) -> tuple[Finding, ...]:
        """What was found of the frame on line `n`."""
        return tuple(self._of.get(n, ()))

    def worst(self, n: int) -> Severity | None:
        """The severity of the worst of that."""
        return worst(self._of.get(n, ()))


class OutlineLine(NamedTuple):
    """What a line of the outline is: a group, or in it the finding of that number."""

    group: Group
    number: int | None = None

    @property
    def finding(self) -> Finding | None:
        """The finding; None on the line of a group, and on that of those that are not kept."""
        kept = self.number is not None and self.number < len(self.group.findings)
        return self.group.findings[self.number or 0] if kept else None


class Outline:
    """The groups as lines, the worst and the most frequent first; `arrange` after the session has grown."""

    def __init__(self, groups: Iterable[Group]) -> None:
        """`groups` may be a view of what grows."""
        self._known = groups
        self._unfolded: set[tuple[str, str, str]] = set()
        self._groups: list[Group] = []
        self._starts: list[int] = []  # the line of each group
        self._lines = 0
        self.arrange()

    def __len__(self) -> int:
        """How many lines there are."""
        return self._lines

    def arrange(self) -> None:
        """Put the groups in order and number the lines."""
        self._groups = sorted(self._known, key=_order)
        self._starts, self._lines = [], 0
        for group in self._groups:
            self._starts.append(self._lines)
            self._lines += 1 + (group.lines if self.is_unfolded(group) else 0)

    def at(self, line: int) -> OutlineLine:
        """What stands on a line."""
        place = bisect_right(self._starts, line) - 1
        number = line - self._starts[place] - 1
        return OutlineLine(self._groups[place], None if number < 0 else number)

    def line_of(self, place: OutlineLine) -> int:
        """The line on which something stands now; of what is folded away that of its group, of what is gone 0."""
        found = next((at for at, group in enumerate(self._groups) if _key(group) == _key(place.group)), None)
        if found is None:
            return 0
        start, group = self._starts[found], self._groups[found]
        shown = place.number is not None and self.is_unfolded(group)
        return start + 1 + min(place.number or 0, group.lines - 1) if shown else start

    def is_unfolded(self, group: Group) -> bool:
        """Whether the findings of a group are shown."""
        return _key(group) in self._unfolded

    def fold(self, group: Group, *, unfold: bool) -> None:
        """Hide the findings of a group, or show them."""
        (self._unfolded.add if unfold else self._unfolded.discard)(_key(group))
        self.arrange()

    def fold_all(self, *, unfold: bool) -> None:
        """Hide all findings, or show them."""
        self._unfolded = {_key(group) for group in self._groups} if unfold else set()
        self.arrange()


def about(place: OutlineLine) -> list[str]:
    """What a person wants to know of a line: what was found, what the rule is about, and where it is written."""
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
