"""Repeated findings are reported once: the first finding of its kind, with the frames of the others.

Findings are of one kind if one peer broke one rule at one place of messages with the same method, about the same tool,
prompt or resource. The elements of an array are one place. So a server that leaves a member out of every result of a
tool causes one finding and not thousands, and two tools with the same fault cause two. The sentences of findings do not
count, because they quote words that peers choose. Two findings of a rule at exactly one place of one message are two
faults.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from mcpspy.report.checked import Checked
from mcpspy.rules import Finding

_INDEX = re.compile(r"/\d+(?=/|$)")
_NAMED = 100  # other frames of each kind that are named


@dataclass(slots=True)
class Repeated:
    """How often one thing was found, and in which frames."""

    count: int = 0
    frames: list[int] = field(default_factory=list)
    """The first ones, in their order."""

    def add(self, frame: int) -> None:
        """Count it once more."""
        self.count += 1
        if self.frames[-1:] != [frame] and len(self.frames) <= _NAMED:
            self.frames.append(frame)

    def told(self, finding: Finding) -> Finding:
        """Return the first finding with the number, and with the other frames."""
        return replace(finding, count=self.count, also=tuple(self.frames[1:]))


def counted(checked: Checked) -> Checked:
    """Return the same with one finding of each kind, in the order of the first ones."""
    first: dict[tuple[object, ...], int] = {}
    repeated: dict[int, Repeated] = defaultdict(Repeated)
    at_one_place: Counter[tuple[object, ...]] = Counter()
    frame: tuple[int, int] | None = None
    for number, finding in enumerate(checked.findings):
        if frame != (finding.frame, finding.part):
            frame = finding.frame, finding.part
            at_one_place.clear()
        place = finding.rule, finding.blame, finding.pointer
        kept = first.setdefault((*_kind(finding), at_one_place[place]), number)
        at_one_place[place] += 1
        repeated[kept].add(finding.frame)
    findings = [repeated[number].told(checked.findings[number]) for number in first.values()]
    shown = tuple(checked.shown[number] for number in first.values()) if checked.shown else ()
    return replace(checked, findings=tuple(findings), shown=shown)


def _kind(finding: Finding) -> tuple[object, ...]:
    place = _INDEX.sub("/*", finding.pointer)
    return finding.rule, finding.severity, finding.blame, finding.revision, place, finding.concerns
