"""Short sessions with all their findings, in `cases/`.

A file has parts, which begin with comments. A case is a transcript (`tests/transcript.py`), followed by its findings:
line number of the record, severity, rule, blamed side, and in some cases also pointer, message and related lines. `ok`
stands for no finding. What stands above `...` is the beginning of each case below it, up to the next comment.

A request at the end of a transcript has no answer, which is the info `pairing/unanswered`. Only COMPLETE files have it.

`MCPSPY_RENEW=1` writes the findings of this version into the files.
"""

import os
from pathlib import Path

import pytest

from tests.rules.examples import findings

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
COMPLETE = ("follows", "lifecycle-ending", "pairing")


def renewed(text, *, complete):
    """Return the content of a file with the findings of this version."""
    blocks, beginning = [], []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("# ") or line == "#"]
        transcript = [line for line in lines if line not in comments and line != "ok" and not is_finding(line)]
        beginning = [] if comments else beginning
        if transcript[-1] == "...":
            beginning = transcript[:-1]
            blocks.append(block)
            continue
        full = any(is_finding(line) and " : " in line for line in lines)
        found = sorted(findings("\n".join(beginning + transcript)), key=_place)
        told = [_line(it, full) for it in found if complete or (it.severity, it.rule) != ("info", "pairing/unanswered")]
        blocks.append("\n".join([*comments, *transcript, *(told or ["ok"])]))
    return "\n\n".join(blocks) + "\n"


def is_finding(line):
    return line.startswith("#") and line[1:2].isdigit()


def _place(finding):
    return finding.frame, finding.part, finding.rule, finding.pointer


def _line(finding, full):
    place = f"#{finding.frame}" + (f".{finding.part}" if finding.part else "")
    told = f"{place} {finding.severity} {finding.rule} {finding.blame}"
    if not full:
        return told
    related = " ".join(f"#{n}" for n in finding.related)
    return f"{told} {finding.pointer or '-'} : {finding.message}" + (f" ({related})" if related else "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_case_has_exactly_these_findings(path):
    text = path.read_text(encoding="utf-8")
    found = renewed(text, complete=path.stem in COMPLETE)
    if os.environ.get("MCPSPY_RENEW"):
        path.write_text(found, encoding="utf-8")
    assert found == text


def test_a_finding_too_few_or_too_many_changes_the_file():
    case = "# A tool is listed first.\n= 2025-06-18\n...\n\n> 2 tools/lists\n#4 warning schema/unknown-method client\n"
    assert renewed(case, complete=False) == case
    assert renewed(case.replace("#4 warning schema/unknown-method client", "ok"), complete=False) == case
    assert "#4 info pairing/unanswered server\n" in renewed(case, complete=True)
