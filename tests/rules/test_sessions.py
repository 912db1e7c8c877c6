"""Whole sessions, from the handshake to the end, with all their findings.

The sessions in `sessions/clean` are correct, with extensions and with rare but legal traffic. The sessions in
`sessions/faulty` contain planted faults. A file has a comment, a transcript (`tests/transcript.py`), and after a line
`--` the findings: line number of the record, severity, rule, blamed side.
"""

from pathlib import Path

import pytest

from mcpspy.spec.revisions import Revision
from tests.rules.examples import findings

FOLDER = Path(__file__).parent / "sessions"
CLEAN, FAULTY = (sorted((FOLDER / name).glob("*.txt")) for name in ("clean", "faulty"))


def read(path):
    """Return the transcript of a session and its expected findings."""
    text, _, expected = path.read_text(encoding="utf-8").partition("\n--\n")
    transcript = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    return transcript, expected.split("\n")[:-1]


def told(transcript):
    """Return the findings, one line for each."""
    return [f"#{it.frame} {it.severity} {it.rule} {it.blame}" for it in sorted(findings(transcript), key=_place)]


def _place(finding):
    return finding.frame, finding.part, finding.rule


@pytest.mark.parametrize("path", [*CLEAN, *FAULTY], ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_session_has_exactly_the_findings_that_are_true(path):
    """R-01 to R-12, X-01, X-02."""
    transcript, expected = read(path)
    assert told(transcript) == expected


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_what_is_right_is_never_called_wrong(path):
    """R-07."""
    _, expected = read(path)
    assert all(" info " in line for line in expected)


def test_there_are_sessions_of_every_revision_and_transport():
    assert len(CLEAN) >= 20
    assert len(FAULTY) >= 20
    for paths in (CLEAN, FAULTY):
        names = " ".join(path.stem for path in paths)
        assert all(revision.value in names for revision in Revision)
        assert all(transport in names for transport in ("stdio-", "http-", "sse-"))
