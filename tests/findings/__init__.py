"""The stored findings of `check` in each golden capture, one finding per line, in `NAME.txt` beside this file.

`NAME.as-REVISION.txt` has the findings under another revision than the capture uses, to see what a migration needs.
Captures never change, so a difference comes from a change of a rule. In that case, `scripts/write-rules` writes the
files again, and the difference is reviewed like code.
"""

from pathlib import Path

from mcpspy.report.checked import check
from mcpspy.spec.revisions import Revision
from mcpspy.text import printable

CAPTURES = Path(__file__).parent.parent.parent / "captures"
MIGRATIONS = {"features-python1-2025-11-25": Revision.R2026_07_28, "everything-2025-11-25": Revision.R2026_07_28}


def texts() -> dict[Path, str]:
    """Return the expected content of each file."""
    there = Path(__file__).parent
    names = sorted(path.stem for path in CAPTURES.glob("*.jsonl"))
    found = {there / f"{name}.txt": findings(name) for name in names}
    return found | {
        there / f"{name}.as-{revision.value}.txt": findings(name, revision) for name, revision in MIGRATIONS.items()
    }


def findings(name: str, as_revision: Revision | None = None) -> str:
    """Return the findings in a golden capture as text, one per line."""
    lines = []
    for finding in check(str(CAPTURES / f"{name}.jsonl"), as_revision).findings:
        where = f"#{finding.frame}" + (f".{finding.part}" if finding.part else "")
        related = "".join(f" #{n}" for n in finding.related)
        what = f"{where:<6} {finding.severity:<7} {finding.rule:<30} {finding.blame:<6} {finding.pointer or '-'}"
        lines.append(f"{what} : {printable(finding.message, 300)}{f' ({related[1:]})' if related else ''}\n")
    return "".join(lines)
