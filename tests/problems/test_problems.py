"""What failed, and why: planted situations, each with the problems that are found in it."""

from collections import deque
from pathlib import Path

from mcpspy.capture.records import Header
from mcpspy.problems.fold import Problems
from mcpspy.rules.judge import JudgedEvents
from tests.cases import check
from tests.rules.examples import records

STDIO = Header("id", "2026-11-29T12:00:00.000000Z", "test", "stdio", "s")
HTTP = Header("id", "2026-11-29T12:00:00.000000Z", "test", "http", "s")


def problems_in(text):
    """Return the fold of a transcript."""
    fold = Problems(HTTP if ">>" in text or " http" in text else STDIO)
    deque(JudgedEvents(fold).all(records(text)), 0)
    return fold


def outcome(transcript, _):
    """Return the problems of a transcript: each as its headline, side and causes, and what to do."""
    found = []
    for problem in problems_in(transcript).made():
        found.append(f"#{problem.rows[0]} {problem.kind} {problem.headline}")
        for cause in (problem.cause, *problem.further):
            rows = ",".join(map(str, cause.rows))
            found.append(
                f"#{cause.rows[0] if cause.rows else 0} {problem.side} {cause.certainty} {cause.text} [{rows}]"
            )
        found += (f"#0 do {advice}" for advice in problem.advice)
    return found


def test_planted_situations_are_explained():
    check(Path(__file__).with_name("planted.txt"), outcome)
