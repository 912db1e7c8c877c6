"""What came of each request: `outcomes/`, in the form of `tests/cases.py`, and what such texts cannot show.

A line has the address, the method, the outcome, and why a failing outcome is normal; `!` stands for a failed request.
"""

from pathlib import Path

import pytest

from mcpspy.capture.records import End
from mcpspy.conversation.outcomes import Outcome
from mcpspy.timeline import Row, final_rows, streamed_rows
from tests.cases import check
from tests.rules.examples import records
from tests.transcript import OPENS

FILES = sorted((Path(__file__).parent / "outcomes").glob("*.txt"))
RESPONSES = ("result", "error")


def told(text, _=None):
    """Return the outcomes of a transcript; a capture over HTTP has an end record."""
    found = records(text)
    if found[0] not in OPENS:
        found.append(End(len(found) + 9, found[-1].t + 1_000_000))
    return outcomes(found)


def outcomes(found):
    """Return the outcomes of some records, which are the same while they are read."""
    rows = [row for row in final_rows(lambda: found, live=False) if row.outcome and row.kind not in RESPONSES]
    lines = {(row.n, row.part): line(row) for row in rows}
    assert len(lines) == len(rows)
    assert streamed(found) == {(row.n, row.part): (row.outcome, row.expected) for row in rows}
    return list(lines.values())


def streamed(found):
    """Return the latest outcome of each request, by its address, as a viewer sees it."""
    latest, ordinals = {}, {}
    for it in streamed_rows(found):
        if isinstance(it, Outcome):
            latest[it.n, it.part] = it.outcome, it.expected
        elif isinstance(it, Row) and it.outcome:
            if it.kind == "request":
                ordinals[it.exchange.ordinal] = it.n, it.part
            place = ordinals[it.exchange.ordinal] if it.exchange else (it.n, it.part)
            latest[place] = it.outcome, it.expected
    return latest


def line(row):
    """Return a row as a line of the files."""
    place = f"#{row.n}.{row.part}" if row.raw.startswith(b"[") else f"#{row.n}"
    subject = row.method or f"{row.http['method']} {row.http['target']}"
    return f"{place} {subject} {row.outcome}{f' ({row.expected})' if row.expected else ''}{' !' if row.failed else ''}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_request_has_this_outcome(path):
    check(path, told)
