"""The report of a replay as JUnit XML."""

from collections.abc import Sequence

from mcpspy.replay.compare.sessions import FINE, Compared
from mcpspy.report.differences.exchange_text import headline, subject, value_lines
from mcpspy.report.junit import Case, document


def as_junit(path: str, compared: Sequence[Compared]) -> str:
    """Return a suite with a case for each exchange."""
    return document("mcpspy replay", [(path, map(_case, compared))])


def _case(it: Compared) -> Case:
    name = subject(it) + (f" #{it.request}" if it.request else "")
    if it.outcome == "skipped":
        return Case(name, "skipped", it.reason or "")
    if it.outcome in FINE:
        return Case(name)
    lines = [line for difference in it.differences for line in value_lines(difference)]
    return Case(name, "failure", headline(it), it.outcome, lines)
