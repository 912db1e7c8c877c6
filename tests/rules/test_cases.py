"""Short sessions with all their findings: `cases/*.txt`, in the form of `tests/cases.py`.

A finding has the line number of the record, severity, rule and blamed side, and in some cases also pointer, message and
related lines. A request at the end of a transcript has no answer, which is the info `pairing/unanswered`. Only the
files in COMPLETE have it. The rules of `ops` run for `ops.txt`.
"""

from pathlib import Path

import pytest

from mcpspy.conversation.facts import Operations
from tests.cases import check, renewed
from tests.rules.examples import findings

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
COMPLETE = ("follows", "lifecycle-ending", "pairing")


def told(transcript, lines, *, complete=False, operations=None):
    """Return the findings in a transcript, with their messages if the lines so far have some."""
    full = any(" : " in line for line in lines)
    found = sorted(findings(transcript, operations=operations), key=lambda it: (it.frame, it.part, it.rule, it.pointer))
    return [_line(it, full) for it in found if complete or (it.severity, it.rule) != ("info", "pairing/unanswered")]


def _line(finding, full):
    place = f"#{finding.frame}" + (f".{finding.part}" if finding.part else "")
    line = f"{place} {finding.severity} {finding.rule} {finding.blame}"
    if not full:
        return line
    related = " ".join(f"#{n}" for n in finding.related)
    return f"{line} {finding.pointer or '-'} : {finding.message}" + (f" ({related})" if related else "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_session_has_exactly_these_findings(path):
    operations = Operations() if path.stem == "ops" else None
    check(path, lambda *case: told(*case, complete=path.stem in COMPLETE, operations=operations))


def test_a_finding_too_few_or_too_many_changes_the_file():
    case = "# A tool is listed first.\n= 2025-06-18\n...\n\n> 2 tools/lists\n#4 warning schema/unknown-method client\n"
    assert renewed(case, told) == case
    assert renewed(case.replace("#4 warning schema/unknown-method client", "ok"), told) == case
    assert "#4 info pairing/unanswered server\n" in renewed(case, lambda *it: told(*it, complete=True))


def over_http(text):
    """Return the transcript over HTTP, with each answer in the response to the last request."""
    lines, streams, waiting = [], False, False
    for line in text.split("\n"):
        mark, _, rest = line.partition(" ")
        asks = rest.split(" ")[0].isdigit() and rest.split(" ")[1] not in "=!"
        if mark == "=":
            lines.append(f"{line} http")
        elif mark == ">":
            modern = "META" in text and "META" not in rest and "resultType" in text
            lines.append(f">> {'[mcp-protocol-version: 2026-07-28] ' if modern else ''}{rest}")
            if asks or rest.startswith("|"):
                streams, waiting = False, True
            else:
                lines.append("<< 202")
        elif mark == "<":
            if waiting and not streams and (asks or rest.startswith("notifications/")):
                lines.append("<< 200 events")
                streams = True
            lines.append(f"<- {rest}" if streams else f"<< 200 {rest}")
    return "\n".join(lines)


def test_the_same_fault_has_the_same_finding_on_both_transports():
    """R-12: each transcript of `transports.txt`."""
    faults = []

    def compared(transcript, _):
        ours, theirs = (
            sorted((it.rule, it.severity, it.blame) for it in findings(text) if not it.rule.startswith("http/"))
            for text in (transcript, over_http(transcript))
        )
        faults.append(transcript if ours == theirs and any(it[1] != "info" for it in ours) else "")
        return []

    renewed((FILES[0].parent / "transports.txt").read_text(encoding="utf-8"), compared)
    assert all(faults)
    assert len(faults) > 20
