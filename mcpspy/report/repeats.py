"""What repeats is reported once: the first finding of its kind, with the frames of the others.

Findings are of one kind if one peer broke one rule at one place of a message, and the sentence is the same but for the
value that was found there. A server that leaves a member out of every result makes one finding so, and not thousands.
"""

from dataclasses import replace

from mcpspy.report.checked import Checked
from mcpspy.rules import Finding

_FOUND = ", found "  # before the value, in sentences that tell what was expected


def counted(checked: Checked) -> Checked:
    """The same, with one finding of each kind, in the order of the first ones."""
    places: dict[tuple[str | None, ...], int] = {}
    frames: list[list[int]] = []
    kept: list[int] = []
    for number, finding in enumerate(checked.findings):
        place = places.setdefault(_kind(finding), len(kept))
        if place == len(kept):
            kept.append(number)
            frames.append([])
        else:
            frames[place].append(finding.frame)
    findings = [replace(checked.findings[n], also=tuple(also)) for n, also in zip(kept, frames, strict=True)]
    shown = tuple(checked.shown[number] for number in kept) if checked.shown else ()
    return replace(checked, findings=tuple(findings), shown=shown)


def _kind(finding: Finding) -> tuple[str | None, ...]:
    sentence = finding.message.partition(_FOUND)[0]
    return finding.rule, finding.severity, finding.blame, finding.revision, finding.pointer, sentence
